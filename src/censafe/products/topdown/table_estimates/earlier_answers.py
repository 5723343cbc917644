"""Noisy answers of an earlier result about the same histogram: those of the redistricting data in estimates of the DHC.

A constraint that holds sums of cells to a published result states how the cells of both belong together, and so what a query of that result
counts in ours. Its answers inform a sum of some cells where both totals are known exactly (housing units by occupancy). Its published counts are not used, since they are noisy themselves; its noisy answers are independent of ours. Spines share
geounits that hold the same blocks: the nation, parts of states, counties, and blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from censafe.errors import UsageError
from censafe.estimation.topdown.levels.facts import PublicFacts
from censafe.geography.spines.paths import RunSpine
from censafe.model import CellQuery
from censafe.model.arrays import Integers
from censafe.model.observer import Observer
from censafe.model.schema import Factor
from censafe.model.topdown.histograms import (
    FacilityCounts,
    LinearConstraint,
    MeasuredHistogram,
    PublishedAnswers,
)
from censafe.model.topdown.level_measurements import LevelMeasurements
from censafe.products.topdown.configuration.config import TopdownConfig
from censafe.products.topdown.folder import level_reader, read_facts
from censafe.products.topdown.intake.results import KnownResult, PublishedResult
from censafe.products.topdown.plan import LevelWorkload, configuration_of_run, workloads
from censafe.products.topdown.table_estimates.choice import TableChoice
from censafe.products.topdown.table_estimates.sums import EarlierAnswers, EarlierLevel, level_units


@dataclass(frozen=True, eq=False)
class MeasuredResult:
    """An earlier result with its noisy answers."""

    name: str
    config: TopdownConfig
    public: PublicFacts
    read: Callable[[LevelWorkload], LevelMeasurements] = field(repr=False)


def has_answers(result: KnownResult) -> bool:
    """Whether a result is a run that stored its noisy answers and still has them."""
    return (
        isinstance(result, PublishedResult)
        and result.manifest.config.settings.get("noisy_measurements") == "stored"
        and (result.folder / "measurements").is_dir()
    )


def measured_results(results: Iterable[KnownResult]) -> list[MeasuredResult]:
    """Those of some results that are runs with their noisy answers."""
    measured = []
    for result in results:
        if isinstance(result, PublishedResult) and has_answers(result):
            config = configuration_of_run(result.folder, result.manifest)
            public = read_facts(result.folder, config, result.manifest.plan.digest())
            read = level_reader(result.folder, config, result.manifest, public)
            measured.append(MeasuredResult(result.name, config, public, read))
    return measured


def earlier_answers(
    config: TopdownConfig,
    public: PublicFacts,
    results: Sequence[MeasuredResult],
    choice: TableChoice,
    observer: Observer,
) -> EarlierAnswers:
    """The answers of results at the geounits of a run, by histogram and level."""
    answers: dict[tuple[str, str], EarlierLevel] = {}
    for result in results:
        if not np.isin(public.run.standard.leaf.codes, result.public.run.standard.leaf.codes).all():
            observer.remark(
                f"The noisy answers of {result.name} are not used for linear estimates: it does not have all blocks."
            )
            continue
        used: set[str] = set()
        # constraints of our histograms to the result; those of which it counts a part come first, since an answer is used once
        matching = [
            (histogram, constraint, right)
            for histogram in config.histograms
            if choice.of(histogram.name)
            for constraint in histogram.constraints
            if isinstance(right := constraint.right, PublishedAnswers)
            and constraint.relation == "="
            and right.result == result.name
        ]
        matching.sort(key=lambda match: match[0].schema.grouped(match[1].groups).covers)
        for histogram, constraint, right in matching:
            for load in workloads(result.config, right.histogram):
                if load.level.name not in public.spine.names or load.part.name in used:
                    continue
                if histogram.schema.grouped(constraint.groups).covers:
                    _require_same_records(public, histogram.name, result, load.histogram.name)
                with observer.stage(f"read {result.name} {load.part.name}"):
                    level = _level(histogram, load, constraint, right, public, result)
                if level is not None:
                    answers[histogram.name, load.level.name] = level
                    used.add(load.part.name)
    return answers


def _require_same_records(public: PublicFacts, histogram: str, result: MeasuredResult, theirs: str) -> None:
    """Refuse a result whose exact total over the same blocks is another one."""
    if not np.array_equal(public.run.standard.leaf.codes, result.public.run.standard.leaf.codes):
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


def _level(
    histogram: MeasuredHistogram,
    load: LevelWorkload,
    constraint: LinearConstraint,
    right: PublishedAnswers,
    public: PublicFacts,
    result: MeasuredResult,
) -> EarlierLevel | None:
    """Their answers at our geounits; None where no query says anything of ours, or no geounit is the same."""
    depth, other = (one.names.index(load.level.name) for one in (public.spine, result.public.run.spine))
    theirs = same_geounits(public.run, depth, result.public.run, other)
    here = theirs >= 0
    if not here.any():
        return None
    ours, groups = histogram.schema.grouped(constraint.groups), load.histogram.schema.grouped(right.groups)
    moved = [
        moved_query(query, ours, groups) if ours.covers else parted_query(query, ours, groups)
        for query in load.queries
    ]
    chosen = [(number, *one) for number, one in enumerate(moved) if one is not None]
    more = np.zeros(len(theirs), np.int64)
    if not ours.covers:
        own, known = (
            _all_records(histogram, public, depth),
            result.public.exact_limits(right.histogram)[other].totals,
        )
        if own is None or known is None:
            return None
        more[here] = own[here] - known[theirs[here]]
    return _earlier_level(result.read(load), theirs, chosen, more) if chosen else None


def _earlier_level(
    measured: LevelMeasurements,
    theirs: NDArray[np.int64],
    chosen: Sequence[tuple[int, CellQuery, NDArray[np.int64]]],
    more: Integers,
) -> EarlierLevel:
    """Chosen queries of theirs at our geounits, with records that only ours count in their last answers."""
    here = theirs >= 0
    kinds = np.where(here, measured.budgets.kinds[np.maximum(theirs, 0)], len(measured.variances))
    variances = np.array([*measured.variances, [np.inf] * len(measured.values)])
    values = []
    for number, _, answers in chosen:
        rows = np.zeros((len(theirs), len(answers)), np.int64)
        rows[here] = measured.values[number][theirs[here]][:, answers]
        rows[:, -1] += more
        values.append(rows)
    return EarlierLevel(
        tuple(query for _, query, _ in chosen),
        variances[:, [number for number, _, _ in chosen]],
        kinds.astype(np.int32),
        tuple(values),
    )


def _all_records(histogram: MeasuredHistogram, public: PublicFacts, depth: int) -> Integers | None:
    """Records of every geounit of a level where published counts of units are all of them; None elsewhere."""
    for constraint in histogram.constraints:
        if (
            isinstance(constraint.right, FacilityCounts)
            and constraint.relation == "="
            and histogram.schema.grouped(constraint.groups).covers
        ):
            return level_units(public, depth, len(constraint.right.each)) @ np.array(constraint.right.each)
    return None


def parted_query(
    query: CellQuery, ours: CellQuery, theirs: CellQuery
) -> tuple[CellQuery, NDArray[np.int64]] | None:
    """A query of two answers of theirs where one of them is a sum of our cells, and the total of both histograms is known exactly.

    With x that sum, X and Y our total and theirs, and answers y and z, the rest of our cells is X - x, and their other cells are Y - x: the answer z
    says of the rest what z + X - Y says. Both answers are of the sum and of the rest then, with noise of their own.
    """
    parted = [axis for axis, factor in enumerate(ours.factors) if (factor.of_level < 0).any()]
    inside = theirs.label >= 0
    own = np.unique(query.label[inside])
    if (
        ours.answers != 1
        or len(parted) != 1
        or query.answers != 2
        or len(own) != 1
        or (query.label[~inside] == own[0]).any()
    ):
        return None
    factors = list(ours.factors)
    axis = parted[0]
    factors[axis] = Factor(2, np.where(factors[axis].of_level < 0, 1, 0).astype(np.int32))
    return CellQuery(f"{query.name} (beside)", 2, tuple(factors)), np.array([own[0], 1 - own[0]])


def moved_query(
    query: CellQuery, ours: CellQuery, theirs: CellQuery
) -> tuple[CellQuery, NDArray[np.int64]] | None:
    """A query of theirs as one of our cells, and which of its answers these are; None where our cells do not tell it.

    Axis by axis a group of ours is one of theirs; the query may only sum over whole groups.

    Example:
        >>> from censafe.products.topdown.configuration.shipped import shipped_schemas
        >>> from censafe.model.topdown.histograms import CellGroups
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
    """Of every geounit of a level, the geounit of a level of another tree that holds the same blocks; -1 for none."""
    every = _by_block(theirs, other)
    place = np.searchsorted(theirs.standard.leaf.codes, ours.standard.leaf.codes)
    pairs = np.stack([_by_block(ours, depth), every[place]], axis=1)
    unique, blocks = np.unique(pairs, axis=0, return_counts=True)
    alone = np.bincount(unique[:, 0])[unique[:, 0]] == 1
    alone &= blocks == np.bincount(every)[unique[:, 1]]
    positions = np.full(ours.spine.levels[depth].nodes, -1, np.int64)
    positions[unique[alone, 0]] = unique[alone, 1]
    return positions


def _by_block(run: RunSpine, depth: int) -> Integers:
    """Geounit of every block in the standard order."""
    ancestors = run.spine.ancestors(depth).astype(np.int64)
    if run.order is None:
        return ancestors
    by_block = np.empty_like(ancestors)
    by_block[run.order] = ancestors
    return by_block
