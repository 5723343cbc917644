"""Compiled loops of group counting: sort records by block, then count them in the groups of some regions."""

from __future__ import annotations

from typing import NamedTuple, NoReturn

import numpy as np
from numba import int32, int64, uint32
from numpy.typing import NDArray

from censafe.model.compiled import compiled
from censafe.model.named_arrays import read_only_type, tuple_type
from censafe.model.proven import proven

__all__ = [
    "CombinationGroups",
    "ListedRegions",
    "PartRecords",
    "RegionCounts",
    "count_blocks",
    "count_groups",
    "place_records",
]


class ListedRegions(NamedTuple):
    """Blocks of the regions of one type."""

    start: NDArray[np.int64]  # (regions + 1,) where the blocks of every region start
    block: NDArray[np.int32]


class PartRecords(NamedTuple):
    """CONFIDENTIAL. The records of one part, sorted by block."""

    start: NDArray[np.int64]  # (blocks + 1,) where the records of every block start
    code: NDArray[np.uint32]  # combination and cell of every record
    bits: int  # of the cell, the last ones of a code

    def __repr__(self) -> str:
        return f"PartRecords({len(self.start) - 1} blocks)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("records are confidential and cannot be pickled")


class CombinationGroups(NamedTuple):
    """Groups of every combination of codes."""

    start: NDArray[np.int64]  # (combinations + 1,) where the groups of every combination start
    ordinal: NDArray[np.int32]  # iteration of every group


class RegionCounts(NamedTuple):
    """CONFIDENTIAL. Counts of the groups of consecutive regions."""

    row: NDArray[np.int32]  # (regions, iterations) row of every group, 0 for an empty one
    cells: NDArray[np.int32]  # (rows, cells) records of every cell

    def __repr__(self) -> str:
        return f"RegionCounts({len(self.row)} regions)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("exact counts are confidential and cannot be pickled")


_INT32, _INT64, _CODES = read_only_type(int32), read_only_type(int64), read_only_type(uint32)
_REGIONS = tuple_type(ListedRegions, _INT64, _INT32)
_RECORDS = tuple_type(PartRecords, _INT64, _CODES, int64)
_GROUPS = tuple_type(CombinationGroups, _INT64, _INT32)
_COUNTS = tuple_type(RegionCounts, int32[:, ::1], int32[:, ::1])


@proven("groups.proof.md", digest="63e00a72c43083e3")
@compiled(int64(_INT32, int64[::1]))
def count_blocks(block, number):  # type: ignore[no-untyped-def]
    """Add the records of every block to ``number``; returns how many name no block and are left out."""
    lost = 0
    for record in range(block.shape[0]):
        place = block[record]
        if 0 <= place < number.shape[0]:
            number[place] += 1
        else:
            lost += 1
    return lost


@proven("groups.proof.md", digest="46cdc646321dd28a")
@compiled(int64(_INT32, _CODES, int64[::1], _INT64, uint32[::1]))
def place_records(block, code, place, stop, out):  # type: ignore[no-untyped-def]
    """Write every code at the next free place of its block; returns how many did not fit."""
    lost = 0
    for record in range(block.shape[0]):
        where = block[record]
        if 0 <= where < stop.shape[0]:
            if place[where] < stop[where]:
                out[place[where]] = code[record]
                place[where] += 1
            else:
                lost += 1
    return lost


@proven("groups.proof.md", digest="12428ba3c2a5b534")
@compiled(int64(int64, _REGIONS, _RECORDS, _GROUPS, _COUNTS, int64))
def count_groups(first, regions, records, groups, counts, used):  # type: ignore[no-untyped-def]
    """Count the records of consecutive regions in their groups; returns the number of rows in use.

    Every record adds one to its cell in each group of its combination. An empty group has row 0; a group gets the
    next free row of ``counts`` when its first record is met.
    """
    mask = (1 << records.bits) - 1
    for region in range(counts.row.shape[0]):
        for listed in range(regions.start[first + region], regions.start[first + region + 1]):
            block = regions.block[listed]
            for record in range(records.start[block], records.start[block + 1]):
                combo = records.code[record] >> records.bits
                cell = records.code[record] & mask
                for entry in range(groups.start[combo], groups.start[combo + 1]):
                    group = groups.ordinal[entry]
                    row = counts.row[region, group]
                    if row == 0:
                        used += 1
                        row = used
                        counts.row[region, group] = row
                    counts.cells[row, cell] += 1
    return used
