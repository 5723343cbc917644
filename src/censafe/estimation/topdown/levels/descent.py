"""One histogram from the root down: every level is estimated below the final one above it."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, cast

import numpy as np

from censafe.estimation.topdown.least_squares.objective import LevelObjective
from censafe.estimation.topdown.least_squares.own_solver import ParentSolver, judged_solver
from censafe.estimation.topdown.least_squares.solve import solve_l2
from censafe.estimation.topdown.levels.facts import PublicFacts
from censafe.estimation.topdown.levels.from_root import EstimationFromRoot
from censafe.estimation.topdown.levels.level import (
    CellRules,
    LevelReport,
    LevelTask,
    PassRule,
    estimate_level,
)
from censafe.estimation.topdown.levels.pass_order import measured_fits, passes_of, rounding_chains
from censafe.estimation.topdown.rounding.controlled import DetailedCost, Leaves
from censafe.geography.spines.tree import SpineLevel
from censafe.model import SparseLevel
from censafe.model.observer import Observer
from censafe.model.topdown.choices import Choices
from censafe.model.topdown.histograms import MeasuredHistogram

__all__ = ["Descent", "rules_of"]


class Descent(EstimationFromRoot):
    """The estimation of a histogram by dense least squares, within limits of its kinds and totals.

    Args:
        histogram: its schema and passes.
        public: what is published exactly, and the limits that the histograms obey.
        observer: receives remarks and progress.
        choices: how parents are fitted, rounded and repaired.
        workers: threads that estimate parents; the result does not depend on them.
        solver: in the place of ours, of every parent; None for ours.
    """

    _needs = "meet the published counts"

    def __init__(
        self,
        histogram: MeasuredHistogram,
        public: PublicFacts,
        observer: Observer,
        choices: Choices,
        workers: int = 1,
        solver: ParentSolver | None = None,
    ) -> None:
        super().__init__(histogram, public.spine, observer, choices, workers)
        self._limits = public.limits[histogram.name]
        self._solver = solve_l2 if solver is None else judged_solver(solver)

    def _estimated(
        self, depth: int, objective: LevelObjective, parents: SparseLevel | None, above: SpineLevel | None
    ) -> tuple[SparseLevel, LevelReport]:
        level = self._spine.levels[depth]
        task = LevelTask(level, objective, self._limits[depth])
        rules = rules_of(self._histogram, level.name, self._choices)
        if rules.kinds is None and task.limits.lower.shape[1]:  # of single cells
            rules = replace(rules, kinds=np.arange(rules.cells, dtype=np.int32))
        rules = replace(rules, solver=self._solver)
        return estimate_level(
            task, rules, parents, above, workers=self._workers, progress=self._observer.advance
        )


def rules_of(histogram: MeasuredHistogram, level: str, choices: Choices) -> CellRules:
    """Cells of a histogram, its passes at a level, and the chain of queries that rounding keeps close to the estimates.

    The kinds of units come first in the chain, because their bounds must hold after rounding.

    Example:
        >>> from censafe.products.topdown.configuration.config import load_config
        >>> config = load_config("pl94-us")
        >>> rules = rules_of(config.histogram("persons"), "County", config.choices)
        >>> [int(label.max()) + 1 for label in rules.tree], rules.passes[0].fits
        ([8, 16, 1008], ((0,), (1, 2, 3, 4, 5, 6, 7, 8, 9, 10)))
    """
    schema, passes = histogram.schema, passes_of(histogram, level, choices)
    chains = [rounding_chains(histogram, outer) for outer in passes.rounding]
    fits = [measured_fits(histogram, level, outer) for outer in passes.l2]
    rules = tuple(PassRule(fit, chain, chain[-1]) for fit, chain in zip(fits, chains, strict=True) if fit)
    tree = tuple(label for chain in chains for inner in chain for label in inner if label.any())
    return CellRules(
        schema.schema.cells, schema.allowed(), schema.kinds, tree, rules,
        infeasible=cast(Literal["repair", "stop"], choices.infeasible),
        leaves=cast(Leaves, choices.leaves),
        detailed_cost=cast(DetailedCost, choices.detailed_cost),
    )  # fmt: skip
