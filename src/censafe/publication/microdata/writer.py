"""Microdata detail files: one row a person or a unit, in the columns of a layout.

The files are pipe-delimited text with a header and hold public, estimated histograms only. They have no room for a mark; a
file made with a test key is told by the folder it lies in and by its hash.

A file may join the rows of two histograms, where the second's counts tell apart a level of the first. In every geounit b the rows of
the level that is split are the entries n_1, n_2, ... of the first histogram in their order. With m_1, m_2, ... records of the
answers in the second, the rows numbered up to m_1 are of answer 1, the next m_2 of answer 2, and so on; sum n = sum m must hold.
An entry that lies across a boundary becomes two.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from censafe.errors import CheckError
from censafe.model.compiled import compiled
from censafe.model.named_arrays import SparseArrays
from censafe.model.observer import unheard
from censafe.model.sparse import SparseLevel
from censafe.model.topdown.histograms import CellGroups
from censafe.publication.atomic import hashed_bytes
from censafe.publication.microdata.check import MicrodataCheck
from censafe.publication.microdata.layouts import CompanionRows, MicrodataColumn, MicrodataLayout
from censafe.publication.microdata.rows import (
    CELL,
    GEOUNIT,
    NUMBER,
    PLACE,
    TURN,
    UNIT_OF_TURN,
    UNIT_SIZE,
    RowNumbers,
    RowTexts,
    chunks,
    format_rows,
    room_of_rows,
)  # fmt: skip

_PIPE, _NEWLINE = 124, 10
_PIECE = 1 << 14  # cells whose text is turned round at once
_Bytes = NDArray[np.uint8]


def _sources(layout: MicrodataLayout) -> Iterator[tuple[MicrodataColumn, int, int]]:
    """Every column with where its text lies and the character that ends it; a constant lies beside what comes before it, or else after it."""
    sources = [
        GEOUNIT if column.geocode else CELL if column.codes else NUMBER if column.number else -1
        for column in layout.columns
    ]
    last = len(sources) - 1
    for here in range(1, len(sources)):
        if sources[here] < 0 and sources[here - 1] != NUMBER:
            sources[here] = sources[here - 1]
    for here in range(last, -1, -1):
        if sources[here] < 0:
            after = sources[here + 1] if here < last else NUMBER
            sources[here] = GEOUNIT if after == NUMBER else after
    return zip(layout.columns, sources, [*[_PIPE] * last, _NEWLINE], strict=True)


def column_parts(layout: MicrodataLayout) -> tuple[_Ints, _Ints, _Ints]:
    """Runs of columns whose text lies in one place: where that is, its first byte or number, and where it ends, as in :class:`RowTexts`."""
    parts: list[list[int]] = []
    used = {GEOUNIT: 0, CELL: 0}
    numbers = 0
    for column, source, end in _sources(layout):
        if source == NUMBER:
            parts.append([NUMBER, numbers, end])
            numbers += 1
            continue
        if not parts or parts[-1][0] != source:
            parts.append([source, used[source], used[source]])
        constant = column.constant
        used[source] += 1 + (
            len(constant) if constant is not None else column.geocode or len(column.codes[0])
        )
        parts[-1][2] = used[source]
    sources, first, stop = np.array(parts, np.int64).T.copy()
    return sources, first, stop


def geounit_text(layout: MicrodataLayout, geounits: NDArray[np.str_]) -> _Bytes:
    """The text of every geounit: the parts of its geocode, and constants."""
    if geounits.dtype.itemsize != 4 * layout.digits:
        raise ValueError(f"geocodes must have {layout.digits} characters")
    characters = np.ascontiguousarray(geounits).view(np.uint32).reshape(-1, layout.digits).astype(np.uint8)
    parts, start = [np.zeros((len(geounits), 0), np.uint8)], 0
    for column, source, end in _sources(layout):
        if source == GEOUNIT:
            if column.constant is not None:
                constant = np.frombuffer(column.constant.encode("ascii"), np.uint8)
                parts.append(np.tile(constant, (len(geounits), 1)))
            else:
                parts.append(characters[:, start : start + column.geocode])
            parts.append(np.full((len(geounits), 1), end, np.uint8))
            start += column.geocode
    return np.concatenate(parts, axis=1)


def cell_text(layout: MicrodataLayout) -> _Bytes:
    """The text of every cell of a row: its codes, and constants.

    It is made character by character, which reads the cells in a row, and turned round piece by piece, which stays in the cache.
    """
    lines: list[_Bytes] = []
    for column, source, end in _sources(layout):
        if source != CELL:
            continue
        texts = column.codes if column.constant is None else (column.constant,)
        codes = np.frombuffer("".join(texts).encode("ascii"), np.uint8).reshape(len(texts), -1)
        answers = layout.answers(column) if column.constant is None else np.zeros(layout.cells, np.int32)
        lines += [np.ascontiguousarray(one)[answers] for one in codes.T]
        lines.append(np.full(layout.cells, end, np.uint8))
    text = np.empty((layout.cells, len(lines)), np.uint8)
    for first in range(0, layout.cells, _PIECE):
        for place, line in enumerate(lines):
            text[first : first + _PIECE, place] = line[first : first + _PIECE]
    return text


class _Places(NamedTuple):
    """How cells of the histograms become cells of a row."""

    inner: int  # cells of the attributes after the one that is split
    levels: int  # of that attribute
    level: int  # that is split; -1 for none
    parts: int  # that it is split into; 1 for none
    cells: int  # of a row of the first histogram
    row: NDArray[np.int32]  # by cell of the second: place among its cells with rows; -1 for no rows
    part: NDArray[np.int32]  # by cell of the second: part that its records count; -1 for none


def join_rows(
    layout: MicrodataLayout, companion: CompanionRows, level: SparseLevel, other: SparseLevel
) -> tuple[SparseLevel, NDArray[np.bool_]]:
    """How many rows a file has of every cell of a row.

    Returns:
        The rows; and the geounits, shape (n,), where the level that is split has another number of records than the histogram
        beside counts.
    """
    places = _places(layout, companion)
    room = len(level.cell) + level.nodes * (places.parts - 1) + len(other.cell)
    pointer, cell, records = (
        np.zeros(level.nodes + 1, np.int64),
        np.empty(room, np.int32),
        np.empty(room, np.int32),
    )
    wrong = np.zeros(level.nodes, np.bool_)
    _join(SparseArrays.of(level), SparseArrays.of(other), places, pointer, cell, records, wrong)
    used = int(pointer[-1])
    return SparseLevel(level.geounits, pointer, cell[:used], records[:used]), wrong


def _places(layout: MicrodataLayout, companion: CompanionRows) -> _Places:
    row = np.full(companion.schema.schema.cells, -1, np.int32)
    row[companion.cells] = np.arange(len(companion.cells))
    part = np.full(len(row), -1, np.int32)
    cells = layout.row_schema.schema.cells
    if layout.split is None:
        return _Places(1, 1, -1, 1, cells, row, part)
    label = companion.schema.grouped(CellGroups(layout.split.by)).label
    for number, answer in enumerate(layout.split.answers):
        part[label == answer] = number
    schema = layout.schema.schema
    place = schema.position(layout.split.attribute)
    inner, parts = math.prod(schema.shape[place + 1 :]), len(layout.split.answers)
    return _Places(inner, schema.shape[place], layout.split.level, parts, cells, row, part)


@compiled()
def _join(
    own: SparseArrays,
    other: SparseArrays,
    places: _Places,
    pointer: NDArray[np.int64],
    cell: NDArray[np.int32],
    count: NDArray[np.int32],
    wrong: NDArray[np.bool_],
) -> None:
    """Fill the rows geounit by geounit; `left` holds what is left of every part."""
    inner, levels, split, parts, cells, row_of, part_of = places
    left = np.zeros(parts, np.int64)
    place = 0
    for node in range(len(pointer) - 1):
        left[:] = 0
        for entry in range(other.node_ptr[node], other.node_ptr[node + 1]):
            if part_of[other.cell[entry]] >= 0:
                left[part_of[other.cell[entry]]] += other.records[entry]
        for entry in range(own.node_ptr[node], own.node_ptr[node + 1]):
            prefix, inside = divmod(np.int64(own.cell[entry]), inner)
            outer, level = divmod(prefix, levels)
            records = np.int64(own.records[entry])
            for part in range(parts):
                taken = min(left[part], records) if level == split else records
                if taken:
                    target = level if part == 0 else levels + part - 1
                    cell[place] = (outer * (levels + parts - 1) + target) * inner + inside
                    count[place] = taken
                    place += 1
                    records -= taken
                    if level == split:
                        left[part] -= taken
            wrong[node] |= records > 0
        wrong[node] |= left.any() and split >= 0
        for entry in range(other.node_ptr[node], other.node_ptr[node + 1]):
            if row_of[other.cell[entry]] >= 0:
                cell[place] = cells + row_of[other.cell[entry]]
                count[place] = other.records[entry]
                place += 1
        pointer[node + 1] = place


_Ints = NDArray[np.int64]
Units = NDArray[np.integer[Any]]


class WrittenRows(NamedTuple):
    """What a file of microdata holds."""

    rows: int  # without the header
    sha256: str  # of its bytes, hexadecimal


def write_microdata(
    path: Path,
    layout: MicrodataLayout,
    level: SparseLevel,
    units: Units,
    companion: SparseLevel | None = None,
    done: Callable[[int], None] = unheard,
) -> WrittenRows:
    """Write the records of a level, or its units, in the order of geounits and cells.

    A quarter of a million rows are made at a time. They are read as text again, and counted, before they go to the disk, unless they are
    units of published facts alone; the hash is that of the same bytes.

    Args:
        units: published counts of units, shape (geounits, kinds); not looked at where the layout shows no units.
    """
    numbers = _row_numbers(layout, level, units)
    rows = row_level(layout, level, units, companion)
    check = None if layout.kinds else MicrodataCheck(path.name, layout, rows)
    codes, parts = cell_text(layout), column_parts(layout)
    records, arrays = _records(rows), SparseArrays.of(rows)
    buffers = [np.empty(0, np.uint8)] * 2
    with hashed_bytes(path) as stream, ThreadPoolExecutor(1) as disk:
        stream.write(f"{'|'.join(layout.header)}\n".encode("ascii"))
        pending: list[Future[int]] = []  # one chunk is hashed and written while the next one is made
        for turn, (first, last) in enumerate(chunks(records)):
            texts = RowTexts(geounit_text(layout, rows.geounits[first:last]), codes, *parts)
            room = room_of_rows(int(records[first:last].sum()), numbers, texts)
            if len(buffers[turn % 2]) < room:
                buffers[turn % 2] = np.empty(room, np.uint8)
            out = buffers[turn % 2]
            text = out[: format_rows(arrays, (first, last), numbers, texts, out)]
            if check is not None:
                check.take(text)
            for earlier in pending:
                earlier.result()
            pending = [disk.submit(stream.write, text.data)]
            done(int(records[first:last].sum()))
        for earlier in pending:
            earlier.result()
        if check is not None:
            check.finish()
    return WrittenRows(rows.total, stream.sha256)


def row_level(
    layout: MicrodataLayout, level: SparseLevel, units: Units, companion: SparseLevel | None = None
) -> SparseLevel:
    """How many rows a file has of every cell of a row.

    Args:
        units: as for :func:`write_microdata`.
    """
    counts = np.asarray(units)  # as narrow as it is: it has a row for every block of a nation
    if layout.companion is not None:
        level = _joined(layout, layout.companion, level, companion)
    if layout.total:
        wrong = _records(level) != counts[:, list(layout.total)].sum(axis=1, dtype=np.int64)
        _require(wrong, "records that do not add up to their published units")
    if layout.kinds:
        node, cell = np.nonzero(counts[:, : layout.kinds])
        return _sparse(level, node, cell, counts[node, cell])
    if not layout.added:
        return level
    others = counts[:, list(layout.added)].sum(axis=1, dtype=np.int64)
    (more,) = np.nonzero(others)
    node = np.repeat(np.arange(level.nodes, dtype=np.int32), np.diff(level.node_ptr))
    node = np.concatenate([node, more.astype(np.int32)])
    cell = np.concatenate([level.cell, np.full(len(more), layout.cells - 1)])
    records = np.concatenate([level.count, others[more].astype(np.int32)])
    order = np.argsort(node, kind="stable")
    return _sparse(level, node[order], cell[order], records[order])


def row_count(
    layout: MicrodataLayout, level: SparseLevel, units: Units, companion: SparseLevel | None = None
) -> int:
    """How many rows a file has, where histograms and counts of units belong together.

    Args:
        units: as for :func:`write_microdata`.
    """
    if layout.kinds:
        return int(np.sum(units[:, : layout.kinds], dtype=np.int64))
    more = int(np.sum(units[:, list(layout.added)], dtype=np.int64)) if layout.added else 0
    if layout.companion is not None and companion is not None:
        more += int(companion.count[np.isin(companion.cell, layout.companion.cells)].sum(dtype=np.int64))
    return level.total + more


def _joined(
    layout: MicrodataLayout, companion: CompanionRows, level: SparseLevel, other: SparseLevel | None
) -> SparseLevel:
    """Rows of both histograms."""
    if other is None or not np.array_equal(level.geounits, other.geounits):
        raise ValueError(
            f"{layout.name} needs the histograms of {companion.schema.name} in the same geounits"
        )
    rows, wrong = join_rows(layout, companion, level, other)
    _require(
        wrong, f"{layout.records} of a level that is not told apart by the counts of {companion.schema.name}"
    )
    return rows


def _sparse(level: SparseLevel, node: Units, cell: Units, count: Units) -> SparseLevel:
    pointer = np.searchsorted(node, np.arange(level.nodes + 1, dtype=node.dtype)).astype(np.int64)
    return SparseLevel(level.geounits, pointer, cell.astype(np.int32), count.astype(np.int32))


_COUNTED = {
    "": {"record": PLACE},
    "dealt": {"unit": UNIT_OF_TURN, "record": TURN},
    "kinds": {"unit": PLACE, "held": UNIT_SIZE},
}


def _row_numbers(layout: MicrodataLayout, level: SparseLevel, units: Units) -> RowNumbers:
    """What the numbers of rows count, by the kinds of units where the layout shows units."""
    counted = _COUNTED["kinds" if layout.kinds else "dealt" if layout.dealt else ""]
    counts = np.array([counted[one.number] for one in layout.columns if one.number is not None], np.int64)
    if not layout.dealt:
        none = np.zeros((0, 0), np.int64)
        return RowNumbers(counts, np.zeros(layout.cells, np.int32), none, none, none)
    kinds = layout.schema.schema.levels_of(layout.dealt)
    if not layout.kinds and len(kinds) != layout.cells:
        raise ValueError(f"{layout.name}: records beside are not dealt to units")
    dealt, records = _dealt(layout, level, units, kinds)
    kind = np.arange(layout.kinds, dtype=np.int32) if layout.kinds else np.ascontiguousarray(kinds, np.int32)
    return RowNumbers(counts, kind, dealt, records, np.cumsum(dealt, axis=1) - dealt)


def _dealt(
    layout: MicrodataLayout, level: SparseLevel, units: Units, kinds: NDArray[np.int32]
) -> tuple[_Ints, _Ints]:
    """Units and records by kind, checked to fit each other; kinds that the schema does not know hold nobody."""
    counts = np.ascontiguousarray(units, np.int64)
    records = np.zeros_like(counts)
    node = np.repeat(np.arange(level.nodes), np.diff(level.node_ptr))
    np.add.at(records, (node, kinds[level.cell]), level.count)
    known = slice(0, layout.schema.query(layout.dealt).answers)
    members, there = records[:, known], counts[:, known]
    _require(
        ((members < there) | ((members > 0) & (there == 0))).any(axis=1),
        f"{layout.records} that do not fit: records without a unit of their kind, or units without a record",
    )
    return counts, records


def _require(wrong: NDArray[np.bool_], what: str) -> None:
    if wrong.any():
        raise CheckError(
            f"microdata: {int(wrong.sum())} geounits have {what}; the histograms and the published counts of units do not "
            "belong together"
        )


def _records(level: SparseLevel) -> _Ints:
    """Records of every geounit, shape (n,)."""
    cumulative = np.append(0, np.cumsum(level.count, dtype=np.int64))
    return np.diff(cumulative[level.node_ptr])
