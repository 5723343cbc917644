"""What the estimation of one level is given, and how its parents were solved, for the manifest."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from censafe.estimation.topdown.least_squares.objective import LevelObjective
from censafe.estimation.topdown.least_squares.problem import L2Result
from censafe.estimation.topdown.least_squares.sides import KindLimits
from censafe.estimation.topdown.least_squares.solve import Solver, solve_l2
from censafe.estimation.topdown.levels.checks import writable
from censafe.estimation.topdown.levels.families import DONE, FamilyResults, FamilyRules, RoundingRules
from censafe.estimation.topdown.levels.limits import LevelLimits
from censafe.estimation.topdown.rounding.controlled import DetailedCost, Leaves, rounding_options
from censafe.geography.spines.tree import SpineLevel
from censafe.model.arrays import Integers

_DOMINANT = 1_000  # weight of totals that are rounded first


@dataclass(frozen=True, eq=False)
class PassRule:
    """One outer pass.

    Args:
        rounding: inner passes of rounding, of groups of the cells, coarse to fine over all of them.
    """

    fits: tuple[tuple[int, ...], ...]
    rounding: tuple[tuple[NDArray[np.int32], ...], ...] = field(repr=False)


@dataclass(frozen=True, eq=False)
class CellRules:
    """What is known about the cells of a histogram, and how it is fitted and rounded.

    Args:
        allowed: which cells may hold records, shape (cells,).
        tree: groups of the cells that rounding keeps close, coarse to fine, each of shape (cells,).
        infeasible: a parent whose children cannot meet its counts is changed and logged, or the run stops.
        detailed_cost: whether rounding prefers the larger fraction of a cell, or is flat between rounded ones.
        solver: of every fit; another one than ours takes all parents the general way.
    """

    cells: int
    allowed: NDArray[np.bool_] = field(repr=False)
    tree: tuple[NDArray[np.int32], ...] = field(repr=False)
    passes: tuple[PassRule, ...] = ()
    infeasible: Literal["repair", "stop"] = "repair"
    leaves: Leaves = "fractional"
    detailed_cost: DetailedCost = "fraction"
    solver: Solver = solve_l2

    def outer_passes(self, queries: int) -> tuple[PassRule, ...]:
        """The passes, or the one that fits all queries."""
        return self.passes or (PassRule((tuple(range(queries)),), (self.tree,)),)


@dataclass(frozen=True, eq=False)
class LevelTask:
    """One level, ready to be estimated."""

    level: SpineLevel
    objective: LevelObjective
    limits: LevelLimits


def family_rules(task: LevelTask, rules: CellRules) -> FamilyRules | None:
    """Rules for ordinary parents, or None where every parent of the level goes the general way.

    Ordinary are one fit of all queries, or the totals first and then the rest; and limits of single geounits.
    """
    limits, labels = task.limits, task.objective.labels
    passes = rules.outer_passes(len(labels))
    fits, rounding = passes[0].fits, passes[0].rounding
    total = -1
    if len(fits) == 2 and len(fits[0]) == 1 and not labels[fits[0][0]].any():
        total = fits[0][0]
    first = len(rounding) > 1 and len(rounding[0]) == 1 and not rounding[0][0].any()
    if (
        len(passes) > 1
        or len(fits) > 1 + (total >= 0)
        or len(rounding) > 1 + first
        or limits.groups is not None
        or rules.solver is not solve_l2
    ):
        return None
    levels = [label for inner in rounding[int(first) :] for label in inner]
    return FamilyRules(
        unit_kind=np.zeros(rules.cells, np.int32) if limits.kinds is None else writable(limits.kinds),
        limits=kind_limits(limits),
        total_query=total,
        rounding=RoundingRules(
            levels=np.array(levels, np.int32).reshape(len(levels), rules.cells),
            total_weight=_DOMINANT if first else 1,
            options=rounding_options(rules.leaves, rules.detailed_cost),
        ),
    )


def kind_limits(limits: LevelLimits) -> KindLimits:
    """Totals and bounds by kind of unit in the types of the kernels; arrays without entries stand for what is not known."""
    nodes, kinds = limits.lower.shape
    cuts, no_sets = limits.cuts, np.zeros((nodes, 0))
    return KindLimits(
        lower=writable(limits.lower),
        upper=writable(limits.upper),
        totals=np.zeros(0, np.int64) if limits.totals is None else writable(limits.totals),
        sets=np.zeros((0, kinds), np.uint8) if cuts is None else np.ascontiguousarray(cuts.sets),
        least=no_sets if cuts is None else np.ascontiguousarray(cuts.lower),
        most=no_sets if cuts is None else np.ascontiguousarray(cuts.upper),
    )


@dataclass
class LevelReport:
    """How the parents of one level were solved; everything here follows from measurements and invariants.

    Args:
        parents: all of them; of the root one, which stands for no parent.
        gap: largest duality gap of the problems that have one, in half chi-square units; ``approximate`` lists the others.
        gap_share: largest gap divided by its objective, of wide geounits where it is above 1e-4; 0 where there is none.
        rounding_cost: of all ordinary parents: distance of cells to fractions and of marginals to rounded fractions.
        repairs: parents whose cells were changed because their children could not meet them, as JSON values; counts are estimates.
    """

    level: str
    geounits: int
    parents: int = 0
    empty: int = 0
    copied: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    iterations: int = 0
    most_iterations: int = 0
    gap: float = 0.0
    gap_share: float = 0.0
    violation: float = 0.0
    most_cells: int = 0
    general: int = 0
    rounded: Counter[str] = field(default_factory=Counter)
    rounding_cost: float = 0.0
    approximate: list[str] = field(default_factory=list)
    repairs: list[dict[str, Any]] = field(default_factory=list)

    def add(self, result: L2Result, cells: int) -> None:
        """Count one solve of the general way."""
        self.iterations += result.iterations
        self.most_iterations = max(self.most_iterations, result.iterations)
        if math.isfinite(result.gap):
            self.gap = max(self.gap, result.gap)
        self.violation = max(self.violation, result.violation)
        self.most_cells = max(self.most_cells, cells)

    def add_batch(self, results: FamilyResults, cells: Integers) -> None:
        """Count the ordinary parents of a batch, by the cells of every parent."""
        done = results.state == DONE
        if not done.any():
            return
        violation, gap, cost = results.measures[done].T
        self.statuses["ok"] += int(done.sum())
        self.rounded["flow"] += int(done.sum())
        self.iterations += int(results.iterations[done].sum())
        self.most_iterations = max(self.most_iterations, int(results.iterations[done].max()))
        self.gap = max(self.gap, float(gap.max()))
        self.violation = max(self.violation, float(violation.max()))
        self.rounding_cost += float(np.ascontiguousarray(cost).sum())
        self.most_cells = max(self.most_cells, int(cells[done].max()))

    def document(self) -> dict[str, Any]:
        """The report as JSON values, for the manifest."""
        return {
            "level": self.level,
            "geounits": self.geounits,
            "parents": self.parents,
            "parents_empty": self.empty,
            "parents_with_one_child": self.copied,
            "parents_general": self.general,
            "solved": dict(sorted(self.statuses.items())),
            "iterations": self.iterations,
            "iterations_most": self.most_iterations,
            "gap_most": self.gap,
            "gap_share_most": self.gap_share,
            "violation_most": self.violation,
            "cells_most": self.most_cells,
            "rounded": dict(sorted(self.rounded.items())),
            "rounding_cost": self.rounding_cost,
            "violations": 0,
            "approximate": list(self.approximate),
            "repairs": list(self.repairs),
            "integers_checked": True,
        }


def together(documents: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The report of a level from those of its parts, as JSON values.

    Example:
        >>> one, other = (LevelReport("Block", 2, iterations=3, gap=gap).document() for gap in (1e-9, 1e-12))
        >>> both = together([one, other])
        >>> both["geounits"], both["iterations"], both["gap_most"]
        (4, 6, 1e-09)
    """
    report: dict[str, Any] = {}
    for name, first in documents[0].items():
        values = [document[name] for document in documents]
        if isinstance(first, str | bool):
            report[name] = first
        elif isinstance(first, Mapping):
            counts = sum((Counter(value) for value in values), Counter[str]())
            report[name] = dict(sorted(counts.items()))
        elif isinstance(first, list):
            report[name] = [item for value in values for item in value]
        else:
            report[name] = max(values) if name.endswith("_most") else sum(values)
    return report
