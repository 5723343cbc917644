"""Rows of microdata as bytes: texts of the geounit and of the cell, and numbers, in the order of a layout."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from censafe.model.compiled import compiled
from censafe.model.named_arrays import SparseArrays

GEOUNIT, CELL, NUMBER = 0, 1, 2
PLACE, UNIT_OF_TURN, TURN, UNIT_SIZE = 0, 1, 2, 3
_DIGIT, _TEN, _NOTHING = np.uint64(48), np.uint64(10), np.uint64(0)
_NUMBER_BYTES: Final = 20  # that the longest number and its pipe take
_CHUNK_ROWS = 250_000  # stays in the last cache while it is made, checked and written
_MANY: Final = 1 << 62

_Bytes = NDArray[np.uint8]
_Ints = NDArray[np.int64]


class RowNumbers(NamedTuple):
    """What the numbers of a row count. The arrays of units are empty where no column shows units."""

    counted: _Ints  # (columns with numbers,)
    #   PLACE: rows of the geounit, from 1
    #   UNIT_OF_TURN and TURN: records are dealt to the units of their kind in turn; the unit from 1, and how often it had its turn
    #   UNIT_SIZE: the records that a unit holds, of a file with a row for every unit
    kind: NDArray[np.int32]  # (cells of a row,)
    units: _Ints  # (geounits, kinds)
    records: _Ints  # (geounits, kinds) of the units
    before: _Ints  # (geounits, kinds) units of the kinds before


class RowTexts(NamedTuple):
    """What a row is made of, from left to right, and the texts of geounits and cells."""

    geounit: _Bytes  # (geounits, bytes)
    cell: _Bytes  # (cells of a row, bytes)
    source: _Ints  # (parts,) GEOUNIT or CELL for bytes of their text, NUMBER for a number and what ends it
    first: _Ints  # (parts,) byte of the text, or column of the numbers
    stop: _Ints  # (parts,) one past the last byte of the text, or the character that ends the number


def chunks(rows: _Ints) -> Iterator[tuple[int, int]]:
    """Ranges of geounits of about a quarter of a million rows each.

    Args:
        rows: of every geounit, shape (n,).
    """
    if len(rows):
        group = (np.cumsum(rows) - rows) // _CHUNK_ROWS
        starts = np.flatnonzero(np.diff(group, prepend=-1)).tolist()
        yield from zip(starts, [*starts[1:], len(rows)], strict=True)


def format_rows(
    level: SparseArrays, nodes: tuple[int, int], numbers: RowNumbers, texts: RowTexts, out: _Bytes
) -> int:
    """Make the rows of some geounits, in the order of geounits and cells.

    Rows of a cell that differ in numbers alone, and not in their length, are copies of the first of them, with other digits.
    """
    return int(_format(level, *nodes, numbers, texts, out))


def room_of_rows(rows: int, numbers: RowNumbers, texts: RowTexts) -> int:
    """Bytes that some rows take at most."""
    return rows * (texts.geounit.shape[1] + texts.cell.shape[1] + _NUMBER_BYTES * len(numbers.counted))


@numba.njit(inline="always")
def _number(number: int, out: _Bytes, place: int) -> int:
    """A non-negative number."""
    value = np.uint64(number)  # unsigned division is the fast one
    left, digits = value // _TEN, 1
    while left > _NOTHING:
        left //= _TEN
        digits += 1
    for i in range(digits - 1, -1, -1):
        tenth = value // _TEN
        out[place + i] = _DIGIT + (value - _TEN * tenth)
        value = tenth
    return place + digits


@numba.njit(inline="always")
def _copy(source: _Bytes, start: int, size: int, out: _Bytes, place: int) -> int:
    """Copy some bytes; unsigned indices, which are not looked at for negative ones, rather than views, which cost more."""
    of, to = np.uint64(start), np.uint64(place)
    for i in range(np.uint64(size)):
        out[to + i] = source[of + i]
    return place + size


@compiled()
def _value(what, place, turn, units, records, before):  # type: ignore[no-untyped-def]
    """A number of a row: its value, what the next row adds to it, and how many rows do so.

    ``units``, ``records`` and ``before`` are those of the kind in the geounit.
    """
    if what == PLACE:
        return place + 1, 1, _MANY
    if what == UNIT_SIZE:
        share, more = divmod(records, units)
        return (share + 1, 0, more - turn) if turn < more else (share, 0, _MANY)
    times, unit = divmod(turn, units)
    if what == TURN:
        return times + 1, 0, units - unit
    return before + unit + 1, 1, units - unit


@compiled()
def _row(unit, cell, texts, value, ends, out, at):  # type: ignore[no-untyped-def]
    """Write one row; its bytes. ``ends`` takes where every number ends in the row."""
    here = at
    geounits, codes = texts.geounit.ravel(), texts.cell.ravel()
    lengths = texts.geounit.shape[1], texts.cell.shape[1]
    for part in range(len(texts.source)):
        first = texts.first[part]
        size = texts.stop[part] - first
        if texts.source[part] == GEOUNIT:
            here = _copy(geounits, unit * lengths[0] + first, size, out, here)
        elif texts.source[part] == CELL:
            here = _copy(codes, cell * lengths[1] + first, size, out, here)
        else:
            here = _number(value[first], out, here)
            ends[first] = here - at
            out[here] = texts.stop[part]
            here += 1
    return here - at


@compiled()
def _repeat(out, at, size, rows, ends, value, step):  # type: ignore[no-untyped-def]
    """Write the rows that follow one and differ from it in numbers alone, which are as long as its numbers."""
    room, done = rows * size, size
    while done < room:
        done += _copy(out, at, min(done, room - done), out, at + done) - at - done
    for column in range(len(ends)):
        if step[column]:
            end = np.uint64(at + ends[column])
            for row in range(1, rows):
                end += np.uint64(size)
                left, to = np.uint64(value[column] + row), end
                while left > _NOTHING:
                    to -= np.uint64(1)
                    tenth = left // _TEN
                    out[to] = _DIGIT + (left - _TEN * tenth)
                    left = tenth


@compiled()
def _format(level, first, last, numbers, texts, out):  # type: ignore[no-untyped-def]
    node_ptr, cells, counts = level
    columns = len(numbers.counted)
    value, step, ends = np.empty(columns, np.int64), np.empty(columns, np.int64), np.empty(columns, np.int64)
    turns = np.zeros(max(1, numbers.units.shape[1]), np.int64)
    dealt = numbers.units.shape[0] > 0
    units, records, before = np.int64(0), np.int64(0), np.int64(0)
    at = np.int64(0)
    for unit in range(first, last):
        turns[:] = 0
        place = np.int64(0)
        for entry in range(node_ptr[unit], node_ptr[unit + 1]):
            cell, left = cells[entry], np.int64(counts[entry])
            kind = numbers.kind[cell] if dealt else 0
            if dealt:
                units, records, before = (
                    numbers.units[unit, kind],
                    numbers.records[unit, kind],
                    numbers.before[unit, kind],
                )
            turn = turns[kind]
            turns[kind] += left
            while left > 0:
                run = left
                for column in range(columns):
                    value[column], step[column], same = _value(
                        numbers.counted[column], place, turn, units, records, before
                    )
                    if step[column]:
                        longer = 10
                        while longer <= value[column]:
                            longer *= 10
                        same = min(same, longer - value[column])
                    run = min(run, same)
                size = _row(unit - first, cell, texts, value, ends, out, at)
                _repeat(out, at, size, run, ends, value, step)
                at += run * size
                turn += run
                place += run
                left -= run
    return at
