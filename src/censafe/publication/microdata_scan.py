"""Lines of microdata compared with the histograms that they stand for, byte by byte in one pass."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numba import int16, int32, int64, types, uint8
from numpy.typing import NDArray

from censafe.model.compiled import compiled

__all__ = [
    "CODE_OUTSIDE",
    "FIELDS",
    "GEOUNIT_UNKNOWN",
    "NO_DIGITS",
    "OTHER_COUNTS",
    "WIDEST_LEVEL",
    "last_is_same",
    "new_state",
    "scan_lines",
]

FIELDS: Final = 1
NO_DIGITS: Final = 2
CODE_OUTSIDE: Final = 3
GEOUNIT_UNKNOWN: Final = 4
OTHER_COUNTS: Final = 5
WIDEST_LEVEL: Final = 100
_NEWLINE, _PIPE, _ZERO = 10, 124, 48
# what is known between two pieces of a file: geounit of the last line, its rows, geounits done; where a fault is
_NODE, _ROWS, _DONE, _COLUMN = 0, 1, 2, 3
_Ints = NDArray[np.int64]
_TEXT: Final = types.Array(types.uint8, 1, "C", readonly=True)


def new_state() -> _Ints:
    """What :func:`scan_lines` remembers from piece to piece, before the first."""
    return np.array([-1, 0, 0, -1], np.int64)


@compiled(int64(int64, int64[::1], int32[::1], int64[::1], int64[::1], uint8[::1], int64[::1]))
def _same(node, node_ptr, cell, count, held, seen, state):  # type: ignore[no-untyped-def]
    """Whether the rows of a geounit are its entries; what was held of it is cleared."""
    rows = np.int64(0)
    for entry in range(node_ptr[node], node_ptr[node + 1]):
        if held[cell[entry]] != count[entry]:
            return 0
        rows += count[entry]
        held[cell[entry]] = 0
    if rows != state[_ROWS]:
        return 0
    seen[node] = 1
    state[_ROWS] = 0
    return 1


@compiled(
    int64(
        _TEXT, int64[::1], int32[::1], int16[:, ::1], int64[::1], int64[::1], int32[::1], int64[::1],
        int64[::1], uint8[::1], int64[::1],
    )
)  # fmt: skip
def scan_lines(  # type: ignore[no-untyped-def]  # noqa: C901 (one pass over the bytes)
    text, roles, widths, levels, codes, node_ptr, cell, count, held, seen, state
):
    """Count the rows of whole lines by geounit and cell, and compare a geounit when the next one begins.

    Args:
        text: whole lines, uint8.
        roles: of every column: 0 is passed over, 1 is a part of the geocode, 2 is a part of the cell; shape (columns,).
        widths: characters of a column with a role, int32.
        levels: of every column and number in it, the level, -1 for none, and how many levels there are; int16, shape
            (columns, 101).
        codes: geocodes as numbers, rising, shape (n,).
        node_ptr: entries of every geounit, shape (n + 1,).
        cell: of every entry, int32.
        count: of every entry.
        held: zeros, shape (cells,); rows of the geounit so far.
        seen: zeros, shape (n,); geounits whose rows were compared.
        state: from :func:`new_state`.

    Returns:
        0, or what is wrong with a row.
    """
    fields = roles.shape[0]
    place = 0
    while place < text.shape[0]:
        code, where, field = np.int64(0), np.int64(0), 0
        while True:
            value, start = np.int64(0), place
            role = roles[field] if field < fields else np.int64(0)
            scale = np.int64(1)
            while place < text.shape[0] and text[place] != _PIPE and text[place] != _NEWLINE:
                if role:
                    digit = np.int64(text[place]) - _ZERO
                    if digit < 0 or digit > 9 or place - start >= widths[field]:
                        state[_COLUMN] = field
                        return NO_DIGITS if role == 1 else CODE_OUTSIDE
                    value = value * 10 + digit
                    scale *= 10
                place += 1
            if role == 1:
                if place - start != widths[field]:
                    state[_COLUMN] = field
                    return NO_DIGITS
                code = code * scale + value
            elif role == 2:
                if place - start != widths[field] or levels[field, value] < 0:
                    state[_COLUMN] = field
                    return CODE_OUTSIDE
                where = where * levels[field, WIDEST_LEVEL] + levels[field, value]
            field += 1
            place += 1
            if place > text.shape[0] or text[place - 1] == _NEWLINE:
                break
        if field != fields:
            return FIELDS
        node = state[_NODE]
        if node < 0 or codes[node] != code:
            begun = np.searchsorted(codes, code)
            if begun == codes.shape[0] or codes[begun] != code:
                return GEOUNIT_UNKNOWN
            if node >= 0 and not _same(node, node_ptr, cell, count, held, seen, state):
                return OTHER_COUNTS
            if seen[begun]:
                return OTHER_COUNTS
            node = begun
            state[_NODE] = node
        held[where] += 1
        state[_ROWS] += 1
    return 0


def last_is_same(node_ptr: _Ints, cell: Any, count: _Ints, held: _Ints, seen: Any, state: _Ints) -> bool:
    """Compare the geounit of the last line of a file."""
    return state[_NODE] < 0 or bool(_same(int(state[_NODE]), node_ptr, cell, count, held, seen, state))
