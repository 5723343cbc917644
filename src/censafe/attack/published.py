"""The tables that are attacked: made from true records, or read as they were published, without any records."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from censafe.attack.people import People
from censafe.attack.reconstruction.problem import NO_LIMIT
from censafe.attack.reconstruction.tracts import TRACT_DIGITS, TractLines
from censafe.attack.tables import CountedLines, Workload, tabulate_lines
from censafe.errors import DataError, UsageError
from censafe.model.cells.lines import CensusTable
from censafe.model.entries import nearest
from censafe.products.topdown.census_tables.microdata_source import census_forms
from censafe.results.source import PublishedSource, recognize
from censafe.results.summary import AreaTables

_OWN: Final = "lines"  # product of tables in the names of the attack
_NAMES: Final = {"pl94": {"P8": "P1", "P9": "P2", "P10": "P3", "P11": "P4"}}
"""Names of tables in other products, by product; those of the DHC are the names of the 2010 Summary File."""
_FILES: Final = ("tables", "tract_tables")
_NAMED: Final = 3
_WORDS: Final = (
    "allowed: tables of blocks, and with mode bt of tracts, of the DHC or the redistricting data as they are published (summary files, Census API, NHGIS); CSV or Parquet with a "
    "row for each area and line, in the columns geounit (block, 15 digits, or tract, 11), table, line and value, where lines that are not listed are 0 and an empty value is one "
    "that was withheld; or a folder with such files tables.parquet and tract_tables.parquet"
)
_Ints = NDArray[np.int64]
Lines = TypeVar("Lines", bound=CountedLines)


@dataclass(frozen=True, eq=False)
class PublishedTables(Generic[Lines]):
    """Tables of blocks, and of tracts where these are attacked too.

    Args:
        blocks: codes, rising, shape (blocks,).
        low: lowest value that a line of a block may have had, int64, shape (blocks, lines).
        high: the highest; equal to `low` where the value is published, ``NO_LIMIT`` where it is withheld, shape (blocks, lines).
        tracts: codes, rising, shape (tracts,).
        tract_values: of every line of every tract, shape (tracts, lines of tracts).
    """

    blocks: NDArray[np.str_] = field(repr=False)
    workload: Lines
    low: _Ints = field(repr=False)
    high: _Ints = field(repr=False)
    lines: TractLines | None
    tracts: NDArray[np.str_] = field(repr=False)
    tract_values: _Ints = field(repr=False)

    @staticmethod
    def of(people: People, tables: Mapping[str, CensusTable]) -> PublishedTables[Workload]:
        """Exact tables of true records."""
        workload, lines = _lines(tables)
        tracts, tract = _tracts(people.blocks)
        tract_values = np.zeros((len(tracts), 0), np.int64)
        if lines is not None:
            tract_values = tabulate_lines(lines.tracts, people, tract[people.block], len(tracts))
        values = tabulate_lines(workload, people)
        return PublishedTables(people.blocks, workload, values, values, lines, tracts, tract_values)

    @property
    def tract(self) -> _Ints:
        """Place of every block's tract, shape (blocks,)."""
        return _tracts(self.blocks)[1]


def _tracts(blocks: NDArray[np.str_]) -> tuple[NDArray[np.str_], _Ints]:
    codes, place = np.unique(blocks.astype(f"U{TRACT_DIGITS}"), return_inverse=True)
    return codes, place.ravel().astype(np.int64)


def _lines(tables: Mapping[str, CensusTable]) -> tuple[Workload, TractLines | None]:
    by_level = {
        level: [one for one in tables.values() if one.lowest == level] for level in ("block", "tract")
    }
    if not by_level["block"]:
        raise UsageError("there is no table of blocks, and persons are reconstructed by block; fix: give one")
    workload = Workload.of(by_level["block"])
    return workload, TractLines.of(workload, by_level["tract"]) if by_level["tract"] else None


