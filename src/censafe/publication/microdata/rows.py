"""Rows of microdata as bytes: the text of a geounit, numbers, the text of a cell, more numbers, a tail."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import numba
import numpy as np
from numpy.typing import NDArray

from censafe.model.compiled import compiled
from censafe.model.sparse import SparseLevel
from censafe.publication.atomic import atomic_bytes

__all__ = ["Rows", "chunks", "expand_records", "geounit_text", "table_text", "write_rows"]

_PIPE = 124
_DIGIT, _TEN, _NOTHING = np.uint64(48), np.uint64(10), np.uint64(0)
_NUMBER = 20  # bytes that the longest number and its pipe take
_CHUNK_ROWS = 250_000  # buffers of this size are reused by the allocator

_Bytes = NDArray[np.uint8]
_Ints = NDArray[np.int64]
Rows = tuple[_Bytes, _Ints, _Ints, _Ints, _Ints]
"""Text of the geounits of a chunk; and for every row its geounit, its numbers before, its code and its numbers after."""


def table_text(texts: Sequence[str]) -> _Bytes:
    """Texts of one length as a matrix of bytes, shape (texts, length)."""
    lengths = {len(text) for text in texts}
    if len(lengths) != 1:
        raise ValueError("all texts must have one length")
    joined = np.frombuffer("".join(texts).encode("ascii"), np.uint8)
    return joined.reshape(len(texts), -1)


def geounit_text(head: str, geounits: NDArray[np.str_], widths: Sequence[int]) -> _Bytes:
    """Constant fields and the parts of the geocodes, each followed by a pipe.

    Args:
        head: fields that all rows share, with the pipe after the last one.
        geounits: geocodes of one length, shape (n,).
        widths: characters of every part; they add up to the length.

    Returns:
        Shape (n, bytes).
    """
    length = sum(widths)
    if geounits.dtype.itemsize != 4 * length:
        raise ValueError(f"geocodes must have {length} characters")
    codes = np.ascontiguousarray(geounits).view(np.uint32).reshape(-1, length).astype(np.uint8)
    pipe = np.full((len(codes), 1), _PIPE, np.uint8)
    parts: list[_Bytes] = [np.tile(np.frombuffer(head.encode("ascii"), np.uint8), (len(codes), 1))]
    start = 0
    for width in widths:
        parts += [codes[:, start : start + width], pipe]
        start += width
    return np.concatenate(parts, axis=1)


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
    level: SparseLevel, first: int, last: int, cells_of_kind: int
) -> tuple[_Ints, _Ints, _Ints, _Ints]:
    """One row for every record of some geounits, in the order of geounits and cells.

    Args:
        level: histograms.
        first: of the geounits.
        last: one past the last of them.
        cells_of_kind: how many cells in a row are of one kind.

    Returns:
        Of every record: its geounit counted from `first`, its cell, its position from 0 among the records of its geounit and
        kind, and the kind.
    """
    pointer = level.node_ptr
    records = int(level.count[pointer[first] : pointer[last]].sum(dtype=np.int64))
    found = tuple(np.empty(records, np.int64) for _ in range(4))
    _expand(pointer, level.cell, level.count, first, last, cells_of_kind, *found)
    return found[0], found[1], found[2], found[3]


@compiled()
def _expand(
    node_ptr: _Ints,
    cells: NDArray[np.int32],
    counts: NDArray[np.int32],
    first: int,
    last: int,
    cells_of_kind: int,
    node: _Ints,
    cell: _Ints,
    place: _Ints,
    kind: _Ints,
) -> None:
    row = 0
    for unit in range(first, last):
        held, before = 0, -1
        for entry in range(node_ptr[unit], node_ptr[unit + 1]):
            now = cells[entry] // cells_of_kind
            if now != before:
                held, before = 0, now
            for _ in range(counts[entry]):
                node[row] = unit - first
                cell[row] = cells[entry]
                place[row] = held
                kind[row] = now
                held += 1
                row += 1


def write_rows(path: Path, header: Sequence[str], parts: Iterator[Rows], codes: _Bytes, tail: str) -> int:
    """Write a pipe-delimited file with a header, a chunk at a time.

    Args:
        path: final name; the file appears there complete or not at all.
        header: names of the columns.
        parts: the rows.
        codes: text of every code, shape (codes, bytes).
        tail: end of every row, without the line feed.

    Returns:
        Number of rows, without the header.

    Raises:
        StorageError: the disk is full or the folder not writable.
    """
    written = 0
    end = table_text([f"{tail}\n"])
    with atomic_bytes(path) as stream:
        stream.write(f"{'|'.join(header)}\n".encode("ascii"))
        with ThreadPoolExecutor(1) as disk:  # one chunk is written while the next one is made
            pending: list[Future[int]] = []
            for text, geounit, before, code, after in parts:
                numbers = _NUMBER * (before.shape[1] + after.shape[1])
                out = np.empty(
                    len(geounit) * (text.shape[1] + numbers + codes.shape[1] + end.shape[1]), np.uint8
                )
                size = _format(text, geounit, before, codes, code, after, end, out)
                for earlier in pending:
                    earlier.result()
                pending = [disk.submit(stream.write, out[:size].data)]
                written += len(geounit)
            for earlier in pending:
                earlier.result()
    return written


@numba.njit(inline="always")
def _copy(source: _Bytes, row: int, out: _Bytes, place: int) -> int:
    """Copy one row; indices rather than views, which cost more than the copy."""
    size = source.shape[1]
    for i in range(size):
        out[place + i] = source[row, i]
    return place + size


@numba.njit(inline="always")
def _numbers(values: _Ints, row: int, out: _Bytes, place: int) -> int:
    """Non-negative numbers, each followed by a pipe."""
    for column in range(values.shape[1]):
        value = np.uint64(values[row, column])  # unsigned division is the fast one
        left, digits = value // _TEN, 1
        while left > _NOTHING:
            left //= _TEN
            digits += 1
        for i in range(digits - 1, -1, -1):
            tenth = value // _TEN
            out[place + i] = _DIGIT + (value - _TEN * tenth)
            value = tenth
        place += digits
        out[place] = _PIPE
        place += 1
    return place


@compiled()
def _format(
    text: _Bytes,
    geounit: _Ints,
    before: _Ints,
    codes: _Bytes,
    code: _Ints,
    after: _Ints,
    end: _Bytes,
    out: _Bytes,
) -> int:
    place = 0
    for row in range(len(geounit)):
        place = _copy(text, geounit[row], out, place)
        place = _numbers(before, row, out, place)
        place = _copy(codes, code[row], out, place)
        place = _numbers(after, row, out, place)
        place = _copy(end, 0, out, place)
    return place
