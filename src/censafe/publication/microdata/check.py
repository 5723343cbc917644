"""Text of microdata compared with the histograms that it stands for, byte by byte in one pass, before it goes to the disk."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numba import int16, int32, int64, types, uint8
from numpy.typing import NDArray

from censafe.errors import CheckError
from censafe.model.compiled import compiled
from censafe.model.named_arrays import read_only, tuple_type
from censafe.model.sparse import SparseLevel
from censafe.publication.microdata.layouts import MicrodataLayout

_FIELDS: Final = 1
_NO_DIGITS: Final = 2
_CODE_OUTSIDE: Final = 3
_GEOUNIT_UNKNOWN: Final = 4
_OTHER_COUNTS: Final = 5
_NEWLINE, _PIPE, _ZERO = 10, 124, 48
# what is known between two pieces of a file: geounit of the last line, its rows; where a fault is
_NODE, _ROWS, _COLUMN = 0, 1, 2
_NUMBER: Final = 3  # the role of a column of numbers
_LONGEST: Final = 4096  # bytes of a row that is compared with the one before
_ALL, _SIXTEEN = (
    np.uint8(255),
    np.uint8(240),
)  # digits are sixteen characters with six others, neither a pipe nor a line feed
_Ints = NDArray[np.int64]
_MOST_KEYS: Final = 1 << 62
_TEXT: Final = types.Array(types.uint8, 1, "C", readonly=True)
_FIXED: Final = types.Array(types.int32, 1, "C", readonly=True)
_POINTER: Final = types.Array(types.int64, 1, "C", readonly=True)
_SPREAD = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio
_SHIFT = np.uint64(32)


class LineColumns(NamedTuple):
    """What is read of every column."""

    roles: _Ints  # (columns,) 0 is passed over, 1 is a part of the geocode, 2 is a part of the cell, 3 is a number
    widths: NDArray[np.int32]  # (columns,) characters of a column with a role
    levels: NDArray[np.int16]  # (columns, numbers + 1) level of a number, -1 for none; how many levels, last


class ExpectedRows(NamedTuple):
    """Rows that the file must have."""

    codes: _Ints  # (geounits,) geocodes as numbers, rising
    node_ptr: _Ints  # (geounits + 1,) where the entries of every geounit start
    cell: NDArray[np.int32]  # group of cells that read alike
    rows: NDArray[np.int32]  # of every entry


class KnownRows(NamedTuple):
    """Which groups of cells read alike: a table with open addresses."""

    slots: NDArray[np.int32]  # (power of two,) group, -1 for a free place
    keys: _Ints  # (groups,) number that the codes of a row make


class CountedRows(NamedTuple):
    """Rows that were read so far, counted."""

    by_group: _Ints  # (groups,) rows of the geounit that is being read
    seen: NDArray[np.uint8]  # (geounits,) those whose rows were compared
    state: _Ints  # (3,) the last geounit, its rows, and the column of a fault


_COLUMNS = tuple_type(LineColumns, int64[::1], int32[::1], int16[:, ::1])
_EXPECTED = tuple_type(ExpectedRows, int64[::1], _POINTER, _FIXED, _FIXED)
_KNOWN = tuple_type(KnownRows, int32[::1], int64[::1])
_COUNTED = tuple_type(CountedRows, int64[::1], uint8[::1], int64[::1])


@compiled(int64(int64, _KNOWN))
def _slot(key, known):  # type: ignore[no-untyped-def]
    """Where the group of a key stands, or a free place where there is none."""
    slots, keys = known
    last = np.uint64(slots.shape[0] - 1)
    slot = ((np.uint64(key) * _SPREAD) >> _SHIFT) & last
    while slots[slot] >= 0 and keys[slots[slot]] != key:
        slot = (slot + np.uint64(1)) & last
    return np.int64(slot)


@compiled(int64(int64[::1], int32[::1], int64[::1], int32[::1]))
def _group(key_of_cell, slots, keys, of):  # type: ignore[no-untyped-def]
    """Number the keys of cells as they come; how many differ."""
    known = KnownRows(slots, keys)
    groups = 0
    for cell in range(key_of_cell.shape[0]):
        slot = _slot(key_of_cell[cell], known)
        if slots[slot] < 0:
            slots[slot] = groups
            keys[groups] = key_of_cell[cell]
            groups += 1
        of[cell] = slots[slot]
    return groups


@compiled(int64(int64, _EXPECTED, _COUNTED))
def _same(node, expected, counted):  # type: ignore[no-untyped-def]
    """Whether the rows of a geounit are its entries; what was counted of it is cleared."""
    by_group, seen, state = counted
    rows = np.int64(0)
    for entry in range(expected.node_ptr[node], expected.node_ptr[node + 1]):
        if by_group[expected.cell[entry]] != expected.rows[entry]:
            return 0
        rows += expected.rows[entry]
        by_group[expected.cell[entry]] = 0
    if rows != state[_ROWS]:
        return 0
    seen[node] = 1
    state[_ROWS] = 0
    return 1


@compiled(int64(int64, _EXPECTED, _COUNTED))
def _enter(code, expected, counted):  # type: ignore[no-untyped-def]
    """Compare the geounit that ends, and begin the one with this geocode; 0, or what is wrong."""
    state = counted.state
    begun = np.searchsorted(expected.codes, code)
    if begun == expected.codes.shape[0] or expected.codes[begun] != code:
        return _GEOUNIT_UNKNOWN
    if state[_NODE] >= 0 and not _same(state[_NODE], expected, counted):
        return _OTHER_COUNTS
    if counted.seen[begun]:
        return _OTHER_COUNTS
    state[_NODE] = begun
    return 0


@compiled(int64(_TEXT, int64, int64, uint8[::1]))
def _repeated(text, place, size, alike):  # type: ignore[no-untyped-def]
    """How many rows from a place on are like the one before it in the bits that must be alike: the same fields, codes and geounit."""
    rows, here, length = 0, np.uint64(place), np.uint64(size)
    while here + length <= np.uint64(text.shape[0]):
        other = np.uint8(0)
        for byte in range(length):
            other |= (text[here + byte] ^ text[here - length + byte]) & alike[byte]
        if other:
            break
        rows += 1
        here += length
    return rows


@compiled(int64(_TEXT, int64, _COLUMNS, int64[::1]))
def _row(text, place, columns, read):  # type: ignore[no-untyped-def]
    """Read one row: where it ends, its geocode and cell as numbers, and where a number stands last; or the negative of what is wrong."""
    roles, widths, levels = columns
    fields, last = roles.shape[0], levels.shape[1] - 1
    code, where, field = np.int64(0), np.int64(0), 0
    while True:
        value, start, scale = np.int64(0), place, np.int64(1)
        role = roles[field] if field < fields else np.int64(0)
        coded = role == 1 or role == 2
        while place < text.shape[0] and text[place] != _PIPE and text[place] != _NEWLINE:
            if coded:
                digit = np.int64(text[place]) - _ZERO
                if digit < 0 or digit > 9 or place - start >= widths[field]:
                    read[_COLUMN] = field
                    return -_NO_DIGITS if role == 1 else -_CODE_OUTSIDE
                value = value * 10 + digit
                scale *= 10
            place += 1
        if coded and place - start != widths[field]:
            read[_COLUMN] = field
            return -_NO_DIGITS if role == 1 else -_CODE_OUTSIDE
        if role == 1:
            code = code * scale + value
        elif role == 2:
            if value >= last or levels[field, value] < 0:
                read[_COLUMN] = field
                return -_CODE_OUTSIDE
            where = where * levels[field, last] + levels[field, value]
        field += 1
        place += 1
        if place > text.shape[0] or text[place - 1] == _NEWLINE:
            break
    read[0], read[1] = code, where
    return place if field == fields else -_FIELDS


@compiled(int64(_TEXT, int64, int64, _COLUMNS, uint8[::1]))
def _alike(text, start, stop, columns, alike):  # type: ignore[no-untyped-def]
    """Which bits of the bytes of a row must be those of a row that reads alike: all, and in numbers those that make a digit; its length."""
    if stop - start > _LONGEST:
        return 0
    field = 0
    for place in range(start, stop):
        ends = text[place] == _PIPE or text[place] == _NEWLINE
        digit = text[place] >= _ZERO and text[place] <= _ZERO + 9
        alike[place - start] = _SIXTEEN if columns.roles[field] == _NUMBER and digit else _ALL
        field += ends
    return stop - start


@compiled(int64(_TEXT, _COLUMNS, _KNOWN, _EXPECTED, _COUNTED))
def _scan(text, columns, known, expected, counted):  # type: ignore[no-untyped-def]
    """Count the rows of whole lines by geounit and cell, and compare a geounit when the next one begins.

    Returns 0, or what is wrong with a row; the column of the fault is in the state of what was counted. Codes that no cell has
    together are other counts.
    """
    by_group, state, codes = counted.by_group, counted.state, expected.codes
    alike, read = np.empty(_LONGEST, np.uint8), np.zeros(3, np.int64)
    place = np.int64(0)
    while place < text.shape[0]:
        stop = _row(text, place, columns, read)
        if stop < 0:
            state[_COLUMN] = read[_COLUMN]
            return -stop
        if state[_NODE] < 0 or codes[state[_NODE]] != read[0]:
            fault = _enter(read[0], expected, counted)
            if fault:
                return fault
        group = known.slots[_slot(read[1], known)]
        if group < 0:
            return _OTHER_COUNTS
        rows, size = 1, stop - place
        if stop + size <= text.shape[0] and text[stop + size - 1] == _NEWLINE:
            size = _alike(text, place, stop, columns, alike)
            rows += _repeated(text, stop, size, alike) if size else 0
        by_group[group] += rows
        state[_ROWS] += rows
        place += rows * (stop - place)
    return 0


def _codes(layout: MicrodataLayout) -> tuple[dict[int, dict[int, int]], KnownRows, NDArray[np.int32]]:
    """By column the level of every code; the groups of cells that read alike in all columns; and the group of every cell of a row."""
    levels, size = dict[int, dict[int, int]](), 1
    key = np.zeros(layout.cells, np.int64)
    for place, column in enumerate(layout.columns):
        if column.codes:
            codes, level = np.unique([int(code) for code in column.codes], return_inverse=True)
            levels[place] = {int(code): number for number, code in enumerate(codes)}
            size *= len(codes)
            key *= len(codes)
            key += level[layout.answers(column)]
    if size >= _MOST_KEYS:
        raise ValueError(f"{layout.name}: more combinations of codes than can be told apart")
    slots = np.full(1 << max(4, (2 * layout.cells - 1).bit_length()), -1, np.int32)
    keys, of = np.empty(layout.cells, np.int64), np.empty(layout.cells, np.int32)
    groups = int(_group(key, slots, keys, of))
    return levels, KnownRows(slots, keys[:groups]), of


def _columns(layout: MicrodataLayout, levels_of: dict[int, dict[int, int]]) -> LineColumns:
    numbers = max((max(level) + 1 for level in levels_of.values()), default=0)
    roles = np.zeros(len(layout.columns), np.int64)
    widths = np.zeros(len(layout.columns), np.int32)
    levels = np.full((len(layout.columns), numbers + 1), -1, np.int16)
    for place, column in enumerate(layout.columns):
        if column.geocode:
            roles[place], widths[place] = 1, column.geocode
        elif place in levels_of:
            known = levels_of[place]
            roles[place], widths[place] = 2, len(column.codes[0])
            levels[place, list(known)] = list(known.values())
            levels[place, -1] = len(known)
        elif column.number is not None:
            roles[place] = _NUMBER
    return LineColumns(roles, widths, levels)


class MicrodataCheck:
    """Proves that the text of a file is its histograms, record by record; rows of a geounit stand together.

    Args:
        rows: that it must have of every geounit and cell of a row.
    """

    def __init__(self, name: str, layout: MicrodataLayout, rows: SparseLevel) -> None:
        levels, self._known, group = _codes(layout)
        groups = len(self._known.keys)
        self._name, self._layout = name, layout
        self._expected = _expected(rows, group, groups)
        self._columns = _columns(layout, levels)
        self._counted = CountedRows(
            np.zeros(groups, np.int64),
            np.zeros(len(self._expected.codes), np.uint8),
            np.array([-1, 0, -1], np.int64),
        )

    def take(self, text: NDArray[np.uint8]) -> None:
        """Count the rows of the next lines, without the header."""
        (text,) = read_only(text)
        fault = _scan(text, self._columns, self._known, self._expected, self._counted)
        if fault:
            raise self._wrong(fault, int(self._counted.state[_COLUMN]))

    def finish(self) -> None:
        """Compare the last geounit, and whether any was passed over."""
        counted, expected = self._counted, self._expected
        last = int(counted.state[_NODE])
        last_agrees = last < 0 or bool(_same(last, expected, counted))
        if not last_agrees or bool(((np.diff(expected.node_ptr) > 0) & (counted.seen == 0)).any()):
            raise self._wrong(_OTHER_COUNTS, -1)

    def _wrong(self, fault: int, place: int) -> CheckError:
        column = self._layout.columns[place]
        words = {
            _FIELDS: f"rows without exactly {len(self._layout.columns)} fields",
            _NO_DIGITS: f"{column.name} is not {column.geocode} digits",
            _CODE_OUTSIDE: f"{column.name} has a code outside the layout",
            _GEOUNIT_UNKNOWN: "rows with a geounit that there is not",
            _OTHER_COUNTS: "the rows are not those of the histograms that they were written from",
        }
        return CheckError(f"{self._name}: {words[fault]}; fix: write the file again")


def _expected(rows: SparseLevel, group: NDArray[np.int32], groups: int) -> ExpectedRows:
    """Rows by what can be read of their cells, those that read alike added up."""
    geocodes = rows.geounits.astype(np.int64)
    if groups == len(group):  # every cell reads differently
        return ExpectedRows(geocodes, *read_only(rows.node_ptr, rows.cell, rows.count))
    node = np.repeat(np.arange(rows.nodes), np.diff(rows.node_ptr))
    keys, counts = node * groups + group[rows.cell], rows.count
    if bool((np.diff(keys) <= 0).any()):
        order = np.argsort(keys, kind="stable")
        keys, counts = keys[order], counts[order]
        starts = np.flatnonzero(np.diff(keys, prepend=-1))
        keys, counts = keys[starts], np.add.reduceat(counts, starts)
    node, cell = np.divmod(keys, groups)
    pointer = np.searchsorted(node, np.arange(rows.nodes + 1)).astype(np.int64)
    return ExpectedRows(geocodes, *read_only(pointer, cell.astype(np.int32), counts.astype(np.int32)))
