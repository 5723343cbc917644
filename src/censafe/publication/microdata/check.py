"""Written microdata read back and compared with the histograms that they stand for, byte by byte in one pass."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numba import int16, int32, int64, types, uint8
from numpy.typing import NDArray

from censafe.errors import CheckError, StorageError
from censafe.model.compiled import compiled
from censafe.model.named_arrays import tuple_type
from censafe.model.sparse import SparseLevel
from censafe.publication.microdata.layouts import MicrodataLayout
from censafe.publication.microdata.writer import row_level

__all__ = ["check_microdata"]

_FIELDS: Final = 1
_NO_DIGITS: Final = 2
_CODE_OUTSIDE: Final = 3
_GEOUNIT_UNKNOWN: Final = 4
_OTHER_COUNTS: Final = 5
_NEWLINE, _PIPE, _ZERO = 10, 124, 48
# what is known between two pieces of a file: geounit of the last line, its rows; where a fault is
_NODE, _ROWS, _COLUMN = 0, 1, 2
_BLOCK_BYTES: Final = 1 << 24
_Ints = NDArray[np.int64]
_TEXT: Final = types.Array(types.uint8, 1, "C", readonly=True)


class LineColumns(NamedTuple):
    """What is read of every column."""

    roles: _Ints  # (columns,) 0 is passed over, 1 is a part of the geocode, 2 is a part of the cell
    widths: NDArray[np.int32]  # (columns,) characters of a column with a role
    levels: NDArray[np.int16]  # (columns, numbers + 1) level of a number, -1 for none; how many levels, last


class WantedRows(NamedTuple):
    """Rows that the file must have."""

    codes: _Ints  # (geounits,) geocodes as numbers, rising
    node_ptr: _Ints  # (geounits + 1,) where the entries of every geounit start
    cell: NDArray[np.int32]
    rows: _Ints  # of every entry


class FoundRows(NamedTuple):
    """What was read so far."""

    held: _Ints  # (cells,) rows of the geounit that is being read
    seen: NDArray[np.uint8]  # (geounits,) those whose rows were compared
    state: _Ints  # (3,) the last geounit, its rows, and the column of a fault


_COLUMNS = tuple_type(LineColumns, int64[::1], int32[::1], int16[:, ::1])
_WANTED = tuple_type(WantedRows, int64[::1], int64[::1], int32[::1], int64[::1])
_FOUND = tuple_type(FoundRows, int64[::1], uint8[::1], int64[::1])


@compiled(int64(int64, _WANTED, _FOUND))
def _same(node, wanted, found):  # type: ignore[no-untyped-def]
    """Whether the rows of a geounit are its entries; what was held of it is cleared."""
    held, seen, state = found
    rows = np.int64(0)
    for entry in range(wanted.node_ptr[node], wanted.node_ptr[node + 1]):
        if held[wanted.cell[entry]] != wanted.rows[entry]:
            return 0
        rows += wanted.rows[entry]
        held[wanted.cell[entry]] = 0
    if rows != state[_ROWS]:
        return 0
    seen[node] = 1
    state[_ROWS] = 0
    return 1


@compiled(int64(int64, _WANTED, _FOUND))
def _enter(code, wanted, found):  # type: ignore[no-untyped-def]
    """Compare the geounit that ends, and begin the one with this geocode; 0, or what is wrong."""
    state = found.state
    begun = np.searchsorted(wanted.codes, code)
    if begun == wanted.codes.shape[0] or wanted.codes[begun] != code:
        return _GEOUNIT_UNKNOWN
    if state[_NODE] >= 0 and not _same(state[_NODE], wanted, found):
        return _OTHER_COUNTS
    if found.seen[begun]:
        return _OTHER_COUNTS
    state[_NODE] = begun
    return 0


@compiled(int64(_TEXT, _COLUMNS, _WANTED, _FOUND))
def _scan(text, columns, wanted, found):  # type: ignore[no-untyped-def]  # noqa: C901 (one pass over the bytes)
    """Count the rows of whole lines by geounit and cell, and compare a geounit when the next one begins.

    Returns 0, or what is wrong with a row; the column of the fault is in the state of what was found.
    """
    roles, widths, levels = columns
    held, state, codes = found.held, found.state, wanted.codes
    fields, last = roles.shape[0], levels.shape[1] - 1
    place = 0
    while place < text.shape[0]:
        code, where, field = np.int64(0), np.int64(0), 0
        while True:
            value, start, scale = np.int64(0), place, np.int64(1)
            role = roles[field] if field < fields else np.int64(0)
            while place < text.shape[0] and text[place] != _PIPE and text[place] != _NEWLINE:
                if role:
                    digit = np.int64(text[place]) - _ZERO
                    if digit < 0 or digit > 9 or place - start >= widths[field]:
                        state[_COLUMN] = field
                        return _NO_DIGITS if role == 1 else _CODE_OUTSIDE
                    value = value * 10 + digit
                    scale *= 10
                place += 1
            if role and place - start != widths[field]:
                state[_COLUMN] = field
                return _NO_DIGITS if role == 1 else _CODE_OUTSIDE
            if role == 1:
                code = code * scale + value
            elif role == 2:
                if value >= last or levels[field, value] < 0:
                    state[_COLUMN] = field
                    return _CODE_OUTSIDE
                where = where * levels[field, last] + levels[field, value]
            field += 1
            place += 1
            if place > text.shape[0] or text[place - 1] == _NEWLINE:
                break
        if field != fields:
            return _FIELDS
        if state[_NODE] < 0 or codes[state[_NODE]] != code:
            fault = _enter(code, wanted, found)
            if fault:
                return fault
        held[where] += 1
        state[_ROWS] += 1
    return 0


class _Cells(NamedTuple):
    """How the cells of a row are told from its codes."""

    levels: dict[int, dict[int, int]]  # level of every code, by column
    of: _Ints  # (cells of a row,) number that the levels make
    size: int  # of those numbers


def _cells(layout: MicrodataLayout) -> _Cells:
    """Columns that tell as many cells apart as all do, those with most codes first.

    Raises:
        ValueError: a code is no number.
    """
    shown = {
        place: np.array([int(code) for code in column.codes])[layout.answers(column)]
        for place, column in enumerate(layout.columns)
        if column.of
    }
    groups, chosen = np.zeros(layout.cells, np.int64), list[int]()
    for place in sorted(shown, key=lambda place: (-len(np.unique(shown[place])), place)):
        codes = np.unique(shown[place], return_inverse=True)[1]
        finer = np.unique(groups * (codes.max() + 1) + codes, return_inverse=True)[1]
        if finer.max() > groups.max():
            groups = finer
            chosen.append(place)
    levels, of, size = {}, np.zeros(layout.cells, np.int64), 1
    for place in sorted(chosen):
        found, level = np.unique(shown[place], return_inverse=True)
        levels[place] = {int(code): number for number, code in enumerate(found)}
        of, size = of * len(found) + level, size * len(found)
    return _Cells(levels, of, size)


def _columns(layout: MicrodataLayout, cells: _Cells) -> LineColumns:
    numbers = max((max(level) + 1 for level in cells.levels.values()), default=0)
    roles = np.zeros(len(layout.columns), np.int64)
    widths = np.zeros(len(layout.columns), np.int32)
    levels = np.full((len(layout.columns), numbers + 1), -1, np.int16)
    for place, column in enumerate(layout.columns):
        if column.geocode:
            roles[place], widths[place] = 1, column.geocode
        elif place in cells.levels:
            known = cells.levels[place]
            roles[place], widths[place] = 2, len(column.codes[0])
            levels[place, list(known)] = list(known.values())
            levels[place, -1] = len(known)
    return LineColumns(roles, widths, levels)


def check_microdata(
    path: Path, layout: MicrodataLayout, level: SparseLevel, units: NDArray[np.integer[Any]]
) -> None:
    """Prove that a file holds the histograms, record by record; rows of a geounit stand together.

    Args:
        path: the file.
        layout: that it was written in.
        level: the histograms that it was written from.
        units: published counts of units that it was written from, shape (geounits, kinds).

    Raises:
        CheckError: the file is of another layout, or does not hold exactly these records.
        StorageError: the file cannot be opened.
    """
    cells = _cells(layout)
    wanted = _wanted(row_level(layout, level, units), cells)
    nodes = len(wanted.codes)
    found = FoundRows(
        np.zeros(cells.size, np.int64), np.zeros(nodes, np.uint8), np.array([-1, 0, -1], np.int64)
    )
    columns = _columns(layout, cells)
    for text in _lines(path, layout):
        fault = _scan(text, columns, wanted, found)
        if fault:
            raise _wrong(path, layout, fault, int(found.state[_COLUMN]))
    last = int(found.state[_NODE])
    whole = last < 0 or bool(_same(last, wanted, found))
    if not whole or bool(((np.diff(wanted.node_ptr) > 0) & (found.seen == 0)).any()):
        raise _wrong(path, layout, _OTHER_COUNTS, -1)


def _wanted(rows: SparseLevel, cells: _Cells) -> WantedRows:
    """Rows by what can be read of their cells, those that read alike added up."""
    node = np.repeat(np.arange(rows.nodes), np.diff(rows.node_ptr))
    keys, counts = node * cells.size + cells.of[rows.cell], rows.count.astype(np.int64)
    if bool((np.diff(keys) <= 0).any()):
        order = np.argsort(keys, kind="stable")
        keys, counts = keys[order], counts[order]
        starts = np.flatnonzero(np.diff(keys, prepend=-1))
        keys, counts = keys[starts], np.add.reduceat(counts, starts)
    node, cell = np.divmod(keys, cells.size)
    pointer = np.searchsorted(node, np.arange(rows.nodes + 1)).astype(np.int64)
    return WantedRows(
        rows.geounits.astype(np.int64), pointer, cell.astype(np.int32), np.ascontiguousarray(counts)
    )


def _lines(path: Path, layout: MicrodataLayout) -> Iterator[NDArray[np.uint8]]:
    """Pieces of whole lines after the header."""
    try:
        with path.open("rb") as stream:
            if stream.readline().decode("ascii", "replace").rstrip("\n") != "|".join(layout.header):
                raise CheckError(f"{path.name}: the header must be {'|'.join(layout.header)}")
            rest = b""
            while piece := stream.read(_BLOCK_BYTES):
                whole, newline, rest = (rest + piece).rpartition(b"\n")
                if newline:
                    yield np.frombuffer(whole + newline, np.uint8)
            if rest:
                yield np.frombuffer(rest, np.uint8)
    except OSError:
        raise StorageError(f"{path.name}: the file cannot be read; check that it exists") from None


def _wrong(path: Path, layout: MicrodataLayout, fault: int, place: int) -> CheckError:
    column = layout.columns[place]
    words = {
        _FIELDS: f"rows without exactly {len(layout.columns)} fields",
        _NO_DIGITS: f"{column.name} is not {column.geocode} digits",
        _CODE_OUTSIDE: f"{column.name} has a code outside the layout",
        _GEOUNIT_UNKNOWN: "rows with a geounit that there is not",
        _OTHER_COUNTS: "the rows are not those of the histograms that they were written from",
    }
    return CheckError(f"{path.name}: {words[fault]}; fix: write the file again")
