"""CONFIDENTIAL. True counts of population groups, region by region, from records sorted by block.

Records are read twice and kept as one number each (combination and cell), sorted by block. Regions of every type are
lists of blocks, so one sorted copy serves all levels. The loops over records are compiled.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, NoReturn, Protocol

import numpy as np
from numba import int32, int64, uint32
from numpy.typing import NDArray

from censafe.errors import DataError
from censafe.model import GroupBlock, GroupLevel
from censafe.model.compiled import compiled
from censafe.model.named_arrays import read_only, read_only_type, tuple_type
from censafe.model.proven import proven


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
        codes: uint32, combination and cell of every record, the cell in the last ``bits`` bits.
    """

    starts: NDArray[np.int64] = field(repr=False)
    codes: NDArray[np.uint32] = field(repr=False)
    cells: int
    combos: int = field(repr=False)
    lost: int = field(repr=False)

    @property
    def bits(self) -> int:
        """Number of bits of a cell in a code."""
        return _bits(self.cells)

    @property
    def records(self) -> int:
        """CONFIDENTIAL. Number of records that have a block."""
        return len(self.codes)

    def __reduce__(self) -> NoReturn:
        raise TypeError("records are confidential and cannot be pickled")


class Memberships(Protocol):
    """Groups of every combination in compressed rows: those of combination i end where those of i + 1 start."""

    @property
    def indptr(self) -> NDArray[np.int64]:
        """Shape (combinations + 1,)."""

    @property
    def ordinals(self) -> NDArray[np.int32]:
        """Ordinals of iterations, none twice for one combination."""


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
            >>> found = RegionBlocks.of(np.array([1, -1, 0, 1], dtype=np.int32), 2)
            >>> found.starts.tolist(), found.blocks.tolist()
            ([0, 1, 3], [2, 0, 3])
        """
        inside = np.flatnonzero(ordinals >= 0).astype(np.int32)
        theirs = ordinals[inside]
        starts = np.zeros(regions + 1, dtype=np.int64)
        np.cumsum(np.bincount(theirs, minlength=regions), out=starts[1:])
        if np.any(theirs[1:] < theirs[:-1]):
            inside = inside[np.argsort(theirs, kind="stable")]
        return cls(starts, inside)


class ExactGroups:
    """CONFIDENTIAL. The true counts of one population group level, counted block by block on demand.

    Args:
        parts: records of every part of the population and the groups of its combinations.
    """

    def __init__(
        self,
        level: GroupLevel,
        regions: RegionBlocks,
        parts: Sequence[tuple[GroupedRecords, Memberships]],
    ) -> None:
        if len(regions.starts) != len(level.regions) + 1 or not parts:
            raise ValueError(f"{level.name} has {len(level.regions)} regions and needs a part")
        cells = {records.cells for records, _ in parts}
        for records, groups in parts:
            if len(groups.indptr) != records.combos + 1 or len(cells) > 1:
                raise ValueError("a part has one list of groups for each of its combinations")
            if groups.ordinals.max(initial=-1) >= len(level.iterations):
                raise ValueError(f"{level.name} has {len(level.iterations)} iterations and no more")
        if sum(records.records for records, _ in parts) >= _MOST_RECORDS:
            raise OverflowError("counts have room for fewer than 2^31 records")
        self._level = level
        self._regions = regions
        self._parts = tuple(parts)
        self._cells = cells.pop()
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
        return self._cells

    @proven("groups.proof.md", digest="2ce6354b5f9bd553")
    def block(self, first: int, stop: int) -> GroupBlock:
        """CONFIDENTIAL. The counts of regions ``first`` to ``stop - 1``; safe to call from several threads.

        Large regions are few, and take as long to count as all small ones: their counts are kept, up to 96 MiB of a level of at most
        4,096 regions, for what is measured next at the level.

        Raises:
            ValueError: no such regions.
        """
        found = self._counted_before.get((first, stop))
        if found is None:
            found = self._counted(first, stop)
            with self._lock:
                if found.nbytes <= self._room and (first, stop) not in self._counted_before:
                    self._counted_before[first, stop] = found
                    self._room -= found.nbytes
        return found

    @proven("groups.proof.md", digest="57a5c54bbbc3b72b")
    def _counted(self, first: int, stop: int) -> GroupBlock:
        """CONFIDENTIAL. The counts of some regions, whose arrays nobody can write to."""
        if not 0 <= first < stop <= len(self._level.regions):
            raise ValueError(f"{self._level.name} has no regions {first} to {stop}")
        rows = np.zeros((stop - first, len(self._level.iterations)), dtype=np.int32)
        # Untouched pages of zeros cost no memory, so there is a row for every group.
        counts = np.zeros((rows.size + 1, self._cells), dtype=np.int32)
        regions = ListedRegions(*read_only(self._regions.starts, self._regions.blocks))
        found, used = RegionCounts(rows, counts), 0
        for part, memberships in self._parts:
            start, code = read_only(part.starts, part.codes)
            records = PartRecords(start, code, part.bits)
            groups = CombinationGroups(*read_only(memberships.indptr, memberships.ordinals))
            used = count_groups(first, regions, records, groups, found, used)
        return GroupBlock(first, *read_only(rows, counts[: used + 1]))

    def __reduce__(self) -> NoReturn:
        raise TypeError("exact counts are confidential and cannot be pickled")
