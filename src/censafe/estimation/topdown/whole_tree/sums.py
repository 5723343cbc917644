"""Sums over the cells of every geounit with values and variances from the answers of the whole tree, and covariances of unions of geounits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from censafe.errors import CheckError
from censafe.estimation.topdown.whole_tree.cells import CellBlocks, parts, sum_by
from censafe.estimation.topdown.whole_tree.sweep import LinearTree, own_right_sides, passing, shifts
from censafe.model.arrays import Flags, Floats, Ordinals

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
        moments = np.empty((matrix.shape[0], blocks.subsets, blocks.combinations, blocks.combinations))
        step = max(1, _NUMBERS // max(1, blocks.cells))
        for first in range(0, len(moments), step):
            part = slice(first, first + step)
            moments[part] = _moments(blocks, blocks.spread(matrix[part].toarray()))
        return Functionals(matrix, moments)

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
        variances = flat @ moments
        terms = np.abs(flat) @ np.abs(moments)
        variances[variances <= _NOTHING * terms] = 0.0
        return variances


def _moments(blocks: CellBlocks, arrays: Floats) -> Floats:
    """Second moments of arrays of shape (F, M, *sizes)."""
    moments = np.empty((len(arrays), blocks.subsets, blocks.combinations, blocks.combinations))
    for subset in range(blocks.subsets):
        part, copies = arrays, 1
        for axis, levels in enumerate(blocks.sizes):
            mean = part.mean(axis=axis + 2, keepdims=True)
            averaged = subset >> axis & 1
            part = mean if averaged else part - mean
            copies *= levels if averaged else 1
        rows = part.reshape(len(arrays), blocks.combinations, -1)
        moments[:, subset] = copies * np.matmul(rows, np.swapaxes(rows, 1, 2))
    return moments


@dataclass(frozen=True, eq=False)
class LevelSums:
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


def level_sums(tree: LinearTree, functionals: Functionals) -> Iterator[LevelSums]:
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
        covariances = None if last else np.empty((len(rows), *tree.lower[depth].covariance.shape[1:]))
        variances = np.empty((len(rows), functionals.number))
        for part, operators in _covariances(tree, depth, above, rows):
            variances[part] = functionals.variances(operators)
            if covariances is not None:
                covariances[part] = operators
        values, news, place, estimates = _values(tree, depth, above, functionals)
        yield LevelSums(values, pattern, variances)
        if covariances is not None:
            precision = tree.lower[depth].below[rows[:, 1]]
            change = precision @ covariances @ precision - precision
            above = _Above(pattern, covariances, change, news, place, estimates)


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
    covariance = own.conditioned()
    step = max(1, _NUMBERS // max(1, covariance[:1].size))
    for first in range(0, len(rows), step):
        part = slice(first, first + step)
        parent, pattern = rows[part].T
        covariances = covariance[pattern]
        if above is not None:
            covariances = covariances + covariances @ above.change[parent] @ covariances
            empty = ~own.informed[pattern]
            covariances[empty] = above.covariance[parent[empty]]
        yield part, covariances


def _values(
    tree: LinearTree, depth: int, above: _Above | None, functionals: Functionals
) -> tuple[Floats, Floats, Ordinals, Floats]:
    """Values of the sums, and news, places and estimates as of :class:`_Above`."""
    blocks, level, own = tree.blocks, tree.levels[depth], tree.lower[depth]
    shape = (blocks.combinations, *blocks.sizes)
    last = depth + 1 == len(tree.levels)
    values = np.empty((level.nodes, functionals.number))
    news = np.empty((0 if last else level.nodes, *shape))
    needed = np.zeros(0, np.int64)
    if not last:
        below = tree.levels[depth + 1]
        needed = np.unique(below.parent[passing(below, tree.lower[depth + 1], level.nodes)]).astype(np.int64)
    place = np.full(level.nodes, -1)
    place[needed] = np.arange(len(needed))
    estimates = np.empty((len(needed), *shape))
    covariances = own.conditioned()
    for part in parts(level.nodes, blocks.cells):
        cells = _estimates(tree, depth, above, covariances, part)
        values[part] = functionals.values(blocks.flat(cells))
        chosen = place[part] >= 0
        estimates[place[part][chosen]] = cells[chosen]
        if own.right is not None:
            news[part] = blocks.apply(own.below[own.pattern[part]], cells) - own.right[part]
    return values, news, place, estimates


def _estimates(
    tree: LinearTree, depth: int, above: _Above | None, covariances: Floats, part: slice
) -> Floats:
    """Estimates of some geounits from all answers, shape (rows, M, *sizes)."""
    blocks, level, own = tree.blocks, tree.levels[depth], tree.lower[depth]
    pattern, parent = own.pattern[part], level.parent[part]
    rows = np.arange(len(pattern))
    right = own_right_sides(blocks, level, part, rows, len(rows), own.kind[pattern])
    if own.right is not None:
        right += own.right[part]
    if above is not None:
        right += above.news[parent]
    estimates = blocks.apply(covariances[pattern], right) + shifts(
        own.lift[pattern], own.known[part], len(blocks.sizes)
    )
    if above is not None:
        empty = ~own.informed[pattern]
        estimates[empty] = above.estimates[above.place[parent[empty]]]
    return estimates


_ROWS = 2048  # pairs of union and geounit that are worked on at a time


class Members(NamedTuple):
    """Geounits of one level in unions, row by row."""

    union: Ordinals
    node: Ordinals
    weight: (
        Floats  # how often it counts; -1 takes it away, so that a union may be the difference of two areas
    )

    def among(self, first: int, last: int) -> Members:
        """The rows of the unions from `first` to `last` - 1, numbered from 0."""
        rows = _taken(self, (self.union >= first) & (self.union < last))
        return rows._replace(union=rows.union - first)


class _Rows(NamedTuple):
    """Pairs of union and geounit with matrices that act on the cells of the union's sum."""

    union: Ordinals
    node: Ordinals
    operator: Floats


