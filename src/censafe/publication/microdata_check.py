"""Written microdata read back and compared with the histograms that they stand for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from censafe.errors import CheckError, StorageError
from censafe.model.sparse import SparseLevel
from censafe.publication.microdata import E2E_PERSON_HEADER, PL94_PERSON_HEADER, PL94_UNIT_HEADER
from censafe.publication.microdata_scan import (
    CODE_OUTSIDE,
    FIELDS,
    GEOUNIT_UNKNOWN,
    NO_DIGITS,
    OTHER_COUNTS,
    WIDEST_LEVEL,
    last_is_same,
    new_state,
    scan_lines,
)

__all__ = ["check_e2e_persons", "check_pl94_persons", "check_pl94_units"]

_BLOCK_BYTES = 1 << 24
_Ints = NDArray[np.int64]


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
        """Role, width and levels of every column, as :func:`censafe.publication.microdata_scan.scan_lines` takes them."""
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
