"""How far counts are from the truth, as further runs on published counts show it: public post-processing, at no cost.

The published file stands in for the truth, so that a run on it stands to it as the published file stands to the truth.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import NDArray

from censafe.model.arrays import Integers

SIZES: Final = (0, 1, 10, 100, 1_000, 10_000, 100_000)
"""Lower ends of the classes of counts that errors are pooled in."""

_FEW: Final = 200  # errors, below which the ends of an interval are not read off them


def size_class(counts: NDArray[np.integer]) -> Integers:
    """Position in ``SIZES`` of the class of every count.

    Example:
        >>> size_class(np.array([0, 9, 10, 123456])).tolist()
        [0, 1, 2, 6]
    """
    return np.searchsorted(np.array(SIZES), counts, side="right").astype(np.int64) - 1


@dataclass(frozen=True, eq=False)
class ErrorClass:
    """Errors of further runs, all that gave a count of some size."""

    values: Integers = field(repr=False)
    counts: Integers = field(repr=False)

    @staticmethod
    def of(errors: NDArray[np.integer], empty: int = 0) -> ErrorClass:
        """Errors, and ``empty`` more of which are 0."""
        return ErrorClass._summed(np.append(errors, 0), np.append(np.ones(len(errors), np.int64), empty))

    @staticmethod
    def joined(parts: Sequence[ErrorClass]) -> ErrorClass:
        """All errors of several classes."""
        values = np.concatenate([part.values for part in parts] or [np.zeros(0, np.int64)])
        return ErrorClass._summed(values, np.concatenate([part.counts for part in parts] or [values]))

    @staticmethod
    def _summed(errors: NDArray[np.integer], times: Integers) -> ErrorClass:
        values, place = np.unique(errors.astype(np.int64), return_inverse=True)
        counts = np.zeros(len(values), np.int64)
        np.add.at(counts, place.ravel(), times)
        return ErrorClass(values[counts > 0], counts[counts > 0])

    @property
    def number(self) -> int:
        """How many errors there are."""
        return int(self.counts.sum())

    def moment(self, power: int) -> float:
        """Mean of a power of the errors."""
        return float((self.values.astype(float) ** power * self.counts).sum() / self.number)

    def mean_size(self) -> float:
        """Mean of the absolute errors."""
        return float((np.abs(self.values).astype(float) * self.counts).sum() / self.number)

    def ends(self, confidence: float) -> tuple[float, float]:
        """Ends of the middle share of the errors.

        Example:
            >>> ErrorClass.of(np.array([-3, 1, 1, 2]), empty=17).ends(0.9)
            (0.0, 1.0)
        """
        reached = np.cumsum(self.counts)
        share = (1 - confidence) / 2
        low, high = (self.values[np.searchsorted(reached, at * self.number)] for at in (share, 1 - share))
        return float(low), float(high)

    def interval(self, confidence: float) -> tuple[float, float]:
        """What the truth less the published count lies between.

        The middle share of the errors turned round, or their mean and spread under the normal law where they are few.

        Example:
            >>> ErrorClass.of(np.array([-1] * 200 + [4] * 20)).interval(0.9)
            (-4.0, 1.0)
            >>> low, high = ErrorClass.of(np.array([2, 4])).interval(0.9)
            >>> round(low, 2), round(high, 2)
            (-4.64, -1.36)
        """
        if self.number >= _FEW:
            low, high = self.ends(confidence)
            return 0.0 - high, 0.0 - low
        middle = self.moment(1)
        spread = max(self.moment(2) - middle**2, 0.0) ** 0.5 * NormalDist().inv_cdf(0.5 + confidence / 2)
        return -middle - spread, -middle + spread


class ErrorClasses:
    """Errors by size of the count that a further run gave, pooled as they come.

    The class is that of the further run's count, since the question is how far the truth is from a published count of some size: a
    published 0 may stand for a true 3, although a 3 is rarely published as 0.
    """

    def __init__(self) -> None:
        self._classes: dict[int, ErrorClass] = {}

    def add(self, published: Integers, further: Integers) -> None:
        """Add the counts of one further run compared with those that it started from."""
        sizes = size_class(further.reshape(-1))
        errors = (further - published).reshape(-1)
        for size in np.unique(sizes).tolist():
            part = ErrorClass.of(errors[sizes == size])
            known = self._classes.get(size)
            self._classes[size] = part if known is None else ErrorClass.joined([known, part])

    def ends(self, published: Integers, confidence: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Ends of the intervals of published counts, not below 0, each of the shape of `published`.

        A count of a size that no further run gave takes the errors of the nearest size.

        Example:
            >>> classes = ErrorClasses()
            >>> classes.add(np.array([5, 5]), np.array([4, 6]))
            >>> [end.round(2).tolist() for end in classes.ends(np.array([5, 1]), 0.9)]
            [[3.36, 0.0], [6.64, 2.64]]
        """
        if not self._classes:
            raise ValueError("there are no errors of further runs")
        known = np.array(sorted(self._classes))
        offsets = np.zeros((len(SIZES), 2))
        for size in range(len(SIZES)):
            nearest = int(known[np.abs(known - size).argmin()])
            offsets[size] = self._classes[nearest].interval(confidence)
        ends = published[..., None] + offsets[size_class(published)]
        return np.maximum(ends[..., 0], 0.0), np.maximum(ends[..., 1], 0.0)
