"""The weighted least squares objective of a level, for the cells that a parent has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from censafe.model.level_measurements import Answers

__all__ = ["LevelObjective", "query_weight"]

_LEAST_VARIANCE = 1e-4


def query_weight(variance: float) -> float:
    """Weight of an answer: the inverse of its variance, and 10,000 where the noise is almost surely zero.

    Any weight gives the same point where the measurements are exact; a limit keeps the equations well scaled.

    Example:
        >>> query_weight(4.0), query_weight(0.0)
        (0.25, 10000.0)
    """
    return 1.0 / max(variance, _LEAST_VARIANCE)


@dataclass(frozen=True, eq=False)
class LevelObjective:
    """Measurements of all geounits of a level with their weights.

    Args:
        labels: of every query, the answer of each cell of the schema, shape (cells,).
        weights: of an answer of every query.
        values: noisy answers of every query, shape (geounits, answers).
    """

    labels: tuple[NDArray[np.int32], ...] = field(repr=False)
    weights: tuple[float, ...]
    values: tuple[Answers, ...] = field(repr=False)

    @staticmethod
    def of(
        labels: Sequence[NDArray[np.int32]], variances: Sequence[float], values: Sequence[Answers]
    ) -> LevelObjective:
        """Weight every query by the inverse of its variance."""
        return LevelObjective(tuple(labels), tuple(query_weight(one) for one in variances), tuple(values))

    def equations(
        self, first: int, last: int, support: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """H, the sum of w A'A, and B, the sum of w A'y, of consecutive geounits on some cells.

        Args:
            first: of the geounits.
            last: one past the last of them.
            support: cells, shape (K,).

        Returns:
            H, shape (K, K), the same for every geounit; B, shape (last - first, K).

        Example:
            >>> both = LevelObjective((np.array([0, 0], np.int32), np.array([0, 1], np.int32)), (1.0, 2.0),
            ...                       (np.array([[5]]), np.array([[4, 3]])))
            >>> h, b = both.equations(0, 1, np.array([0, 1]))
            >>> h.tolist(), b.tolist()
            ([[3.0, 1.0], [1.0, 3.0]], [[13.0, 11.0]])
        """
        h = np.zeros((len(support), len(support)))
        b = np.zeros((last - first, len(support)))
        for label, weight, values in zip(self.labels, self.weights, self.values, strict=True):
            answer = label[support]
            h += weight * (answer[:, None] == answer[None, :])
            b += weight * values[first:last][:, answer]
        return h, b
