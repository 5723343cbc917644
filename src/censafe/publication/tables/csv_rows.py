"""Arrow batches as comma-separated text: the bytes of Arrow's own writer for texts and whole numbers, made by one loop over the rows.

Texts stand in quotes and numbers do not; a text that is null is an empty field. Tables of items have hundreds of small numbers in a row, which the loop
writes without a text of every column between, and which need not be columns before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
from numba import int32, int64, uint8, uint64
from numpy.typing import NDArray

from censafe.model.compiled import compiled
from censafe.model.named_arrays import tuple_type
from censafe.model.safe_text import csv_table
from censafe.publication.atomic import hashed_bytes

_ROWS: Final = 1 << 17  # that are turned into text at once
_NUMBERS: Final = 1 << 18  # which stay in the cache
_FORMULA: Final = np.zeros(256, np.bool_)  # bytes that the text of a formula may begin with
_FORMULA[[*b"=+-@\t\r\n", 0xEF]] = True
_COMMA, _NEWLINE, _QUOTE, _MINUS, _DIGIT = (np.uint8(one) for one in b',\n"-0')
_ONE, _TEN = np.uint64(1), np.uint64(10)


class _Cells(NamedTuple):
    """Columns of some rows."""

    is_text: NDArray[np.uint8]  # (columns,)
    text: NDArray[np.uint8]
    start: NDArray[np.int64]  # (columns of text, rows) first byte
    size: NDArray[np.int32]  # (columns of text, rows) bytes, -1 for a null
    number: NDArray[np.int64]  # (rows, columns of numbers)


_CELLS = tuple_type(_Cells, uint8[::1], uint8[::1], int64[:, ::1], int32[:, ::1], int64[:, ::1])


@compiled(uint64(int64, uint64, uint8[::1]))
def _digits(number, at, out):  # type: ignore[no-untyped-def]
    """Write a number; the byte after it."""
    if number < 0:
        out[at] = _MINUS
        at += _ONE
    value = np.uint64(-number) if number < 0 else np.uint64(number)
    digits, left = _ONE, value // _TEN
    while left:
        left //= _TEN
        digits += _ONE
    for byte in range(digits):
        left = value // _TEN
        out[at + digits - _ONE - byte] = _DIGIT + np.uint8(value - _TEN * left)
        value = left
    return at + digits


@compiled(int64(_CELLS, uint8[::1]))
def _format(cells, out):  # type: ignore[no-untyped-def]
    """Bytes of all rows; how many there are."""
    is_text, text, start, size, number = cells
    at = np.uint64(0)
    for row in range(start.shape[1]):
        texts, numbers = 0, np.uint64(0)
        for column in range(is_text.shape[0]):
            if is_text[column]:
                if size[texts, row] >= 0:
                    of, length = np.uint64(start[texts, row]), np.uint64(size[texts, row])
                    out[at] = _QUOTE
                    at += _ONE
                    for byte in range(length):
                        out[at + byte] = text[of + byte]
                    at += length
                    out[at] = _QUOTE
                    at += _ONE
                texts += 1
            else:
                value = number[np.uint64(row), numbers]
                if np.uint64(value) < _TEN:  # most items of most blocks
                    out[at] = _DIGIT + np.uint8(value)
                    at += _ONE
                else:
                    at = _digits(value, at, out)
                numbers += _ONE
            out[at] = _COMMA
            at += _ONE
        out[at - _ONE] = _NEWLINE
    return np.int64(at)


class NumberedRows(NamedTuple):
    """Columns of text, and whole numbers after them."""

    texts: Sequence[pa.Array]
    numbers: NDArray[np.integer[Any]]  # (rows, columns)


def write_csv(path: Path, names: Sequence[str], batches: Iterable[pa.RecordBatch | NumberedRows]) -> str:
    """Write rows as comma-separated text with a header, in which no cell is a formula."""
    header = pa.schema([(name, pa.string()) for name in names]).empty_table()
    with hashed_bytes(path) as stream:
        options = pa_csv.WriteOptions(quoting_style="needed")
        pa_csv.write_csv(csv_table(header), stream, options)
        for batch in batches:
            for piece in _pieces(batch):
                stream.write(piece)
    return stream.sha256


class _Texts(NamedTuple):
    """A column of texts."""

    text: NDArray[np.uint8]
    start: NDArray[np.int64]  # (texts,) first byte
    size: NDArray[np.int32]  # (texts,) bytes, -1 for a null
    code: NDArray[np.integer[Any]] | None  # (rows,) text of every row; None where that is its place

    def rows(self, first: int, last: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """First byte and number of bytes of some rows."""
        chosen = slice(first, last) if self.code is None else self.code[first:last]
        return self.start[chosen], self.size[chosen]


def _pieces(batch: pa.RecordBatch | NumberedRows) -> Iterator[memoryview]:
    """Text of some rows at a time."""
    numbers: Sequence[NDArray[Any]] | NDArray[Any]
    if isinstance(batch, NumberedRows):
        texts, numbers, (rows, columns) = (
            [_texts(column) for column in batch.texts],
            batch.numbers,
            batch.numbers.shape,
        )
        is_text = np.repeat(np.array([1, 0], np.uint8), [len(texts), columns])
    else:
        is_number = [pa.types.is_integer(column.type) for column in batch.columns]
        counts = [column for column, of in zip(batch.columns, is_number, strict=True) if of]
        if any(column.null_count for column in counts):
            raise ValueError("numbers of a comma-separated file are never null")
        texts = [_texts(column) for column, of in zip(batch.columns, is_number, strict=True) if not of]
        numbers = [column.to_numpy(zero_copy_only=False) for column in counts]
        rows, columns, is_text = (
            batch.num_rows,
            len(numbers),
            np.array([not of for of in is_number], np.uint8),
        )
    before = np.cumsum([0, *(len(column.text) for column in texts)])
    text = np.concatenate([np.empty(0, np.uint8), *(column.text for column in texts)])
    step = min(_ROWS, max(1, _NUMBERS // max(1, columns)))
    for first in range(0, rows, step):
        last = min(first + step, rows)
        start, size = (
            np.empty((len(texts), last - first), np.int64),
            np.empty((len(texts), last - first), np.int32),
        )
        for place, column in enumerate(texts):
            begin, size[place] = column.rows(first, last)
            np.add(begin, before[place], out=start[place])
        number = _matrix(numbers, first, last, columns)
        widest = max(len(str(int(end))) for end in (number.min(initial=0), number.max(initial=0)))
        room = int(size.sum(dtype=np.int64)) + (last - first) * (4 * len(is_text) + widest * columns)
        out = np.empty(room, np.uint8)
        yield out[: _format(_Cells(is_text, text, start, size, number), out)].data


def _matrix(
    numbers: Sequence[NDArray[Any]] | NDArray[Any], first: int, last: int, columns: int
) -> NDArray[np.int64]:
    """The numbers of some rows, shape (rows, columns)."""
    matrix = np.empty((last - first, columns), np.int64)
    if isinstance(numbers, np.ndarray):
        matrix[:] = numbers[first:last]
    else:
        for place, column in enumerate(numbers):
            matrix[:, place] = column[first:last]
    return matrix


def _texts(column: Any) -> _Texts:
    """A column as text that may stand in a cell; the texts of codes are looked at once."""
    if pa.types.is_dictionary(column.type) and not column.null_count and not column.dictionary.null_count:
        return _texts(column.dictionary)._replace(code=column.indices.to_numpy())
    texts = column.cast(pa.string())
    characters = _bytes_of(texts)
    if _FORMULA[characters.text[characters.start[characters.size > 0]]].any():
        texts = csv_table(pa.table([texts], names=["text"])).column(0).combine_chunks()
    if (characters.text == _QUOTE).any():
        texts = pc.replace_substring(texts, '"', '""')
    return _bytes_of(texts)


def _bytes_of(texts: Any) -> _Texts:
    _, offsets, data = texts.buffers()
    place = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    size = np.diff(place)
    if texts.null_count:
        size = np.where(texts.is_valid().to_numpy(zero_copy_only=False), size, np.int32(-1))
    first, last = (int(place[0]), int(place[-1])) if len(texts) else (0, 0)
    text = np.frombuffer(data, np.uint8)[first:last] if last > first else np.empty(0, np.uint8)
    return _Texts(text, place[:-1].astype(np.int64) - first, size, None)
