"""Read the records of a data folder for the DHC: which files, in pieces on several threads, and what is wrong with them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Lock
from typing import Any, Final, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from censafe.errors import DataError
from censafe.geography.crosswalk import with_prim_keys
from censafe.geography.spines.tree import LevelRule
from censafe.model.compiled import compiled
from censafe.model.folders import matching_files, packed_words
from censafe.model.work_ahead import worked_ahead
from censafe.population.blocks.areas import BlockList, in_order, read_grfc_blocks
from censafe.population.blocks.cef import find_cef, total_findings
from censafe.population.blocks.columns import batches
from censafe.population.blocks.dhc.counts import (
    DhcData,
    PersonPart,
    UnitPart,
    UnitTable,
    dhc_data,
    recode_unit_part,
)
from censafe.population.blocks.dhc.kernels import (
    PERSON_DOUBTS,
    PERSON_RULES,
    UNIT_RULES,
    PersonFields,
    UnitFields,
)
from censafe.population.blocks.dhc.tables import PERSON_SHAPE, household_rules
from censafe.population.blocks.dhc.words import (
    PERSON_COLUMNS,
    UNIT_COLUMNS,
    contradiction_findings,
    person_findings,
    unit_findings,
)
from censafe.population.blocks.layout import no_persons
from censafe.population.blocks.lookup import BlockTable, find_block, line_blocks
from censafe.population.files.fixed_width import FixedFile, Numbers, RecordLayout, fixed_layout
from censafe.population.files.parquet import readable_texts
from censafe.population.files.relation import one_or_folder, require_folder
from censafe.population.findings import Finding, merge_findings, raise_if_fatal, stated

_MOST: Final = 2**31 - 1
_NONE: Final = -1
_Bytes = NDArray[np.uint8]

_kernel = compiled()


def column_numbers(column: Any, blank: int) -> Numbers:
    """A column of text or whole numbers as numbers, -1 where a value is neither.

    Example:
        >>> import pyarrow as pa
        >>> column_numbers(pa.array(["07", None, "x", " "]), 0).tolist(), column_numbers(pa.array([7, -7, None]), -1).tolist()
        ([7, 0, -1, 0], [7, -1, -1])
    """
    import pyarrow as pa

    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        column = column.dictionary_encode()
    if not pa.types.is_dictionary(column.type):
        return _integers(column, blank)
    values = column.dictionary
    if pa.types.is_integer(values.type):
        used = _integers(values, blank)
    else:
        used = np.array([_number(text, blank) for text in readable_texts(values)], np.int32)
    numbers = np.append(used, [blank, _NONE]).astype(np.int32)
    return numbers[_places(column, len(used), len(used) + 1)]


def _places(column: Any, null: int, outside: int) -> Any:
    """Places of the words of a column; those of nulls, and of words that a damaged file does not have, are given."""
    places = column.indices.fill_null(null).to_numpy(zero_copy_only=False)
    return np.where((places >= 0) & (places <= null), places, outside)


def _integers(column: Any, blank: int) -> Numbers:
    values = column.fill_null(0).to_numpy(zero_copy_only=False)
    numbers = np.where((values >= 0) & (values <= _MOST), values, _NONE).astype(np.int32)
    if column.null_count:
        numbers[column.is_null().to_numpy(zero_copy_only=False)] = blank
    return numbers


def _number(text: str | None, blank: int) -> int:
    stripped = (text or "").strip()
    if not stripped:
        return blank
    known = stripped.isascii() and stripped.isdecimal()
    return min(int(stripped), _MOST) if known else _NONE


def column_blocks(column: Any, table: BlockTable) -> Numbers:
    """Positions of blocks by a column of their identifiers, -1 where there is none."""
    import pyarrow as pa

    if not pa.types.is_dictionary(column.type):
        column = column.cast(pa.string()).dictionary_encode()
    texts = column.dictionary.cast(pa.string()).fill_null("")
    _, offsets, content = texts.buffers()
    ends = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    letters = np.zeros(1, np.uint8) if content is None else np.frombuffer(content, np.uint8)
    known = np.full(len(texts) + 1, _NONE, np.int32)
    _find_texts(table, letters, ends, known)
    return known[_places(column, len(texts), len(texts))]


@_kernel
def _find_texts(table: BlockTable, letters: _Bytes, ends: Numbers, blocks: Numbers) -> None:
    for row in range(len(ends) - 1):
        blocks[row] = find_block(table, letters, ends[row], ends[row + 1])


_BLANK: Final[Mapping[str, int]] = {"QGQTYP": 0, "VACS": 0}  # numbers of blanks in columns
_CROSSWALKS: Final = "*crosswalk*.csv"
_NO_COLUMN: Final = np.zeros(0, np.int32)
_AHEAD: Final = 5  # pieces of a file that are held at once
_Ints = NDArray[np.int64]
_Piece = TypeVar("_Piece")


@dataclass(frozen=True)
class DhcFiles:
    """The files of a data folder.

    Args:
        units: files of the units.
    """

    kind: Literal["parquet", "fixed"]
    units: tuple[Path, ...]
    persons: tuple[Path, ...]
    grfc: tuple[Path, ...]
    totals: tuple[Path, ...] = ()
    crosswalk: Path | None = None

    @property
    def all(self) -> tuple[Path, ...]:
        """Every file with records."""
        return (*self.units, *self.persons, *self.totals)


def dhc_files(folder: Path) -> DhcFiles:
    """Find the files: ``persons`` and ``units`` as Parquet (a file, or a folder of files), or CEF20_PER* and CEF20_UNIT*, with GRF-C*.txt."""
    require_folder(folder, "the records")
    tables = {name: one_or_folder(folder, name, "parquet") for name in ("units", "persons")}
    fixed = find_cef(folder)
    if any(tables.values()) and fixed:
        raise DataError(f"{folder}: both Parquet files and Census Edited Files; fix: keep one of them")
    if not any(tables.values()) and not fixed:
        raise DataError(
            f"{folder}: no input file; allowed: persons.parquet and units.parquet (or folders of these names), or CEF20_PER* and "
            f"CEF20_UNIT*, with GRF-C*.txt{packed_words(folder)}"
        )
    missing = [f"{name}.parquet" for name, paths in tables.items() if not paths and not fixed]
    grfc = matching_files(folder, "GRF-C*.txt")
    missing += [] if grfc else ["GRF-C*.txt"]
    if missing:
        raise DataError(
            f"{folder}: no input file {' and '.join(missing)}; fix: add what is missing{packed_words(folder)}"
        )
    crosswalks = matching_files(folder, _CROSSWALKS)
    if len(crosswalks) > 1:
        raise DataError(
            f"{folder}: {len(crosswalks)} files {_CROSSWALKS}; allowed: one; fix: keep one of them"
        )
    crosswalk = crosswalks[0] if crosswalks else None
    if fixed:
        totals = fixed.get("totals", ())
        return DhcFiles("fixed", fixed["units"], fixed["persons"], grfc, totals, crosswalk)
    return DhcFiles("parquet", tables["units"], tables["persons"], grfc, crosswalk=crosswalk)


def read_dhc(files: DhcFiles, rules: Sequence[LevelRule], *, workers: int | None = None) -> DhcData:
    """Read, check and count the records of a data folder.

    Source:
        uscensusbureau/DAS_2020_DHC_Production_Code, readers of the CEF and their recodes.
    """
    blocks = read_grfc_blocks(files.grfc, rules)
    areas = in_order(blocks.areas, blocks.spine.leaf.codes)
    if areas is not None:
        areas = with_prim_keys(areas, files.grfc, files.crosswalk)
    reading = _Reading(files, blocks, workers or min(4, os.cpu_count() or 1))
    units = reading.units()
    table = UnitTable(units)
    units = [replace(part, claims=None) for part in units]
    persons = reading.persons(table)
    del table
    problems = merge_findings(reading.findings)
    raise_if_fatal(problems, "records of the DHC")
    data = dhc_data(blocks.spine, persons, units)
    people = data.histograms["dhc-persons"]
    findings = no_persons(files.persons[0].name, int(people.count.sum(dtype=np.int64)))
    findings += total_findings(files.totals, blocks.spine, people, data.facilities.astype(np.int64))
    raise_if_fatal(findings, "records of the DHC")
    return replace(data, files=files.all, areas=areas, findings=problems)


@dataclass(frozen=True)
class _Table:
    """A kind of record: layout of fixed width, columns by name of their field, and columns that a table may lack, under their names."""

    layout: RecordLayout
    columns: Mapping[str, str]
    more: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()


_UNITS: Final = _Table(fixed_layout("cef_unit"), UNIT_COLUMNS, ("OIDTB",), ("HHT2", "UPART", "BCUSTATEFP"))
_PERSONS: Final = _Table(fixed_layout("cef_per"), PERSON_COLUMNS, optional=("RTYPE", "LIVE_ALONE"))
_STATE: Final = 10**14  # what follows the state in a geocode


class _Fields(NamedTuple):
    """Records of a piece of a file: fields as numbers by name, columns that a table may lack, and positions of the blocks of units."""

    columns: Mapping[str, Numbers]
    more: Mapping[str, Numbers]
    block: Numbers


def _batch_fields(table: _Table, blocks: BlockTable, batch: Any) -> _Fields:
    """Records of a batch of Parquet."""
    columns = {
        name: column_numbers(batch.column(column), _BLANK.get(column, -1))
        for name, column in table.columns.items()
    }
    names = set(batch.schema.names)
    more = {name: column_numbers(batch.column(name), -1) for name in table.optional if name in names}
    block = column_blocks(batch.column("OIDTB"), blocks) if table is _UNITS else _NO_COLUMN
    return _Fields(columns, more, block)


def _line_fields(table: _Table, blocks: BlockTable, numbers: dict[str, Numbers], text: _Bytes) -> _Fields:
    """Records of some lines."""
    columns, more = ({name: numbers[name] for name in names} for names in (table.columns, table.optional))
    block = line_blocks(text, blocks, len(numbers["mafid"])) if table is _UNITS else _NO_COLUMN
    return _Fields(columns, more, block)


@dataclass(eq=False)
class _Reading:
    """The files, their blocks, and what was found wrong so far."""

    files: DhcFiles
    blocks: BlockList
    workers: int
    findings: list[Finding] = field(default_factory=list)
    foreign: int = 0  # units of another state than their block
    counting: Lock = field(default_factory=Lock)

    def units(self) -> list[UnitPart]:
        """All units; findings of each file."""
        parts: list[UnitPart] = []
        for path in self.files.units:
            bad, edits = np.zeros(len(UNIT_RULES), np.int64), np.zeros(len(household_rules()), np.int64)
            for part in self._parts(path, _UNITS, self._unit_part):
                bad += part.bad
                edits += part.edits
                parts.append(part)
            self.findings += unit_findings(path.name, bad, edits)
        name = self.files.units[0].name
        if not sum(len(part.levels) for part in parts):
            raise_if_fatal(merge_findings(self.findings), "units of the DHC")
            raise_if_fatal(stated("cef.header-only", name), "units of the DHC")
        return parts

    def persons(self, units: UnitTable) -> list[_Ints]:
        """Keys of all persons; findings of each file, of units given twice, and of units with other persons than they say."""
        name = self.files.units[0].name
        self.findings += stated("cef.duplicate", name, units.repeated)
        keys: list[_Ints] = []
        doubts = np.zeros(len(PERSON_DOUBTS), np.int64)
        for path in self.files.persons:
            bad, edits = np.zeros(len(PERSON_RULES), np.int64), np.zeros(PERSON_SHAPE[0], np.int64)
            for part in self._parts(path, _PERSONS, lambda fields: _person_part(units, fields)):
                bad += part.bad
                edits += part.edits
                doubts += part.doubts
                keys.append(part.keys)
                units.add(part)
            self.findings += person_findings(path.name, bad, edits)
        other = 0 if units.repeated else int(np.count_nonzero(units.persons != units.facts.pop))
        self.findings += stated("cef.persons", name, other, persons=self.files.persons[0].name)
        if not units.repeated:
            names = (self.files.persons[0].name, name)
            self.findings += contradiction_findings(names, units.contradictions(), doubts, self.foreign)
        return keys

    def _unit_part(self, fields: _Fields) -> UnitPart:
        block, state = fields.block, fields.more.get("BCUSTATEFP")
        if state is not None:
            own = self.blocks.spine.leaf.codes[np.maximum(block, 0)] // _STATE
            with self.counting:
                self.foreign += int(np.count_nonzero((state >= 0) & (block >= 0) & (state != own)))
        more = (fields.more.get(name, _NO_COLUMN) for name in ("HHT2", "UPART"))
        return recode_unit_part(UnitFields(**fields.columns), block, *more)

    def _parts(self, path: Path, table: _Table, work: Callable[[_Fields], _Piece]) -> Iterator[_Piece]:
        """What `work` makes of the pieces of a file, in their order."""
        blocks = self.blocks.table
        if self.files.kind == "parquet":
            columns = (*table.columns.values(), *table.more)
            rows = batches(path, (columns,), table.optional, self.findings, coded=True)
            yield from worked_ahead(
                lambda batch: work(_batch_fields(table, blocks, batch)), rows, self.workers, ahead=_AHEAD
            )
            return
        file = FixedFile(path, table.layout.width)
        names = {**table.columns, **{name: name for name in table.optional}}
        fields = {name: table.layout.fields[column] for name, column in names.items()}
        yield from file.pieces(
            fields, lambda numbers, text: work(_line_fields(table, blocks, numbers, text)), self.workers
        )
        self.findings += file.findings({}, {})


def _person_part(units: UnitTable, fields: _Fields) -> PersonPart:
    more = fields.more.get("RTYPE", _NO_COLUMN), fields.more.get("LIVE_ALONE", _NO_COLUMN)
    return units.recode(PersonFields(**fields.columns), more)
