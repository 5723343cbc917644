"""The objective of a parent's children behind one protocol: as matrices, or as a diagonal and group sums."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from censafe.model.arrays import Floats


class Objective(Protocol):
    """Half the squared residuals of measured answers, each over its variance, as a function of counts by child and cell.

    Implementations say what the answers are (:attr:`linear`) and how counts add up in them (:meth:`apply`); all else follows.
    """

    @property
    def linear(self) -> Floats:
        """The sum over queries of w A'y, shape (C, K)."""
        ...

    def apply(self, x: Floats) -> Floats:
        """The curvature, the sum over queries of w A'A, times counts; both of shape (C, K)."""
        ...

    def gradient(self, x: Floats) -> Floats:
        """Slope by child and cell, shape (C, K)."""
        return self.apply(x) - self.linear

    def value(self, x: Floats) -> float:
        """In half chi-square units, less the value at no counts."""
        return float((x * (0.5 * self.apply(x) - self.linear)).sum())


@dataclass(frozen=True, eq=False)
class DenseObjective(Objective):
    """Matrices over the cells, for parents with up to some thousands of them.

    Args:
        h: distinct sums over queries of w A'A, shape (G, K, K).
        h_of: which of them every child has, shape (C,).
        b: the sum over queries of w A'y, shape (C, K).

    Example:
        >>> both = DenseObjective(np.eye(2)[None], np.zeros(1, np.int32), np.array([[3.0, 1.0]]))
        >>> both.value(np.array([[1.0, 1.0]])), both.gradient(np.array([[1.0, 1.0]])).tolist()
        (-3.0, [[-2.0, 0.0]])
    """

    h: Floats = field(repr=False)
    h_of: NDArray[np.int32] = field(repr=False)
    b: Floats = field(repr=False)

    @property
    def linear(self) -> Floats:
        """The sum over queries of w A'y, shape (C, K)."""
        return self.b

    def apply(self, x: Floats) -> Floats:
        """The curvature times counts."""
        curved: Floats = np.einsum("ck,ckl->cl", x, self.h[self.h_of])
        return curved


@dataclass(frozen=True, eq=False)
class GroupAnswers:
    """Measured sums of every child over groups of cells.

    Args:
        group: of every cell, -1 where the sums leave it out, shape (K,).
        values: noisy sums, shape (C, groups).
        weight: of an answer, by child or by child and group, shape (C, 1) or (C, groups).
    """

    group: NDArray[np.int32] = field(repr=False)
    values: Floats = field(repr=False)
    weight: Floats = field(repr=False)

    def sums(self, x: Floats) -> Floats:
        """Sums of counts, shape (C, groups)."""
        sums = np.zeros(self.values.shape)
        inside = self.group >= 0
        np.add.at(sums.T, self.group[inside], x.T[inside])
        return sums

    def spread(self, of_group: Floats) -> Floats:
        """Of every cell what its group has, 0 where it has none, shape (C, K)."""
        return np.where(self.group >= 0, of_group[:, self.group], 0.0)


@dataclass(frozen=True, eq=False)
class OperatorObjective(Objective):
    """A diagonal and group sums: memory grows with the cells, not with their square.

    Args:
        diagonal: weight of what is measured of a single cell, shape (C, K).
        target: its value, shape (C, K).

    Example:
        >>> total = GroupAnswers(np.zeros(2, np.int32), np.array([[5.0]]), np.array([[2.0]]))
        >>> both = OperatorObjective(np.ones((1, 2)), np.array([[3.0, 1.0]]), (total,))
        >>> both.value(np.array([[3.0, 1.0]])), both.gradient(np.array([[3.0, 1.0]])).tolist()
        (1.0, [[-2.0, -2.0]])
    """

    diagonal: Floats = field(repr=False)
    target: Floats = field(repr=False)
    answers: tuple[GroupAnswers, ...] = field(repr=False)

    @property
    def linear(self) -> Floats:
        """Weighted targets, and weighted sums at every cell of their group."""
        linear: Floats = self.diagonal * self.target
        for group in self.answers:
            linear = linear + group.spread(group.weight * group.values)
        return linear

    def value(self, x: Floats) -> float:
        """Half the weighted squares of the residuals themselves, nothing subtracted, so that nothing cancels."""
        squares = (self.diagonal * (x - self.target) ** 2).sum()
        squares += sum((one.weight * (one.sums(x) - one.values) ** 2).sum() for one in self.answers)
        return 0.5 * float(squares)

    def apply(self, x: Floats) -> Floats:
        """The curvature times counts: products of the diagonal, and sums spread over their groups."""
        curved: Floats = self.diagonal * x
        for group in self.answers:
            curved = curved + group.spread(group.weight * group.sums(x))
        return curved
