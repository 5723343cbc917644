"""How far integers are from a fractional point, as rounding weighs it."""

import numpy as np
from numpy.typing import NDArray

from censafe.estimation.topdown.rounding.controlled import tree_of
from censafe.estimation.topdown.rounding.network import SNAP
from censafe.model.arrays import Floats, Integers


def rounding_cost(x: Floats, counts: Integers, tree: tuple[NDArray[np.int32], ...]) -> float:
    """Distance of integers to a fractional point: cells to their fractions, marginals to their rounded fractions.

    Args:
        x: fractional point, shape (C, K).
        counts: integers, shape (C, K).
    """
    nested = tree_of(tree, x.shape[1])
    whole = np.floor(np.maximum(x, 0.0) + SNAP)
    f = x - whole
    f[f < SNAP] = 0.0
    up = counts - whole
    cost = float(np.abs(up - f).sum())
    for level in nested.label:
        members = np.zeros((x.shape[1], len(nested.parent)))
        members[np.arange(x.shape[1]), level] = 1.0
        cost += float(np.abs(up @ members - np.rint(f @ members)).sum())
    return cost
