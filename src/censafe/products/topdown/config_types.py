"""What a checked TopDown configuration is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from censafe.products.topdown.schemas import HistogramSchema

__all__ = ["GeoLevel", "MeasuredHistogram", "PassList", "Passes"]

PassList = tuple[tuple[tuple[str, ...], ...], ...]
"""Outer passes of inner passes of queries."""


@dataclass(frozen=True)
class GeoLevel:
    """A level of the geography: the geounit of a block is the first ``prefix`` characters of its code.

    Args:
        name: of the level.
        prefix: 0 for one geounit that holds everything.
        code: of that one geounit.
    """

    name: str
    prefix: int
    code: str = ""


@dataclass(frozen=True)
class Passes:
    """In which order a level is estimated: least squares, then rounding, in each outer pass."""

    l2: PassList
    rounding: PassList


@dataclass(frozen=True)
class MeasuredHistogram:
    """One histogram with its budget.

    Args:
        name: of the histogram, and first word of the names of its parts.
        schema: its cells.
        loss: rho or epsilon of the whole histogram, all levels.
        exact_totals: lowest level whose totals are published exactly, with all above it; None where none is.
        level_shares: by level, in order; they sum to 1.
        query_shares: by level and query, in order of the queries' ordinals; they sum to 1 at every level and are all above 0.
        passes: by level.
        folder: of its noisy measurements, named as the Bureau names its products.
    """

    name: str
    schema: HistogramSchema
    loss: Fraction
    exact_totals: str | None
    level_shares: Mapping[str, Fraction]
    query_shares: Mapping[str, Mapping[str, Fraction]]
    passes: Mapping[str, Passes]
    folder: str = ""

    def cost(self, level: str, query: str) -> Fraction:
        """Privacy loss of one query at one level."""
        return self.loss * self.level_shares[level] * self.query_shares[level][query]
