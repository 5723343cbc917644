"""Weighted sums over the cells of every geounit, their values and variances from the answers of the whole tree."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from censafe.estimation.topdown.whole_tree.cells import CellBlocks
from censafe.estimation.topdown.whole_tree.downward import LinearTree, passing
from censafe.estimation.topdown.whole_tree.exact_sums import shifts
from censafe.estimation.topdown.whole_tree.operators import parts
from censafe.estimation.topdown.whole_tree.upward import own_right_sides
from censafe.model.arrays import Floats, Ordinals

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


_NUMBERS = 1 << 24  # of operators that are worked on at a time


@dataclass(frozen=True, eq=False)
class WholeLevel:
    """Sums over cells of the geounits of a level; geounits of one pattern have the same variances.

    Args:
        values: estimates, shape (n, F).
        pattern: of every geounit, shape (n,).
        variances: shape (patterns, F).
    """

    values: Floats = field(repr=False)
    pattern: Ordinals = field(repr=False)
    variances: Floats = field(repr=False)


@dataclass(frozen=True, eq=False)
class _Above:
    """What a level hands down.

    Args:
        pattern: of every geounit, shape (n,).
        change: of the precision of the sum of the children by all that is not below, by pattern.
        news: precision of the sum of the children times what all other answers change of it, shape (n, M, *sizes).
        place: place among `estimates`, -1 where they are not needed, shape (n,).
        estimates: of geounits whose only child has no answers, neither its own nor below it.
    """

    pattern: Ordinals
    covariance: Floats
    change: Floats
    news: Floats
    place: Ordinals
    estimates: Floats


def whole_levels(tree: LinearTree, functionals: Functionals) -> Iterator[WholeLevel]:
    """Values and variances of sums at every level, the widest first.

    With C the covariance from own answers and those below, P the precision of the sum of the parent's children and V that of
    the parent from all answers, the covariance of a child is C + C (P V P - P) C. It is worked out once for all geounits that are
    alike and have parents that are.

    Source: topdown_solver.md 9.2, in matrix form.
    """
    above: _Above | None = None
    for depth in range(len(tree.levels)):
        pattern, rows = _patterns(tree, depth, above)
        last = depth + 1 == len(tree.levels)
        held = None if last else np.empty((len(rows), *tree.lower[depth].covariance.shape[1:]))
        variances = np.empty((len(rows), functionals.number))
        for part, operators in _covariances(tree, depth, above, rows):
            variances[part] = functionals.variances(operators)
            if held is not None:
                held[part] = operators
        values, news, place, estimates = _values(tree, depth, above, functionals)
        yield WholeLevel(values, pattern, variances)
        if held is not None:
            precision = tree.lower[depth].below[rows[:, 1]]
            change = precision @ held @ precision - precision
            above = _Above(pattern, held, change, news, place, estimates)


def _patterns(tree: LinearTree, depth: int, above: _Above | None) -> tuple[Ordinals, Ordinals]:
    """Pattern of every geounit, and of every pattern those of parent and geounit from below, shape (patterns, 2)."""
    own, level = tree.lower[depth], tree.levels[depth]
    passing(level, own, tree.levels[depth - 1].nodes if depth else 0)
    parent = np.zeros(level.nodes, np.int64) if above is None else above.pattern[level.parent]
    keys, place = np.unique(parent * len(own.kind) + own.pattern, return_inverse=True)
    return place.ravel().astype(np.int64), np.column_stack(np.divmod(keys, len(own.kind)))


def _covariances(
    tree: LinearTree, depth: int, above: _Above | None, rows: Ordinals
) -> Iterator[tuple[slice, Floats]]:
    """Covariances of patterns from all answers, some at a time."""
    own = tree.lower[depth]
    covariance = tree.covariance(depth)
    step = max(1, _NUMBERS // max(1, covariance[:1].size))
    for first in range(0, len(rows), step):
        part = slice(first, first + step)
        parent, pattern = rows[part].T
        found = covariance[pattern]
        if above is not None:
            found = found + found @ above.change[parent] @ found
            empty = ~own.informed[pattern]
            found[empty] = above.covariance[parent[empty]]
        yield part, found


def _values(
    tree: LinearTree, depth: int, above: _Above | None, functionals: Functionals
) -> tuple[Floats, Floats, Ordinals, Floats]:
    """Values of the sums, and news, places and estimates as of :class:`_Above`."""
    blocks, level, own = tree.blocks, tree.levels[depth], tree.lower[depth]
    shape = (blocks.combinations, *blocks.sizes)
    last = depth + 1 == len(tree.levels)
    values = np.empty((level.nodes, functionals.number))
    news = np.empty((0 if last else level.nodes, *shape))
    wanted = np.zeros(0, np.int64)
    if not last:
        below = tree.levels[depth + 1]
        wanted = np.unique(below.parent[passing(below, tree.lower[depth + 1], level.nodes)]).astype(np.int64)
    place = np.full(level.nodes, -1)
    place[wanted] = np.arange(len(wanted))
    estimates = np.empty((len(wanted), *shape))
    held = tree.covariance(depth)
    for part in parts(level.nodes, blocks.cells):
        found = _estimates(tree, depth, above, held, part)
        values[part] = functionals.values(blocks.flat(found))
        chosen = place[part] >= 0
        estimates[place[part][chosen]] = found[chosen]
        if own.right is not None:
            news[part] = blocks.apply(own.below[own.pattern[part]], found) - own.right[part]
    return values, news, place, estimates


def _estimates(tree: LinearTree, depth: int, above: _Above | None, held: Floats, part: slice) -> Floats:
    """Estimates of some geounits from all answers, shape (rows, M, *sizes)."""
    blocks, level, own = tree.blocks, tree.levels[depth], tree.lower[depth]
    pattern, parent = own.pattern[part], level.parent[part]
    rows = np.arange(len(pattern))
    right = own_right_sides(blocks, level, part, rows, len(rows), own.kind[pattern])
    if own.right is not None:
        right += own.right[part]
    if above is not None:
        right += above.news[parent]
    found = blocks.apply(held[pattern], right) + shifts(own.lift[pattern], own.known[part], len(blocks.sizes))
    if above is not None:
        empty = ~own.informed[pattern]
        found[empty] = above.estimates[above.place[parent[empty]]]
    return found
