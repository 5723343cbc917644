"""One histogram from the root down: every level is estimated below the final one above it."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, cast

import numpy as np

from censafe.estimation.topdown.least_squares.objective import LevelObjective
from censafe.estimation.topdown.least_squares.own_solver import ParentSolver, judged_solver
from censafe.estimation.topdown.least_squares.solve import solve_l2
from censafe.estimation.topdown.levels.checks import adds_up
from censafe.estimation.topdown.levels.facts import PublicFacts
from censafe.estimation.topdown.levels.level import (
    CellRules,
    LevelReport,
    LevelTask,
    PassRule,
    estimate_level,
)
from censafe.estimation.topdown.levels.pass_order import measured_fits, passes_of, rounding_chains
from censafe.estimation.topdown.rounding.controlled import DetailedCost, Leaves
from censafe.geography.spines.sums import sum_histograms
from censafe.geography.spines.tree import Spine
from censafe.model import SparseLevel
from censafe.model.observer import Observer
from censafe.model.topdown.choices import Choices
from censafe.model.topdown.histograms import MeasuredHistogram

__all__ = ["Descent", "rules_of"]


class Descent:
    """The estimation of one histogram; it knows measurements and what is published exactly, and nothing else.

    Args:
        histogram: its schema and passes.
        public: what is published exactly, and the limits that the histograms obey.
        observer: receives remarks and progress.
        choices: how parents are fitted, rounded and repaired.
        workers: threads that estimate parents; the result does not depend on them.
        solver: in the place of ours, of every parent; None for ours.
    """

    def __init__(
        self,
        histogram: MeasuredHistogram,
        public: PublicFacts,
        observer: Observer,
        choices: Choices,
        workers: int = 1,
        solver: ParentSolver | None = None,
    ) -> None:
        self._histogram = histogram
        self._public = public
        self._observer = observer
        self._choices = choices
        self._workers = workers
        self._solver = solve_l2 if solver is None else judged_solver(solver)
        self._levels: list[SparseLevel] = []
        self._repaired = False

    @property
    def levels(self) -> tuple[SparseLevel, ...]:
        """Final histograms of the levels so far, root first; they add up, also where parents were repaired."""
        if not self._repaired:
            return tuple(self._levels)
        part = Spine(self._public.spine.levels[: len(self._levels)])
        return sum_histograms(part, self._levels[-1], self._histogram.schema.schema.cells)

    def estimate(self, part: str, objective: LevelObjective) -> tuple[SparseLevel, LevelReport]:
        """Estimate the next level.

        Args:
            part: name of the part, for remarks.
            objective: measurements of the level's geounits.

        Raises:
            CheckError: no histograms meet the published figures, or a check of the integers failed.
        """
        depth, spine = len(self._levels), self._public.spine
        level = spine.levels[depth]
        task = LevelTask(level, objective, self._public.limits[self._histogram.name][depth])
        above = (self._levels[-1], spine.levels[depth - 1]) if depth else (None, None)
        rules = rules_of(self._histogram, level.name, self._choices)
        if rules.kinds is None and task.limits.lower.shape[1]:  # of single cells
            rules = replace(rules, kinds=np.arange(rules.cells, dtype=np.int32))
        rules = replace(rules, solver=self._solver)
        found, report = estimate_level(
            task, rules, *above,
            workers=self._workers, progress=self._observer.advance,
        )  # fmt: skip
        if report.approximate:
            self._observer.remark(
                f"Warning: {part}: {len(report.approximate)} of {sum(report.statuses.values())} problems have no "
                "certificate of optimality; the manifest names them."
            )
        if report.repairs:
            self._observer.remark(
                f"Warning: {part}: {len(report.repairs)} parents were changed so that their children could meet the published "
                "counts; the manifest names them with every changed cell."
            )
        self._repaired = self._repaired or bool(report.repairs)
        self._levels.append(found)
        return found, report

    def adopt(self, level: SparseLevel) -> None:
        """Take the next level as it was estimated before; where it was, a repair of its parents shows in its sums."""
        if self._levels and not self._repaired:
            own = self._public.spine.levels[len(self._levels)]
            cells = self._histogram.schema.schema.cells
            self._repaired = not adds_up(own, level, cells, self._levels[-1])
        self._levels.append(level)


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
    kinds = None if schema.facilities is None else schema.schema.levels_of(schema.facilities.attribute)
    chains = [rounding_chains(histogram, outer) for outer in passes.rounding]
    fits = [measured_fits(histogram, level, outer) for outer in passes.l2]
    rules = tuple(PassRule(fit, chain, chain[-1]) for fit, chain in zip(fits, chains, strict=True) if fit)
    tree = tuple(label for chain in chains for inner in chain for label in inner if label.any())
    return CellRules(
        schema.schema.cells, schema.allowed(), kinds, tree, rules,
        infeasible=cast(Literal["repair", "stop"], choices.infeasible),
        leaves=cast(Leaves, choices.leaves),
        detailed_cost=cast(DetailedCost, choices.detailed_cost),
    )  # fmt: skip
