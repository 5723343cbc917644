"""Persons and units kept possible together: which are estimated first, and the bounds that they put on the others.

The published occupied units of a block bound its persons in households: at least one for each, and none without. Or the
published persons bound the occupied units in the same way. Published numbers are integers and protected, and nothing confidential is
read for this, so it costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from censafe.errors import CheckError, DataError
from censafe.estimation.topdown.levels.facts import PublicFacts
from censafe.estimation.topdown.levels.limits import GroupTotals, LevelLimits, level_limits
from censafe.geography.spines.sums import sum_vectors
from censafe.geography.spines.tree import Spine, SpineLevel
from censafe.model import ProtectedUnit, SparseLevel
from censafe.model.arrays import Integers
from censafe.model.proven import proven
from censafe.model.topdown.choices import Choices
from censafe.model.topdown.histograms import (
    Facilities,
    HistogramSchema,
    MeasuredHistogram,
    own_constraints,
)

OCCUPIED: Final = 1
"""Cell of the occupied units."""
HOUSEHOLDS: Final = 0
"""Kind of unit of the persons in households."""
_OCCUPANCY: Final = (2,)


@dataclass(frozen=True)
class JointPair:
    """Persons and the units they live in.

    Args:
        units: vacant and occupied ones.
    """

    persons: MeasuredHistogram
    units: MeasuredHistogram
    facilities: Facilities


def joint_pair(histograms: Sequence[MeasuredHistogram]) -> JointPair | None:
    """The first histogram of persons with bounds by kind of unit, and that of occupancy; None where one is missing.

    Bounds that ask for somebody in every housing unit, vacant or not, do not go with occupancy.

    Example:
        >>> from censafe.products.topdown.configuration.config import load_config
        >>> pair = joint_pair(load_config("pl94-us").histograms)
        >>> pair.persons.name, pair.units.name
        ('persons', 'units')
        >>> joint_pair(load_config("e2e-1940").histograms) is None
        True
    """
    units = [
        histogram
        for histogram in histograms
        if histogram.schema.record is ProtectedUnit.HOUSEHOLD and histogram.schema.schema.shape == _OCCUPANCY
    ]
    for persons in histograms:
        rule = persons.schema.facilities
        if persons.schema.record is ProtectedUnit.PERSON and rule is not None and units:
            return JointPair(persons, units[0], rule) if rule.minimum[HOUSEHOLDS] == 0 else None
    return None


_NAMED = 5
_CELLS = 2
_FREE = 2**31 - 1
_Sides = tuple[Integers, Integers]
"""Fewest and most occupied units of every geounit of a level."""


@proven("joint.proof.md", digest="5b188820169be397")
def household_limits(
    spine: Spine,
    schema: HistogramSchema,
    units: Integers,
    limits: Sequence[LevelLimits],
    occupied: Integers,
    largest: int,
    fewest: int = 1,
) -> tuple[LevelLimits, ...]:
    """Limits of the persons of every level, root first: as many in households as occupied units, and nobody without one.

    Args:
        spine: the tree.
        schema: of the persons.
        units: published counts of units by kind in every block, housing units first, shape (blocks, kinds).
        limits: of the persons without the units, whose exact totals stay.
        occupied: published estimates of the occupied units of every block, shape (blocks,); or its housing units, any of which may
            be occupied.
        largest: most persons of one household.
        fewest: fewest persons of each of these units.

    Raises:
        DataError: a total cannot be met; it can where `occupied` obeys :func:`occupied_limits`.
        ValueError: the schema has no bounds by kind of unit.

    Example:
        >>> from censafe.geography.spines.tree import LevelRule, build_spine
        >>> from censafe.products.topdown.configuration.shipped import shipped_schemas
        >>> spine = build_spine(np.array([440, 441]), (LevelRule("State", 2), LevelRule("Block", 3)))
        >>> units = np.array([[9, 0, 0, 0, 0, 0, 0, 1], [4, 0, 0, 0, 0, 0, 0, 0]])
        >>> none = (LevelLimits(np.array([20]), units[:0], units[:0]), LevelLimits(None, units[:0], units[:0]))
        >>> persons = shipped_schemas()["pl94-persons"]
        >>> state, blocks = household_limits(spine, persons, units, none, np.array([6, 0]), 99_999)
        >>> state.lower[0, [0, 7]].tolist(), state.upper[0, [0, 7]].tolist(), blocks.upper[:, 0].tolist()
        ([6, 1], [19, 14], [599994, 0])
    """
    rule = schema.facilities
    if rule is None:
        raise ValueError("the schema of the persons has no bounds by kind of unit")
    own = replace(
        rule,
        minimum=_with_households(rule.minimum, fewest),
        largest=_with_households(rule.largest, min(largest, rule.largest[HOUSEHOLDS])),
    )
    counts = units.copy()
    counts[:, HOUSEHOLDS] = occupied
    totals = {
        level.name: limit.totals
        for level, limit in zip(spine.levels, limits, strict=True)
        if limit.totals is not None
    }
    groups = {
        level.name: limit.groups
        for level, limit in zip(spine.levels, limits, strict=True)
        if limit.groups is not None
    }
    known = [level.name for level in spine.levels if level.name in totals or level.name in groups]
    bounded = replace(schema, facilities=own)
    constraints = own_constraints(bounded, known[-1] if known else None)
    return level_limits(spine, bounded, constraints, counts, totals, groups)


@proven("joint.proof.md", digest="fcf3a9af96be90dc")
def occupied_limits(
    spine: Spine,
    rule: Facilities,
    units: Integers,
    persons: Sequence[LevelLimits],
    limits: Sequence[LevelLimits],
    largest: int,
) -> tuple[LevelLimits, ...]:
    """Limits of the units of every level, root first, so that persons can live in the occupied ones and nowhere else.

    Exact totals of persons, less those that group quarters must and can have, say how many units may and must be occupied. Where
    they say nothing, which is the ordinary case, limits stay as they are.

    Args:
        spine: the tree.
        rule: how counts of units bound persons.
        units: published counts of units by kind in every block, housing units first, shape (blocks, kinds).
        persons: limits of the persons, whose exact totals are used.
        limits: of the units.
        largest: most persons of one household.

    Returns:
        The limits, with bounds of single cells in two columns (vacant, occupied) at levels where they may bind.

    Raises:
        DataError: exact totals of units are not those of the housing units.
        CheckError: `largest` is too small for the exact totals.
    """
    known = [depth for depth, one in enumerate(persons) if one.totals is not None or one.groups is not None]
    if not known:
        return tuple(limits)
    bounded, counts = list(limits), sum_vectors(spine, units)
    cap = min(largest, rule.largest[HOUSEHOLDS])
    least, most = _own_sides(spine.levels[known[-1]], rule, counts[known[-1]], persons[known[-1]], cap)
    for depth in range(known[-1], -1, -1):
        level, housing = spine.levels[depth], counts[depth][:, HOUSEHOLDS]
        _require_same(level, housing, limits[depth].totals)
        if depth < known[-1]:
            starts = level.first_child[:-1]
            least, most = np.add.reduceat(least, starts), np.add.reduceat(most, starts)
        if (least > 0).any() or (most < housing).any():
            bounded[depth] = _of_cells(limits[depth], least, most)
    return tuple(bounded)


@proven("joint.proof.md", digest="9e1eb94a1c8a3c57")
def lived_in_limits(
    spine: Spine, housing: Integers, limits: Sequence[LevelLimits], homes: Integers, largest: int
) -> tuple[LevelLimits, ...]:
    """Limits of the units of every level, root first: as many occupied as the persons in households need and can fill.

    Args:
        spine: the tree.
        housing: published counts of housing units of every block, shape (blocks,).
        limits: of the units.
        homes: published estimates of the persons in households of every block, shape (blocks,).
        largest: most persons of one household.

    Returns:
        The limits, with bounds of single cells in two columns (vacant, occupied).

    Raises:
        DataError: exact totals of units are not those of the housing units.

    Example:
        >>> from censafe.geography.spines.tree import LevelRule, build_spine
        >>> spine = build_spine(np.array([440, 441]), (LevelRule("State", 2), LevelRule("Block", 3)))
        >>> none = np.zeros((0, 0), np.int64)
        >>> plain = (LevelLimits(np.array([13]), none, none), LevelLimits(np.array([9, 4]), none, none))
        >>> state, blocks = lived_in_limits(spine, np.array([9, 4]), plain, np.array([2, 11]), 5)
        >>> blocks.lower[:, 1].tolist(), blocks.upper[:, 1].tolist(), state.lower[0, 1].item(), state.upper[0, 1].item()
        ([1, 3], [2, 4], 4, 6)
    """
    needed, filled = -(-homes // largest), np.minimum(homes, housing)
    bounded = []
    for level, limit, own, least, most in zip(
        spine.levels,
        limits,
        *(sum_vectors(spine, numbers) for numbers in (housing, needed, filled)),
        strict=True,
    ):
        _require_same(level, own, limit.totals)
        bounded.append(_of_cells(limit, least, most))
    return tuple(bounded)


def _of_cells(limits: LevelLimits, least: Integers, most: Integers) -> LevelLimits:
    """The limits with bounds of the occupied units; vacant ones are bounded by their totals alone."""
    lower, upper = np.zeros((2, len(least), _CELLS), np.int64)
    lower[:, OCCUPIED], upper[:, OCCUPIED], upper[:, 1 - OCCUPIED] = least, most, _FREE
    return replace(limits, lower=lower, upper=upper, kinds=np.arange(_CELLS, dtype=np.int32))


def _with_households(values: tuple[int, ...], households: int) -> tuple[int, ...]:
    return tuple(households if kind == HOUSEHOLDS else value for kind, value in enumerate(values))


def _own_sides(
    level: SpineLevel, rule: Facilities, counts: Integers, limits: LevelLimits, largest: int
) -> _Sides:
    """Sides of the lowest level with exact totals of persons; parts of a group share those of the group."""
    others = [kind for kind in range(len(rule.minimum)) if kind != HOUSEHOLDS]
    inside = counts[:, others]
    fewest = inside @ np.array([rule.minimum[kind] for kind in others], np.int64)
    room = inside @ np.array([rule.largest[kind] for kind in others], np.int64)
    housing = counts[:, HOUSEHOLDS]
    groups = limits.groups
    if groups is None:
        totals = np.zeros(level.nodes, np.int64) if limits.totals is None else limits.totals
        return _sides(level.geounits, totals, fewest, room, housing, largest)
    least, most = np.zeros(level.nodes, np.int64), housing.copy()
    names = np.array([level.geounits[groups.of == group][0] for group in range(len(groups.totals))])
    together = _sides(
        names,
        groups.totals,
        _grouped(groups, fewest),
        _grouped(groups, room),
        _grouped(groups, housing),
        largest,
    )
    for group, (low, high) in enumerate(zip(*together, strict=True)):
        members = np.flatnonzero(groups.of == group)
        most[members] = _apportioned(int(high), housing[members])
        least[members] = _apportioned(int(low), most[members])
    return least, most


def _grouped(groups: GroupTotals, values: Integers) -> Integers:
    inside = groups.of >= 0
    sums = np.zeros(len(groups.totals), np.int64)
    np.add.at(sums, groups.of[inside], values[inside])
    return sums


def _sides(
    names: NDArray[np.str_],
    totals: Integers,
    fewest: Integers,
    room: Integers,
    housing: Integers,
    largest: int,
) -> _Sides:
    """Fewest and most occupied units under exact totals: a household has from one person to the largest number."""
    most = np.minimum(totals - fewest, housing)
    least = -(-np.maximum(totals - room, 0) // largest)
    wrong = np.flatnonzero(least > most)
    if len(wrong):
        raise CheckError(
            f"joint_max_household_size: with {largest} persons in every housing unit the exact totals of {len(wrong)} geounits cannot be "
            f"met, among them {', '.join(names[wrong[:_NAMED]].tolist())}; fix: allow larger households, or leave the key out"
        )
    return least, most


def _apportioned(total: int, weights: Integers) -> Integers:
    """Integers at most as large as the weights that add up to a total not above their sum, nearly in proportion."""
    weight = max(int(weights.sum()), 1)
    shares, rest = total * weights // weight, total * weights % weight
    shares[np.argsort(-rest, kind="stable")[: total - int(shares.sum())]] += 1
    return np.asarray(shares, dtype=np.int64)


def _require_same(level: SpineLevel, housing: Integers, totals: Integers | None) -> None:
    if totals is None:
        return
    wrong = np.flatnonzero(housing != totals)
    if len(wrong):
        raise DataError(
            f"joint, level {level.name}: in {', '.join(level.names(wrong[:_NAMED]).tolist())} ({len(wrong)} geounits) the exact total of "
            "units is not the count of housing units that bounds the persons; fix: name files of one release"
        )


_AT_ONCE = 1_000_000  # blocks


class JointChoice(Protocol):
    """What a configuration says of persons and units together."""

    @property
    def histograms(self) -> tuple[MeasuredHistogram, ...]:
        """That are estimated."""

    @property
    def choices(self) -> Choices:
        """How they are estimated."""


def estimation_order(config: JointChoice) -> tuple[MeasuredHistogram, ...]:
    """The histograms in the order in which they are estimated: what bounds the other one comes first.

    Example:
        >>> from censafe.products.topdown.configuration.config import load_config
        >>> [one.name for one in estimation_order(load_config("pl94-us", {"joint": "true"}))]
        ['units', 'persons']
    """
    pair = _pair(config)
    if pair is None:
        return config.histograms
    first = pair.units if config.choices.joint_first == "units" else pair.persons
    return first, *(one for one in config.histograms if one is not first)


def bounded_facts(
    config: JointChoice,
    histogram: MeasuredHistogram,
    public: PublicFacts,
    levels: Mapping[str, Sequence[SparseLevel]],
) -> PublicFacts:
    """What is known when a histogram is estimated: what is published exactly, and the bounds from the other one."""
    pair = _pair(config)
    if pair is None or histogram.name not in (pair.persons.name, pair.units.name):
        return public
    spine, rule, largest = public.spine, pair.facilities, config.choices.joint_max_household_size
    counts = _in_order(public, public.facilities[:, : len(rule.minimum)].astype(np.int64))
    persons, units_first = public.limits[pair.persons.name], config.choices.joint_first == "units"
    if units_first and histogram.name == pair.units.name:  # units leave room for the exact totals of persons
        limits = occupied_limits(spine, rule, counts, persons, public.limits[pair.units.name], largest)
    elif units_first:  # and then bound the persons of every block
        occupied = _in_order(public, _occupied(pair, levels))
        limits = household_limits(spine, histogram.schema, counts, persons, occupied, largest)
    else:
        housing, largest = counts[:, HOUSEHOLDS], min(largest, rule.largest[HOUSEHOLDS])
        if histogram.name == pair.units.name:  # persons bound the occupied units of every block
            homes = _in_order(public, _homes(pair, levels))
            limits = lived_in_limits(spine, housing, public.limits[pair.units.name], homes, largest)
        elif largest == rule.largest[HOUSEHOLDS]:  # as ever
            return public
        else:  # persons fit into all housing units, which is refused where exact totals are too large for them
            free = [LevelLimits(None, counts[:0], counts[:0])] * len(spine.levels)
            occupied_limits(spine, rule, counts, persons, free, largest)
            limits = household_limits(spine, histogram.schema, counts, persons, housing, largest, fewest=0)
    return replace(public, limits={**public.limits, histogram.name: limits})


def _in_order(public: PublicFacts, blocks: Integers) -> Integers:
    return blocks if public.run.order is None else blocks[public.run.order]


def _occupied(pair: JointPair, levels: Mapping[str, Sequence[SparseLevel]]) -> Integers:
    return _records(levels[pair.units.name][-1], np.arange(2) == OCCUPIED)


def _homes(pair: JointPair, levels: Mapping[str, Sequence[SparseLevel]]) -> Integers:
    kinds = pair.persons.schema.query(pair.facilities.attribute).label
    return _records(levels[pair.persons.name][-1], kinds == HOUSEHOLDS)


def impossible_blocks(
    config: JointChoice, levels: Mapping[str, Sequence[SparseLevel]]
) -> dict[str, int | bool]:
    """How many published blocks contradict themselves, from published histograms alone."""
    pair = joint_pair(config.histograms)
    if pair is None:
        return {}
    homes, occupied = _homes(pair, levels), _occupied(pair, levels)
    contradictions = {
        "occupied_above_persons": homes < occupied,
        "persons_without_occupied": (homes > 0) & (occupied == 0),
        "occupied_without_persons": (occupied > 0) & (homes == 0),
    }
    counts = {name: int(blocks.sum()) for name, blocks in contradictions.items()}
    if config.choices.joint and any(counts.values()):
        raise CheckError(
            "persons and units contradict each other in some blocks; please report this as a bug"
        )
    return {
        "joint": config.choices.joint,
        "blocks": len(homes),
        "blocks_with_occupied": int((occupied > 0).sum()),
        "blocks_with_persons": int((homes > 0).sum()),
        **counts,
    }


def joint_remarks(config: JointChoice) -> Iterator[str]:
    """What the certificate says of the choice; nothing where it was not made."""
    if _pair(config) is None:
        return
    words = (
        "the published occupied units of every block bounded its persons in households"
        if config.choices.joint_first == "units"
        else "the published persons in households of every block bounded its occupied units"
    )
    yield (
        f"Persons and units were made consistent: {words}, so that every occupied unit has at least one person, and no one lives "
        "in a household without one. This used published estimates only and spent no budget."
    )


def _pair(config: JointChoice) -> JointPair | None:
    return joint_pair(config.histograms) if config.choices.joint else None


def _records(level: SparseLevel, cells: NDArray[np.bool_]) -> Integers:
    """Records of every geounit in some cells."""
    records = np.zeros(level.nodes, np.int64)
    for first in range(0, level.nodes, _AT_ONCE):
        last = min(first + _AT_ONCE, level.nodes)
        span = slice(int(level.node_ptr[first]), int(level.node_ptr[last]))
        chosen = np.where(cells[level.cell[span]], level.count[span], 0)
        sums = np.append(0, np.cumsum(chosen, dtype=np.int64))
        edges = level.node_ptr[first : last + 1] - span.start
        records[first:last] = sums[edges[1:]] - sums[edges[:-1]]
    return records
