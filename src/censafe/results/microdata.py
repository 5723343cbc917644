"""Microdata read into the histograms that they stand for, by the layout that they were written in.

Files are read as their header and pieces of text with columns as whole numbers. Every row has the cell whose codes it shows. Which
columns the file has besides those of its geocode and its cell plays no part.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
from numpy.typing import NDArray

from censafe.errors import DataError, StorageError
from censafe.geography.files import PackedFile, delimiter
from censafe.geography.identifiers import later_names, require_known_blocks
from censafe.model.arrays import Integers
from censafe.model.sparse import SparseLevel
from censafe.model.topdown.histograms import CellGroups
from censafe.publication.microdata.layouts import MicrodataColumn, MicrodataLayout, SplitLevel

_PIECE_BYTES: Final = 1 << 24
_LONGEST: Final = 1 << 16  # bytes of a line before the rows
_NAMED: Final = 3
_CENSUS_BLOCK: Final = 16
_GROUP, _BLOCK_NUMBER = "TABBLKGRPCE", "TABBLK"
_IN_BLOCK: Final = 1000  # a block's number over it is that of its block group
_STATE: Final = 2
_MARKS: Final = {",": "comma", "|": "pipe", ";": "semicolon", "\t": "tab"}
_FIELDS: Final = re.compile(r"Expected ([0-9]+) columns, got ([0-9]+)")
_FRACTION: Final = r"^\s*[0-9]+\.0*\s*$"
_NUMBER: Final = r"^\s*[0-9]*\s*$"


class TextHeader(NamedTuple):
    """How a file of text begins.

    Args:
        written: names of the columns as the file has them.
        names: the same as the Bureau has them since 2022.
    """

    written: list[str]
    names: list[str]
    comments: int  # lines before the header
    mark: str

    @property
    def words(self) -> str:
        """What separates the fields."""
        return _MARKS[self.mark]


def text_header(file: PackedFile) -> TextHeader:
    """The header of a text file; without names where it is empty or no text in UTF-8."""
    with file.open() as stream:
        number = 0
        while raw := stream.readline(_LONGEST):
            try:
                line = raw.decode().rstrip("\r\n")
                mark = delimiter(line)
            except (UnicodeDecodeError, csv.Error):
                break
            if line.strip() and not line.startswith("#"):
                written = [name.strip().strip('"') for name in line.split(mark)]
                return TextHeader(written, later_names(name.upper() for name in written), number, mark)
            number += 1
    return TextHeader([], [], 0, "|")


def number_batches(file: PackedFile, columns: Sequence[str], layout: str) -> Iterator[pa.Table]:
    """Pieces of a file with some of its columns as whole numbers."""
    header, line = text_header(file), 1
    try:
        with file.open() as stream:
            for _ in range(header.comments + 1):
                stream.readline()
                line += 1
            for piece in _pieces(stream):
                try:
                    batch = _parsed(piece, header, columns, pa.int64())
                except (
                    pa.ArrowInvalid,
                    pa.ArrowKeyError,
                ) as error:  # the second where a line ends otherwise than the header
                    fields = _FIELDS.search(str(error))
                    words = (
                        f"rows with {fields[2]} fields, where the header has {fields[1]}"
                        if fields
                        else _fault(piece, line, header, columns)
                    )
                    raise DataError(f"{file}: {words}; allowed: the layout of {layout}") from None
                line += batch.num_rows
                yield batch
    except OSError:
        raise StorageError(f"{file}: the file cannot be read; check that it is complete") from None


def _pieces(stream: IO[bytes]) -> Iterator[bytes]:
    """Lines of a stream, some megabytes at a time; read here, since Arrow's threads do not wait for archives that are closed."""
    rest = b""
    while data := stream.read(_PIECE_BYTES):
        end = data.rfind(b"\n") + 1
        piece, rest = (rest + data[:end], data[end:]) if end else (b"", rest + data)
        if piece.strip():
            yield piece
    if rest.strip():
        yield rest


def _parsed(piece: bytes, header: TextHeader, columns: Sequence[str], kind: pa.DataType) -> pa.Table:
    return pa_csv.read_csv(
        pa.BufferReader(piece),
        pa_csv.ReadOptions(column_names=header.names),
        pa_csv.ParseOptions(delimiter=header.mark),
        pa_csv.ConvertOptions(
            column_types=dict.fromkeys(columns, kind),
            include_columns=list(columns),
            strings_can_be_null=kind != pa.string(),
        ),
    )


