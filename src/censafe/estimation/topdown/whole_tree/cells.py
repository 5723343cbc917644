"""Cells of a histogram as combinations of attributes that queries tell apart and exchangeable ones, and what geounits below a level say about them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numba import float64, int32, int64, void
from numpy.typing import NDArray

from censafe.model.arrays import Flags, Floats
from censafe.model.compiled import compiled
from censafe.model.topdown.answers import Families


@dataclass(frozen=True, eq=False)
class CellBlocks:
    """The block structure of a histogram.

    An operator is a stack of matrices over the M combinations, one for each set of exchangeable attributes: that of a set acts
    where these are averaged over and contrasts are taken of the others. Bit a of a position stands for attribute a.

    Args:
        combination: combination of the attributes that are not exchangeable at every cell, int32, shape (cells,).
        traits: level of every exchangeable attribute at every cell, int32, shape (E, cells).
        order: the cells by combination and then by exchangeable levels, shape (cells,).
    """

    combination: NDArray[np.int32] = field(repr=False)
    traits: NDArray[np.int32] = field(repr=False)
    sizes: tuple[int, ...]
    order: NDArray[np.int64] = field(repr=False)

    @staticmethod
    def of(
        shape: Sequence[int],
        labels: Sequence[NDArray[np.integer]],
        alike: Sequence[NDArray[np.generic]] = (),
    ) -> CellBlocks:
        """Find the exchangeable attributes.

        Args:
            labels: of every query, the answer of each cell, shape (cells,).

        Example:
            >>> label = np.arange(6) // 3
            >>> CellBlocks.of((2, 3), (label, np.arange(6))).sizes
            (2, 3)
            >>> CellBlocks.of((2, 3), (label, np.arange(6)), (np.array([1, 1, 1, 1, 1, 0]),)).sizes
            ()
        """
        free = [
            axis
            for axis, levels in enumerate(shape)
            if levels > 1
            and all(_levels_free(label.reshape(shape), axis) for label in labels)
            and all(_constant(values.reshape(shape), axis) for values in alike)
        ]
        fixed = [axis for axis in range(len(shape)) if axis not in free]
        levels = np.indices(tuple(shape)).reshape(len(shape), -1)
        combination = np.zeros(levels.shape[1], np.int64)
        for axis in fixed:
            combination = combination * shape[axis] + levels[axis]
        traits = levels[free]
        order = np.lexsort((*traits[::-1], combination))
        return CellBlocks(
            combination.astype(np.int32),
            np.ascontiguousarray(traits, np.int32).reshape(len(free), len(combination)),
            tuple(int(shape[axis]) for axis in free),
            order.astype(np.int64),
        )

    @property
    def cells(self) -> int:
        """Number of cells."""
        return len(self.combination)

    @property
    def combinations(self) -> int:
        """Number M of combinations of the attributes that are not exchangeable."""
        return self.cells // self.others

    @property
    def others(self) -> int:
        """Number of combinations of the exchangeable attributes."""
        return int(np.prod(self.sizes, dtype=np.int64))

    @property
    def subsets(self) -> int:
        """Number of sets of exchangeable attributes."""
        return 1 << len(self.sizes)

    def first(self, values: NDArray[np.generic]) -> NDArray[np.generic]:
        """The value of every combination, shape (M,), of values by cell that exchangeable attributes do not tell apart."""
        return values[self.order.reshape(self.combinations, -1)[:, 0]]

    def spread(self, vectors: Floats) -> Floats:
        """Vectors of cells, shape (n, cells), as arrays of shape (n, M, *sizes)."""
        return vectors[:, self.order].reshape(len(vectors), self.combinations, *self.sizes)

    def flat(self, arrays: Floats) -> Floats:
        """The reverse of :meth:`spread`."""
        vectors = np.empty((len(arrays), self.cells))
        vectors[:, self.order] = arrays.reshape(len(arrays), self.cells)
        return vectors

    def curvature(self, labels: Sequence[NDArray[np.integer]], weights: Floats) -> Floats:
        """The sum over queries of weight times A'A as an operator.

        Args:
            labels: of every query, the answer of each cell, shape (cells,).
            weights: of an answer, by kind of geounits and query, shape (kinds, queries).
        """
        curvature = np.zeros((len(weights), self.subsets, self.combinations, self.combinations))
        for query, label in enumerate(labels):
            answers = self.first(label)
            same = (answers[:, None] == answers[None, :]).astype(np.float64)
            by_cell = label[self.order].reshape(self.combinations, *self.sizes)
            factor = np.ones(self.subsets)
            for axis, levels in enumerate(self.sizes):
                if _constant(by_cell, axis + 1):
                    averaged = np.arange(self.subsets) >> axis & 1
                    factor *= np.where(averaged, levels, 0)
            curvature += weights[:, query, None, None, None] * factor[:, None, None] * same
        return curvature

    def averaged(self, label: NDArray[np.integer]) -> tuple[Floats, float]:
        """A query of averages over the exchangeable attributes: A of shape (answers, M), and its factor in the curvature.

        Example:
            >>> blocks = CellBlocks.of((2, 3), (np.arange(6) // 3, np.arange(6)), (np.arange(6) // 3,))
            >>> ask, factor = blocks.averaged(np.zeros(6, np.int64))
            >>> ask.tolist(), factor, blocks.curvature((np.zeros(6, np.int64),), np.ones((1, 1)))[0, -1].tolist()
            ([[1.0, 1.0]], 3.0, [[3.0, 3.0], [3.0, 3.0]])
        """
        answers = np.unique(self.first(label), return_inverse=True)[1].ravel()
        by_cell = label[self.order].reshape(self.combinations, *self.sizes)
        summed = [levels for axis, levels in enumerate(self.sizes) if _constant(by_cell, axis + 1)]
        ask = (answers == np.arange(int(answers.max(initial=-1)) + 1)[:, None]).astype(np.float64)
        return ask, float(math.prod(summed))

    def averages(self, operators: Floats) -> Floats:
        """The same operators as sums of matrices that act on averages over sets of attributes and on nothing less.

        Args:
            operators: shape (n, subsets, M, M).
        """
        differences = operators.copy()
        for axis in range(len(self.sizes)):
            averaged = np.flatnonzero(np.arange(self.subsets) >> axis & 1)
            differences[:, averaged] -= differences[:, averaged ^ (1 << axis)]
        return differences

    def entries(self, operators: Floats) -> Floats:
        """The entry at cells k and l by the set of exchangeable attributes on which the two agree, and their combinations.

        Args:
            operators: shape (n, subsets, M, M).
        """
        entries = self.averages(operators)
        for axis, levels in enumerate(self.sizes):
            averaged = np.flatnonzero(np.arange(self.subsets) >> axis & 1)
            apart = entries[:, averaged] / levels
            entries[:, averaged] = entries[:, averaged ^ (1 << axis)] + apart
            entries[:, averaged ^ (1 << axis)] = apart
        return entries

    def apply(self, operators: Floats, arrays: Floats) -> Floats:
        """Multiply arrays of cells by operators.

        Args:
            operators: one for each array, or one for all: shape (n, subsets, M, M) or (1, subsets, M, M).
            arrays: shape (n, M, *sizes).
        """
        rows = len(arrays)
        matrices = self.averages(operators)
        product = np.matmul(matrices[:, 0], arrays.reshape(rows, self.combinations, self.others)).reshape(
            arrays.shape
        )
        means: dict[int, Floats] = {0: arrays}
        for subset in range(1, self.subsets):
            lowest = (subset & -subset).bit_length() - 1
            mean = means[subset & (subset - 1)].mean(axis=lowest + 2, keepdims=True)
            means[subset] = mean
            columns = mean.reshape(rows, self.combinations, math.prod(mean.shape[2:]))
            part = np.matmul(matrices[:, subset], columns)
            product += part.reshape(mean.shape)
        return product


def _constant(values: NDArray[np.generic], axis: int) -> bool:
    return bool((values == values.take([0], axis)).all())


def _levels_free(label: NDArray[np.integer], axis: int) -> bool:
    """Whether a query sums an attribute out, or keeps its levels apart in the same way at all others."""
    if _constant(label, axis):
        return True
    levels = label.shape[axis]
    table = np.moveaxis(label, axis, -1).reshape(-1, levels)
    first = np.unique(table[:, 0], return_inverse=True)[1]
    pairs = first.reshape(-1, 1) * levels + np.arange(levels)
    both = np.unique(np.stack([pairs.ravel(), table.ravel()]), axis=1).shape[1]
    return both == len(np.unique(pairs)) == len(np.unique(table))


@dataclass(frozen=True, eq=False)
class CoarseFit:
    """The objective of sums over one exchangeable attribute, to be fitted before the cells.

    Args:
        label: which sum each cell belongs to, int32, shape (cells,).
    """

    label: NDArray[np.int32] = field(repr=False)
    tables: Floats = field(repr=False)
    right: Floats = field(repr=False)


@dataclass(frozen=True, eq=False)
class Below:
    """The information of all answers below the geounits of a level: x' P x / 2 - r' x, to be added to their own.

    Args:
        tables: of every pattern of geounits, the entries of P by the set of exchangeable attributes on which two cells agree and by
            their combinations of attributes that are not exchangeable, shape (patterns, subsets, M, M).
        combination: combination of the attributes that are not exchangeable at every cell, int32, shape (cells,).
        traits: level of every exchangeable attribute at every cell, int32, shape (E, cells).
        right: r of every geounit, shape (geounits, cells).
        total_weight: inverse variance of the total that is estimated from own answers and those below, shape (patterns,).
        total_right: that weight times the estimated total, shape (geounits,).
        coarse: what own answers and those below say about sums over the attribute with the most levels; None where that is
            not used.
    """

    tables: Floats = field(repr=False)
    combination: NDArray[np.int32] = field(repr=False)
    traits: NDArray[np.int32] = field(repr=False)
    right: Floats = field(repr=False)
    total_weight: Floats = field(repr=False)
    total_right: Floats = field(repr=False)
    coarse: CoarseFit | None = field(default=None, repr=False)

    def curvatures(self, patterns: NDArray[np.integer], support: NDArray[np.int64]) -> Floats:
        """P of some patterns on some cells, shape (len(patterns), K, K)."""
        traits = self.traits[:, support]
        agree = np.zeros((len(support), len(support)), np.int64)
        for axis, level in enumerate(traits):
            agree |= (level[:, None] == level[None, :]).astype(np.int64) << axis
        combination = self.combination[support]
        return self.tables[patterns][:, agree, combination[:, None], combination[None, :]]

    def of_totals(self) -> Below:
        """The information about totals, own answers included, and about nothing else."""
        cells = len(self.combination)
        return Below(
            self.total_weight.reshape(-1, 1, 1, 1),
            np.zeros(cells, np.int32),
            np.zeros((0, cells), np.int32),
            np.broadcast_to(self.total_right[:, None], (len(self.total_right), cells)),
            self.total_weight,
            self.total_right,
        )

    def add_right_sides(self, families: Families, sums: Floats) -> None:
        """Add r of all children of some parents to B, parent by parent the matrix (children, cells) in C order."""
        _add(families.child_ptr, families.child, families.cell_ptr, families.cell, self.right, sums)


@compiled(void(int64[::1], int64[::1], int64[::1], int32[::1], float64[:, ::1], float64[::1]))
def _add(child_ptr, child, cell_ptr, cell, right, sums):  # type: ignore[no-untyped-def]
    """Add the right sides of every child on the cells of its parent."""
    out = 0
    for parent in range(child_ptr.shape[0] - 1):
        for entry in range(child_ptr[parent], child_ptr[parent + 1]):
            own = right[child[entry]]
            for k in range(cell_ptr[parent], cell_ptr[parent + 1]):
                sums[out] += own[cell[k]]
                out += 1


_CELLS = 1 << 22  # numbers of all geounits that are worked on at a time


def parts(nodes: int, cells: int) -> Iterator[slice]:
    """Pieces of a level."""
    step = max(1, _CELLS // cells)
    for first in range(0, nodes, step):
        yield slice(first, min(nodes, first + step))


def sibling_parts(parent: NDArray[np.integer], cells: int) -> Iterator[slice]:
    """Pieces of a level in which siblings stay together: their sums are then the same bits in a part of a tree as in the whole.

    Args:
        parent: of every geounit, rising, shape (n,).

    Example:
        >>> [(one.start, one.stop) for one in sibling_parts(np.array([0, 0, 0, 1, 2, 2]), 1 << 21)]
        [(0, 3), (3, 4), (4, 6)]
    """
    starts = np.append(np.flatnonzero(np.diff(parent, prepend=-1)), len(parent))
    first = 0
    while first < len(parent):
        last = int(starts[np.searchsorted(starts, first + max(1, _CELLS // cells), side="right") - 1])
        if last <= first:
            last = int(starts[np.searchsorted(starts, first, side="right")])
        yield slice(first, last)
        first = last


_LEAST = 1e-11  # share of the largest eigenvalue below which a direction is not measured
_CHUNK = 1 << 24  # numbers that are worked on at a time


def masked(operators: Floats, support: Flags) -> Floats:
    """Operators with the rows and columns of empty combinations set to 0.

    Args:
        operators: shape (n, subsets, M, M).
        support: combinations that may hold records, shape (n, M).
    """
    return operators * (support[:, None, :, None] & support[:, None, None, :])


def inverse(operators: Floats, support: Flags) -> Floats:
    """Inverses on the combinations that may hold records, with zeros elsewhere, shape (n, subsets, M, M)."""
    inverses = np.empty_like(operators)
    eye = np.eye(operators.shape[-1])
    step = max(1, _CHUNK // max(1, operators[:1].size))
    for first in range(0, len(operators), step):
        part = slice(first, first + step)
        empty = ~support[part, None, :, None]
        inner = np.linalg.inv(masked(operators[part], support[part]) + eye * empty)
        inner = 0.5 * (inner + np.swapaxes(inner, -1, -2))
        inverses[part] = inner - eye * empty
    return inverses


def positive(operators: Floats, support: Flags) -> Flags:
    """Which operators determine every cell of their support, shape (n,)."""
    own = masked(operators, support)
    eye = np.eye(operators.shape[-1])
    scale = np.abs(own).max(axis=(1, 2, 3), keepdims=True)
    values = np.linalg.eigvalsh(own + scale * eye * ~support[:, None, :, None])
    least = values.min(axis=(1, 2), initial=np.inf)
    return (least > _LEAST * values.max(axis=(1, 2), initial=0.0)) & (scale.ravel() > 0)


def sum_by(
    group: NDArray[np.integer], groups: int, which: NDArray[np.integer], times: Floats, operators: Floats
) -> Floats:
    """Sums of operators by group, in the order of the rows.

    Args:
        group: of every row, rising, shape (rows,); every group has rows.
        operators: shape (n, subsets, M, M).
    """
    sums = np.empty((groups, *operators.shape[1:]))
    start = np.searchsorted(group, np.arange(groups + 1))
    step = max(1, _CHUNK // max(1, operators[:1].size))
    first = 0
    while first < groups:
        last = max(first + 1, int(np.searchsorted(start, start[first] + step, side="right")) - 1)
        rows = slice(int(start[first]), int(start[last]))
        terms = operators[which[rows]] * times[rows, None, None, None]
        sums[first:last] = np.add.reduceat(terms, start[first:last] - start[first], axis=0)
        first = last
    return sums


def total_covariances(covariances: Floats, others: int) -> tuple[Floats, Floats]:
    """Covariance of every cell with the total, and the variance of the total.

    Args:
        covariances: shape (n, subsets, M, M).

    Returns:
        By combination, shape (n, M), and shape (n,).
    """
    with_total = covariances[:, -1].sum(axis=-1)
    return with_total, others * with_total.sum(axis=-1)
