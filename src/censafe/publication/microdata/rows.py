"""Rows of microdata as bytes: texts of the geounit and of the cell, and numbers, in the order of a layout."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Final, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from censafe.model.compiled import compiled
from censafe.model.named_arrays import SparseArrays
from censafe.model.sparse import SparseLevel
from censafe.publication.atomic import atomic_bytes

__all__ = [
    "CELL", "GEOUNIT", "NUMBER", "RecordPlaces", "RowNumbers", "Segments", "chunks", "expand_records", "write_rows",
]  # fmt: skip

GEOUNIT, CELL, NUMBER = 0, 1, 2
_DIGIT, _TEN, _NOTHING = np.uint64(48), np.uint64(10), np.uint64(0)
_NUMBER_BYTES: Final = 20  # that the longest number and its pipe take
_CHUNK_ROWS = 250_000  # buffers of this size are reused by the allocator

_Bytes = NDArray[np.uint8]
_Ints = NDArray[np.int64]


class Segments(NamedTuple):
    """What a row is made of, from left to right."""

    source: _Ints  # GEOUNIT or CELL for bytes of their text, NUMBER for a number and what ends it
    first: _Ints  # byte of the text, or column of the numbers
    stop: _Ints  # one past the last byte of the text, or the character that ends the number


class RecordPlaces(NamedTuple):
    """Where every record stands."""

    geounit: _Ints  # counted from the first of a chunk
    cell: _Ints
    place: _Ints  # from 0 among the records of the geounit
    turn: _Ints  # from 0 among the records of its kind in the geounit


class RowNumbers(NamedTuple):
    """Text of the geounits of a chunk, and geounit, cell and numbers of every row."""

    text: _Bytes  # (geounits, bytes)
    geounit: _Ints  # (rows,)
    cell: _Ints  # (rows,)
    numbers: _Ints  # (rows, columns with numbers), not negative


def chunks(rows: _Ints) -> Iterator[tuple[int, int]]:
    """Ranges of geounits of about a quarter of a million rows each.

    Args:
        rows: of every geounit, shape (n,).
    """
    if len(rows):
        group = (np.cumsum(rows) - rows) // _CHUNK_ROWS
        starts = np.flatnonzero(np.diff(group, prepend=-1)).tolist()
        yield from zip(starts, [*starts[1:], len(rows)], strict=True)


def expand_records(
    level: SparseLevel, first: int, last: int, kind_of_cell: NDArray[np.int32]
) -> RecordPlaces:
    """One row for every record of some geounits, in the order of geounits and cells.

    Args:
        level: histograms.
        first: of the geounits.
        last: one past the last of them.
        kind_of_cell: kind of every cell, from 0, shape (cells,).
    """
    pointer = level.node_ptr
    records = int(level.count[pointer[first] : pointer[last]].sum(dtype=np.int64))
    places = RecordPlaces(*(np.empty(records, np.int64) for _ in range(4)))
    held = np.zeros(int(kind_of_cell.max(initial=0)) + 1, np.int64)
    _expand(SparseArrays.of(level), first, last, kind_of_cell, held, places)
    return places


@compiled()
def _expand(
    histograms: SparseArrays, first: int, last: int, kind_of_cell: NDArray[np.int32], held: _Ints, places: RecordPlaces
) -> None:  # fmt: skip
    """Fill the places; `held` has room for the records of every kind in a geounit."""
    node_ptr, cells, counts = histograms
    geounit, cell, place, turn = places
    row = 0
    for unit in range(first, last):
        held[:] = 0
        before = row
        for entry in range(node_ptr[unit], node_ptr[unit + 1]):
            kind = kind_of_cell[cells[entry]]
            taken = held[kind]
            for _ in range(counts[entry]):
                geounit[row] = unit - first
                cell[row] = cells[entry]
                place[row] = row - before
                turn[row] = taken
                taken += 1
                row += 1
            held[kind] = taken


def write_rows(
    path: Path, header: Sequence[str], parts: Iterator[RowNumbers], codes: _Bytes, segments: Segments
) -> int:
    """Write a pipe-delimited file with a header, a chunk at a time.

    Args:
        path: final name; the file appears there complete or not at all.
        header: names of the columns.
        parts: the rows.
        codes: text of every cell, shape (cells, bytes).
        segments: order of the parts of a row; the last one ends with the line feed.

    Returns:
        Number of rows, without the header.

    Raises:
        StorageError: the disk is full or the folder not writable.
    """
    written = 0
    with atomic_bytes(path) as stream:
        stream.write(f"{'|'.join(header)}\n".encode("ascii"))
        with ThreadPoolExecutor(1) as disk:  # one chunk is written while the next one is made
            pending: list[Future[int]] = []
            for rows in parts:
                numbers = _NUMBER_BYTES * rows.numbers.shape[1]
                out = np.empty(len(rows.cell) * (rows.text.shape[1] + codes.shape[1] + numbers), np.uint8)
                size = _format(rows, codes, segments, out)
                for earlier in pending:
                    earlier.result()
                pending = [disk.submit(stream.write, out[:size].data)]
                written += len(rows.cell)
            for earlier in pending:
                earlier.result()
    return written


@numba.njit(inline="always")
def _copy(source: _Bytes, start: int, size: int, out: _Bytes, place: int) -> int:
    """Copy some bytes; unsigned indices, which are not looked at for negative ones, rather than views, which cost more."""
    of, to = np.uint64(start), np.uint64(place)
    for i in range(np.uint64(size)):
        out[to + i] = source[of + i]
    return place + size


@numba.njit(inline="always")
def _number(given: int, out: _Bytes, place: int) -> int:
    """A non-negative number."""
    value = np.uint64(given)  # unsigned division is the fast one
    left, digits = value // _TEN, 1
    while left > _NOTHING:
        left //= _TEN
        digits += 1
    for i in range(digits - 1, -1, -1):
        tenth = value // _TEN
        out[place + i] = _DIGIT + (value - _TEN * tenth)
        value = tenth
    return place + digits


@compiled()
def _format(rows: RowNumbers, codes: _Bytes, segments: Segments, out: _Bytes) -> int:
    """Bytes of all rows; how many there are."""
    geounit, cell, numbers = rows.geounit, rows.cell, rows.numbers
    texts, lengths = (rows.text.ravel(), codes.ravel()), (rows.text.shape[1], codes.shape[1])
    source, first, stop = segments
    place = 0
    for row in range(len(cell)):
        for part in range(len(source)):
            size = stop[part] - first[part]
            if source[part] == GEOUNIT:
                place = _copy(texts[0], geounit[row] * lengths[0] + first[part], size, out, place)
            elif source[part] == CELL:
                place = _copy(texts[1], cell[row] * lengths[1] + first[part], size, out, place)
            else:
                place = _number(numbers[row, first[part]], out, place)
                out[place] = stop[part]
                place += 1
    return place
