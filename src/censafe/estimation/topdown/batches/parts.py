"""A level cut into parts of consecutive parents, each with all that its estimation needs, to be pickled and estimated elsewhere."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from censafe.estimation.topdown.batches.batch import ParentLevel
from censafe.estimation.topdown.least_squares.objective import AnswerSource
from censafe.estimation.topdown.levels.limits import CutLimits, LevelLimits
from censafe.estimation.topdown.levels.task import CellRules, LevelTask, family_rules
from censafe.estimation.topdown.whole_tree.cells import Below
from censafe.geography.spines.tree import SpineLevel
from censafe.model import SparseLevel
from censafe.model.arrays import Floats, Integers
from censafe.model.topdown.workers import PartedAnswers


@dataclass(frozen=True, eq=False)
class LevelPart:
    """Consecutive parents with their children, both numbered from 0, and everything that is known about them."""

    first: int
    spans: tuple[Integers, ...]
    level: SpineLevel
    above: SpineLevel
    parents: SparseLevel
    rules: CellRules
    limits: LevelLimits
    labels: tuple[Any, ...]
    weights: Floats
    kinds: Any
    below: Below | None
    answers: Any

    def opened(self, source: AnswerSource) -> ParentLevel:
        """The part as a level of its own."""
        from censafe.estimation.topdown.least_squares.objective import LevelObjective

        objective = LevelObjective(self.labels, self.weights, self.kinds, source, self.below)
        task = LevelTask(self.level, objective, self.limits)
        return ParentLevel(task, self.rules, self.parents, self.above, family_rules(task, self.rules))


def level_part(level: ParentLevel, source: PartedAnswers, spans: tuple[Integers, ...]) -> LevelPart:
    """The part of a level that some batches of parents need."""
    first, last = int(spans[0][0]), int(spans[-1][-1]) + 1
    start, end = (int(level.above.first_child[one]) for one in (first, last))
    objective, below = level.task.objective, level.task.objective.below
    return LevelPart(
        first,
        tuple(span - first for span in spans),
        part_of_geounits(level.task.level, start, end),
        part_of_geounits(level.above, first, last),
        part_of_histograms(level.parents, first, last),
        level.rules,
        _limits(level.task.limits, start, end),
        objective.labels,
        objective.weights,
        objective.kinds[start:end],
        None if below is None else _below(below, start, end),
        source.part(start, end),
    )


def common_values(level: ParentLevel) -> tuple[object, ...]:
    """What all parts of a level share."""
    objective = level.task.objective
    kinds = level.task.limits.kinds
    return (*objective.labels, level.rules, *(() if kinds is None else (kinds,)))


def part_of_geounits(level: SpineLevel, first: int, last: int) -> SpineLevel:
    """Consecutive geounits of a level as a level of its own."""
    children = level.first_child[first : last + 1]
    return replace(
        level,
        codes=level.codes[first:last],
        parent=level.parent[first:last] - (level.parent[first] if last > first else 0),
        first_child=children - children[0],
        prefix=None if level.prefix is None else level.prefix[first:last],
    )


def part_of_histograms(level: SparseLevel, first: int, last: int) -> SparseLevel:
    """Histograms of consecutive geounits."""
    pointer = level.node_ptr[first : last + 1]
    entries = slice(int(pointer[0]), int(pointer[-1]))
    return SparseLevel(
        level.geounits[first:last], pointer - pointer[0], level.cell[entries], level.count[entries]
    )


def _limits(limits: LevelLimits, first: int, last: int) -> LevelLimits:
    own = slice(first, last)
    cuts, groups = limits.cuts, limits.groups
    return replace(
        limits,
        totals=None if limits.totals is None else limits.totals[own],
        lower=limits.lower[own],
        upper=limits.upper[own],
        cuts=None if cuts is None else CutLimits(cuts.sets, cuts.lower[own], cuts.upper[own]),
        groups=None if groups is None else replace(groups, of=groups.of[own]),
    )


def _below(below: Below, first: int, last: int) -> Below:
    """What is known from below about some geounits."""
    own = slice(first, last)
    coarse = below.coarse
    return replace(
        below,
        right=np.ascontiguousarray(below.right[own]),
        total_right=below.total_right[own],
        coarse=None if coarse is None else replace(coarse, right=np.ascontiguousarray(coarse.right[own])),
    )
