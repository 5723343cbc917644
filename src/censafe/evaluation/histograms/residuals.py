"""CONFIDENTIAL. Residuals of pooled runs as a tally: different values and how often each occurs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from censafe.evaluation.histograms.cells import MatchedCells
from censafe.evaluation.histograms.strata import Strata

__all__ = ["Residuals", "ZeroCells", "pooled_residuals", "residual_frame", "residuals_of"]

ZeroCells = Literal["all", "either", "confidential", "published"]
"""Which answers count: ``all`` of the domain; ``either`` side not zero (Petti & Flaxman); the ``confidential`` or the
``published`` side not zero."""


@dataclass(frozen=True, eq=False)
class Residuals:
    """CONFIDENTIAL. A tally of residuals.

    Args:
        values: different residuals, rising; int64, or float64 of weighted samples, shape (v,).
        counts: how often each occurs, int64, shape (v,).
        by_group: the same by group of areas, int32, shape (groups, v), for the bootstrap; areas are dealt to groups at random.
    """

    values: NDArray[Any] = field(repr=False)
    counts: NDArray[np.int64] = field(repr=False)
    by_group: NDArray[np.int32] | None = field(default=None, repr=False)

    @property
    def number(self) -> int:
        """How many residuals there are."""
        return int(self.counts.sum())

    def quantile(self, share: float) -> float:
        """Quantile by linear interpolation; NaN without residuals."""
        raise NotImplementedError


def residuals_of(values: NDArray[Any]) -> Residuals:
    """A tally of plain numbers."""
    raise NotImplementedError


def pooled_residuals(
    runs: Sequence[MatchedCells],
    *,
    zeros: ZeroCells = "all",
    strata: Strata | None = None,
    stratum: int = 0,
    groups: int = 0,
    seed: int = 1,
) -> Residuals:
    """Residuals of one query at one level, all runs together.

    Args:
        runs: matched counts of the same areas, one entry a run.
        zeros: which answers count.
        strata: classes of areas, of which one is wanted.
        stratum: its position.
        groups: at most so many random groups of areas are kept apart for the bootstrap; 0 for none.
        seed: of the grouping.
    """
    raise NotImplementedError


def residual_frame(residuals: Residuals) -> pa.Table:
    """Columns ``residual`` and ``n``."""
    raise NotImplementedError
