"""Written microdata read back and compared with the histograms that they stand for, byte by byte in one pass."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numba import int16, int32, int64, types, uint8
from numpy.typing import NDArray

from censafe.errors import CheckError, StorageError
from censafe.model.compiled import compiled
from censafe.model.sparse import SparseLevel
from censafe.publication.microdata.writer import E2E_PERSON_HEADER, PL94_PERSON_HEADER, PL94_UNIT_HEADER

__all__ = [
    "CODE_OUTSIDE",
    "FIELDS",
    "GEOUNIT_UNKNOWN",
    "NO_DIGITS",
    "OTHER_COUNTS",
    "WIDEST_LEVEL",
    "check_e2e_persons",
    "check_pl94_persons",
    "check_pl94_units",
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


_BLOCK_BYTES = 1 << 24


@dataclass(frozen=True)
class _Layout:
    """What is read of a file.

    Args:
        header: all columns.
        geocode: columns that make up the geocode, with their digits.
        levels: columns that make up the cell, with the level of every text.
    """

    header: tuple[str, ...]
    geocode: Mapping[str, int]
    levels: Mapping[str, Mapping[str, int]]

    @property
    def cells(self) -> int:
        """Number of cells."""
        return int(np.prod([len(texts) for texts in self.levels.values()]))

    def columns(self) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int16]]:
        """Role, width and levels of every column, as :func:`censafe.publication.microdata.check.scan_lines` takes them."""
        roles = np.zeros(len(self.header), np.int64)
        widths = np.zeros(len(self.header), np.int32)
        levels = np.full((len(self.header), WIDEST_LEVEL + 1), -1, np.int16)
        for column, name in enumerate(self.header):
            if name in self.geocode:
                roles[column], widths[column] = 1, self.geocode[name]
            elif name in self.levels:
                texts = self.levels[name]
                roles[column], widths[column] = 2, len(next(iter(texts)))
                levels[column, WIDEST_LEVEL] = len(texts)
                levels[column, [int(text) for text in texts]] = list(texts.values())
        return roles, widths, levels


def _from(first: int, levels: int, width: int = 1) -> dict[str, int]:
    return {f"{first + level:0{width}d}": level for level in range(levels)}


_BLOCK = {"TABBLKST": 2, "TABBLKCOU": 3, "TABTRACTCE": 6, "TABBLKGRPCE": 1, "TABBLK": 4}
_PL94_PERSONS = _Layout(
    PL94_PERSON_HEADER,
    _BLOCK,
    {
        "GQTYPE_PL": _from(0, 8),
        "VOTING_AGE": _from(1, 2),
        "CENHISP": _from(1, 2),
        "CENRACE": _from(1, 63, 2),
    },
)
_PL94_UNITS = _Layout(PL94_UNIT_HEADER, _BLOCK, {"HH_STATUS": {"2": 0, "1": 1, "0": 2}})
_E2E_PERSONS = _Layout(
    E2E_PERSON_HEADER,
    {"TABBLKST": 2, "TABBLKCOU": 4, "ENUMDIST": 4},
    {"RTYPE": {"3": 0, "5": 1}, "QAGE": _from(17, 2), "CENHISP": _from(1, 2), "CENRACE": _from(1, 6)},
)


def check_pl94_persons(path: Path, blocks: SparseLevel) -> None:
    """Prove that a file of redistricting persons holds the histograms, person by person.

    Args:
        path: the file.
        blocks: the histograms that it was written from.

    Raises:
        CheckError: the file is of another layout, or does not hold exactly these persons.
        StorageError: the file cannot be opened.
    """
    _compare(path, _PL94_PERSONS, blocks.geounits, *_entries(blocks, _PL94_PERSONS.cells))


def check_pl94_units(path: Path, occupancy: SparseLevel, facilities: NDArray[np.integer]) -> None:
    """Prove that a file of redistricting units holds the housing units by occupancy, and all group quarters.

    Args:
        path: the file.
        occupancy: cell 0 vacant, 1 occupied.
        facilities: shape (blocks, 8): housing units, and facilities by kind.

    Raises:
        CheckError: the file is of another layout, or does not hold exactly these units.
        StorageError: the file cannot be opened.
    """
    keys, counts = _entries(occupancy, _PL94_UNITS.cells)
    quarters = np.asarray(facilities[:, 1:8], np.int64).sum(axis=1)
    (node,) = np.nonzero(quarters)
    keys = np.concatenate([keys, node * _PL94_UNITS.cells + 2])
    counts = np.concatenate([counts, quarters[node]])
    _compare(path, _PL94_UNITS, occupancy.geounits, *_merged(keys, counts))


def check_e2e_persons(path: Path, districts: SparseLevel) -> None:
    """Prove that a file of the persons of 1940 holds the histograms, with kinds of quarters as household or group.

    Args:
        path: the file.
        districts: the histograms that it was written from.

    Raises:
        CheckError: the file is of another layout, or does not hold exactly these persons.
        StorageError: the file cannot be opened.
    """
    cells = _E2E_PERSONS.cells
    node = np.repeat(np.arange(districts.nodes), np.diff(districts.node_ptr))
    kind, rest = np.divmod(districts.cell.astype(np.int64), cells // 2)
    keys = node * cells + (kind > 0) * (cells // 2) + rest
    _compare(path, _E2E_PERSONS, districts.geounits, *_merged(keys, districts.count.astype(np.int64)))


def _entries(level: SparseLevel, cells: int) -> tuple[_Ints, _Ints]:
    node = np.repeat(np.arange(level.nodes), np.diff(level.node_ptr))
    return node * cells + level.cell, level.count.astype(np.int64)


def _merged(keys: _Ints, counts: _Ints) -> tuple[_Ints, _Ints]:
    """Counts of equal keys added up, keys rising."""
    order = np.argsort(keys, kind="stable")
    keys, counts = keys[order], counts[order]
    starts = np.flatnonzero(np.diff(keys, prepend=-1))
    return keys[starts], np.add.reduceat(counts, starts) if len(starts) else counts


def _compare(path: Path, layout: _Layout, geounits: NDArray[np.str_], keys: _Ints, counts: _Ints) -> None:
    """Count the rows of every geounit and compare them with its entries; rows of a geounit stand together."""
    node, cell = np.divmod(keys, layout.cells)
    pointer = np.searchsorted(node, np.arange(len(geounits) + 1)).astype(np.int64)
    entries = (pointer, cell.astype(np.int32), np.ascontiguousarray(counts))
    held, seen = np.zeros(layout.cells, np.int64), np.zeros(len(geounits), np.uint8)
    codes, state, columns = geounits.astype(np.int64), new_state(), layout.columns()
    for text in _lines(path, layout):
        fault = scan_lines(text, *columns, codes, *entries, held, seen, state)
        if fault:
            raise _wrong(path, layout, fault, int(state[-1]))
    if not last_is_same(*entries, held, seen, state) or bool(((np.diff(pointer) > 0) & (seen == 0)).any()):
        raise _wrong(path, layout, OTHER_COUNTS, -1)


def _lines(path: Path, layout: _Layout) -> Iterator[NDArray[np.uint8]]:
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


def _wrong(path: Path, layout: _Layout, fault: int, column: int) -> CheckError:
    name = layout.header[column] if column >= 0 else ""
    words = {
        FIELDS: f"rows without exactly {len(layout.header)} fields",
        NO_DIGITS: f"{name} is not {layout.geocode.get(name)} digits",
        CODE_OUTSIDE: f"{name} has a code outside the layout",
        GEOUNIT_UNKNOWN: "rows with a geounit that there is not",
        OTHER_COUNTS: "the rows are not those of the histograms that they were written from",
    }
    return CheckError(f"{path.name}: {words[fault]}; fix: write the file again")
