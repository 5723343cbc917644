"""Linear constraints on histograms: which sums of cells stand in which relation to what is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias


@dataclass(frozen=True)
class CellGroups:
    """Groups of cells of one histogram, one for each answer of a query; cells outside its recodes and ``when`` are in none.

    Args:
        query: attributes and recodes joined by ``*``, or ``total``; recodes need not cover their attributes.
    """

    query: str
    when: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class OwnAnswers:
    """The sums of the groups themselves, which are published exactly."""


@dataclass(frozen=True)
class FacilityCounts:
    """Published counts of housing units and group quarters by kind, each times a number.

    Args:
        kinds: name of the kinds by which they are counted; one group of cells for every kind, in their order.
        each: the number, by kind. Manifests of runs have this key, as configurations do.
    """

    kinds: str
    each: tuple[int, ...]


@dataclass(frozen=True)
class PublishedAnswers:
    """Answers of a histogram that another run published, in the same geounit.

    Args:
        groups: of its cells; as many as those on the left, in the same order.
    """

    result: str
    histogram: str
    groups: CellGroups


@dataclass(frozen=True)
class AnswersInStack:
    """Answers of another histogram that is estimated together with this one, in the same geounit.

    Args:
        groups: of its cells; as many as those on the left, in the same order.
    """

    histogram: str
    groups: CellGroups


RightSide: TypeAlias = OwnAnswers | FacilityCounts | PublishedAnswers | AnswersInStack


@dataclass(frozen=True)
class LinearConstraint:
    """What holds in every geounit: the sum of each group of cells in its relation to the right side.

    Args:
        lowest: the lowest level at which it is known, with all above it; None for every level.

    Example:
        >>> bound = LinearConstraint("beds", CellGroups("hhgq"), "<=", FacilityCounts("hhgq", (99, 5)))
        >>> bound.relation, bound.right.each
        ('<=', (99, 5))
    """

    name: str
    groups: CellGroups
    relation: Literal["=", "<=", ">="]
    right: RightSide
    lowest: str | None = None


@dataclass(frozen=True)
class InformedSums:
    """Sums of cells that another histogram of the run has, too: they are equal in all records, and nothing holds the estimates to it.

    The estimate of the other histogram, which comes first, is fitted as further answers about the cells; afterwards it is
    changed to the sums that came out.
    """

    groups: CellGroups
    right: AnswersInStack
