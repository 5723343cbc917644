"""Sums of rows by group, in their order: a part of a tree gives the same bits as the whole."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from censafe.model.compiled import compiled

__all__ = ["add_estimates", "add_rows"]

Floats = NDArray[np.float64]
Ordinals = NDArray[np.int64]


@compiled()
def add_rows(values: NDArray[np.integer], group: Ordinals, found: Ordinals) -> None:
    """Add up rows of answers by group."""
    for row in range(values.shape[0]):
        target, own = found[group[row]], values[row]
        for column in range(values.shape[1]):
            target[column] += own[column]


@compiled()
def add_estimates(values: Floats, group: Ordinals, found: Floats) -> None:
    """Add up rows of estimates by group, in their order."""
    for row in range(values.shape[0]):
        target, own = found[group[row]], values[row]
        for column in range(values.shape[1]):
            target[column] += own[column]
