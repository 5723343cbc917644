"""Different values and how often each occurs: exact moments and quantiles of millions of whole numbers in one pass."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["Tally", "sorted_quantile", "tally_of"]

_WIDEST: Final = 1 << 22


@dataclass(frozen=True, eq=False)
class Tally:
    """Values in ascending order, each once, and their counts.

    Args:
        values: shape (v,).
        counts: int64, shape (v,).
    """

    values: NDArray[Any] = field(repr=False)
    counts: NDArray[np.int64] = field(repr=False)

    @property
    def number(self) -> int:
        """How many values there are, repetitions included."""
        return int(self.counts.sum())

    @property
    def total(self) -> float:
        """Sum of all values."""
        return float((self.values.astype(np.float64) * self.counts).sum())

    @property
    def squares(self) -> float:
        """Sum of all squared values."""
        return float((self.values.astype(np.float64) ** 2 * self.counts).sum())

    @property
    def mean(self) -> float:
        """Mean; NaN without values."""
        return self.total / self.number if self.number else float("nan")

    @property
    def deviation(self) -> float:
        """Standard deviation with one degree of freedom less; NaN below two values."""
        if self.number < 2:
            return float("nan")
        centred = (self.values.astype(np.float64) - self.mean) ** 2
        return float(np.sqrt((centred * self.counts).sum() / (self.number - 1)))

    def quantile(self, share: float) -> float:
        """Quantile by linear interpolation; NaN without values.

        Example:
            >>> tally_of(np.array([0, 0, 10, 3, 2])).quantile(0.75)
            3.0
        """
        if not self.number:
            return float("nan")
        place = (self.number - 1) * share
        ends = np.cumsum(self.counts)
        low, high = (
            float(self.values[np.searchsorted(ends, int(at), side="right")])
            for at in (np.floor(place), np.ceil(place))
        )
        return low + (high - low) * float(place - np.floor(place))

    def absolute(self) -> Tally:
        """The tally of absolute values."""
        values, place = np.unique(np.abs(self.values), return_inverse=True)
        counts = np.zeros(len(values), np.int64)
        np.add.at(counts, place, self.counts)
        return Tally(values, counts)

    def with_zeros(self, zeros: int) -> Tally:
        """The same with more zeros."""
        if not zeros:
            return self
        place = int(np.searchsorted(self.values, 0))
        if place < len(self.values) and self.values[place] == 0:
            counts = self.counts.copy()
            counts[place] += zeros
            return Tally(self.values, counts)
        return Tally(np.insert(self.values, place, 0), np.insert(self.counts, place, zeros))

    def without_zeros(self) -> Tally:
        """The same without its zeros."""
        kept = self.values != 0
        return Tally(self.values[kept], self.counts[kept])


def tally_of(values: NDArray[Any]) -> Tally:
    """Count equal values.

    Args:
        values: whole or other numbers, shape (n,).
    """
    if values.dtype.kind in "iu" and len(values):
        low = int(values.min())
        if int(values.max()) - low < _WIDEST:
            counts = np.bincount(values - low)
            found = np.flatnonzero(counts)
            return Tally(found + low, counts[found])
    distinct, counts = np.unique(values, return_counts=True)
    return Tally(distinct, counts.astype(np.int64))


def sorted_quantile(ordered: NDArray[np.float64], zeros: int, share: float) -> float:
    """Quantile of numbers of zero or more to which zeros are added, by linear interpolation.

    Args:
        ordered: rising, shape (n,).
        zeros: how many zeros are added.
        share: of the quantile.
    """
    number = len(ordered) + zeros
    if not number:
        return float("nan")
    place = (number - 1) * share
    low, high = (
        0.0 if at < zeros else float(ordered[at - zeros])
        for at in (int(np.floor(place)), int(np.ceil(place)))
    )
    return low + (high - low) * float(place - np.floor(place))
