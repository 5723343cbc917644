"""CONFIDENTIAL side of exact totals: only those of declared levels leave, and for parted geounits only the sum of the parts."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from censafe.errors import ConfigError
from censafe.geography.run_spine import RunSpine
from censafe.model import ExactHistograms
from censafe.products.topdown.invariants import GroupTotals

__all__ = ["DeclaredTotals", "declared_totals", "whole_geounits"]


@dataclass(frozen=True, eq=False)
class DeclaredTotals:
    """Totals that are published exactly, by name of the level.

    Args:
        single: records of every geounit, of levels whose geounits are whole.
        groups: records of groups of geounits, of levels where standard geounits are parted.
    """

    single: dict[str, NDArray[np.int64]] = field(repr=False)
    groups: dict[str, GroupTotals] = field(repr=False)


def declared_totals(
    run: RunSpine, exact: Sequence[ExactHistograms], declared: Collection[str]
) -> DeclaredTotals:
    """Totals of the levels that the configuration declares, and of no others.

    Where the totals of the blocks are declared, those of every geounit follow. Otherwise the total of a standard geounit
    is published, and a part of it has none of its own.

    Args:
        run: the tree.
        exact: confidential; histograms of every level of the tree, root first.
        declared: names of the levels with exact totals.

    Raises:
        ConfigError: the parts of a geounit of a declared level are not geounits, or have different parents.
    """
    found = DeclaredTotals({}, {})
    names = run.spine.names
    for depth, (name, level) in enumerate(zip(names, exact, strict=True)):
        if name not in declared:
            continue
        totals = _totals(level)
        if run.spine is run.standard or names[-1] in declared:
            found.single[name] = totals
            continue
        whole = whole_geounits(run, depth)
        if len(whole) == run.standard.levels[depth].nodes:
            found.single[name] = totals
        else:
            sums = np.zeros(run.standard.levels[depth].nodes, np.int64)
            np.add.at(sums, whole, totals)
            found.groups[name] = GroupTotals(whole, sums)
    return found


def whole_geounits(run: RunSpine, depth: int) -> NDArray[np.int32]:
    """Of every geounit, the standard geounit that it is a part of, whose parts must be siblings."""
    level = run.spine.levels[depth]
    held = run.standard.ancestors(depth)
    held = held if run.order is None else held[run.order]
    starts = run.spine.starts[depth]
    whole = held[starts]
    within = np.repeat(whole, np.diff(np.append(starts, len(held))))
    parents = np.unique(np.stack([whole, level.parent]), axis=1)
    if not np.array_equal(within, held) or len(np.unique(parents[0])) != parents.shape[1]:
        raise ConfigError(
            f"exact_totals: the spine {run.name} parts geounits of level {level.name} between parents, so that their totals "
            "cannot be kept; allowed: totals of the states and above, or of the blocks; fix: --set spine=standard"
        )
    return whole


def _totals(exact: ExactHistograms) -> NDArray[np.int64]:
    """CONFIDENTIAL unless declared. Records of every geounit."""
    sums = np.zeros(len(exact.count) + 1, np.int64)
    np.cumsum(exact.count, out=sums[1:])
    return sums[exact.node_ptr[1:]] - sums[exact.node_ptr[:-1]]
