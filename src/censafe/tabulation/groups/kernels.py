"""Compiled loops of group counting: sort records by block, then count them in the groups of some regions."""

from __future__ import annotations

from numba import int32, int64, types, uint32

from censafe.model.compiled import compiled
from censafe.model.proven import proven

__all__ = ["count_blocks", "count_groups", "place_records"]

_INT32 = types.Array(int32, 1, "C", readonly=True)
_INT64 = types.Array(int64, 1, "C", readonly=True)
_CODES = types.Array(uint32, 1, "C", readonly=True)


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


@proven("groups.proof.md", digest="319c5c1354a82651")
@compiled(
    int64(int64, _INT64, _INT32, _INT64, _CODES, int64, _INT64, _INT32, int32[:, ::1], int32[:, ::1], int64)
)
def count_groups(  # type: ignore[no-untyped-def]
    first, region_start, region_block, block_start, codes, bits, combo_start, combo_group, rows, counts, used
):
    """Count the records of consecutive regions in their groups; returns the number of rows in use.

    Every record adds one to its cell in each group of its combination. An empty group has row 0; a group gets the
    next free row of ``counts`` when its first record is met.
    """
    mask = (1 << bits) - 1
    for region in range(rows.shape[0]):
        for listed in range(region_start[first + region], region_start[first + region + 1]):
            block = region_block[listed]
            for record in range(block_start[block], block_start[block + 1]):
                combo = codes[record] >> bits
                cell = codes[record] & mask
                for entry in range(combo_start[combo], combo_start[combo + 1]):
                    group = combo_group[entry]
                    row = rows[region, group]
                    if row == 0:
                        used += 1
                        row = used
                        rows[region, group] = row
                    counts[row, cell] += 1
    return used
