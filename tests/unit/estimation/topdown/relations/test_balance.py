"""Sums by class of chosen records are brought back by exchanges inside of blocks, which leave every sum of a block's variants."""

from dataclasses import replace

import numpy as np

from censafe.estimation.topdown.relations.fitting import BalancedRecords, RelatedCells, meet_relations
from censafe.estimation.topdown.relations.kernels import EQUAL, FREE, Rules
from censafe.geography.spines.tree import LevelRule, build_spine
from censafe.model import SparseLevel
from support.histograms import level_of_records

FRAMES = 4
"""A frame is a class, 0 or 1, and a sex: cells are 2 x frame, and 1 more for a chosen record."""


def cells_of(alike: np.ndarray) -> RelatedCells:
    """As many chosen records as a target, of two variants."""
    cell = np.arange(FRAMES * 2, dtype=np.int32)
    rules = Rules(
        np.arange(2, dtype=np.int32), np.array([[0, 0], [1, 0]], np.int64), np.array([EQUAL, FREE]),
        np.ones(2, np.int64), np.ones((FRAMES, 2), np.bool_), np.arange(2, dtype=np.int32)[None, :].copy(), np.ones(1),
    )  # fmt: skip
    frame = np.arange(FRAMES, dtype=np.int32)
    balanced = BalancedRecords(np.array([False, True]), frame // 2, alike.astype(np.int32))
    return RelatedCells(cell // 2, cell % 2, cell.reshape(FRAMES, 2), np.zeros(2, np.int32), cell, rules, balanced)  # fmt: skip


def chosen_of(cells: RelatedCells, found: SparseLevel) -> list[int]:
    """Chosen records by class."""
    own = np.repeat(found.cell, found.count)
    return np.bincount(own[own % 2 == 1] // 4, minlength=2).tolist()


def blocks(own: list[list[int]]) -> SparseLevel:
    return level_of_records(np.array([f"1{n:03d}" for n in range(len(own))]), own)


def test_classes_of_chosen_records_are_brought_back_in_other_blocks() -> None:
    """The first block must choose its only record, of class 0, and the second one give up its, of class 1; the third can exchange."""
    before = blocks([[0], [5], [1, 4]])
    tree = build_spine(before.geounits, (LevelRule("State", 1), LevelRule("Block", 4)))
    target = np.array([[1, 0], [0, 0], [1, 0]], np.int64)
    cells = cells_of(np.zeros(FRAMES))
    found = meet_relations(tree, before, cells, target, slack=0)
    assert (found.exchanged, chosen_of(cells, found.blocks)) == (1, chosen_of(cells, before))
    assert found.sums[:, 0].tolist() == [1, 0, 1]
    apart = meet_relations(tree, before, replace(cells, balanced=None), target, slack=0)
    assert (apart.exchanged, chosen_of(cells, apart.blocks)) == (0, [2, 0])


def test_records_that_must_be_alike_do_not_exchange_where_they_differ() -> None:
    before = blocks([[0], [5], [1, 4]])
    tree = build_spine(before.geounits, (LevelRule("State", 1), LevelRule("Block", 4)))
    target = np.array([[1, 0], [0, 0], [1, 0]], np.int64)
    assert meet_relations(tree, before, cells_of(np.arange(FRAMES)), target, slack=0).exchanged == 0
