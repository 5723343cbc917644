"""Histograms of blocks changed so that every block meets its relations, parent by parent, and what could not be met."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from censafe.estimation.topdown.levels.work_ahead import worked_ahead
from censafe.estimation.topdown.relations.balance import BalancedRecords, balance
from censafe.estimation.topdown.relations.changes import bring_back
from censafe.estimation.topdown.relations.kernels import FREE, OPEN, Records, Rules, missed
from censafe.estimation.topdown.relations.meeting import change, trade
from censafe.estimation.topdown.relations.program import chosen_records
from censafe.geography.spines.tree import Spine
from censafe.model import SparseLevel
from censafe.model.arrays import Integers


@dataclass(frozen=True, eq=False)
class RelatedCells:
    """The cells of a histogram as relations see them: a frame, which stays with a record, and a variant, which may be exchanged.

    Args:
        frame: of every cell, int32, shape (cells,).
        variant: of every cell, int32, shape (cells,).
        cell: of every frame and variant, shape (frames, variants).
        part: of every variant, the part of the variants that its records stay in; -1 for records that are left alone, shape (variants,).
        group: of every cell; records of one group may change places between blocks, int32, shape (cells,).
    """

    frame: NDArray[np.int32] = field(repr=False)
    variant: NDArray[np.int32] = field(repr=False)
    cell: NDArray[np.int32] = field(repr=False)
    part: NDArray[np.int32] = field(repr=False)
    group: NDArray[np.int32] = field(repr=False)
    rules: Rules = field(repr=False)
    balanced: BalancedRecords | None = field(default=None, repr=False)

    def kinds(self, cells: NDArray[np.int32]) -> NDArray[np.int32]:
        """Row of the allowed variants of records in some cells."""
        parts = int(self.part.max()) + 1
        kind = self.frame[cells].astype(np.int64) * parts + self.part[self.variant[cells]]
        return kind.astype(np.int32)

    def sums(self, block: Integers, cells: NDArray[np.int32], count: Integers, blocks: int) -> Integers:
        """Sums of the relations by block, shape (blocks, R)."""
        own = self.rules.sums[self.rules.signature[self.variant[cells]]] * count[:, None]
        found = np.zeros((blocks, own.shape[1]), np.int64)
        np.add.at(found, block, own)
        return found


@dataclass(frozen=True, eq=False)
class Fitted:
    """Blocks that meet their relations, as far as they can.

    Args:
        sums: of the relations by block, after the changes, shape (blocks, R).
        traded: moves between two blocks that leave sums of their parent as they were.
        returned: records that took another variant to bring the sums of all blocks back.
        exchanged: pairs of records of one block that exchanged their variants to bring sums by class back.
    """

    blocks: SparseLevel
    sums: Integers = field(repr=False)
    traded: int
    changed: int
    returned: int
    exchanged: int


def meet_relations(
    spine: Spine, blocks: SparseLevel, cells: RelatedCells, target: Integers, *, slack: int, workers: int = 1
) -> Fitted:
    """Move records between the blocks of each parent, and change them where that does not suffice.

    Args:
        target: right sides of the relations by block, shape (blocks, R).
    """
    groups = int(cells.rules.recodes.max(initial=0)) + 1
    moved = np.zeros((len(cells.rules.recodes), groups), np.int64)
    pieces: list[tuple[Integers, NDArray[np.int32], Integers]] = []
    sums = np.zeros(target.shape, np.int64)
    traded = changed = returned = exchanged = 0
    net = np.zeros(0 if cells.balanced is None else int(cells.balanced.group.max()) + 1, np.int64)
    work = partial(_traded, blocks, cells, target, slack)
    for found in worked_ahead(work, _parents(spine), workers):
        traded += found.traded
        if _misses(found.records, cells.rules, slack):
            made = change(found.records, cells.rules, slack, moved)
            traded, changed = traded + int(made[0]), changed + int(made[1])
            changed += _chosen(found, cells.rules, slack, moved)
        if moved.any():
            returned += int(bring_back(found.records, cells.rules, slack, moved))
        exchanged += _balanced(found, cells, net)
        sums[found.first : found.last] = found.records.state
        pieces.append(found.collapsed(cells))
    return Fitted(_level(blocks, pieces), sums, traded, changed, returned, exchanged)


@dataclass(frozen=True, eq=False)
class _Parent:
    """Records of the blocks of one parent, traded.

    Args:
        before: sums by class of the balanced records at the beginning, of no length where there are none.
    """

    first: int
    last: int
    block: Integers
    own: NDArray[np.int32]
    free: NDArray[np.bool_]
    records: Records
    traded: int
    before: Integers

    def collapsed(self, cells: RelatedCells) -> tuple[Integers, NDArray[np.int32], Integers]:
        """Block, cell and count, rising."""
        own = self.own.copy()
        own[self.free] = cells.cell[cells.frame[own[self.free]][self.records.name], self.records.variant]
        key, count = np.unique(
            (self.block + self.first) * np.int64(len(cells.frame)) + own, return_counts=True
        )
        return key // len(cells.frame), (key % len(cells.frame)).astype(np.int32), count


def _traded(
    blocks: SparseLevel, cells: RelatedCells, target: Integers, slack: int, of: tuple[int, int]
) -> _Parent:
    """The blocks of one parent after trades, which no other parent has a part in."""
    first, last = of
    block, own = _expanded(blocks, first, last)
    free = cells.part[cells.variant[own]] >= 0
    records = _records(block[free], own[free], cells, target[first:last])
    before = np.zeros(0, np.int64) if cells.balanced is None else cells.balanced.sums(records)
    traded = int(trade(records, cells.rules, slack)) if _misses(records, cells.rules, slack) else 0
    return _Parent(first, last, block, own, free, records, traded, before)


def _balanced(found: _Parent, cells: RelatedCells, net: Integers) -> int:
    """Bring sums by class back that the blocks of a parent have changed; returns the exchanges."""
    one = cells.balanced
    if one is None:
        return 0
    net += one.sums(found.records) - found.before
    return int(balance(found.records, cells.rules, one.chosen, one.group, one.alike, net))


_UNBOUNDED = 1 << 40


def _chosen(found: _Parent, rules: Rules, slack: int, moved: Integers) -> int:
    """Choose all records of the blocks at once that no move could mend; returns how many took another variant."""
    records, changed = found.records, 0
    for b in range(len(records.target)):
        if not missed(b, records, rules, _UNBOUNDED):
            continue
        chosen = chosen_records(b, records, rules, slack)
        if chosen is None:
            continue
        span = slice(int(records.pointer[b]), int(records.pointer[b + 1]))
        for q, recode in enumerate(rules.recodes):
            np.subtract.at(moved[q], recode[records.variant[span]], 1)
            np.add.at(moved[q], recode[chosen.variant], 1)
        records.variant[span] = chosen.variant
        records.state[b] = rules.sums[rules.signature[chosen.variant]].sum(axis=0)
        changed += chosen.changed
    return changed


def _misses(records: Records, rules: Rules, slack: int) -> bool:
    """Whether a block misses anything."""
    return any(missed(b, records, rules, slack) for b in range(len(records.target)))


def _parents(spine: Spine) -> Iterator[tuple[int, int]]:
    """First and one past the last block of every parent."""
    if len(spine.levels) == 1:
        yield 0, spine.leaf.nodes
        return
    edges = spine.levels[-2].first_child
    yield from zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)


def _expanded(blocks: SparseLevel, first: int, last: int) -> tuple[Integers, NDArray[np.int32]]:
    """Block from 0 and cell of every record of consecutive blocks, block by block."""
    span = slice(int(blocks.node_ptr[first]), int(blocks.node_ptr[last]))
    block = np.repeat(np.arange(last - first), np.diff(blocks.node_ptr[first : last + 1]))
    count = blocks.count[span]
    return np.repeat(block, count), np.repeat(blocks.cell[span], count)


def _records(block: Integers, own: NDArray[np.int32], cells: RelatedCells, target: Integers) -> Records:
    pointer = np.searchsorted(block, np.arange(len(target) + 1))
    ones = np.ones(len(own), np.int64)
    return Records(
        pointer.astype(np.int64),
        cells.group[own],
        cells.kinds(own),
        cells.variant[own],
        np.arange(len(own)),
        np.ascontiguousarray(target),
        cells.sums(block, own, ones, len(target)),
    )


def _level(blocks: SparseLevel, pieces: list[tuple[Integers, NDArray[np.int32], Integers]]) -> SparseLevel:
    block, cell, count = (np.concatenate(parts) for parts in zip(*pieces, strict=True))
    pointer = np.searchsorted(block, np.arange(blocks.nodes + 1))
    return SparseLevel(blocks.geounits, pointer.astype(np.int64), cell, count.astype(np.int32))


def missed_by_relation(sums: Integers, target: Integers, rules: Rules) -> Integers:
    """Records by which every block misses every relation, shape (blocks, R).

    Args:
        sums: of the relations by block, shape (blocks, R).
        target: right sides, shape (blocks, R).
    """
    over = sums - target
    found = np.maximum(over, 0)
    for r, code in enumerate(rules.code.tolist()):
        if code == FREE:
            found[:, r] = 0
        elif code == OPEN:
            found[:, r] = np.where(sums[:, -1] > 0, found[:, r], np.abs(over[:, r]))
        elif code == 0:
            found[:, r] = np.abs(over[:, r])
        elif code == 2:
            found[:, r] += (target[:, r] > 0) & (sums[:, r] == 0)
    return found
