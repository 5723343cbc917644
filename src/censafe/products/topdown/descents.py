"""How every histogram of a configuration is estimated from the root down, what holds it, and what leaves the estimation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from censafe.errors import UsageError
from censafe.estimation.topdown.least_squares.objective import LevelObjective, query_weight
from censafe.estimation.topdown.least_squares.solve import ParentSolver
from censafe.estimation.topdown.levels.descent import Descent
from censafe.estimation.topdown.levels.facts import PublicFacts
from censafe.estimation.topdown.levels.from_root import EstimationFromRoot
from censafe.estimation.topdown.levels.joint import bounded_facts, estimation_order
from censafe.estimation.topdown.operator.descent import OperatorDescent
from censafe.estimation.topdown.operator.facilities import ExactSums
from censafe.estimation.topdown.operator.parent import FurtherAnswers, answer_weights, level_sums
from censafe.geography.spines.choice import standard_levels
from censafe.geography.spines.sums import sum_histograms
from censafe.model import SparseLevel
from censafe.model.arrays import Floats
from censafe.model.observer import Observer
from censafe.model.plan import NoiseSource
from censafe.model.topdown.answers import EngineWorkers, threads_of
from censafe.model.topdown.histograms import MeasuredHistogram
from censafe.privacy.measure.histograms import level_variances
from censafe.products.topdown.configuration.config import TopdownConfig
from censafe.products.topdown.intake.constraint_sums import constraint_sums, require_stack_agreement
from censafe.products.topdown.intake.equations import BlockRows, follows_stack, has_exact_sums, known_blocks
from censafe.products.topdown.intake.results import KnownResult
from censafe.products.topdown.plan import LevelWorkload, workloads
from censafe.products.topdown.relations import RelatedBlocks, following, require_housing_units
from censafe.products.topdown.table_estimates.estimates import TableEstimates
from censafe.publication.certificate.levels import LevelFacts

Documents: TypeAlias = tuple[Mapping[str, Any], ...]
"""How every level of a histogram was solved, root first, as JSON values."""
Variances: TypeAlias = tuple[Sequence[Sequence[float]] | Floats, NDArray[np.integer]]
"""Variance of an answer by kind of geounits and query, and the kind of every geounit."""


@dataclass(frozen=True, eq=False)
class Estimates:
    """What leaves the estimation.

    Args:
        relations: how persons and households were made to fit, and exceptions, as JSON values; empty where they were not.
    """

    public: PublicFacts
    levels: Mapping[str, tuple[SparseLevel, ...]]
    reports: Mapping[str, Documents]
    facts: tuple[LevelFacts, ...]
    solver: str = ""
    remarks: tuple[str, ...] = ()
    relations: Mapping[str, Any] = field(default_factory=dict)
    tables: TableEstimates | None = None


def gathered(
    config: TopdownConfig,
    public: PublicFacts,
    levels: Mapping[str, tuple[SparseLevel, ...]],
    reports: Mapping[str, Documents],
    source: NoiseSource,
) -> Estimates:
    """The estimates of all histograms in the order of the configuration, with what certificate and tables say of the measured queries."""
    names = [one.name for one in config.histograms]
    nodes = {level.name: level.nodes for level in public.spine.levels}
    facts = tuple(
        LevelFacts(plan.table, plan.level, plan.law, plan.cost, nodes[load.level.name], query.answers, source)
        for load in workloads(config)
        for plan, query in zip(load.part.queries, load.queries, strict=True)
    )
    return Estimates(
        public, {name: levels[name] for name in names}, {name: reports[name] for name in names}, facts
    )


def estimate_levels(
    descent: EstimationFromRoot,
    loads: Iterable[LevelWorkload],
    objectives: Iterable[LevelObjective],
    observer: Observer,
) -> Documents:
    """Estimate the next levels of a descent; what a level needed is let go when it is done."""
    documents = []
    for load, objective in zip(loads, objectives, strict=True):
        with observer.stage(f"estimate {load.part.name}"):
            documents.append(descent.estimate(load.part.name, objective)[1].document())
    return tuple(documents)


class Descents:
    """The estimation of the histograms of one run, one after another; what holds the first ones is known, and checked, beforehand.

    Args:
        workers: threads, or those of an engine; results do not depend on them.
        solver: of the user, for histograms that nothing holds; None for that of the package.
        right_sides: of constraints, as the files of a run state them, by histogram and constraint; None for none.
        variances: of the answers of a level; None where the budgets give them.
    """

    def __init__(
        self,
        config: TopdownConfig,
        public: PublicFacts,
        observer: Observer,
        workers: int | EngineWorkers,
        results: Sequence[KnownResult] = (),
        solver: ParentSolver | None = None,
        right_sides: Mapping[tuple[str, str], BlockRows] | None = None,
        variances: Callable[[LevelWorkload], Variances] | None = None,
    ) -> None:
        self._config = config
        self._public = public
        self._observer = observer
        self._workers = workers
        self._solver = solver
        self._variances = variances
        self._known = known_blocks(public, results, right_sides)
        self._exact_sums = self._sums()
        self._levels: dict[str, tuple[SparseLevel, ...]] = {}
        self._reports: dict[str, Documents] = {}
        self._informing: dict[str, tuple[SparseLevel, ...]] = {}
        self._groups: dict[str, NDArray[np.int32]] = {}
        self._related: RelatedBlocks | None = None
        if config.choices.joint and any(map(follows_stack, config.histograms)):
            require_housing_units(config.histograms, self._known)
            self._related = RelatedBlocks(config.histograms, self._known, threads_of(workers))

    @property
    def order(self) -> tuple[MeasuredHistogram, ...]:
        """The histograms in the order of their stacks; without constraints of a stack, what bounds another one comes first."""
        if any(follows_stack(one) for one in self._config.histograms):
            return tuple(one for stack in self._config.stacks for one in stack.histograms)
        return estimation_order(self._config)

    def estimates(
        self,
        source: NoiseSource,
        *,
        solver: str = "",
        remarks: Sequence[str] = (),
        tables: TableEstimates | None = None,
    ) -> Estimates:
        """The estimates of all histograms; remarks before those on persons and households that were made to fit."""
        estimates = gathered(self._config, self._public, self._levels, self._reports, source)
        related = self._related
        return replace(
            estimates,
            solver=solver,
            remarks=(*remarks, *(() if related is None else (related.remark,))),
            relations={} if related is None else related.document(),
            tables=tables,
        )

    def of(self, histogram: MeasuredHistogram) -> EstimationFromRoot:
        """The descent of the next histogram."""
        choices, spine = self._config.choices, self._public.spine
        if not has_exact_sums(histogram):
            bounds = bounded_facts(self._config, histogram, self._public, self._levels)
            return Descent(histogram, bounds, self._observer, choices, self._workers, self._solver)
        if self._solver is not None:
            names = ", ".join(one.name for one in histogram.constraints)
            raise UsageError(
                f"`solver`: {histogram.name} is held by the constraints {names}, which no solver of your own is asked to keep; allowed: "
                "histograms without constraints"
            )
        sums = self._exact_sums.pop(histogram.name, None) or constraint_sums(histogram, self._known)
        self._groups[histogram.name] = sums.label
        further = self._further(histogram)
        return OperatorDescent(histogram, spine, sums, self._observer, choices, self._workers, further)

    def _further(self, histogram: MeasuredHistogram) -> FurtherAnswers | None:
        """What the estimate of another histogram says about this one; None where none informs it."""
        informed = histogram.informed
        if informed is None:
            return None
        other = self._config.histogram(informed.right.histogram)
        groups, allowed = other.schema.grouped(informed.right.groups).label, other.schema.allowed()
        weights = []
        for load in workloads(self._config, other.name):
            if self._variances is not None:
                rows, kinds = self._variances(load)
            else:
                budgets = self._public.budgets[load.part.name]
                rows, kinds = level_variances(budgets), budgets.kinds
            labels = [query.label for query in load.queries]
            known = np.array([[query_weight(float(variance)) for variance in row] for row in rows])
            weights.append(answer_weights(groups, allowed, labels, known)[kinds])
        label = histogram.schema.grouped(informed.groups).label
        return FurtherAnswers(label, self._informing[other.name], groups, weights)

    def finish(self, histogram: MeasuredHistogram, descent: EstimationFromRoot, documents: Documents) -> None:
        """Take the final histograms of all levels and how they were solved; those of the blocks hold what follows in the stack."""
        cells, levels = histogram.schema.schema.cells, descent.levels
        self._reports[histogram.name] = documents
        self._known.estimated[histogram.name] = (histogram.schema, levels[-1])
        if self._related is not None:
            with self._observer.stage(f"persons and households that fit: {histogram.name}"):
                levels = self._related.fitted(histogram, levels, self._groups[histogram.name])
        if any(
            other.informed and other.informed.right.histogram == histogram.name
            for other in self._config.histograms
        ):
            self._informing[histogram.name] = levels
        self._levels[histogram.name] = standard_levels(self._public.run, levels, cells)
        if (informed := histogram.informed) is not None:
            # the histogram that informed it is changed to the sums that came out, in every block
            other = self._config.histogram(informed.right.histogram)
            own, theirs = (
                histogram.schema.grouped(informed.groups),
                other.schema.grouped(informed.right.groups),
            )
            before = self._informing.pop(other.name)[-1]
            followed = following(before, theirs.label, level_sums(levels[-1], own.label, own.answers))
            self._known.estimated[other.name] = (other.schema, followed)
            cells = other.schema.schema.cells
            levels = sum_histograms(self._public.spine, followed, cells)
            self._levels[other.name] = standard_levels(self._public.run, levels, cells)

    def _sums(self) -> dict[str, ExactSums]:
        """Exact sums of the histograms that follow no other; what the others will be held to is checked as far as it is known."""
        measured = {histogram.name: histogram for histogram in self._config.histograms}
        ours = [histogram for histogram in self._config.histograms if has_exact_sums(histogram)]
        sums = {
            histogram.name: constraint_sums(histogram, self._known)
            for histogram in ours
            if not follows_stack(histogram)
        }
        for histogram in ours:
            require_stack_agreement(histogram, measured, sums, self._known)
        return sums