_Table = TypeVar("_Table", Members, _Rows)


def _taken(rows: _Table, chosen: Flags) -> _Table:
    columns: list[Any] = [column[chosen] for column in rows]
    return type(rows)(*columns)


def _joined(first: _Table, second: _Table) -> _Table:
    columns: list[Any] = [np.concatenate(both) for both in zip(first, second, strict=True)]
    return type(first)(*columns)


def fewest_members(tree: LinearTree, union_of: NDArray[np.integer]) -> dict[int, Members]:
    """Unions of geounits of the lowest level as unions of as few geounits as will do, of any level.

    Args:
        union_of: union of every geounit of the lowest level, -1 for none.
    """
    below: NDArray[np.int64] = np.asarray(union_of, np.int64)
    owners = [below]
    for depth in range(len(tree.levels) - 1, 0, -1):
        parent = tree.levels[depth].parent
        low = np.full(tree.levels[depth - 1].nodes, np.iinfo(np.int64).max)
        high = np.full(len(low), -1)
        np.minimum.at(low, parent, below)
        np.maximum.at(high, parent, below)
        below = np.where(low == high, low, -1)
        owners.insert(0, below)
    members = {}
    for depth, owner in enumerate(owners):
        inside = np.zeros(len(owner), np.bool_)
        if depth:
            inside = owners[depth - 1][tree.levels[depth].parent] >= 0
        node = np.flatnonzero((owner >= 0) & ~inside)
        members[depth] = Members(owner[node], node, np.ones(len(node)))
    return members


def union_covariances(tree: LinearTree, members: Mapping[int, Members], unions: int) -> Floats:
    """Covariance operators of the sums over all geounits of every union.

    Source: topdown_solver.md 9.2 with matrices in the place of weights.
    """
    size = tree.lower[0].covariance.shape[1:]
    covariances = np.empty((unions, *size))
    rows = sum(np.bincount(one.union, minlength=unions) for one in members.values())
    start, first = np.append(0, np.cumsum(rows)), 0
    while first < unions:
        last = max(first + 1, int(np.searchsorted(start, start[first] + _ROWS, side="right")) - 1)
        some = {depth: one.among(first, last) for depth, one in members.items()}
        covariances[first:last] = _swept(tree, some, last - first)
        first = last
    return covariances


