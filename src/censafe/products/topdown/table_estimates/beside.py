"""Noisy answers of an earlier result that say something of the same histogram: those of the redistricting data beside the DHC's.

A constraint that holds sums of cells to a published result tells how the cells of both belong together, and so what a query of that result
counts in ours. Its published counts are not used, since they are noisy themselves; its noisy answers are independent of ours. Spines share
geounits that hold the same blocks: the nation, parts of states, counties, and blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from censafe.errors import CheckError, UsageError
from censafe.estimation.topdown.levels.facts import PublicFacts
from censafe.geography.spines.choice import RunSpine
from censafe.model import CellQuery
from censafe.model.arrays import Integers
from censafe.model.observer import Observer
from censafe.model.schema import Factor
from censafe.model.topdown.constraints import LinearConstraint, PublishedAnswers
from censafe.model.topdown.histograms import HistogramSchema, MeasuredHistogram
from censafe.model.topdown.level_measurements import LevelMeasurements
from censafe.products.topdown.configuration.config import TopdownConfig, load_config
from censafe.products.topdown.folder import CONFIGURATION, read_facts
from censafe.products.topdown.intake.results import KnownResult, PublishedResult
from censafe.products.topdown.measuring import level_reader
from censafe.products.topdown.plan import LevelWorkload, plan_release, workloads
from censafe.products.topdown.table_estimates.choice import TableChoice
from censafe.products.topdown.table_estimates.sums import BesideAnswers, BesideLevel

__all__ = ["MeasuredResult", "answers_beside", "has_answers", "moved_query", "result_of_run", "same_geounits"]


@dataclass(frozen=True, eq=False)
class MeasuredResult:
    """An earlier result with its noisy answers.

    Args:
        name: in the configuration that holds to it.
        config: that it was measured with.
        public: what is known of it exactly.
        read: the measurements of a level.
    """

    name: str
    config: TopdownConfig
    public: PublicFacts
    read: Callable[[LevelWorkload], LevelMeasurements] = field(repr=False)

    @property
    def run(self) -> RunSpine:
        """Its tree."""
        return self.public.run


def has_answers(result: KnownResult) -> bool:
    """Whether a result is a run that stored its noisy answers and still has them."""
    return (
        isinstance(result, PublishedResult)
        and result.manifest.config.settings.get("noisy_measurements") == "stored"
        and (result.folder / "measurements").is_dir()
    )


def result_of_run(result: KnownResult) -> MeasuredResult | None:
    """The answers of a run that stored them; None for any other result.

    Raises:
        CheckError: its files do not belong together.
        ConfigError: its configuration breaks a rule.
    """
    if not isinstance(result, PublishedResult) or not has_answers(result):
        return None
    config = load_config(result.folder / CONFIGURATION, result.manifest.config.overrides)
    digest = result.manifest.plan.digest()
    if plan_release(config).digest() != digest:
        raise CheckError(
            f"the plan cannot be rebuilt from {result.folder / CONFIGURATION}; it was changed by hand, or another version of censafe wrote it"
        )
    public = read_facts(result.folder, config, digest)
    return MeasuredResult(
        result.name, config, public, level_reader(result.folder, config, result.manifest, public)
    )


def answers_beside(
    config: TopdownConfig,
    public: PublicFacts,
    results: Sequence[MeasuredResult],
    wanted: TableChoice,
    observer: Observer,
) -> BesideAnswers:
    """The answers of results at the geounits of a run, by histogram and level.

    Args:
        config: of the run, whose constraints hold to the results.
        public: its tree.
        results: with their answers.
        wanted: the tables; answers about histograms of others are not read.
        observer: receives stages, and a remark where a result has other blocks.

    Raises:
        CheckError: measurements of a result were changed.
        UsageError: a result is of other records, as exact totals show.
    """
    found: dict[tuple[str, str], BesideLevel] = {}
    for result in results:
        if not np.isin(public.run.standard.leaf.codes, result.run.standard.leaf.codes).all():
            observer.remark(
                f"The noisy answers of {result.name} are not used for linear estimates: it does not have all blocks."
            )
            continue
        for histogram, load, constraint in _matching(config, result, wanted):
            _require_same_records(public, histogram.name, result, load.histogram.name)
            depth = public.spine.names.index(load.level.name)
            with observer.stage(f"read {result.name} {load.part.name}"):
                theirs = same_geounits(
                    public.run, depth, result.run, result.run.spine.names.index(load.level.name)
                )
                if (theirs >= 0).any():
                    measured = result.read(load)
                    level = _level(histogram.schema, load, constraint, measured, theirs)
                    if level is not None:
                        found[histogram.name, load.level.name] = level
    return found


def _require_same_records(public: PublicFacts, histogram: str, result: MeasuredResult, theirs: str) -> None:
    """Refuse a result whose exact total over the same blocks is another one."""
    if not np.array_equal(public.run.standard.leaf.codes, result.run.standard.leaf.codes):
        return
    own, other = _exact_total(public, histogram), _exact_total(result.public, theirs)
    if own is not None and other is not None and own != other:
        raise UsageError(
            f"{result.name} counts {other:,} {theirs} in all, and {own:,} are known exactly here: it is a result of other records; fix: give that "
            "of the same records, or none"
        )


def _exact_total(public: PublicFacts, histogram: str) -> int | None:
    """Records in all, of the first level whose totals are published exactly."""
    for limits in public.exact_limits(histogram):
        if limits.groups is not None:
            return int(limits.groups.totals.sum())
        if limits.totals is not None:
            return int(limits.totals.sum())
    return None


def _matching(
    config: TopdownConfig, result: MeasuredResult, wanted: TableChoice
) -> Iterator[tuple[MeasuredHistogram, LevelWorkload, LinearConstraint]]:
    """Our histograms with the levels of theirs that say something of all of our records."""
    names = [level.name for level in config.run_levels]
    for histogram in (one for one in config.histograms if wanted.of(one.name)):
        for one in histogram.constraints:
            right = one.right
            if not isinstance(right, PublishedAnswers) or one.relation != "=" or right.result != result.name:
                continue
            if not histogram.schema.grouped(one.groups).covers:
                continue
            for load in workloads(result.config):
                if load.histogram.name == right.histogram and load.level.name in names:
                    yield histogram, load, one


def _level(
    schema: HistogramSchema,
    load: LevelWorkload,
    constraint: LinearConstraint,
    measured: LevelMeasurements,
    theirs: NDArray[np.int64],
) -> BesideLevel | None:
    """Their answers at our geounits; None where no query says anything of ours."""
    right = constraint.right
    if not isinstance(right, PublishedAnswers):
        raise TypeError("a constraint on published answers")
    ours, other = schema.grouped(constraint.groups), load.histogram.schema.grouped(right.groups)
    moved = [moved_query(query, ours, other) for query in load.queries]
    chosen = [(number, *one) for number, one in enumerate(moved) if one is not None]
    if not chosen:
        return None
    here = theirs >= 0
    kinds = np.where(here, measured.budgets.kinds[np.maximum(theirs, 0)], len(measured.variances))
    variances = np.array([*measured.variances, [np.inf] * len(load.queries)])
    values = []
    for number, _, answers in chosen:
        rows = np.zeros((len(theirs), len(answers)), np.int64)
        rows[here] = measured.values[number][theirs[here]][:, answers]
        values.append(rows)
    return BesideLevel(
        tuple(query for _, query, _ in chosen),
        variances[:, [number for number, _, _ in chosen]],
        kinds.astype(np.int32),
        tuple(values),
    )


def moved_query(
    query: CellQuery, ours: CellQuery, theirs: CellQuery
) -> tuple[CellQuery, NDArray[np.int64]] | None:
    """A query of theirs as one of our cells, and which of its answers these are; None where our cells do not tell it.

    Axis by axis a group of ours is one of theirs; the query may only sum over whole groups.

    Args:
        query: of theirs.
        ours: groups of our cells, each cell in one.
        theirs: groups of their cells with the same sums, in the same order.

    Example:
        >>> from censafe.products.topdown.configuration.shipped import shipped_schemas
        >>> from censafe.model.topdown.constraints import CellGroups
        >>> ours, theirs = shipped_schemas()["dhc-households"], shipped_schemas()["pl94-units"]
        >>> occupied = theirs.grouped(CellGroups("total", {"h1": (1,)}))
        >>> query, answers = moved_query(theirs.query("detailed"), ours.query("total"), occupied)
        >>> query.answers, answers.tolist()
        (1, [1])
    """
    axes = [axis for axis, factor in enumerate(theirs.factors) if factor.groups > 1]
    mine = [axis for axis, factor in enumerate(ours.factors) if factor.groups > 1]
    if [ours.factors[axis].groups for axis in mine] != [theirs.factors[axis].groups for axis in axes]:
        return None
    factors = list(ours.factors)
    index: list[NDArray[np.int64]] = []
    for axis, (factor, groups) in enumerate(zip(query.factors, theirs.factors, strict=True)):
        of_group = [np.unique(factor.of_level[groups.of_level == group]) for group in range(groups.groups)]
        if any(len(one) != 1 for one in of_group):
            return None
        place = np.concatenate(of_group).astype(np.int32)
        if axis in axes:
            own = mine[axes.index(axis)]
            factors[own] = Factor(factor.groups, place[ours.factors[own].of_level])
            index.append(np.arange(factor.groups))
        else:
            index.append(place.astype(np.int64))
    answers = np.arange(query.answers).reshape([factor.groups for factor in query.factors])
    chosen = answers[np.ix_(*index)].reshape(-1)
    names = f"{query.name} (beside)"
    return CellQuery(names, len(chosen), tuple(factors), (), ()), chosen


def same_geounits(ours: RunSpine, depth: int, theirs: RunSpine, other: int) -> NDArray[np.int64]:
    """Of every geounit of a level, the geounit of a level of another tree that holds the same blocks; -1 for none.

    Args:
        ours: the tree.
        depth: of the level.
        theirs: the other tree, which has all blocks of ours.
        other: depth of its level.
    """
    every = _by_block(theirs, other)
    place = np.searchsorted(theirs.standard.leaf.codes, ours.standard.leaf.codes)
    pairs = np.stack([_by_block(ours, depth), every[place]], axis=1)
    unique, blocks = np.unique(pairs, axis=0, return_counts=True)
    alone = np.bincount(unique[:, 0])[unique[:, 0]] == 1
    alone &= blocks == np.bincount(every)[unique[:, 1]]
    found = np.full(ours.spine.levels[depth].nodes, -1, np.int64)
    found[unique[alone, 0]] = unique[alone, 1]
    return found


def _by_block(run: RunSpine, depth: int) -> Integers:
    """Geounit of every block in the standard order."""
    held = run.spine.ancestors(depth).astype(np.int64)
    if run.order is None:
        return held
    found = np.empty_like(held)
    found[run.order] = held
    return found
