"""The spine that a configuration chooses, the budget of every geounit on it, and what a run says of it."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from censafe.errors import ConfigError
from censafe.geography.grfc import BLOCK_AREA_COLUMNS, NO_PLACE, BlockAreas
from censafe.geography.spines.choice import BypassRule, SpineChoice, entity_distances
from censafe.geography.spines.paths import RunSpine
from censafe.geography.spines.prim import MAJOR_KINDS, facility_patterns
from censafe.model import Definition
from censafe.model.topdown.level_measurements import LevelBudgets
from censafe.products.topdown.configuration.config import TopdownConfig, check_pass_order, load_config
from censafe.products.topdown.configuration.keys import PRODUCTION_SPINE
from censafe.products.topdown.plan import check_spine, noise_law, plan_release, workloads


def spine_choice(config: TopdownConfig) -> SpineChoice:
    """How the spine of a run is made."""
    choices, pure = config.choices, config.definition is Definition.PURE
    rule = BypassRule(pure, choices.bypass_cutoff) if choices.bypass else None
    shares = {
        histogram.name: tuple(histogram.level_shares[level.name] for level in config.run_levels)
        for histogram in config.histograms
    }
    return SpineChoice(choices.spine, rule, shares, choices.fanout_cutoff)


def gq_patterns(config: TopdownConfig, facilities: NDArray[np.integer]) -> NDArray[np.int64] | None:
    """Which kinds of group quarters every block has, one bit each; None where they play no part.

    Redistricting persons are measured by the seven kinds of their facilities, units of them without. The spine of the DHC follows the
    seven major kinds whatever is measured.

    Args:
        facilities: published counts of units of every block, kind 0 the housing units, shape (blocks, unit columns).

    Example:
        >>> from censafe.products.topdown.configuration.config import load_config
        >>> units = np.array([[9, 0, 0, 0, 0, 0, 0, 0], [0, 1, 0, 0, 0, 2, 0, 0]])
        >>> gq_patterns(load_config("pl94-us"), units).tolist()
        [0, 17]
        >>> gq_patterns(load_config("pl94-us", {"measure": "units"}), units) is None
        True
    """
    rules = [h.schema.facilities for h in config.histograms if h.schema.facilities is not None]
    if config.choices.spine == "prim":
        kinds = len(rules[0].minimum) if rules else facilities.shape[1]
        return facility_patterns(
            facilities, MAJOR_KINDS if kinds == _KINDS_DHC else [(k,) for k in range(1, kinds)]
        )
    if not rules:
        return None
    kinds = len(rules[0].minimum)
    present = facilities[:, 1:kinds] > 0
    return np.asarray(present @ (1 << np.arange(kinds - 1)), np.int64)


def level_budgets(config: TopdownConfig, run: RunSpine) -> dict[str, LevelBudgets]:
    """Laws and costs of the queries of every part, by geounit.

    A geounit with share s at a level spends s times the share of the query, of the histogram's loss. With the level's own
    share that is the cost in the plan.
    """
    budgets = {}
    depths = {level.name: depth for depth, level in enumerate(config.run_levels)}
    for load in workloads(config):
        histogram = load.histogram
        shares = run.shares[histogram.name][depths[load.level.name]]
        queries = histogram.query_shares[load.level.name]
        costs = tuple(
            tuple(histogram.loss * value * queries[query.name] for query in load.queries)
            for value in shares.values
        )
        laws = tuple(
            tuple(noise_law(config.definition, cost) if cost else None for cost in row) for row in costs
        )
        budgets[load.part.name] = LevelBudgets(shares.index, laws, costs)
    return budgets


_KINDS_DHC: Final = 25
_STATE: Final = 10**14
_PLACES: Final = 100_000


def spine_document(config: TopdownConfig, run: RunSpine, areas: BlockAreas | None = None) -> dict[str, Any]:
    """The spine as JSON values, for the manifest: public, since geography and published counts decide it."""
    standard = {level.name: level.nodes for level in run.standard.levels}
    names = [level.name for level in config.run_levels]
    levels = []
    for depth, level in enumerate(run.spine.levels):
        kinds = {}  # exact shares of the level, and how many geounits have each
        for name, shares in run.shares.items():
            counts = np.bincount(shares[depth].index, minlength=len(shares[depth].values)).tolist()
            pairs = zip(shares[depth].values, counts, strict=True)
            kinds[name] = [{"share": str(value), "geounits": count} for value, count in pairs if count]
        own = {"standard_geounits": standard[level.name]} if level.name in standard else {}
        levels.append({"level": level.name, "geounits": level.nodes, **own, "shares": kinds})
    document: dict[str, Any] = {
        "name": run.name,
        "bypass": config.choices.bypass,
        "path_total": {
            name: str(sum((config.histogram(name).level_shares[one] for one in names), Fraction(0)))
            for name in run.shares
        },
        "paths_checked": True,
        "levels": levels,
    }
    if run.name == "standard" and _left_to_data(config):
        document["reason"] = standard_reason(config, attributes=areas is not None)
    if run.notes:
        document["notes"] = list(run.notes)
    if areas is not None:
        entity = np.where(areas.place == NO_PLACE, -1, areas.codes // _STATE * _PLACES + areas.place)
        document["places"] = {  # mean distances of them from both trees
            "places": len(np.unique(entity[entity >= 0])),
            "mean_distance": _mean(entity_distances(run.spine, run.in_order(entity))[1]),
            "mean_distance_standard": _mean(entity_distances(run.standard, entity)[1]),
        }
    return document


def load_for_plan(source: str | Path, overrides: Mapping[str, str]) -> TopdownConfig:
    """A configuration before any data are known: on the spine of the production where its levels and schemas allow that.

    What is stated of the loss holds on the standard one as well, where two blocks of an area share more and a person costs less.

    Example:
        >>> load_for_plan("pl94-us", {}).choices.spine, load_for_plan("pl94-us", {"spine": "standard"}).choices.spine
        ('optimized', 'standard')
    """
    config = load_config(source, overrides)
    optimized = optimized_config(source, config)
    return (
        config
        if optimized is None
        else replace(optimized, choices=replace(optimized.choices, production_spine=True))
    )


def load_of_unknown_run(source: str | Path) -> TopdownConfig:
    """The configuration of a published result whose run is not known: from its widest level, on the spine on which a person costs more.

    Example:
        >>> load_of_unknown_run("pl94-us").choices.spine, load_of_unknown_run("blocks-16").choices.spine
        ('optimized', 'standard')
    """
    spines = (load_config(source), load_for_plan(source, {}))
    return max(spines, key=lambda one: plan_release(one).total)


def optimized_config(source: str | Path, config: TopdownConfig) -> TopdownConfig | None:
    """The configuration on the optimized spine, if it leaves the spine to the data and its levels and schemas allow that one."""
    if not config.choices.production_spine or spine_refusal(config):
        return None
    return load_config(source, {**config.overrides, "spine": "optimized"})


def spine_refusal(config: TopdownConfig) -> str:
    """Why levels, schemas or exact totals of a configuration rule out the optimized spine; empty where they allow it.

    Example:
        >>> from censafe.products.topdown.configuration.config import load_config
        >>> spine_refusal(load_config("pl94-us")), spine_refusal(load_config("blocks-16"))[:16]
        ('', 'spine: optimized')
    """
    optimized = replace(config, choices=replace(config.choices, spine="optimized"))
    try:
        check_spine(optimized)
        check_pass_order(optimized)
    except ConfigError as error:
        return str(error)
    return ""


def standard_reason(config: TopdownConfig, *, attributes: bool) -> str:
    """Why a run of a configuration that leaves the spine to the data is on the standard one, in sentences."""
    production = "The production of 2020 used the optimized spine"
    if not attributes:
        return (
            f"{production}, which needs block attributes: GRF-C*.txt beside the data, or the columns {', '.join(BLOCK_AREA_COLUMNS)} of the units. "
            "This input does not give them."
        )
    refusal = spine_refusal(config)
    return (
        f"{production}. {refusal}"
        if refusal
        else f"{production}; the settings of this run ask for the standard one."
    )


def _left_to_data(config: TopdownConfig) -> bool:
    """Whether the file of the configuration leaves the spine to the data, whatever overrides say."""
    return bool(tomllib.loads(config.text).get("spine") == PRODUCTION_SPINE)


def spine_remarks(config: TopdownConfig, run: RunSpine, areas: BlockAreas | None = None) -> tuple[str, ...]:
    """The spine in sentences, for the certificate; nothing where it is the standard one, as its configuration has it, with even budgets."""
    remarks = []
    if run.name == "standard" and _left_to_data(config):
        remarks.append(
            f"The run used the standard spine. {standard_reason(config, attributes=areas is not None)}"
        )
    if run.name == "standard" and not config.choices.bypass:
        return tuple(remarks)
    geounits = ", ".join(f"{level.name} {level.nodes:,}" for level in run.spine.levels)
    remarks.append(
        f"The run used the spine {run.name}: {geounits} geounits. Everything is published under the standard levels."
    )
    if run.name != "standard":
        remarks.append(
            "Losses for the block of a record within an area are stated for standard areas. Their blocks can be on different "
            "branches of this spine, inside and outside American Indian, Alaska Native and Hawaiian areas; the losses take this "
            "into account."
        )
    remarks += run.notes
    if config.choices.bypass:
        remarks.append(
            "Where a geounit has only one child, its budget and that of the child are spent together, at the upper level. Costs "
            "by level are those of a geounit with the level's own share; the shares along every path from the root to a block add "
            "up to the total exactly, which was checked for every block."
        )
    return tuple(remarks)


def _mean(values: NDArray[np.int64]) -> float:
    return float(values.mean()) if len(values) else 0.0