def _swept(tree: LinearTree, members: Mapping[int, Members], unions: int) -> Floats:
    size = tree.lower[0].covariance.shape[1:]
    total = np.zeros((unions, *size))
    rows = _Rows(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros((0, *size)))
    passed = Members(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))
    for depth in range(len(tree.levels) - 1, -1, -1):
        level, own, covariance = tree.levels[depth], tree.lower[depth], tree.lower[depth].conditioned()
        empty = passing(level, own, tree.levels[depth - 1].nodes if depth else 0)
        if depth in members:
            passed = _joined(members[depth], passed)
        members_here, rows = _apart(passed, rows, level.nodes)
        # what has no answers is its parent
        parent, through, lifted = level.parent.astype(np.int64), empty[members_here.node], empty[rows.node]
        passed, up = _taken(members_here, through), _taken(rows, lifted)
        passed, up = passed._replace(node=parent[passed.node]), up._replace(node=parent[up.node])
        members_here, rows = _taken(members_here, ~through), _taken(rows, ~lifted)

        spread = covariance[own.pattern[rows.node]] @ rows.operator
        np.add.at(total, rows.union, np.swapaxes(rows.operator, -1, -2) @ spread)
        groups, start, keys, counts = _counted(
            members_here.union, own.pattern[members_here.node], members_here.weight**2, len(covariance)
        )
        if len(groups):
            total[groups] += sum_by(start, len(groups), keys, counts, covariance)
        if depth == 0:
            return 0.5 * (total + np.swapaxes(total, -1, -2))
        union, node, sums = _sums(
            members_here, parent, own.pattern, covariance, _Rows(rows.union, rows.node, spread)
        )
        above = tree.lower[depth - 1]
        operator = above.below[above.pattern[node]] @ sums
        np.subtract.at(total, union, np.swapaxes(sums, -1, -2) @ operator)
        rows = _merged(_joined(_Rows(union, node, operator), up), tree.levels[depth - 1].nodes)
    raise CheckError("a tree without levels has no unions")


def _apart(members: Members, rows: _Rows, nodes: int) -> tuple[Members, _Rows]:
    """Every pair of union and geounit once: complete geounits, and those of which the union has a part, with or without the rest."""
    keys, place = np.unique(members.union * nodes + members.node, return_inverse=True)
    weight = np.zeros(len(keys))
    np.add.at(weight, place.ravel(), members.weight)
    keys_of_rows = rows.union * nodes + rows.node
    order = np.argsort(keys_of_rows)
    at = np.asarray(np.searchsorted(keys_of_rows[order], keys))
    both = np.zeros(len(keys), np.bool_)
    if len(keys_of_rows):
        both = keys_of_rows[order][np.minimum(at, len(keys_of_rows) - 1)] == keys
        rows.operator[order[at[both]]] += weight[both, None, None, None] * np.eye(rows.operator.shape[-1])
    union, node = np.divmod(keys[~both], nodes)
    return Members(union, node, weight[~both]), rows


def _counted(
    group: Ordinals, pattern: NDArray[np.integer], times: Floats, patterns: int
) -> tuple[Ordinals, Ordinals, Ordinals, Floats]:
    """Groups, and of every group and pattern in it the position of the group, the pattern and how often it counts."""
    keys, place = np.unique(group * patterns + pattern, return_inverse=True)
    counts = np.asarray(np.bincount(place.ravel(), times, minlength=len(keys)), np.float64)
    which, own = np.divmod(keys, patterns)
    groups, first = np.unique(which, return_inverse=True)
    return groups, first.ravel().astype(np.int64), own, counts


def _sums(
    members: Members, parent: Ordinals, pattern: NDArray[np.integer], covariance: Floats, spread: _Rows
) -> tuple[Ordinals, Ordinals, Floats]:
    """Sums over the children of every pair of union and parent of covariance times matrix."""
    width = int(parent.max(initial=0)) + 1
    groups, first, keys, counts = _counted(
        members.union * width + parent[members.node], pattern[members.node], members.weight, len(covariance)
    )
    others = spread.union * width + parent[spread.node]
    both = np.union1d(groups, others)
    sums = np.zeros((len(both), *covariance.shape[1:]))
    if len(groups):
        sums[np.searchsorted(both, groups)] = sum_by(first, len(groups), keys, counts, covariance)
    np.add.at(sums, np.searchsorted(both, others), spread.operator)
    union, node = np.divmod(both, width)
    return union, node, sums


def _merged(rows: _Rows, nodes: int) -> _Rows:
    keys, place = np.unique(rows.union * nodes + rows.node, return_inverse=True)
    operators = np.zeros((len(keys), *rows.operator.shape[1:]))
    np.add.at(operators, place.ravel(), rows.operator)
    union, node = np.divmod(keys, nodes)
    return _Rows(union, node, operators)
