"""The spine that a configuration chooses, and the budget of every geounit on it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from censafe.geography.bypass import BypassRule
from censafe.geography.run_spine import RunSpine, SpineChoice
from censafe.model import Definition
from censafe.model.level_measurements import LevelBudgets
from censafe.products.topdown.config import TopdownConfig
from censafe.products.topdown.plan import workloads
from censafe.products.topdown.sensitivity import noise_law

__all__ = ["gq_patterns", "level_budgets", "spine_choice"]


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
    """Which kinds of group quarters every block has, one bit each; None where no persons are measured.

    Args:
        config: whose histograms are measured.
        facilities: published counts of units of every block, kind 0 the housing units, shape (blocks, unit columns).

    Example:
        >>> from censafe.products.topdown.config import load_config
        >>> units = np.array([[9, 0, 0, 0, 0, 0, 0, 0], [0, 1, 0, 0, 0, 2, 0, 0]])
        >>> gq_patterns(load_config("pl94-us"), units).tolist()
        [0, 17]
        >>> gq_patterns(load_config("pl94-us", {"measure": "units"}), units) is None
        True
    """
    rules = [h.schema.facilities for h in config.histograms if h.schema.facilities is not None]
    if not rules:
        return None
    kinds = len(rules[0].minimum)
    present = facilities[:, 1:kinds] > 0
    return np.asarray(present @ (1 << np.arange(kinds - 1)), np.int64)


def level_budgets(config: TopdownConfig, run: RunSpine) -> dict[str, LevelBudgets]:
    """Laws and costs of the queries of every part, by geounit.

    A geounit with share s at a level spends s times the share of the query, of the histogram's loss. With the level's own
    share that is the cost in the plan.

    Args:
        config: losses and shares of queries.
        run: the spine with the share of every geounit.

    Returns:
        By name of the part.
    """
    found = {}
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
        found[load.part.name] = LevelBudgets(shares.index, laws, costs)
    return found
