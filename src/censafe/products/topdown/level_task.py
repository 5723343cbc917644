"""What the estimation of one level is given."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from censafe.estimation.topdown.normal_equations import LevelObjective
from censafe.estimation.topdown.parents import FamilyRules
from censafe.estimation.topdown.rounding import DetailedCost, Leaves, rounding_options
from censafe.geography.spine import SpineLevel
from censafe.products.topdown.invariants import LevelLimits
from censafe.products.topdown.level_checks import writable

__all__ = ["CellRules", "LevelTask", "PassRule", "family_rules"]

_DOMINANT = 1_000  # weight of totals that are rounded first


@dataclass(frozen=True, eq=False)
class PassRule:
    """One outer pass.

    Args:
        fits: inner passes of least squares, of ordinals of measured queries.
        rounding: inner passes of rounding, of groups of the cells, coarse to fine over all of them.
        held: groups of the cells whose integers later outer passes keep.
    """

    fits: tuple[tuple[int, ...], ...]
    rounding: tuple[tuple[NDArray[np.int32], ...], ...] = field(repr=False)
    held: tuple[NDArray[np.int32], ...] = field(default=(), repr=False)


@dataclass(frozen=True, eq=False)
class CellRules:
    """What is known about the cells of a histogram, and how it is fitted and rounded.

    Args:
        cells: number of cells.
        allowed: which cells may hold records, shape (cells,).
        kinds: kind of unit of each cell, shape (cells,); None where units bound nothing.
        tree: groups of the cells that rounding keeps close, coarse to fine, each of shape (cells,).
        passes: outer passes; none for one fit of all queries.
        infeasible: a parent whose children cannot meet its counts is changed and logged, or the run stops.
        leaves: cells that rounding may raise.
        detailed_cost: whether rounding prefers the larger fraction of a cell, or is flat between rounded ones.
    """

    cells: int
    allowed: NDArray[np.bool_] = field(repr=False)
    kinds: NDArray[np.int32] | None = field(repr=False)
    tree: tuple[NDArray[np.int32], ...] = field(repr=False)
    passes: tuple[PassRule, ...] = ()
    infeasible: Literal["repair", "stop"] = "repair"
    leaves: Leaves = "fractional"
    detailed_cost: DetailedCost = "fraction"

    def outer_passes(self, queries: int) -> tuple[PassRule, ...]:
        """The passes, or the one that fits all queries."""
        return self.passes or (PassRule((tuple(range(queries)),), (self.tree,)),)


@dataclass(frozen=True, eq=False)
class LevelTask:
    """One level, ready to be estimated.

    Args:
        level: its geounits.
        objective: its weighted measurements.
        limits: what its histograms must obey.
    """

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
    ):
        return None
    levels = [label for inner in rounding[int(first) :] for label in inner]
    nodes, kinds = task.level.nodes, limits.lower.shape[1] if rules.kinds is not None else 0
    cuts, no_sets = limits.cuts, np.zeros((nodes, 0))
    return FamilyRules(
        unit_kind=np.zeros(rules.cells, np.int32) if rules.kinds is None else writable(rules.kinds),
        lower=writable(limits.lower[:, :kinds]),
        upper=writable(limits.upper[:, :kinds]),
        totals=np.zeros(0, np.int64) if limits.totals is None else writable(limits.totals),
        sets=np.zeros((0, kinds), np.uint8) if cuts is None else np.ascontiguousarray(cuts.sets),
        least=no_sets if cuts is None else np.ascontiguousarray(cuts.lower),
        most=no_sets if cuts is None else np.ascontiguousarray(cuts.upper),
        levels=np.array(levels, np.int32).reshape(len(levels), rules.cells),
        total_query=total,
        total_weight=_DOMINANT if first else 1,
        options=rounding_options(rules.leaves, rules.detailed_cost),
    )