def _fault(piece: bytes, line: int, header: TextHeader, columns: Sequence[str]) -> str:
    """What keeps the columns of a piece from being whole numbers, in words, with the first line that shows it."""
    with suppress(pa.ArrowInvalid, pa.ArrowKeyError):
        batch = _parsed(piece, header, columns, pa.string())
        for name in columns:
            texts = batch.column(name)
            wrong = np.flatnonzero(~np.asarray(pc.match_substring_regex(texts, _NUMBER)))
            if not len(wrong):
                continue
            first = str(texts[int(wrong[0])])
            where = f"column {name}, {len(wrong):,} rows, the first is line {line + int(wrong[0]):,}"
            if first.strip().upper() in (name, header.written[header.names.index(name)].upper()):
                return f"{where}: the header stands there again; fix: leave the repeated header out"
            if bool(np.asarray(pc.match_substring_regex(texts.take(pa.array(wrong)), _FRACTION)).all()):
                return f"{where}: codes with a fraction such as .0, as spreadsheets write them; fix: write the codes as text"
            return f"{where}: codes that are not digits"
    return "rows that do not have the columns of the header, or codes that are not digits"


def coded(file: PackedFile | Path, batch: Any, name: str, first: int, levels: int) -> NDArray[np.int64]:
    """Codes of a column less the first one, so that they count from 0."""
    column = batch.column(name)
    values: NDArray[np.int64] = column.fill_null(-1).to_numpy(zero_copy_only=False) - first
    wrong = int(((values < 0) | (values >= levels)).sum())
    if wrong:
        raise DataError(
            f"{Path(str(file)).name}, {name}: {wrong} codes are out of range; allowed: {first} to {first + levels - 1}"
        )
    return values


def missing_columns(layout: MicrodataLayout, names: Sequence[str]) -> list[str]:
    """Columns of geocodes and cells that a file would need in addition to those that it has; none where it shows the layout."""
    places = [
        one.name
        for one in layout.columns
        if one.geocode and one.name not in names and not (one.name == _GROUP and _BLOCK_NUMBER in names)
    ]
    codes = [one.name for one in layout.columns if one.codes]
    present = [name for name in codes if name in names]
    absent = [name for name in codes if name not in names]
    if absent and not places and 2 * len(absent) <= len(codes) and _row_codes(layout, present) is not None:
        return []
    return places + absent


def shows_cells(layout: MicrodataLayout) -> bool:
    """Whether the rows of a layout are records or units of their own, which can be counted back."""
    return not (layout.dealt or layout.kinds)


