"""Noisy answers about the histograms of all geounits of one level."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from censafe.model.plan import QueryPlan

__all__ = ["Answers", "LevelMeasurements"]

Answers = NDArray[np.int32] | NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class LevelMeasurements:
    """Noisy answers of the queries of one part, public once committed.

    Args:
        part: name of the part.
        geounits: codes in the order of the level, shape (n,).
        queries: table, level, law and cost of every query, in the order of their ordinals.
        shapes: of every query, how many groups of each attribute it tells apart; answers are in C order of these.
        variances: of the noise of one answer of every query.
        values: answers of every query, int32 or int64, shape (n, answers); they may be negative.
        source: ``system`` for a release; ``seeded`` for a test key, which is never private.
    """

    part: str
    geounits: NDArray[np.str_]
    queries: tuple[QueryPlan, ...]
    shapes: tuple[tuple[int, ...], ...]
    variances: tuple[float, ...]
    values: tuple[Answers, ...] = field(repr=False)
    source: Literal["system", "seeded"]

    def __post_init__(self) -> None:
        if not len(self.queries) == len(self.shapes) == len(self.variances) == len(self.values):
            raise ValueError("measurements of a level need one shape, variance and array for every query")
        for shape, values in zip(self.shapes, self.values, strict=True):
            if values.shape != (len(self.geounits), int(np.prod(shape))):
                raise ValueError("answers must be a matrix of geounits by the product of the shape")

    @property
    def nodes(self) -> int:
        """Number of geounits."""
        return len(self.geounits)

    @property
    def private(self) -> bool:
        """Whether the noise came from a release source."""
        return self.source == "system"
