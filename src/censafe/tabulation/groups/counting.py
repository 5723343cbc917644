"""CONFIDENTIAL. True counts of population groups, region by region, from records sorted by block.

Records are read twice and kept as one number each (combination and cell), sorted by block. Regions of every type are
lists of blocks, so one sorted copy serves all levels. The loops over records are compiled.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NoReturn

import numpy as np
from numba import int32, int64, uint32
from numpy.typing import NDArray

from censafe.errors import DataError
from censafe.model import GroupBlock, GroupLevel
from censafe.model.compiled import compiled
from censafe.model.named_arrays import read_only, read_only_type
from censafe.model.proven import proven

_INT32, _INT64, _CODES = read_only_type(int32), read_only_type(int64), read_only_type(uint32)


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


@proven("groups.proof.md", digest="65e85cc0763357b6")
@compiled(
    int64(
        int64, _INT64, _INT32, _INT64, _CODES, int64, _INT64, _INT32, int32[:, ::1], int32[:, ::1]
    )
)  # fmt: skip
def count_groups(first, block_ptr, blocks, record_ptr, codes, bits, group_ptr, groups, rows, counts):  # type: ignore[no-untyped-def]
    """Count the records of consecutive regions in their groups; returns the number of rows in use.

    Every record adds one to its cell in each group of its combination. An empty group has row 0; a group gets the
    next free row of ``counts`` when its first record is met.

    Args:
        first: of the regions.
        block_ptr: (all regions + 1,) where the blocks of every region start.
        blocks: ordinals of blocks, region after region.
        record_ptr: (blocks + 1,) where the records of every block start.
        codes: combination and cell of every record.
        bits: of the cell, the last ones of a code.
        group_ptr: (combinations + 1,) where the groups of every combination start.
        groups: ordinal of the iteration of every group.
        rows: (regions, iterations) row of every group, 0 for an empty one; written.
        counts: (rows, cells) records of every cell; written.
    """
    used = 0
    mask = (1 << bits) - 1
    for region in range(rows.shape[0]):
        for listed in range(block_ptr[first + region], block_ptr[first + region + 1]):
            block = blocks[listed]
            for record in range(record_ptr[block], record_ptr[block + 1]):
                combo = codes[record] >> bits
                cell = codes[record] & mask
                for entry in range(group_ptr[combo], group_ptr[combo + 1]):
                    group = groups[entry]
                    row = rows[region, group]
                    if row == 0:
                        used += 1
                        row = used
                        rows[region, group] = row
                    counts[row, cell] += 1
    return used


_CODE_BITS = 32
_FEW_REGIONS = 4096
_MOST_BYTES = 96 << 20
_MOST_RECORDS = 1 << 31


@dataclass(frozen=True)
class Batch:
    """CONFIDENTIAL. Some records of one part.

    Args:
        block: int32, ordinal of the block; negative for none.
        combo: int32, ordinal of the combination of codes in the part.
        cell: uint8, most detailed cell.
    """

    block: NDArray[np.int32] = field(repr=False)
    combo: NDArray[np.int32] = field(repr=False)
    cell: NDArray[np.uint8] = field(repr=False)


@dataclass(frozen=True, eq=False)
class GroupedRecords:
    """CONFIDENTIAL. The records of one part, sorted by block.

    Args:
        starts: int64, shape (blocks + 1,), where the records of every block start and end.
        codes: uint32, combination and cell of every record, the cell in the last bits.
    """

    starts: NDArray[np.int64] = field(repr=False)
    codes: NDArray[np.uint32] = field(repr=False)
    cells: int
    combos: int = field(repr=False)
    lost: int = field(repr=False)

    @property
    def records(self) -> int:
        """CONFIDENTIAL. Number of records that have a block."""
        return len(self.codes)

    def __reduce__(self) -> NoReturn:
        raise TypeError("records are confidential and cannot be pickled")


@proven("groups.proof.md", digest="1e7fb9f4c3146a1f")
def sort_by_block(
    places: Iterable[NDArray[np.int32]], batches: Iterable[Batch], *, blocks: int, cells: int, combos: int
) -> GroupedRecords:
    """Sort the records of a part by block, in two passes and 4 bytes a record.

    Args:
        places: int32, the blocks of all records, some at a time, as in ``batches`` but in any order; read first.
        batches: the records.
        blocks: number of blocks.
        cells: number of most detailed cells.
        combos: number of distinct combinations.

    Returns:
        The sorted records. Their order within a block does not matter.

    Raises:
        DataError: the two passes differ, or a record has a combination or a cell out of range.
        OverflowError: too many combinations for 32 bits.
    """
    if combos << _bits(cells) > 1 << _CODE_BITS:
        raise OverflowError(f"{combos} combinations of codes are more than the counts have room for")
    number = np.zeros(blocks, dtype=np.int64)
    lost = sum(int(count_blocks(block, number)) for block in places)
    starts = np.zeros(blocks + 1, dtype=np.int64)
    np.cumsum(number, out=starts[1:])
    codes = np.empty(int(starts[-1]), dtype=np.uint32)
    place, stop = starts[:-1].copy(), starts[1:].copy()
    unplaced = 0
    for batch in batches:
        code = _packed(batch, cells, combos)
        unplaced += int(place_records(batch.block, code, place, stop, codes))
    if unplaced or np.any(place != stop):
        raise DataError("the records changed while they were read; do not write to the input during a run")
    return GroupedRecords(starts, codes, cells, combos, lost)


def _bits(cells: int) -> int:
    return (cells - 1).bit_length()


def _packed(batch: Batch, cells: int, combos: int) -> NDArray[np.uint32]:
    inside = (batch.combo.min(initial=0) >= 0) & (batch.combo.max(initial=0) < max(combos, 1))
    if not inside or batch.cell.max(initial=0) >= cells:
        raise DataError("records name a combination of codes or a cell that does not exist")
    return batch.combo.astype(np.uint32) << np.uint32(_bits(cells)) | batch.cell


@dataclass(frozen=True, eq=False)
class RegionBlocks:
    """The blocks of every region of one type; public.

    Args:
        starts: int64, shape (regions + 1,).
        blocks: int32, ordinals of the blocks of region after region; a block is in one region at most.
    """

    starts: NDArray[np.int64]
    blocks: NDArray[np.int32]

    @classmethod
    def of(cls, ordinals: NDArray[np.int32], regions: int) -> RegionBlocks:
        """From the region of every block.

        Args:
            ordinals: int32, shape (blocks,), ordinal of the region of every block; -1 for none.

        Example:
            >>> listed = RegionBlocks.of(np.array([1, -1, 0, 1], dtype=np.int32), 2)
            >>> listed.starts.tolist(), listed.blocks.tolist()
            ([0, 1, 3], [2, 0, 3])
        """
        inside = np.flatnonzero(ordinals >= 0).astype(np.int32)
        region = ordinals[inside]
        starts = np.zeros(regions + 1, dtype=np.int64)
        np.cumsum(np.bincount(region, minlength=regions), out=starts[1:])
        if np.any(region[1:] < region[:-1]):
            inside = inside[np.argsort(region, kind="stable")]
        return cls(starts, inside)


class ExactGroups:
    """CONFIDENTIAL. The true counts of one population group level, counted block by block on demand.

    Args:
        group_ptr: int64, shape (combinations + 1,), where the groups of every combination start.
        groups: int32, ordinals of iterations, none twice for one combination.
    """

    def __init__(
        self,
        level: GroupLevel,
        regions: RegionBlocks,
        records: GroupedRecords,
        group_ptr: NDArray[np.int64],
        groups: NDArray[np.int32],
    ) -> None:
        if len(regions.starts) != len(level.regions) + 1:
            raise ValueError(f"{level.name} has {len(level.regions)} regions")
        if len(group_ptr) != records.combos + 1:
            raise ValueError("records have one list of groups for each of their combinations")
        if groups.max(initial=-1) >= len(level.iterations):
            raise ValueError(f"{level.name} has {len(level.iterations)} iterations and no more")
        if records.records >= _MOST_RECORDS:
            raise OverflowError("counts have room for fewer than 2^31 records")
        self._level = level
        self._regions = regions
        self._records = records
        self._groups = group_ptr, groups
        self._counted_before: dict[tuple[int, int], GroupBlock] = {}
        self._room = _MOST_BYTES if len(level.regions) <= _FEW_REGIONS else 0
        self._lock = threading.Lock()

    @property
    def level(self) -> GroupLevel:
        """The level counted."""
        return self._level

    @property
    def cells(self) -> int:
        """Number of most detailed cells."""
        return self._records.cells

    @proven("groups.proof.md", digest="3f2684e1ad286b74")
    def block(self, first: int, stop: int) -> GroupBlock:
        """CONFIDENTIAL. The counts of regions ``first`` to ``stop - 1``; safe to call from several threads.

        Large regions are few, and take as long to count as all small ones: their counts are kept, up to 96 MiB of a level of at most
        4,096 regions, for what is measured next at the level.

        Raises:
            ValueError: no such regions.
        """
        block = self._counted_before.get((first, stop))
        if block is None:
            block = self._counted(first, stop)
            with self._lock:
                if block.nbytes <= self._room and (first, stop) not in self._counted_before:
                    self._counted_before[first, stop] = block
                    self._room -= block.nbytes
        return block

    @proven("groups.proof.md", digest="3126db9cbd40d5eb")
    def _counted(self, first: int, stop: int) -> GroupBlock:
        """CONFIDENTIAL. The counts of some regions, whose arrays nobody can write to."""
        if not 0 <= first < stop <= len(self._level.regions):
            raise ValueError(f"{self._level.name} has no regions {first} to {stop}")
        rows = np.zeros((stop - first, len(self._level.iterations)), dtype=np.int32)
        # Untouched pages of zeros cost no memory, so there is a row for every group.
        counts = np.zeros((rows.size + 1, self.cells), dtype=np.int32)
        regions = read_only(self._regions.starts, self._regions.blocks)
        records = read_only(self._records.starts, self._records.codes)
        groups = read_only(*self._groups)
        used = count_groups(first, *regions, *records, _bits(self.cells), *groups, rows, counts)
        return GroupBlock(first, *read_only(rows, counts[: used + 1]))

    def __reduce__(self) -> NoReturn:
        raise TypeError("exact counts are confidential and cannot be pickled")