@dataclass(frozen=True, eq=False)
class MicrodataRows:
    """The rows of one layout in a file, or in several that are parts of one, such as a file a state.

    Args:
        state: two-digit code of the only state that is read; None for all.
    """

    layout: MicrodataLayout
    parts: tuple[PackedFile, ...]
    state: str | None = field(default=None, kw_only=True)

    @property
    def path(self) -> Path:
        """Where the rows are."""
        return self.parts[0].path

    @property
    def geounits(self) -> NDArray[np.str_]:
        """Geocodes of the rows, each once, sorted."""
        return self._counted.geounits

    @cached_property
    def _counted(self) -> SparseLevel:
        """Rows by geounit and by cell of a row, those of added units and of records of a second histogram included."""
        layout, counter = self.layout, RowCounter(self.layout.cells)
        if not shows_cells(layout):
            raise ValueError(f"the rows of {layout.name} do not show their cells whole")
        for part in self.parts:
            names = text_header(part).names
            missing = missing_columns(layout, names)
            codes = _row_codes(
                layout, [one.name for one in layout.columns if one.codes and one.name in names]
            )
            if missing or codes is None:
                raise DataError(
                    f"{part}: columns are missing; allowed: those of {layout.name}; fix: name such a file"
                )
            place = [column for column in layout.columns if column.geocode and column.name in names]
            columns = [column.name for column in (*place, *codes.columns)]
            for batch in number_batches(part, columns, f"the microdata {layout.name}"):
                geocodes = _geocodes(part, batch, [column for column in layout.columns if column.geocode])
                cell = codes.cells(part, batch)
                if self.state is not None:
                    chosen = geocodes // 10 ** (layout.digits - _STATE) == int(self.state)
                    geocodes, cell = geocodes[chosen], cell[chosen]
                counter.add(geocodes, cell)
        codes_of_blocks, keys, counts = counter.finished()
        if layout.digits == _CENSUS_BLOCK:
            require_known_blocks(
                f"{self.parts[0].name}: TABBLKST to TABBLK",
                codes_of_blocks,
                np.zeros(len(codes_of_blocks), np.bool_),
            )
        texts = [f"{one:0{layout.digits}d}" for one in codes_of_blocks.tolist()]
        return _summed(keys, counts, layout.cells, np.array(texts, f"U{layout.digits}"))

    def histograms(self, geounits: NDArray[np.str_]) -> SparseLevel:
        """Rows by geounit and cell; rows of units that were added to the records are passed over.

        Args:
            geounits: geocodes, sorted, shape (n,).
        """
        if self.layout.companion is not None:
            raise ValueError(f"the rows of {self.layout.name} are of two histograms")
        node, cell, count = self._rows(geounits)
        cells = self.layout.schema.schema.cells
        own = cell < cells
        return _summed(node[own] * cells + cell[own], count[own], cells, geounits)

    def joined_histograms(self, geounits: NDArray[np.str_]) -> tuple[SparseLevel, SparseLevel]:
        """Rows of two histograms, such as households with the housing units that nobody lives in, by geounit and cell.

        Records of the first are also records of the second: those of a level of the attribute that is told apart are in the cell of the answer
        that they show, those of other levels in the cell of the answer of the same number.

        Args:
            geounits: geocodes, sorted, shape (n,).
        """
        layout, beside, split = self.layout, self.layout.companion, self.layout.split
        if beside is None or split is None:
            raise ValueError(f"the rows of {layout.name} are of one histogram")
        node, row, count = self._rows(geounits)
        records = layout.row_schema.schema.cells
        own = row < records
        level, cell = _without_split(layout, split, row[own])
        answer = beside.schema.grouped(CellGroups(split.by)).label
        first = np.array([np.flatnonzero(answer == one)[0] for one in range(int(answer.max()) + 1)])
        unit = np.concatenate([first[level], beside.cells[row[~own] - records]])
        nodes, counts = (np.concatenate([part[own], part[~own]]) for part in (node, count))
        cells, units = layout.schema.schema.cells, beside.schema.schema.cells
        return (
            _summed(node[own] * cells + cell, count[own], cells, geounits),
            _summed(nodes * units + unit, counts, units, geounits),
        )

    def _rows(self, geounits: NDArray[np.str_]) -> tuple[Integers, Integers, NDArray[np.int32]]:
        """Position of the geounit, cell of a row and number of the counted rows."""
        counted = self._counted
        place = np.minimum(np.searchsorted(geounits, counted.geounits), max(len(geounits) - 1, 0))
        known = geounits[place] == counted.geounits if len(geounits) else np.zeros(counted.nodes, np.bool_)
        others = counted.geounits[~known]
        if len(others):
            raise DataError(
                f"{self.path}: the file has rows of {len(others)} blocks that the block files of the records do not have, such as "
                f"{', '.join(others[:_NAMED].tolist())}; allowed: microdata of the same records; fix: give those that were published of them"
            )
        node = np.repeat(place, np.diff(counted.node_ptr))
        return node, counted.cell.astype(np.int64), counted.count


class RowCounter:
    """Rows by geocode and cell, added up one piece after another."""

    def __init__(self, cells: int) -> None:
        self._cells = cells
        self._codes = np.zeros(0, np.int64)  # sorted
        self._numbers = np.zeros(0, np.int64)  # of the codes, in the order in which they came
        self._keys, self._counts = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self._parts: list[tuple[Integers, Integers]] = []
        self._waiting = 0

    def add(self, code: Integers, cell: Integers) -> None:
        """Count rows."""
        codes, place = np.unique(code, return_inverse=True)
        at = np.searchsorted(self._codes, codes)
        inside = np.minimum(at, max(len(self._codes) - 1, 0))
        new = self._codes[inside] != codes if len(self._codes) else np.ones(len(codes), np.bool_)
        numbers = len(self._codes) + np.arange(int(new.sum()))
        self._codes = np.insert(self._codes, at[new], codes[new])
        self._numbers = np.insert(self._numbers, at[new], numbers)
        number = self._numbers[np.searchsorted(self._codes, codes)]
        keys, counts = np.unique(number[place] * self._cells + cell, return_counts=True)
        self._parts.append((keys, counts))
        self._waiting += len(keys)
        if self._waiting > len(self._keys):
            self._merge()

    def _merge(self) -> None:
        keys = np.concatenate([self._keys, *(part for part, _ in self._parts)])
        counts = np.concatenate([self._counts, *(part for _, part in self._parts)])
        self._keys, at = np.unique(keys, return_inverse=True)
        self._counts = np.bincount(at, counts, len(self._keys)).astype(np.int64)
        self._parts, self._waiting = [], 0

    def finished(self) -> tuple[Integers, Integers, Integers]:
        """Geocodes, rising; keys, the position of a geocode times the cells plus the cell; and the rows of each key."""
        self._merge()
        place = np.argsort(self._numbers)
        number, cell = np.divmod(self._keys, self._cells)
        return self._codes, place[number] * self._cells + cell, self._counts


