"""What is published exactly, and the limits that follow from it for the histograms of every level.

Every right side is a function of declared invariants: counts of housing units and group quarters by block, and totals
of the levels that the configuration names. Nothing else of the records comes here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from censafe.errors import DataError
from censafe.estimation.topdown import Cuts, parent_cuts
from censafe.geography.spine import Spine, SpineLevel
from censafe.geography.spine_sums import sum_vectors
from censafe.products.topdown.constraints import contradictions, facility_bounds
from censafe.products.topdown.schemas import HistogramSchema

__all__ = ["CutLimits", "LevelLimits", "level_limits"]

_NAMED = 5
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class CutLimits:
    """Limits on sets of kinds, so that the children of every geounit can meet their own totals and bounds.

    Args:
        sets: 0/1 membership of the kinds, shape (S, kinds).
        lower: shape (geounits, S).
        upper: shape (geounits, S).
    """

    sets: NDArray[np.uint8]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LevelLimits:
    """What the histograms of one level must obey.

    Args:
        totals: records of every geounit where they are published exactly, shape (geounits,); else None.
        lower: fewest records by kind of unit, shape (geounits, kinds); no columns where nothing bounds them.
        upper: most records by kind of unit.
        cuts: further limits on sets of kinds, where the level below has exact totals.
    """

    totals: Integers | None
    lower: Integers = field(repr=False)
    upper: Integers = field(repr=False)
    cuts: CutLimits | None = None


def level_limits(
    spine: Spine, schema: HistogramSchema, units: Integers, totals: Mapping[str, Integers]
) -> tuple[LevelLimits, ...]:
    """Limits of every level, root first.

    Args:
        spine: the tree.
        schema: of the histogram.
        units: published counts of units by kind in every block, shape (blocks, kinds).
        totals: records of every geounit, by level; levels whose totals are not published exactly are not there.

    Raises:
        DataError: published counts of a geounit contradict each other.
    """
    rule = schema.facilities
    if rule is None:
        none = [np.zeros((level.nodes, 0), np.int64) for level in spine.levels]
        return tuple(
            LevelLimits(totals.get(level.name), empty, empty)
            for level, empty in zip(spine.levels, none, strict=True)
        )
    found = []
    for level, counts in zip(spine.levels, sum_vectors(spine, units), strict=True):
        known = totals.get(level.name)
        lower, upper = facility_bounds(rule, counts)
        if known is not None:
            low, high = facility_bounds(rule, counts, known)
            lower, upper = np.maximum(lower, low), np.minimum(upper, high)
        _require_agreement(level, lower, upper, known)
        found.append(LevelLimits(known, lower, upper))
    return tuple(
        _with_cuts(level, limits, found[depth + 1]) if depth + 1 < len(found) else limits
        for depth, (level, limits) in enumerate(zip(spine.levels, found, strict=True))
    )


def _require_agreement(level: SpineLevel, lower: Integers, upper: Integers, totals: Integers | None) -> None:
    wrong = np.flatnonzero(contradictions(lower, upper, totals))
    if len(wrong):
        named: Sequence[str] = level.geounits[wrong[:_NAMED]].tolist()
        more = f" and {len(wrong) - len(named)} more" if len(wrong) > len(named) else ""
        raise DataError(
            f"level {level.name}: in {', '.join(named)}{more} the exact total does not fit the counts of housing units and "
            "group quarters; fix: correct the counts of units, or declare other totals in exact_totals"
        )


def _cuts_of_children(below: LevelLimits, first: int, last: int) -> Cuts:
    lower, upper = below.lower[first:last], below.upper[first:last]
    totals = None if below.totals is None else below.totals[first:last].astype(np.float64)
    return parent_cuts(lower.astype(np.float64), upper.astype(np.float64), totals, totals)


def _with_cuts(level: SpineLevel, limits: LevelLimits, below: LevelLimits) -> LevelLimits:
    """Add what exact totals of the children demand of sets of kinds, where that is more than bounds and total say."""
    if below.totals is None:
        return limits
    cuts = [
        _cuts_of_children(below, first, last)
        for first, last in zip(level.first_child[:-1].tolist(), level.first_child[1:].tolist(), strict=True)
    ]
    sets = cuts[0].sets.astype(np.int64)
    lower, upper = np.stack([cut.lo for cut in cuts]), np.stack([cut.hi for cut in cuts])
    least, most = limits.lower @ sets.T, limits.upper @ sets.T
    if limits.totals is not None:
        others_least = limits.lower.sum(axis=1, keepdims=True) - least
        others_most = limits.upper.sum(axis=1, keepdims=True) - most
        least = np.maximum(least, limits.totals[:, None] - others_most)
        most = np.minimum(most, limits.totals[:, None] - others_least)
    tighter = ((lower > least) | (upper < most)).any(axis=0)
    if not tighter.any():
        return limits
    chosen = CutLimits(cuts[0].sets[tighter], lower[:, tighter], upper[:, tighter])
    return LevelLimits(limits.totals, limits.lower, limits.upper, chosen)
