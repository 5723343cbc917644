"""Microdata detail files: one row a person or a unit, in the Bureau's layouts of 2020 redistricting and of 1940.

The files are pipe-delimited text with a header and hold public, estimated histograms only. The layouts have no room for
a mark; a file made with a test key is told by the folder it lies in and by its hash.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from censafe.errors import CheckError
from censafe.model.sparse import SparseLevel
from censafe.publication.microdata.rows import (
    Rows,
    chunks,
    expand_records,
    geounit_text,
    table_text,
    write_rows,
)

__all__ = [
    "E2E_PERSON_HEADER",
    "E2E_UNIT_HEADER",
    "PL94_PERSON_HEADER",
    "PL94_UNIT_HEADER",
    "write_e2e_persons",
    "write_e2e_units",
    "write_pl94_persons",
    "write_pl94_units",
]

_BLOCK = ("TABBLKST", "TABBLKCOU", "TABTRACTCE", "TABBLKGRPCE", "TABBLK")
_BLOCK_WIDTHS = (2, 3, 6, 1, 4)
_DISTRICT_WIDTHS = (2, 4, 4)
_SCHEMA = ("SCHEMA_TYPE_CODE", "SCHEMA_BUILD_ID")
_DISTRICT = ("TABBLKST", "TABBLKCOU", "ENUMDIST", "EUID")

PL94_PERSON_HEADER = (
    *_SCHEMA, *_BLOCK, "EPNUM", "RTYPE", "GQTYPE_PL", "VOTING_AGE", "CENHISP", "CENRACE",
)  # fmt: skip
PL94_UNIT_HEADER = (*_SCHEMA, *_BLOCK, "RTYPE", "HH_STATUS")
E2E_PERSON_HEADER = (
    *_SCHEMA, *_DISTRICT, "EPNUM", "RTYPE", "QREL", "QSEX", "QAGE", "CENHISP", "CENRACE", "QSPANX",
    *(f"QRACE{number}" for number in range(1, 9)), "CIT",
)  # fmt: skip
E2E_UNIT_HEADER = (
    *_SCHEMA, *_DISTRICT, "RTYPE", "GQTYPE", "TEN", "VACS", "FINAL_POP", "HHT", "HHT2", "NPF", "CPLT", "UPART",
    "MULTG", "HHLDRAGE", "HHSPAN", "HHRACE", "PAOC", "P18", "P60", "P65", "P75",
)  # fmt: skip

_KINDS = 8
_VACANT_1940 = 8
_E2E_PERSON_TAIL = "|".join(["9999"] * 9 + ["9"])
_E2E_UNIT_TAIL = "9|99|99|9|9|9|999|9|99|9|99|99|99|99"
_E2E_GQTYPE = (0, 2, 3, 4, 6, 7, 8, 9)
_E2E_CELLS_OF_KIND = 24
_ONE_KIND = 1 << 31
_Ints = NDArray[np.int64]


def write_pl94_persons(path: Path, blocks: SparseLevel) -> int:
    """Write the persons of the redistricting data, in the order of blocks and cells.

    Args:
        path: final name.
        blocks: estimated histograms over hhgq 8, votingage 2, hispanic 2, cenrace 63; geocodes of 16 digits.

    Returns:
        Number of persons. EPNUM counts them from 1 within a block.

    Raises:
        StorageError: the disk is full or the folder not writable.
    """
    cells = product(range(_KINDS), range(2), range(2), range(63))
    codes = [
        f"{3 if gq == 0 else 5}|{gq}|{age + 1}|{hispanic + 1}|{race + 1:02d}"
        for gq, age, hispanic, race in cells
    ]

    def parts() -> Iterator[Rows]:
        for first, last, text in _texts(blocks, _persons_of(blocks), "MPD|1.1.0|", _BLOCK_WIDTHS):
            node, cell, place, _ = expand_records(blocks, first, last, _ONE_KIND)
            yield text, node, (place + 1)[:, None], cell, _no_numbers(node)

    return write_rows(path, PL94_PERSON_HEADER, parts(), table_text(codes), "")


def write_pl94_units(path: Path, occupancy: SparseLevel, facilities: NDArray[np.integer]) -> int:
    """Write the housing units of the redistricting data by occupancy, and the group quarters.

    Args:
        path: final name.
        occupancy: estimated histograms, cell 0 vacant and 1 occupied; geocodes of 16 digits.
        facilities: shape (blocks, 8): housing units, and facilities by kind, as they are published.

    Returns:
        Number of units.

    Raises:
        CheckError: vacant and occupied units of a block do not add up to its housing units.
        StorageError: the disk is full or the folder not writable.
    """
    housing = np.zeros((occupancy.nodes, 3), np.int64)
    node = np.repeat(np.arange(occupancy.nodes), np.diff(occupancy.node_ptr))
    housing[node, occupancy.cell] = occupancy.count
    housing[:, 2] = np.asarray(facilities[:, 1:_KINDS], np.int64).sum(axis=1)
    _require(
        housing[:, :2].sum(axis=1) != facilities[:, 0],
        "vacant and occupied units that are not all housing units",
    )

    def parts() -> Iterator[Rows]:
        for first, last, text in _texts(occupancy, housing.sum(axis=1), "MUD|1.1.0|", _BLOCK_WIDTHS):
            row = np.repeat(np.arange(3 * (last - first)), housing[first:last].reshape(-1))
            unit, code = np.divmod(row, 3)
            yield text, unit, _no_numbers(unit), code, _no_numbers(unit)

    return write_rows(path, PL94_UNIT_HEADER, parts(), table_text(["2|2", "2|1", "4|0"]), "")


def write_e2e_persons(path: Path, districts: SparseLevel, facilities: NDArray[np.integer]) -> int:
    """Write the persons of 1940, dealt in turn to the units of their kind in the district.

    Args:
        path: final name.
        districts: estimated histograms over hhgq 8, age18plus 2, hispanic 2, race 6; geocodes of 10 digits.
        facilities: shape (districts, 9): occupied housing units, facilities by kind, vacant housing units.

    Returns:
        Number of persons. EUID counts the units from 1 within a district, EPNUM the persons from 1 within a unit.

    Raises:
        CheckError: a district has persons without a unit of their kind, or a unit without a person.
        StorageError: the disk is full or the folder not writable.
    """
    units, _ = _dealt(districts, facilities)
    first_unit = np.cumsum(units, axis=1) - units
    cells = product(range(_KINDS), range(2), range(2), range(6))
    codes = [
        f"{3 if gq == 0 else 5}|99|9|{17 + age}|{hispanic + 1}|{race + 1}|"
        for gq, age, hispanic, race in cells
    ]

    def parts() -> Iterator[Rows]:
        for first, last, text in _texts(
            districts, _persons_of(districts), "MPD1940|3.1.4|", _DISTRICT_WIDTHS
        ):
            node, cell, number, kind = expand_records(districts, first, last, _E2E_CELLS_OF_KIND)
            turn, place = np.divmod(number, units[first + node, kind])
            numbers = np.stack([first_unit[first + node, kind] + place + 1, turn + 1], axis=1)
            yield text, node, numbers, cell, _no_numbers(node)

    return write_rows(path, E2E_PERSON_HEADER, parts(), table_text(codes), _E2E_PERSON_TAIL)


def write_e2e_units(path: Path, districts: SparseLevel, facilities: NDArray[np.integer]) -> int:
    """Write the units of 1940 with the number of persons dealt to each, vacant housing units last.

    Args:
        path: final name.
        districts: as for :func:`write_e2e_persons`.
        facilities: as for :func:`write_e2e_persons`.

    Returns:
        Number of units.

    Raises:
        CheckError: a district has persons without a unit of their kind, or a unit without a person.
        StorageError: the disk is full or the folder not writable.
    """
    units, persons = _dealt(districts, facilities)
    codes = [
        f"{2 if kind in (0, _VACANT_1940) else 4}|{gq}|{9 if kind == 0 else 0}|{9 if kind == _VACANT_1940 else 0}|"
        for kind, gq in enumerate((*_E2E_GQTYPE, 0))
    ]

    def parts() -> Iterator[Rows]:
        for first, last, text in _texts(districts, units.sum(axis=1), "MUD1940|3.1.4|", _DISTRICT_WIDTHS):
            row = np.repeat(np.arange(9 * (last - first)), units[first:last].reshape(-1))
            node, kind = np.divmod(row, 9)
            share, more = np.divmod(persons[first + node, kind], units[first + node, kind])
            held = share + (_place_in_group(row) < more)
            yield text, node, (_place_in_group(node) + 1)[:, None], kind, held[:, None]

    return write_rows(path, E2E_UNIT_HEADER, parts(), table_text(codes), _E2E_UNIT_TAIL)


def _dealt(districts: SparseLevel, facilities: NDArray[np.integer]) -> tuple[_Ints, _Ints]:
    """Units and persons of every district by kind, vacant units last; checked to fit each other."""
    units = np.asarray(facilities, np.int64)
    persons = np.zeros_like(units)
    node = np.repeat(np.arange(districts.nodes), np.diff(districts.node_ptr))
    np.add.at(persons, (node, districts.cell // _E2E_CELLS_OF_KIND), districts.count)
    kinds = slice(0, _KINDS)
    wrong = (persons[:, kinds] < units[:, kinds]) | ((persons[:, kinds] > 0) & (units[:, kinds] == 0))
    _require(wrong.any(axis=1), "persons without a unit of their kind, or units without a person")
    return units, persons


def _require(wrong: NDArray[np.bool_], what: str) -> None:
    if wrong.any():
        raise CheckError(
            f"microdata: {int(wrong.sum())} geounits have {what}; the histograms and the published counts of units do not "
            "belong together"
        )


def _persons_of(blocks: SparseLevel) -> _Ints:
    """Persons of every geounit, shape (n,)."""
    held = np.append(0, np.cumsum(blocks.count, dtype=np.int64))
    return np.diff(held[blocks.node_ptr])


def _texts(
    blocks: SparseLevel, rows: _Ints, head: str, widths: tuple[int, ...]
) -> Iterator[tuple[int, int, NDArray[np.uint8]]]:
    """Ranges of geounits, and the text of each geounit of the range."""
    for first, last in chunks(rows):
        yield first, last, geounit_text(head, blocks.geounits[first:last], widths)


def _place_in_group(group: _Ints) -> _Ints:
    """Position from 0 of every row among those of its group; rows of a group stand together."""
    row = np.arange(len(group))
    if not len(group):
        return row
    new = np.diff(group, prepend=group[0] - 1) != 0
    return row - np.maximum.accumulate(np.where(new, row, 0))


def _no_numbers(rows: _Ints) -> _Ints:
    return np.zeros((len(rows), 0), np.int64)
