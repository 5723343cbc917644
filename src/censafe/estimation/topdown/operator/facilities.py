"""Exact sums that published counts of facilities decide: who can live where by kind of facility, from the blocks up.

A published result tells the records of a block by group p, such as a major kind of group quarters with age, origin and race; the
facilities of the block tell which of the finer kinds g there are. Where a block has one kind of a group's, all records of the group are
of it. Where it has several, a set S, the split is open. An area carries the open records of every block under it, and its split is chosen
among those that all of its blocks can follow, with at least one record (or what the rule says) for every facility; so whatever
is chosen above can be met below, and the split of the blocks that shows it goes down with the choice.

These and other results that are published by block make the exact sums of the first pass, at every level of a spine.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from censafe.errors import CheckError, DataError
from censafe.estimation.topdown.operator.passes import combined
from censafe.geography.spines.sums import sum_histograms
from censafe.geography.spines.tree import Spine
from censafe.model import SparseLevel
from censafe.model.arrays import Integers


@dataclass(frozen=True, eq=False)
class FacilityRule:
    """How cells are grouped by what is published and by kinds of facility.

    Args:
        published: of every cell the published sum that it belongs to, int32, shape (cells,).
        kind: of every cell the kind of facility, a column of the counts of facilities, int32, shape (cells,).
    """

    published: NDArray[np.int32] = field(repr=False)
    kind: NDArray[np.int32] = field(repr=False)
    minimum: tuple[int, ...]

    def groups(self) -> tuple[NDArray[np.int32], Integers, Integers]:
        """Groups of cells of one published sum and kind: of every cell its group; of every group its published sum and kind."""
        label = combined((self.published, self.kind))
        first = np.unique(label, return_index=True)[1]
        return label, self.published[first].astype(np.int64), self.kind[first].astype(np.int64)


@dataclass(frozen=True, eq=False)
class OpenRecords:
    """Records of areas whose kind the facilities leave open, block by block; rows are in one order at all levels.

    Args:
        area: position of the geounit, shape (n,).
        place: position of the block, shape (n,).
        kinds: bits of the set of kinds that the block has for these records, shape (n,).
        published: their published sum, shape (n,).
        count: how many, shape (n,).
        pointer: rows of geounit i are pointer[i] .. pointer[i + 1] - 1.
        least: (area, block, kind, records) that facilities of a kind need at least in a block, shape (m, 4).
        least_pointer: the same for the rows of `least`.
        split: records of every row by kind, the kinds of its set rising, that meet what is needed and what areas above were given, shape
            (n, most kinds of a set); None where none is known.
    """

    area: Integers = field(repr=False)
    place: Integers = field(repr=False)
    kinds: Integers = field(repr=False)
    published: Integers = field(repr=False)
    count: Integers = field(repr=False)
    pointer: Integers = field(repr=False)
    least: Integers = field(repr=False)
    least_pointer: Integers = field(repr=False)
    split: Integers | None = field(repr=False)
    width: int

    def rows(self, first: int, last: int) -> slice:
        """Rows of consecutive geounits."""
        return slice(int(self.pointer[first]), int(self.pointer[last]))


def facility_sums(
    spine: Spine, published: SparseLevel, facilities: NDArray[np.integer], rule: FacilityRule
) -> tuple[tuple[SparseLevel, ...], tuple[OpenRecords, ...]]:
    """Decided and open records of the geounits of every level, root first.

    Args:
        facilities: counts of facilities of the blocks, shape (blocks, kinds).
    """
    _, of_sum, of_kind = rule.groups()
    can = np.zeros((int(of_sum.max()) + 1, facilities.shape[1]), np.bool_)  # kinds of each published sum
    can[of_sum, of_kind] = True
    # facilities would need records of several sets
    if (np.unique(can[can.any(axis=1)], axis=0).sum(axis=0) > 1).any():
        raise CheckError("published sums must have all of their kinds of facility in common, or none")
    block = np.repeat(np.arange(published.nodes), np.diff(published.node_ptr))
    present = can[published.cell] & (facilities[block] > 0)
    without = np.unique(block[~present.any(axis=1)])
    if len(without):
        _refuse(spine, without, "have records of a kind of which they have no facility")
    for kind, fewest in enumerate(rule.minimum):
        own = can[published.cell, kind]
        have = np.bincount(block[own], published.count[own], len(facilities))
        short = np.flatnonzero(have < facilities[:, kind].astype(np.int64) * fewest)
        if len(short):
            _refuse(spine, short, f"have fewer records than facilities of kind {kind}")
    single = present.sum(axis=1) == 1
    lookup = np.full(can.shape, -1, np.int64)
    lookup[of_sum, of_kind] = np.arange(len(of_sum))
    group = lookup[published.cell[single], present[single].argmax(axis=1)]
    decided = (block[single], group, published.count[single].astype(np.int64))
    bits = (present[~single].astype(np.int64) << np.arange(can.shape[1])).sum(axis=1)
    sums, count = (part[~single].astype(np.int64) for part in (published.cell, published.count))
    opened = (block[~single], bits, sums, count)
    least = _least(block[~single], bits, facilities, rule.minimum)
    (of_set, _), have = _summed([opened[0], bits], count)
    _, need = _summed([least[:, 0], least[:, 1]], least[:, 3])
    short = np.unique(of_set[have < need]) if len(need) else of_set[:0]
    if len(short):
        _refuse(spine, short, "have fewer records than all of their facilities need")
    split = _first_split(opened, least)
    levels: list[tuple[SparseLevel, OpenRecords]] = []
    position = np.arange(spine.leaf.nodes)
    for level in reversed(spine.levels):
        sparse = _sparse(level.geounits, position[decided[0]], decided[1], decided[2])
        levels.insert(0, (sparse, _open(level.nodes, position, opened, least, split)))
        position = level.parent[position].astype(np.int64)
    return tuple(sparse for sparse, _ in levels), tuple(rows for _, rows in levels)


def named_blocks(spine: Spine, blocks: Integers) -> str:
    """Codes of the first three of some blocks, for messages.

    Args:
        blocks: positions, shape (m,).
    """
    return ", ".join(spine.leaf.plain_names(blocks[:3]).tolist())


def _refuse(spine: Spine, blocks: Integers, problem: str) -> NoReturn:
    raise DataError(
        f"redistricting data: {len(blocks)} blocks {problem}, such as {named_blocks(spine, blocks)}; "
        "fix: give the redistricting result of these records"
    )


def _least(
    block: Integers, bits: Integers, facilities: NDArray[np.integer], minimum: tuple[int, ...]
) -> Integers:
    """Rows (block, set, kind, records) for the sets of kinds that are open in a block."""
    pairs = np.unique(np.stack([block, bits], axis=1), axis=0) if len(block) else np.zeros((0, 2), np.int64)
    rows = []
    for kind, fewest in enumerate(minimum):
        chosen = pairs[(pairs[:, 1] >> kind) & 1 == 1]
        need = facilities[chosen[:, 0], kind].astype(np.int64) * fewest
        rows.append(np.stack([chosen[:, 0], chosen[:, 1], np.full(len(chosen), kind), need], axis=1))
    return np.concatenate(rows) if rows else np.zeros((0, 4), np.int64)


def _summed(keys: list[Integers], count: Integers) -> tuple[list[Integers], Integers]:
    """Counts added up by keys, in the order of the keys."""
    if not len(count):
        return keys, count
    order = np.lexsort(keys[::-1])
    keys, count = [key[order] for key in keys], count[order]
    new = np.zeros(len(count), np.bool_)
    new[0] = True
    for key in keys:
        new[1:] |= key[1:] != key[:-1]
    start = np.flatnonzero(new)
    return [key[start] for key in keys], np.add.reduceat(count, start)


def _sparse(geounits: NDArray[np.str_], node: Integers, group: Integers, count: Integers) -> SparseLevel:
    (node, group), count = _summed([node, group], count)
    pointer = np.searchsorted(node, np.arange(len(geounits) + 1))
    return SparseLevel(geounits, pointer.astype(np.int64), group.astype(np.int32), count.astype(np.int32))


def _open(
    nodes: int, position: Integers, opened: tuple[Integers, Integers, Integers, Integers], least: Integers, split: Integers,
) -> OpenRecords:  # fmt: skip
    """The open records of a level, whose geounits hold the blocks as ``position`` says; areas rise with their blocks."""
    block, bits, published, count = opened
    (area, place, kinds, published), count = _summed([position[block], block, bits, published], count)
    keys, need = _summed([position[least[:, 0]], least[:, 0], least[:, 2]], least[:, 3])
    every = np.arange(nodes + 1)
    return OpenRecords(
        area, place, kinds, published, count, np.searchsorted(area, every),
        np.stack([*keys, need], axis=1), np.searchsorted(keys[0], every), split, split.shape[1],
    )  # fmt: skip


def kinds_of_sets(bits: Integers, width: int) -> Integers:
    """Kinds of every set, rising, and -1 after them, shape (n, width)."""
    sets, of_set = np.unique(bits, return_inverse=True)
    kinds = np.full((len(sets), width), -1, np.int64)
    for i, combination in enumerate(sets.tolist()):
        own = [kind for kind in range(combination.bit_length()) if combination >> kind & 1]
        kinds[i, : len(own)] = own
    return kinds[of_set.reshape(-1)]


def spread(
    rows: tuple[Integers, Integers], slots: tuple[Integers, Integers], row: Integers, slot: Integers
) -> Integers:
    """Send the records of rows to slots that take as many: within a cell one row after another, one slot after another."""
    row_end, slot_end = _ends(*rows), _ends(*slots)
    start = np.maximum(row_end[row] - rows[1][row], slot_end[slot] - slots[1][slot])
    return np.maximum(np.minimum(row_end[row], slot_end[slot]) - start, 0)


def _ends(cell: Integers, count: Integers) -> Integers:
    """Sum of all counts of smaller cells, of earlier entries of the same cell, and the own one."""
    order = np.argsort(cell, kind="stable")
    ends = np.empty_like(count)
    ends[order] = np.cumsum(count[order])
    return ends


def _first_split(opened: tuple[Integers, Integers, Integers, Integers], least: Integers) -> Integers:
    """A split of the open records of all blocks, in the order of a level: every kind has what it needs, the last one the rest."""
    (block, bits, _), count = _summed(list(opened[:3]), opened[3])
    kinds = kinds_of_sets(bits, int(np.bitwise_count(bits).max(initial=0)))
    split = np.zeros(kinds.shape, np.int64)
    if not len(count):
        return split
    sets, cell = np.unique(np.stack([block, bits], axis=1), axis=0, return_inverse=True)
    cell = cell.reshape(-1).astype(np.int64)
    of_set, last = kinds_of_sets(sets[:, 1], kinds.shape[1]), np.bitwise_count(sets[:, 1]).astype(int) - 1
    at, column = np.nonzero(of_set >= 0)
    order = np.lexsort((least[:, 2], least[:, 1], least[:, 0]))
    need = np.zeros(of_set.shape, np.int64)
    need[at, column] = least[order, 3]
    need[np.arange(len(sets)), last] += np.bincount(cell, count).astype(np.int64) - need.sum(axis=1)
    slot = np.full(of_set.shape, -1, np.int64)
    slot[at, column] = np.arange(len(at))
    row, own = np.nonzero(kinds >= 0)
    split[row, own] = spread((cell, count), (at, need[at, column]), row, slot[cell[row], own])
    return split


@dataclass(frozen=True, eq=False)
class ExactSums:
    """Exact sums over groups of cells of the geounits of every level.

    Args:
        label: group of every cell, int32, shape (cells,).
        open: records whose group facilities leave open, by level; empty where there are none.
        published: published sum of every group, shape (groups,); of no length without facilities.
        kind: kind of facility of every group, shape (groups,); of no length without facilities.
    """

    label: NDArray[np.int32] = field(repr=False)
    levels: tuple[SparseLevel, ...]
    open: tuple[OpenRecords, ...] = ()
    published: Integers = field(default_factory=lambda: np.zeros(0, np.int64), repr=False)
    kind: Integers = field(default_factory=lambda: np.zeros(0, np.int64), repr=False)

    @staticmethod
    def of(spine: Spine, label: NDArray[np.int32], blocks: SparseLevel) -> ExactSums:
        """Sums that a published result decides alone."""
        return ExactSums(label, sum_histograms(spine, blocks, int(label.max()) + 1))

    @staticmethod
    def by_facility(
        spine: Spine, rule: FacilityRule, blocks: SparseLevel, facilities: NDArray[np.integer]
    ) -> ExactSums:
        """Sums that a published result decides together with published counts of facilities.

        Args:
            facilities: of the blocks, shape (blocks, kinds).
        """
        label, published, kind = rule.groups()
        return ExactSums(label, *facility_sums(spine, blocks, facilities, rule), published, kind)

    def open_at(self, depth: int) -> tuple[OpenRecords, Integers, Integers] | None:
        """Open records of a level with the published sum and kind of every group; None where there are none."""
        if not self.open or not len(self.open[depth].count):
            return None
        return self.open[depth], self.published, self.kind
