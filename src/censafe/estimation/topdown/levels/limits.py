"""Limits of the histograms of every level that follow from what is published exactly: totals, facilities, structural zeros."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from censafe.errors import DataError
from censafe.geography.spines.sums import sum_vectors
from censafe.geography.spines.tree import Spine, SpineLevel
from censafe.model.arrays import Integers
from censafe.model.topdown.histograms import Facilities, HistogramSchema

__all__ = ["CutLimits", "GroupTotals", "LevelLimits", "contradictions", "facility_bounds", "level_limits"]


def facility_bounds(
    rule: Facilities, units: NDArray[np.int64], totals: NDArray[np.int64] | None = None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Fewest and most persons of every kind of unit, by geounit.

    Bounds without totals add up over the geounits of an area. Every argument must be a published count: a total
    that is not published exactly must not be given here, since the bounds would reveal it.

    Args:
        rule: persons of one unit at least and at most.
        units: int64, shape (geounits, kinds): numbers of units.
        totals: int64, shape (geounits,): persons of all kinds, where they are published exactly.

    Returns:
        Lower and upper bounds, int64, shape (geounits, kinds).

    Raises:
        ValueError: a shape does not fit, or a count is negative.

    Source: 2020 redistricting production, ``hhgq_total_lb`` and ``hhgq_total_ub``.

    Example:
        >>> rule = Facilities("hhgq", (0, 1), (99999, 99999))
        >>> low, high = facility_bounds(rule, np.array([[3, 1], [7, 0]]), np.array([12, 20]))
        >>> low.tolist(), high.tolist()
        ([[0, 1], [20, 0]], [[11, 12], [20, 0]])
    """
    _check(rule, units, totals)
    lower = units * np.asarray(rule.minimum, dtype=np.int64)
    upper = units * np.asarray(rule.largest, dtype=np.int64)
    if totals is None:
        return lower, upper
    only = (units > 0) & ((units > 0).sum(axis=1, keepdims=True) == 1)
    known = totals[:, None]
    room = known - (lower.sum(axis=1, keepdims=True) - lower)
    upper = np.minimum(room, upper) if rule.largest_beside_total else room
    return np.where(only, known, lower), np.where(units > 0, upper, 0)


def contradictions(
    lower: NDArray[np.int64], upper: NDArray[np.int64], totals: NDArray[np.int64] | None = None
) -> NDArray[np.bool_]:
    """Geounits whose published counts no histogram can satisfy, shape (geounits,).

    Args:
        lower: int64, shape (geounits, kinds).
        upper: int64, shape (geounits, kinds).
        totals: int64, shape (geounits,); None where they are not published exactly.
    """
    wrong = np.any(lower > upper, axis=1)
    if totals is not None:
        wrong = wrong | (lower.sum(axis=1) > totals) | (upper.sum(axis=1) < totals)
    return np.asarray(wrong, dtype=np.bool_)


def _check(rule: Facilities, units: NDArray[np.int64], totals: NDArray[np.int64] | None) -> None:
    if units.ndim != 2 or units.shape[1] != len(rule.minimum):
        raise ValueError(
            f"units must have {len(rule.minimum)} columns, one for every level of {rule.attribute}"
        )
    if totals is not None and totals.shape != (len(units),):
        raise ValueError("totals must have one value a geounit")
    if bool((units < 0).any()) or (totals is not None and bool((totals < 0).any())):
        raise ValueError("numbers of units and persons cannot be negative")