def published_source(path: Path, known: Mapping[str, CensusTable]) -> PublishedSource | None:
    """What a file or folder holds of published tables; None where it holds records.

    Args:
        known: tables of the attack.
    """
    if (path / "units.parquet").exists():
        return None
    forms, cells = census_forms({}), {name: len(table.lines) for name, table in known.items()}
    forms = replace(forms, cells={_OWN: cells, **forms.cells}, names=_FILES)
    source = recognize(path, forms)
    return None if source is None or source.tables is None else source


def read_published_tables(
    source: PublishedSource, tables: Mapping[str, CensusTable], known: Collection[str]
) -> PublishedTables[Workload]:
    """Tables as they were published, exact or not; a table of which no line is listed is not published."""
    path, areas = source.path, source.tables
    if areas is None:
        raise DataError(f"{path}: there are no tables; {_WORDS}")
    if areas.product == _OWN and areas.unknown:
        table = areas.unknown[0].rpartition("_")[0]
        raise DataError(
            f"{path}: {', '.join(areas.unknown[:_NAMED])}: there is no such {'line' if table in known else 'table'}.{nearest(table, list(known))} Allowed: lines from 1, as in "
            f"lines.csv, of {', '.join(known)}; fix: correct the name, or describe the table in a file for `tables`"
        )
    names = _NAMES.get(areas.product, {name: name for name in tables})
    listed = {
        name: table
        for name, table in tables.items()
        if name in names and table.lowest in areas.levels and not areas.missing(names[name], table.lowest)
    }
    workload, lines = _lines(listed)
    if lines is None and any(table.lowest == "tract" for table in tables.values()):
        raise UsageError(
            f'{path}: mode "bt" attacks tables of tracts too, and there is none; fix: add them, or mode "b"'
        )
    codes, low, high = _values(source, areas, workload, names, "block")
    blocks = np.char.add(
        codes.astype(f"U{TRACT_DIGITS}"), [code[TRACT_DIGITS + 1 :] for code in codes.tolist()]
    )
    tracts, tract_values = _tracts(blocks)[0], np.zeros((0, 0), np.int64)
    if lines is not None:
        own, values, highest = _values(source, areas, lines.tracts, names, "tract")
        other = np.setdiff1d(own, tracts)
        if len(other):
            raise DataError(
                f"{path}: {len(other):,} tracts have no block in the tables; fix: leave them out, or add their blocks"
            )
        hidden = int((high >= NO_LIMIT).sum() + (highest >= NO_LIMIT).sum())
        if hidden:
            raise DataError(
                f'{path}: {hidden:,} values are withheld; allowed with mode "bt": tables of which every value is published; fix: leave out these tables, or mode "b"'
            )
        tract_values = np.zeros((len(tracts), len(lines.tracts.lines)), np.int64)
        tract_values[np.searchsorted(tracts, own)] = values
    return PublishedTables(blocks, workload, low, high, lines, tracts, tract_values)


def _values(
    source: PublishedSource, areas: AreaTables, workload: Workload, names: Mapping[str, str], level: str
) -> tuple[NDArray[np.str_], _Ints, _Ints]:
    """Codes of the areas of a level, rising, and lowest and highest values of the lines of a workload in them, each of shape (areas, lines)."""
    records = areas.areas(level)
    order = np.argsort(records.codes, kind="stable")
    parts, also = [], [names[name] for name in workload.names]
    for name in dict.fromkeys(workload.names):
        values, number = areas.values(names[name], records, also)[order], workload.names.count(name)
        if values.shape[1] != number:
            raise DataError(
                f"{source.path}: table {names[name]} has {values.shape[1]} cells, and {number} lines as it is attacked; fix: describe it in a file for `tables`"
            )
        parts.append(values)
    every = np.concatenate(parts, axis=1)
    hidden = np.isnan(every)
    low = np.where(hidden, 0, every).astype(np.int64)
    wrong = int((low != every)[~hidden].sum())
    if wrong:
        raise DataError(
            f"{source.path}: {wrong:,} values are not whole numbers; allowed: whole numbers, also below 0 as noisy tables have; fix: correct these rows"
        )
    return records.codes[order], low, np.where(hidden, NO_LIMIT, low)
