"""Weighted sums over the cells of a histogram: their values from estimates, their variances from covariance operators."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from censafe.estimation.topdown.linear.cells import CellBlocks

__all__ = ["Functionals"]

Floats = NDArray[np.float64]

_NOTHING = 1e-11  # share of the terms of a variance below which it is their rounding error
_NUMBERS = 1 << 24  # that are worked on at a time


@dataclass(frozen=True, eq=False)
class Functionals:
    """Weighted sums of cells, such as the items of tables.

    The variance of a sum f is the sum over sets s of exchangeable attributes of the products of V_s, entry by entry, with the second
    moments of f: those of its averages over s and contrasts of the others. Moments are worked out once for all covariances.

    Args:
        weights: of every cell in every sum, sparse, shape (F, cells).
        moments: second moments, shape (F, subsets, M, M).
    """

    weights: csr_array = field(repr=False)
    moments: Floats = field(repr=False)

    @staticmethod
    def of(blocks: CellBlocks, weights: NDArray[np.generic] | csr_array) -> Functionals:
        """The sums with some weights.

        Args:
            blocks: structure of the cells.
            weights: shape (F, cells).

        Example:
            >>> blocks = CellBlocks.of((2, 3), (np.arange(6) // 3, np.arange(6)))
            >>> both = Functionals.of(blocks, np.array([[1, 1, 1, 1, 1, 1], [1, 0, 0, 0, 0, 0]]))
            >>> both.variances(np.full((1, 4, 1, 1), 2.0)).tolist()  # of cells that are independent of each other
            [[12.0, 2.0]]
        """
        matrix = csr_array(weights, dtype=np.float64)
        found = np.empty((matrix.shape[0], blocks.subsets, blocks.combinations, blocks.combinations))
        step = max(1, _NUMBERS // max(1, blocks.cells))
        for first in range(0, len(found), step):
            part = slice(first, first + step)
            found[part] = _moments(blocks, blocks.spread(matrix[part].toarray()))
        return Functionals(matrix, found)

    @property
    def number(self) -> int:
        """How many sums there are."""
        return len(self.moments)

    def values(self, cells: Floats) -> Floats:
        """The sums of some histograms, shape (n, F), from their cells, shape (n, cells)."""
        return np.ascontiguousarray((self.weights @ cells.T).T)

    def variances(self, covariances: Floats) -> Floats:
        """Variances of the sums of estimates.

        Args:
            covariances: operators, shape (n, subsets, M, M).

        Returns:
            Shape (n, F); exactly 0 where no more than rounding errors are left of what cancels.
        """
        flat = covariances.reshape(len(covariances), -1)
        moments = self.moments.reshape(self.number, -1).T
        found = flat @ moments
        terms = np.abs(flat) @ np.abs(moments)
        found[found <= _NOTHING * terms] = 0.0
        return found


def _moments(blocks: CellBlocks, arrays: Floats) -> Floats:
    """Second moments of arrays of shape (F, M, *sizes)."""
    found = np.empty((len(arrays), blocks.subsets, blocks.combinations, blocks.combinations))
    for subset in range(blocks.subsets):
        part, copies = arrays, 1
        for axis, levels in enumerate(blocks.sizes):
            mean = part.mean(axis=axis + 2, keepdims=True)
            averaged = subset >> axis & 1
            part = mean if averaged else part - mean
            copies *= levels if averaged else 1
        rows = part.reshape(len(arrays), blocks.combinations, -1)
        found[:, subset] = copies * np.matmul(rows, np.swapaxes(rows, 1, 2))
    return found
