"""Persons and units kept possible together: which are estimated first, and what they tell the others.

The published occupied units of a block bound its persons in households: at least one for each, and none without. Or the
published persons bound the occupied units in the same way. Published numbers are integers and protected, and nothing confidential is
read for this, so it costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from censafe.errors import CheckError
from censafe.estimation.topdown.levels.facts import PublicFacts
from censafe.estimation.topdown.levels.joint_limits import (
    HOUSEHOLDS,
    OCCUPIED,
    JointPair,
    household_limits,
    joint_pair,
    lived_in_limits,
    occupied_limits,
    require_room,
)
from censafe.estimation.topdown.levels.limits import LevelLimits
from censafe.model import SparseLevel
from censafe.model.arrays import Integers
from censafe.model.topdown.choices import Choices
from censafe.model.topdown.histograms import MeasuredHistogram

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
    """What is known when a histogram is estimated: beside what is published exactly, the bounds from the other one."""
    pair = _pair(config)
    if pair is None or histogram.name not in (pair.persons.name, pair.units.name):
        return public
    limits = (_units_first if config.choices.joint_first == "units" else _persons_first)(
        pair, histogram, public, levels, config.choices.joint_max_household_size
    )
    return replace(public, limits={**public.limits, histogram.name: limits})


def _units_first(
    pair: JointPair,
    histogram: MeasuredHistogram,
    public: PublicFacts,
    levels: Mapping[str, Sequence[SparseLevel]],
    largest: int,
) -> tuple[LevelLimits, ...]:
    """Units leave room for the exact totals of persons, and then bound the persons of every block."""
    units, persons = _counts(pair, public), public.limits[pair.persons.name]
    if histogram.name == pair.units.name:
        own = public.limits[pair.units.name]
        return occupied_limits(public.spine, pair.facilities, units, persons, own, largest)
    occupied = _in_order(public, _occupied(pair, levels))
    return household_limits(public.spine, histogram.schema, units, persons, occupied, largest)


def _persons_first(
    pair: JointPair,
    histogram: MeasuredHistogram,
    public: PublicFacts,
    levels: Mapping[str, Sequence[SparseLevel]],
    largest: int,
) -> tuple[LevelLimits, ...]:
    """Persons fit into all housing units, and then bound the occupied ones of every block."""
    units, persons = _counts(pair, public), public.limits[pair.persons.name]
    housing, largest = units[:, HOUSEHOLDS], min(largest, pair.facilities.largest[HOUSEHOLDS])
    if histogram.name == pair.units.name:
        homes = _in_order(public, _homes(pair, levels))
        return lived_in_limits(public.spine, housing, public.limits[pair.units.name], homes, largest)
    if largest == pair.facilities.largest[HOUSEHOLDS]:  # as ever
        return persons
    require_room(public.spine, pair.facilities, units, persons, largest)
    return household_limits(public.spine, histogram.schema, units, persons, housing, largest, fewest=0)


def _counts(pair: JointPair, public: PublicFacts) -> Integers:
    """Published counts of the units that bound persons, by block in the order of the run."""
    return _in_order(public, public.facilities[:, : len(pair.facilities.minimum)].astype(np.int64))


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
    found = {
        "occupied_above_persons": homes < occupied,
        "persons_without_occupied": (homes > 0) & (occupied == 0),
        "occupied_without_persons": (occupied > 0) & (homes == 0),
    }
    counts = {name: int(blocks.sum()) for name, blocks in found.items()}
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
    found = np.zeros(level.nodes, np.int64)
    for first in range(0, level.nodes, _AT_ONCE):
        last = min(first + _AT_ONCE, level.nodes)
        span = slice(int(level.node_ptr[first]), int(level.node_ptr[last]))
        held = np.where(cells[level.cell[span]], level.count[span], 0)
        sums = np.append(0, np.cumsum(held, dtype=np.int64))
        edges = level.node_ptr[first : last + 1] - span.start
        found[first:last] = sums[edges[1:]] - sums[edges[:-1]]
    return found
