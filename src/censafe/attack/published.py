"""The tables that are attacked: made from true records, or read as they were published, without any records."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from censafe.attack.people import BLOCK_DIGITS, People
from censafe.attack.reading import column_texts, read_table_file
from censafe.attack.reconstruction.problem import NO_LIMIT
from censafe.attack.tables import LineTable, Workload, tabulate_lines
from censafe.attack.tract_lines import TRACT_DIGITS, TractLines
from censafe.errors import DataError, StorageError, UsageError
from censafe.geography.area_tables import ANNOTATIONS, number_faults
from censafe.model.entries import nearest

_AREAS: Final = ("geounit", "block", "tract")
_LINES: Final = ("line", "cell")
_VALUES: Final = ("value", "count")
_FILES: Final = ("tables", "tract_tables")
_WORDS: Final = (
    "allowed: CSV or Parquet with a row for each area and line, in the columns geounit (block, 15 digits, or tract, 11), table, line and value; lines that are not "
    "listed are 0, an empty value is one that was withheld; or a folder with such files tables.parquet and tract_tables.parquet"
)
_Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class PublishedTables:
    """Tables of blocks, and of tracts where these are attacked too.

    Args:
        blocks: codes, rising, shape (blocks,).
        low: lowest value that a line of a block may have had, int64, shape (blocks, lines).
        high: the highest; equal to `low` where the value is published, ``NO_LIMIT`` where it is withheld, shape (blocks, lines).
        tracts: codes, rising, shape (tracts,).
        tract_values: of every line of every tract, shape (tracts, lines of tracts).
    """

    blocks: NDArray[np.str_] = field(repr=False)
    workload: Workload
    low: _Ints = field(repr=False)
    high: _Ints = field(repr=False)
    lines: TractLines | None
    tracts: NDArray[np.str_] = field(repr=False)
    tract_values: _Ints = field(repr=False)

    @staticmethod
    def of(people: People, tables: Mapping[str, LineTable]) -> PublishedTables:
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


def _lines(tables: Mapping[str, LineTable]) -> tuple[Workload, TractLines | None]:
    by_level = {level: [one for one in tables.values() if one.level == level] for level in ("block", "tract")}
    if not by_level["block"]:
        raise UsageError("there is no table of blocks, and persons are reconstructed by block; fix: give one")
    workload = Workload.of(by_level["block"])
    return workload, TractLines.of(workload, by_level["tract"]) if by_level["tract"] else None


def holds_tables(path: Path) -> bool:
    """Whether a file or folder holds tables and no records."""
    if path.is_dir():
        return _file(path, _FILES[0]) is not None and not (path / "units.parquet").exists()
    try:
        if path.suffix == ".parquet":
            names = pq.read_schema(path).names
        else:
            with path.open(encoding="utf-8-sig", errors="replace") as stream:
                names = stream.readline().strip().replace('"', "").replace("|", ",").split(",")
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
        raise StorageError(f"{path}: the file cannot be read; {_WORDS}") from error
    return "table" in names


def _file(folder: Path, name: str) -> Path | None:
    return next((one for one in (folder / f"{name}.parquet", folder / f"{name}.csv") if one.exists()), None)


def read_published_tables(
    path: Path, tables: Mapping[str, LineTable], known: Collection[str]
) -> PublishedTables:
    """Tables as they were published, exact or not; a table of which no line is listed is not published."""
    files = [path] if path.is_file() else [one for name in _FILES if (one := _file(path, name))]
    rows = _Rows.of([(one, read_table_file(one, _WORDS)) for one in files], path)
    unknown = sorted(set(rows.table.tolist()) - set(known))
    if unknown:
        raise DataError(
            f"{path}: table {unknown[0]!r}: there is no such table.{nearest(unknown[0], list(known))} Allowed: {', '.join(known)}; fix: correct the name, or "
            "describe the table in a file for `tables`"
        )
    listed = set(rows.table.tolist())
    workload, lines = _lines({name: table for name, table in tables.items() if name in listed})
    if lines is None and any(table.level == "tract" for table in tables.values()):
        raise UsageError(
            f'{path}: mode "bt" attacks tables of tracts too, and there is none; fix: add them, or mode "b"'
        )
    width = np.char.str_len(rows.area)
    blocks = np.unique(rows.area[width == BLOCK_DIGITS])
    low, high = rows.values(workload, blocks, path)
    tracts, tract_values = _tracts(blocks)[0], np.zeros((0, 0), np.int64)
    if lines is not None:
        other = set(rows.area[width == TRACT_DIGITS].tolist()) - set(tracts.tolist())
        if other:
            raise DataError(
                f"{path}: {len(other):,} tracts have no block in the tables; fix: leave them out, or add their blocks"
            )
        tract_values, highest = rows.values(lines.tracts, tracts, path)
        hidden = int((high >= NO_LIMIT).sum() + (highest >= NO_LIMIT).sum())
        if hidden:
            raise DataError(
                f'{path}: {hidden:,} values are withheld; allowed with mode "bt": tables of which every value is published; fix: leave out these tables, or mode "b"'
            )
    return PublishedTables(blocks, workload, low, high, lines, tracts, tract_values)


@dataclass(frozen=True, eq=False)
class _Rows:
    """Rows of tables as they stand in files."""

    area: NDArray[np.str_]
    table: NDArray[np.str_]
    line: _Ints
    value: _Ints
    hidden: NDArray[np.bool_]

    @staticmethod
    def of(files: list[tuple[Path, pa.Table]], path: Path) -> _Rows:
        columns: list[list[NDArray[Any]]] = [[] for _ in range(5)]
        for one, table in files:
            names = table.column_names
            area, line, value = (
                next((name for name in choice if name in names), None) for choice in (_AREAS, _LINES, _VALUES)
            )
            if area is None or line is None or value is None or "table" not in names:
                raise DataError(f"{one}: columns missing; {_WORDS}")
            texts = [column_texts(table[name]) for name in (area, "table", line, value)]
            hidden = texts[3] == ""
            numbers = [_whole(texts[2], one, line), _whole(np.where(hidden, "0", texts[3]), one, value)]
            for column, own in zip(columns, (*texts[:2], *numbers, hidden), strict=True):
                column.append(own)
        if not columns[0] or not len(columns[0][0]):
            raise DataError(f"{path}: there are no rows; {_WORDS}")
        rows = _Rows(*(np.concatenate(one) for one in columns))
        width = np.char.str_len(rows.area)
        wrong = ~np.isin(width, (BLOCK_DIGITS, TRACT_DIGITS)) | ~np.char.isdigit(rows.area)
        if wrong.any():
            raise DataError(
                f"{path}: {int(wrong.sum()):,} rows have a code of neither {BLOCK_DIGITS} digits (block) nor {TRACT_DIGITS} (tract), which a lost leading zero does; "
                "fix: write the codes as text with their zeros"
            )
        return rows

    def values(self, workload: Workload, areas: NDArray[np.str_], path: Path) -> tuple[_Ints, _Ints]:
        """Lowest and highest values of the lines of a workload in some areas, each of shape (areas, lines)."""
        names = {(line.table, line.number): place for place, line in enumerate(workload.lines)}
        tables = {line.table for line in workload.lines}
        digits = len(str(areas[0])) if len(areas) else 0
        own = np.flatnonzero(np.isin(self.table, list(tables)) & (np.char.str_len(self.area) == digits))
        pairs, back = np.unique(
            np.stack([self.table[own], self.line[own].astype(str)]), axis=1, return_inverse=True
        )
        places = np.array([names.get((str(table), int(line)), -1) for table, line in pairs.T], np.int64)
        wrong = int((places[back.ravel()] < 0).sum()) if len(own) else 0
        if wrong:
            raise DataError(
                f"{path}: {wrong:,} rows have a line that their table has not; allowed: lines from 1, as in lines.csv; fix: correct or leave out these rows"
            )
        area = np.searchsorted(areas, self.area[own])
        cell = area * len(workload.lines) + places[back.ravel()]
        repeated = len(cell) - len(np.unique(cell))
        if repeated:
            raise DataError(
                f"{path}: {repeated:,} rows repeat an area, table and line; allowed: each once; fix: leave out the others"
            )
        low = np.zeros((len(areas), len(workload.lines)), np.int64)
        high = low.copy()
        low.flat[cell] = self.value[own]
        high.flat[cell] = np.where(self.hidden[own], NO_LIMIT, self.value[own])
        return low, high


def _whole(texts: NDArray[np.str_], path: Path, name: str) -> _Ints:
    number = np.char.lstrip(texts, "-")
    other = ~np.char.isdigit(number) | (np.char.str_len(texts) - np.char.str_len(number) > 1)
    wrong = int((other | np.isin(texts, [str(code) for code in ANNOTATIONS])).sum())
    if wrong:
        faults = "".join(f"; {fault}" for fault in number_faults(pa.chunked_array([texts.tolist()])))
        raise DataError(
            f"{path}: column {name}: {wrong:,} values are not whole numbers{faults}; allowed: whole numbers, also below 0 as noisy tables have; fix: correct these rows"
        )
    return texts.astype(np.int64)
