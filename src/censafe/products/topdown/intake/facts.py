"""What is public of the records of a TopDown run: its tree, and the totals, limits and budgets that are published exactly."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from censafe.errors import DataError
from censafe.estimation.topdown.levels.facts import (
    DeclaredTotals,
    PublicFacts,
    standard_depth,
    standard_geounits,
)
from censafe.estimation.topdown.levels.limits import GroupTotals, level_limits
from censafe.geography.grfc import BlockAreas
from censafe.geography.regions import PUERTO_RICO
from censafe.geography.spines.choice import build_run_spine
from censafe.geography.spines.paths import RunSpine
from censafe.geography.spines.tree import Spine
from censafe.model import ExactHistograms, SparseLevel
from censafe.model.topdown.histograms import MeasuredHistogram, constraints_on
from censafe.population.findings import Finding
from censafe.products.configuration.source import shipped_configs
from censafe.products.topdown.configuration.config import TopdownConfig
from censafe.products.topdown.intake.equations import has_exact_sums
from censafe.products.topdown.intake.spines import gq_patterns, level_budgets, spine_choice


def declared_totals(
    run: RunSpine, exact: Sequence[ExactHistograms | SparseLevel], declared: Collection[str]
) -> DeclaredTotals:
    """Totals of the levels that the configuration declares, and of no others.

    Where the totals of the blocks are declared, those of every geounit follow. Otherwise the total of a standard geounit
    is published, and a part of it has none of its own.
    """
    by_level = DeclaredTotals({}, {})
    names = run.spine.names
    for depth, (name, level) in enumerate(zip(names, exact, strict=True)):
        if name not in declared:
            continue
        sums = np.zeros(len(level.count) + 1, np.int64)
        np.cumsum(level.count, out=sums[1:])
        totals = sums[level.node_ptr[1:]] - sums[level.node_ptr[:-1]]
        if run.spine is run.standard or names[-1] in declared:
            by_level.single[name] = totals
            continue
        geounit_of = standard_geounits(run, depth)
        standard = run.standard.levels[standard_depth(run, depth)].nodes
        if len(geounit_of) == standard:
            by_level.single[name] = totals
        else:
            sums = np.zeros(standard, np.int64)
            np.add.at(sums, geounit_of, totals)
            by_level.groups[name] = GroupTotals(geounit_of, sums)
    return by_level


def declared_answers(
    histogram: MeasuredHistogram, run: RunSpine, exact: Sequence[ExactHistograms]
) -> dict[tuple[str, str], NDArray[np.int64]]:
    """Answers of the queries that the configuration publishes exactly, at their levels, and of no others."""
    answers = {}
    for name, level in zip(run.spine.names, exact, strict=True):
        geounit = np.repeat(np.arange(level.nodes), np.diff(level.node_ptr))
        for one in histogram.known_at(name):
            query = histogram.schema.query(one.groups.query)
            answers[one.name, name] = np.zeros((level.nodes, query.answers), np.int64)
            np.add.at(answers[one.name, name], (geounit, query.label[level.cell]), level.count)
    return answers


def require_answers_met(
    config: TopdownConfig, public: PublicFacts, exact: Mapping[str, Sequence[ExactHistograms]]
) -> None:
    """Refuse exact answers that no counts could meet beside structural zeros and bounds by facility: the records themselves must."""
    for histogram in config.histograms:
        for level, limits, counts in zip(
            public.spine.levels, public.limits.get(histogram.name, ()), exact[histogram.name], strict=False
        ):
            if not limits.answers:
                continue
            from censafe.estimation.topdown.levels.answers import (
                kind_sums,
            )  # with solvers, which a plan does not load

            allowed = histogram.schema.allowed()
            sums = kind_sums(limits, allowed)
            geounit = np.repeat(np.arange(counts.nodes), np.diff(counts.node_ptr))
            by_kind = np.zeros((counts.nodes, sums.members.shape[1]), np.int64)
            np.add.at(by_kind, (geounit, sums.kinds[counts.cell]), counts.count)
            met = sums.met(by_kind)
            met[geounit[~allowed[counts.cell]]] = False
            if len(wrong := np.flatnonzero(~met)):
                raise DataError(
                    f"level {level.name}: in {len(wrong)} areas, such as {', '.join(level.names(wrong[:_NAMED]).tolist())}, the records of {histogram.name} do not fit the "
                    "structural zeros or the counts of units, so that nothing could meet the exact answers beside these; fix: correct the counts of units or the records"
                )


def run_spine(
    config: TopdownConfig, standard: Spine, areas: BlockAreas | None, facilities: NDArray[np.integer]
) -> RunSpine:
    """The tree that a configuration walks over some blocks."""
    return build_run_spine(standard, spine_choice(config), areas, gq_patterns(config, facilities))


def public_facts(
    config: TopdownConfig,
    run: RunSpine,
    facilities: NDArray[np.int32],
    totals: Mapping[str, DeclaredTotals],
    *,
    imputed: tuple[str, ...] = (),
    areas: BlockAreas | None = None,
) -> PublicFacts:
    """Limits and budgets from declared invariants."""
    units = run.in_order(facilities).astype(np.int64)
    limits = {}
    for histogram in config.histograms:
        if has_exact_sums(histogram):  # its exact sums are limits of every cell, and must have these totals
            continue
        known = totals[histogram.name]
        limits[histogram.name] = level_limits(
            run.spine,
            histogram.schema,
            constraints_on(histogram),
            units,
            known.single,
            known.groups,
            known.answers,
        )
    declared = {name: known for name, known in totals.items() if name not in limits}
    return PublicFacts(run, facilities, limits, level_budgets(config, run), imputed, areas, declared)


def lone_state(config: TopdownConfig, standard: Spine) -> tuple[Finding, ...]:
    """Warn where the nation of the root is one geounit of the next level, so that its budget measures the same records twice."""
    levels = standard.levels
    if len(levels) < 2 or levels[0].digits or levels[1].nodes > 1 or config.choices.bypass:
        return ()
    root, below = levels[0].name, levels[1].name
    moved = "".join(
        f" --set histograms.{one.name}.exact_totals={below}"
        for one in config.histograms
        if one.exact_totals == root
    )
    return (
        Finding(
            file="geocodes",
            column="",
            rule="lone-root",
            severity="warn",
            rows=0,
            problem=f"the data hold one geounit of level {below}, and the run starts at {root}, which is the same records: the "
            f"budget of {root} is spent on them once more",
            allowed=f"a run of one {below} may start there",
            fix=f"--set root={below}{moved}, which costs less",
        ),
    )


_STATES_OF: Final = {"us": "the 50 states and the District of Columbia", "pr": "Puerto Rico"}
_STATE_DIGITS: Final = 2
_NAMED: Final = 5


def other_states(config: TopdownConfig, standard: Spine) -> tuple[Finding, ...]:
    """Warn where a shipped configuration has the budgets of other states than those of the blocks."""
    own = next((one for one in shipped_configs("topdown") if one.text == config.text and one.states), None)
    leaf = standard.leaf
    if own is None or leaf.digits < _STATE_DIGITS:
        return ()
    states = np.unique(leaf.form.prefixes(leaf.codes, _STATE_DIGITS))
    others = states[(states == int(PUERTO_RICO)) == (own.states == "us")]
    if not len(others):
        return ()
    named = ", ".join(f"{one:02d}" for one in others[:_NAMED].tolist()) + (
        " and others" if len(others) > _NAMED else ""
    )
    right = own.name.replace(own.states, "us" if own.states == "pr" else "pr")
    return (
        Finding(
            file="geocodes",
            column="",
            rule="other-states",
            severity="warn",
            rows=0,
            problem=f"{len(others)} of the {len(states)} states of the data ({named}) are not those of the configuration {own.name}, whose budgets "
            f"are those of {_STATES_OF[own.states]}",
            allowed=_STATES_OF[own.states],
            fix=f"use the configuration {right} for them",
        ),
    )
