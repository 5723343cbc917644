"""Histograms of whole-number errors by key: exact quantiles and means without keeping every error."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

__all__ = ["ErrorTally", "Errors"]

_HALF = 1 << 40


@dataclass(frozen=True, eq=False)
class Errors:
    """The errors of some keys: different values in ascending order, and how often each occurred."""

    values: NDArray[np.int64]
    counts: NDArray[np.int64]

    @property
    def number(self) -> int:
        """How many errors there are."""
        return int(self.counts.sum())

    @property
    def bias(self) -> float:
        """Mean of the errors; NaN without any."""
        return float(np.average(self.values, weights=self.counts)) if self.number else float("nan")

    def margin(self, confidence: Fraction) -> float:
        """Smallest size of an error that at least this share of all errors does not exceed; NaN without any.

        Example:
            >>> tally = ErrorTally()
            >>> tally.add(np.zeros(10, np.int64), np.arange(-4, 6))
            >>> tally.of([0]).margin(Fraction(9, 10))
            4.0
        """
        if not self.number:
            return float("nan")
        order = np.argsort(np.abs(self.values), kind="stable")
        reached = np.cumsum(self.counts[order])
        needed = -(-confidence.numerator * self.number // confidence.denominator)
        return float(np.abs(self.values[order])[np.searchsorted(reached, needed)])

    def share_within(self, margin: float) -> float:
        """Share of errors of at most this size; NaN without any."""
        inside = int(self.counts[np.abs(self.values) <= margin].sum())
        return inside / self.number if self.number else float("nan")


class ErrorTally:
    """Collects errors under small whole numbers as keys."""

    def __init__(self) -> None:
        self._codes = np.zeros(0, np.int64)
        self._counts = np.zeros(0, np.int64)

    def add(self, keys: NDArray[np.int64], errors: NDArray[np.int64]) -> None:
        """Count errors.

        Args:
            keys: shape (n,), from 0 to about four million.
            errors: shape (n,), below 2^40 in size.

        Raises:
            OverflowError: an error or a key is larger than that.
        """
        if len(errors) and (np.abs(errors).max() >= _HALF or keys.max() >= 1 << 22 or keys.min() < 0):
            raise OverflowError("an error or a key is too large to be counted")
        codes, counts = np.unique(keys * (2 * _HALF) + (errors + _HALF), return_counts=True)
        merged, place = np.unique(np.concatenate([self._codes, codes]), return_inverse=True)
        total = np.zeros(len(merged), np.int64)
        np.add.at(total, place, np.concatenate([self._counts, counts]))
        self._codes, self._counts = merged, total

    @property
    def keys(self) -> list[int]:
        """Keys that have errors, ascending."""
        return np.unique(self._codes // (2 * _HALF)).tolist()

    def of(self, keys: Iterable[int]) -> Errors:
        """The errors of some keys together."""
        inside = np.isin(self._codes // (2 * _HALF), np.array(list(keys), np.int64))
        values, place = np.unique(self._codes[inside] % (2 * _HALF) - _HALF, return_inverse=True)
        counts = np.zeros(len(values), np.int64)
        np.add.at(counts, place, self._counts[inside])
        return Errors(values, counts)