def _geocodes(file: PackedFile, batch: Any, place: Sequence[MicrodataColumn]) -> Integers:
    geocodes = np.zeros(batch.num_rows, np.int64)
    for column in place:
        if column.name == _GROUP and _GROUP not in batch.schema.names:
            part = coded(file, batch, _BLOCK_NUMBER, 0, 10 * _IN_BLOCK) // _IN_BLOCK
        else:
            part = coded(file, batch, column.name, 0, 10**column.geocode)
        geocodes = geocodes * 10**column.geocode + part
    return geocodes


def _without_split(layout: MicrodataLayout, split: SplitLevel, shown: Integers) -> tuple[Integers, Integers]:
    """Of cells as rows show them, the answer of the histogram beside, and the cell of the records."""
    schema = layout.schema.schema
    place = schema.position(split.attribute)
    width, levels = int(np.prod(schema.shape[place + 1 :], dtype=np.int64)), schema.shape[place]
    more = len(split.answers) - 1
    high, rest = np.divmod(shown, width * (levels + more))
    level, low = np.divmod(rest, width)
    answers = np.append(np.arange(levels), split.answers[1:])
    answers[split.level] = split.answers[0]
    own = np.where(level >= levels, split.level, level)
    return answers[level], (high * levels + own) * width + low


def _summed(
    keys: Integers, counts: NDArray[np.integer], cells: int, geounits: NDArray[np.str_]
) -> SparseLevel:
    """Histograms from keys, the position of a geounit times the cells plus the cell, in any order."""
    once, at = np.unique(keys, return_inverse=True)
    sums = np.bincount(at, counts, len(once)).astype(np.int32)
    pointer = np.searchsorted(once // cells, np.arange(len(geounits) + 1)).astype(np.int64)
    return SparseLevel(geounits, pointer, (once % cells).astype(np.int32), sums)


class _RowCodes(NamedTuple):
    """How codes tell cells."""

    columns: tuple[MicrodataColumn, ...]
    sizes: tuple[int, ...]  # codes of each column are below
    keys: Integers  # of the cells, rising: their codes as one number
    order: Integers  # cell of each key

    def cells(self, path: PackedFile, batch: Any) -> Integers:
        """The cell of every row."""
        key = np.zeros(batch.num_rows, np.int64)
        for column, size in zip(self.columns, self.sizes, strict=True):
            key = key * size + coded(path, batch, column.name, 0, size)
        place = np.minimum(np.searchsorted(self.keys, key), len(self.keys) - 1)
        wrong = int((self.keys[place] != key).sum())
        if wrong:
            names = ", ".join(column.name for column in self.columns)
            raise DataError(
                f"{path}, {names}: {wrong} rows have codes that no cell has together; allowed: those of the layout; fix: write the file again"
            )
        return self.order[place]


def _row_codes(layout: MicrodataLayout, names: Sequence[str] | None = None) -> _RowCodes | None:
    """How the codes of some columns, or of all, tell cells; None where they do not tell them apart."""
    columns = tuple(
        column for column in layout.columns if column.codes and (names is None or column.name in names)
    )
    sizes = tuple(max(map(int, column.codes)) + 1 for column in columns)
    key = np.zeros(layout.cells, np.int64)
    for column, size in zip(columns, sizes, strict=True):
        key = key * size + np.array([int(code) for code in column.codes])[layout.answers(column)]
    order = np.argsort(key, kind="stable")
    if layout.companion is not None:  # cells that are always empty read like others
        order = order[_may_stand(layout)[order]]
    return None if (np.diff(key[order]) == 0).any() else _RowCodes(columns, sizes, key[order], order)


def _may_stand(layout: MicrodataLayout) -> NDArray[np.bool_]:
    """Which cells of a row may hold records, shape (cells,)."""
    row_schema = layout.row_schema.schema
    allowed = layout.schema.allowed().reshape(layout.schema.schema.shape)
    if layout.split is not None:
        place = row_schema.position(layout.split.attribute)
        levels = layout.schema.schema.shape[place]
        own = [level if level < levels else layout.split.level for level in range(row_schema.shape[place])]
        allowed = np.take(allowed, own, axis=place)
    return np.append(allowed.reshape(-1), np.ones(layout.cells - row_schema.cells, np.bool_))
