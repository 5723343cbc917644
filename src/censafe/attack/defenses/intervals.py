"""CONFIDENTIAL. Tables as they are published after a defense, and what a reader can conclude about each count."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from censafe.attack.reconstruction.problem import NO_LIMIT

NO_VALUE: Final = -1
"""Published value of a count that is not published."""
_Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class TableIntervals:
    """Counts of areas, as published.

    Args:
        low: least count that agrees with what is published, shape (areas, lines).
        high: greatest one, ``NO_LIMIT`` where there is none, shape (areas, lines).
        value: printed, ``NO_VALUE`` where nothing is, shape (areas, lines).
    """

    low: _Ints = field(repr=False)
    high: _Ints = field(repr=False)
    value: _Ints = field(repr=False)

    def __post_init__(self) -> None:
        if not self.low.shape == self.high.shape == self.value.shape:
            raise ValueError("the ends of the intervals and the values must have one shape")
        if (self.low > self.high).any() or (self.low < 0).any():
            raise ValueError("intervals must not be empty, and counts are not negative")

    @staticmethod
    def exact(counts: _Ints) -> TableIntervals:
        """Every count as it is."""
        return TableIntervals(counts, counts, counts)

    @property
    def published(self) -> NDArray[np.bool_]:
        """Where there is a value, shape (areas, lines)."""
        return self.value != NO_VALUE

    def without(self, hidden: NDArray[np.bool_]) -> TableIntervals:
        """The same where some counts are not published.

        Example:
            >>> TableIntervals.exact(np.array([[3, 4]])).without(np.array([[True, False]])).value.tolist()
            [[-1, 4]]
        """
        return TableIntervals(
            np.where(hidden, 0, self.low),
            np.where(hidden, NO_LIMIT, self.high),
            np.where(hidden, NO_VALUE, self.value),
        )
