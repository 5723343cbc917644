"""Rows of microdata as bytes: the text of a geounit, numbers, the text of a cell, more numbers, a tail."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numba
import numpy as np
from numpy.typing import NDArray

from censafe.publication.atomic import atomic_bytes

__all__ = ["Rows", "chunks", "geounit_text", "table_text", "write_rows"]

_PIPE, _ZERO = 124, 48
_NUMBER = 20  # bytes that the longest number and its pipe take
_CHUNK_ROWS = 1_000_000

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
    """Ranges of geounits of about a million rows each.

    Args:
        rows: of every geounit, shape (n,).
    """
    if len(rows):
        group = (np.cumsum(rows) - rows) // _CHUNK_ROWS
        starts = np.flatnonzero(np.diff(group, prepend=-1)).tolist()
        yield from zip(starts, [*starts[1:], len(rows)], strict=True)


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
    end = np.frombuffer(f"{tail}\n".encode("ascii"), np.uint8)
    with atomic_bytes(path) as stream:
        stream.write(f"{'|'.join(header)}\n".encode("ascii"))
        for text, geounit, before, code, after in parts:
            numbers = _NUMBER * (before.shape[1] + after.shape[1])
            out = np.empty(len(geounit) * (text.shape[1] + numbers + codes.shape[1] + len(end)), np.uint8)
            size = _format(text, geounit, before, codes, code, after, end, out)
            stream.write(out[:size].data)
            written += len(geounit)
    return written


@numba.njit(cache=True, nogil=True)
def _copy(source: _Bytes, out: _Bytes, place: int) -> int:
    for i in range(len(source)):
        out[place + i] = source[i]
    return place + len(source)


@numba.njit(cache=True, nogil=True)
def _numbers(values: _Ints, out: _Bytes, place: int) -> int:
    """Non-negative numbers, each followed by a pipe."""
    for value in values:
        left, digits = value, 1
        while left >= 10:
            left //= 10
            digits += 1
        left = value
        for i in range(digits - 1, -1, -1):
            out[place + i] = _ZERO + left % 10
            left //= 10
        place += digits
        out[place] = _PIPE
        place += 1
    return place


@numba.njit(cache=True, nogil=True)
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
        place = _copy(text[geounit[row]], out, place)
        place = _numbers(before[row], out, place)
        place = _copy(codes[code[row]], out, place)
        place = _numbers(after[row], out, place)
        place = _copy(end, out, place)
    return place