_NAMED = 5
_MOST_KINDS = 12  # 4,096 sets


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
class GroupTotals:
    """Exact totals of groups of sibling geounits, such as the two parts of a state: those of the members are not known.

    Args:
        of: group of every geounit, -1 for none, shape (geounits,).
        totals: records of all members of a group, shape (groups,).
    """

    of: NDArray[np.int32] = field(repr=False)
    totals: Integers

    def within(self, first: int, last: int) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Groups among some neighbours, numbered from 0, and their totals.

        Args:
            first: of the geounits.
            last: one past the last of them.

        Example:
            >>> groups = GroupTotals(np.array([7, 0, 0, 2, -1], np.int32), np.arange(8))
            >>> [part.tolist() for part in groups.within(1, 5)]
            [[0, 0, 1, -1], [0.0, 2.0]]
        """
        own = self.of[first:last]
        present = np.unique(own[own >= 0])
        numbers = np.where(own >= 0, np.searchsorted(present, own), -1)
        return numbers.astype(np.int32), self.totals[present].astype(np.float64)


@dataclass(frozen=True, eq=False)
class LevelLimits:
    """What the histograms of one level must obey.

    Args:
        totals: records of every geounit where they are published exactly, shape (geounits,); else None.
        lower: fewest records by kind of unit, shape (geounits, kinds); no columns where nothing bounds them.
        upper: most records by kind of unit.
        cuts: further limits on sets of kinds, where the level below has exact totals.
        groups: exact totals of groups of geounits, where those of single ones are not published; else None.
    """

    totals: Integers | None
    lower: Integers = field(repr=False)
    upper: Integers = field(repr=False)
    cuts: CutLimits | None = None
    groups: GroupTotals | None = None


def level_limits(
    spine: Spine,
    schema: HistogramSchema,
    units: Integers,
    totals: Mapping[str, Integers],
    groups: Mapping[str, GroupTotals] | None = None,
) -> tuple[LevelLimits, ...]:
    """Limits of every level, root first.

    Args:
        spine: the tree.
        schema: of the histogram.
        units: published counts of units by kind in every block, shape (blocks, kinds).
        totals: records of every geounit, by level; levels whose totals are not published exactly are not there.
        groups: totals of groups of geounits, by level; their members have bounds without totals.

    Raises:
        DataError: published counts of a geounit contradict each other.
    """
    rule, together = schema.facilities, groups or {}
    if rule is None:
        none = [np.zeros((level.nodes, 0), np.int64) for level in spine.levels]
        return tuple(
            LevelLimits(totals.get(level.name), empty, empty, groups=together.get(level.name))
            for level, empty in zip(spine.levels, none, strict=True)
        )
    found: list[LevelLimits] = []
    below: _Sides | None = None
    all_units = sum_vectors(spine, units)
    for level, counts in zip(reversed(spine.levels), reversed(all_units), strict=True):
        known, group = totals.get(level.name), together.get(level.name)
        lower, upper = facility_bounds(rule, counts)
        limits = LevelLimits(known, lower, upper, groups=group)
        if known is not None:
            limits, below = _with_total(level, limits, known, below)
        elif group is not None:
            below = _with_groups(level, limits, group)
        _require_agreement(level, limits.lower, limits.upper, known)
        found.insert(0, limits)
    return tuple(found)


def _require_agreement(level: SpineLevel, lower: Integers, upper: Integers, totals: Integers | None) -> None:
    _refuse(level, np.flatnonzero(contradictions(lower, upper, totals)))


def _refuse(level: SpineLevel, wrong: NDArray[np.int64]) -> None:
    """Stop, naming geounits, unless there are none whose published counts contradict each other."""
    if len(wrong):
        named: Sequence[str] = level.names(wrong[:_NAMED]).tolist()
        more = f" and {len(wrong) - len(named)} more" if len(wrong) > len(named) else ""
        raise DataError(
            f"level {level.name}: in {', '.join(named)}{more} the exact total does not fit the counts of housing units and "
            "group quarters; fix: correct the counts of units, or declare other totals in exact_totals"
        )


_Sides = tuple[Integers, Integers]
"""Fewest and most records of every geounit in every set of kinds, the sets in the order of their bits."""


def _with_total(
    level: SpineLevel, limits: LevelLimits, totals: Integers, below: _Sides | None
) -> tuple[LevelLimits, _Sides | None]:
    """Limits of a level whose totals are exact, so that its children can meet theirs.

    A child with a total holds in a set of kinds at least its total less the most of all other kinds. Least numbers of
    sets add up over children, and with them every histogram of the parent can be shared out (Hoffman's theorem).
    """
    kinds = limits.lower.shape[1]
    if kinds > _MOST_KINDS:
        return limits, None
    sets = np.arange(1 << kinds)[:, None] >> np.arange(kinds) & 1
    least, most = limits.lower @ sets.T, limits.upper @ sets.T
    if below is not None:
        starts = level.first_child[:-1]
        least = np.maximum(least, np.add.reduceat(below[0], starts, axis=0))
        most = np.minimum(most, np.add.reduceat(below[1], starts, axis=0))
    least, most = _beside_total(least, most, totals)
    single = 1 << np.arange(kinds)
    lower, upper = least[:, single], most[:, single]
    implied = _beside_total(lower @ sets.T, upper @ sets.T, totals)
    tighter = ((least > implied[0]) | (most < implied[1])).any(axis=0)
    cuts = None
    if tighter.any():
        sides = (least[:, tighter].astype(np.float64), most[:, tighter].astype(np.float64))
        cuts = CutLimits(sets[tighter].astype(np.uint8), *sides)
    return LevelLimits(totals, lower, upper, cuts), (least, most)


def _with_groups(level: SpineLevel, limits: LevelLimits, groups: GroupTotals) -> _Sides | None:
    """Fewest and most records of the groups of a level in every set of kinds, each group at the place of its first member.

    Inside a group records are free: the bounds of its members add up, and only the sum has a total.
    """
    kinds = limits.lower.shape[1]
    inside = np.flatnonzero(groups.of >= 0)
    bounds = np.zeros((2, len(groups.totals), kinds), np.int64)
    for side, values in zip(bounds, (limits.lower, limits.upper), strict=True):
        np.add.at(side, groups.of[inside], values[inside])
    wrong = contradictions(bounds[0], bounds[1], groups.totals)
    _refuse(level, np.flatnonzero((groups.of >= 0) & wrong[groups.of]))
    if kinds > _MOST_KINDS:
        return None
    sets = np.arange(1 << kinds)[:, None] >> np.arange(kinds) & 1
    least, most = limits.lower @ sets.T, limits.upper @ sets.T
    sides = _beside_total(bounds[0] @ sets.T, bounds[1] @ sets.T, groups.totals)
    group, first = np.unique(groups.of[inside], return_index=True)
    for values, side in zip((least, most), sides, strict=True):
        values[inside] = 0
        values[inside[first]] = side[group]
    return least, most


def _beside_total(least: Integers, most: Integers, totals: Integers) -> _Sides:
    """What a total leaves to every set of kinds, given the sides of all other kinds (the reverse order)."""
    known = totals[:, None]
    return np.maximum(least, known - most[:, ::-1]), np.minimum(most, known - least[:, ::-1])
