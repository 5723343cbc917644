"""From the widest level down: estimates from the answers of the whole tree with variances of sums, and the objective of every level with what lies below."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from censafe.errors import CheckError
from censafe.estimation.topdown.least_squares.objective import LevelObjective, query_weight
from censafe.estimation.topdown.whole_tree.cells import Below, CellBlocks, CoarseFit
from censafe.estimation.topdown.whole_tree.exact_sums import shifts
from censafe.estimation.topdown.whole_tree.operators import held_total, parts
from censafe.estimation.topdown.whole_tree.tree_levels import LowerLevel, TreeLevel
from censafe.estimation.topdown.whole_tree.upward import own_right_sides
from censafe.model.arrays import Flags, Floats, Ordinals


def pooled(
    blocks: CellBlocks, levels: Sequence[TreeLevel], lower: Sequence[LowerLevel], *, rooted: bool = True
) -> tuple[LevelObjective | None, ...]:
    """Objectives whose minimum without limits is the estimate from own answers and all below: the distance to it, by its precision.

    The objective of the lowest level is unchanged. A level without answers, such as sums of parts, has none.
    """
    measured = [depth for depth, level in enumerate(levels) if level.objective is not None]
    root = measured[0] if rooted and measured else -1
    return tuple(
        _level(blocks, level, own, sums=depth == root)
        for depth, (level, own) in enumerate(zip(levels, lower, strict=True))
    )


def _level(blocks: CellBlocks, level: TreeLevel, own: LowerLevel, *, sums: bool) -> LevelObjective | None:
    objective = level.objective
    if objective is None or own.right is None:
        return objective
    variance = held_total(own.covariance, blocks.others)[1]
    known = own.informed.astype(np.float64)
    weight = np.array([query_weight(float(one)) for one in variance]) * known
    totals = np.empty(level.nodes)
    together = np.empty_like(own.right) if sums else None
    for part in parts(level.nodes, blocks.cells):
        nodes = np.arange(part.start, part.stop)
        kind = own.kind[own.pattern[part]]
        right = own_right_sides(blocks, level, part, nodes - part.start, len(nodes), kind) + own.right[part]
        totals[part] = own.totals(blocks, right, nodes)
        if together is not None:
            together[part] = right
    below = Below(
        blocks.entries(own.below),
        blocks.combination,
        blocks.traits,
        blocks.flat(own.right),
        weight,
        weight[own.pattern] * totals,
        None if together is None else _coarse(blocks, objective, own, together),
    )
    return replace(objective, weights=objective.weights[own.kind], kinds=own.pattern, below=below)


def _coarse(
    blocks: CellBlocks, objective: LevelObjective, own: LowerLevel, right: Floats
) -> CoarseFit | None:
    """The objective of sums over the exchangeable attribute with the most levels."""
    if not blocks.sizes:
        return None
    axis = int(np.argmax(blocks.sizes))
    both = blocks.curvature(objective.labels, objective.weights)[own.kind] + own.below
    both[:, np.flatnonzero(~np.arange(blocks.subsets) >> axis & 1)] = 0.0
    mean = np.broadcast_to(right.mean(axis=axis + 2, keepdims=True), right.shape)
    label = blocks.combination.astype(np.int64)
    for other, levels in enumerate(blocks.sizes):
        if other != axis:
            label = label * levels + blocks.traits[other]
    return CoarseFit(label.astype(np.int32), blocks.entries(both), blocks.flat(mean))


@dataclass(frozen=True, eq=False)
class Weights:
    """Weights of the cells of some geounits of a level in some sums.

    Args:
        functional: which sum each row belongs to, shape (rows,).
        node: geounit of each row, shape (rows,); a sum may name a geounit several times.
        vector: weights of its cells, shape (rows, cells).
    """

    functional: Ordinals
    node: Ordinals
    vector: Floats = field(repr=False)


@dataclass(frozen=True, eq=False)
class LinearTree:
    """The best linear unbiased estimates of all levels.

    Args:
        levels: the tree, the widest first; it has one geounit, or several without anything above them.
    """

    blocks: CellBlocks
    levels: Sequence[TreeLevel] = field(repr=False)
    lower: Sequence[LowerLevel] = field(repr=False)

    def covariance(self, depth: int) -> Floats:
        """Covariance operators of the estimates from own answers and those below, by pattern, once what is known exactly is imposed, shape (patterns, subsets, M, M)."""
        return self.lower[depth].conditioned()

    def estimate(self, depth: int, nodes: Ordinals) -> Floats:
        """Estimates of some geounits from the answers of the whole tree, shape (len(nodes), cells)."""
        return self.blocks.flat(self._whole(depth, nodes))

    def variances(self, sums: Mapping[int, Weights], functionals: int) -> tuple[Floats, Floats]:
        """Estimates and variances of weighted sums over cells of any geounits of any levels, in one sweep from below.

        Returns:
            Estimates from the whole tree and their variances, each of shape (functionals,).

        Source: topdown_solver.md 9.2, in matrix form.
        """
        value, variance = np.zeros(functionals), np.zeros(functionals)
        functional, node = np.zeros(0, np.int64), np.zeros(0, np.int64)
        vector = np.zeros((0, self.blocks.combinations, *self.blocks.sizes))
        for depth in range(len(self.levels) - 1, -1, -1):
            if depth in sums:
                more = sums[depth]
                functional = np.concatenate([functional, more.functional])
                node = np.concatenate([node, more.node])
                vector = np.concatenate([vector, self.blocks.spread(more.vector)])
            functional, node, vector = _merged(functional, node, vector)
            through = self._passing(depth)[node]
            passed = (
                functional[through],
                self.levels[depth].parent[node[through]].astype(np.int64),
                vector[through],
            )
            functional, node, vector = functional[~through], node[~through], vector[~through]
            estimate = self._lower(depth, node, exact=True)
            held = self.blocks.apply(self.covariance(depth)[self.lower[depth].pattern[node]], vector)
            np.add.at(value, functional, _dots(vector, estimate))
            np.add.at(variance, functional, _dots(vector, held))
            if depth == 0:
                return value, variance
            node = self.levels[depth].parent[node].astype(np.int64)
            functional, node, held = _merged(functional, node, held)
            above = self.lower[depth - 1]
            below = above.below[above.pattern[node]]
            vector = self.blocks.apply(below, held)
            np.subtract.at(variance, functional, _dots(held, vector))
            np.subtract.at(value, functional, self._sum_below(depth - 1, node, held))
            functional = np.concatenate([functional, passed[0]])
            node = np.concatenate([node, passed[1]])
            vector = np.concatenate([vector, passed[2]])
        return value, variance

    def covariances(
        self, first: Mapping[int, Weights], second: Mapping[int, Weights], functionals: int
    ) -> Floats:
        """Covariances of two lists of weighted sums, pair by pair."""
        pairs: dict[int, Weights] = {}
        for depth in {*first, *second}:
            rows = [
                (one.functional + shift * functionals, one.node, sign * one.vector)
                for source, signs in ((first, (1.0, 1.0)), (second, (1.0, -1.0)))
                for shift, sign in enumerate(signs)
                for one in ([source[depth]] if depth in source else [])
            ]
            pairs[depth] = Weights(*(np.concatenate(column) for column in zip(*rows, strict=True)))
        _, variance = self.variances(pairs, 2 * functionals)
        return 0.25 * (variance[:functionals] - variance[functionals:])

    def _passing(self, depth: int) -> Flags:
        above = self.levels[depth - 1].nodes if depth else 0
        return passing(self.levels[depth], self.lower[depth], above)

    def _sum_below(self, depth: int, nodes: Ordinals, held: Floats) -> Floats:
        """Held weights times the precision times the sum of the children's estimates."""
        right = self.lower[depth].right
        return np.zeros(len(nodes)) if right is None else _dots(held, right[nodes])

    def _lower(self, depth: int, nodes: Ordinals, *, exact: bool) -> Floats:
        level, own = self.levels[depth], self.lower[depth]
        pattern = own.pattern[nodes]
        right = np.empty((len(nodes), self.blocks.combinations, *self.blocks.sizes))
        for place, node in enumerate(nodes.tolist()):
            part, kind = slice(node, node + 1), own.kind[pattern[place : place + 1]]
            right[place] = own_right_sides(self.blocks, level, part, np.zeros(1, np.int64), 1, kind)[0]
        if own.right is not None:
            right += own.right[nodes]
        if not exact:
            return self.blocks.apply(own.covariance[pattern], right)
        found = self.blocks.apply(self.covariance(depth)[pattern], right)
        return found + shifts(own.lift[pattern], own.known[nodes], len(self.blocks.sizes))

    def _whole(self, depth: int, nodes: Ordinals) -> Floats:
        found = self._lower(depth, nodes, exact=True)
        if depth == 0:
            return found
        above = self.lower[depth - 1]
        parents, place = np.unique(self.levels[depth].parent[nodes].astype(np.int64), return_inverse=True)
        right = above.right
        if right is None:
            return found
        whole = self._whole(depth - 1, parents)
        through = self._passing(depth)[nodes]
        found[through] = whole[place.ravel()[through]]
        news = self.blocks.apply(above.below[above.pattern[parents]], whole) - right[parents]
        pattern = self.lower[depth].pattern[nodes]
        held = self.covariance(depth)[pattern]
        return found + self.blocks.apply(held, news[place.ravel()])


def passing(level: TreeLevel, own: LowerLevel, above: int) -> Flags:
    """Which geounits have no answers, neither their own nor below them: they are their parent, whose only child they are."""
    empty = ~own.informed[own.pattern]
    if empty.any():
        children = np.bincount(level.parent[level.parent >= 0], minlength=above)
        if not above or (children[level.parent[empty]] > 1).any():
            raise CheckError(
                f"level {level.name}: {int(empty.sum())} geounits have no answers, neither their own nor below them, and are "
                "not the only child of their parent, so that nothing tells how the parent's records are shared out"
            )
    return np.asarray(empty)


def _merged(functional: Ordinals, node: Ordinals, vector: Floats) -> tuple[Ordinals, Ordinals, Floats]:
    """One row for each pair of functional and geounit."""
    width = int(node.max(initial=0)) + 1
    keys, place = np.unique(functional * width + node, return_inverse=True)
    found = np.zeros((len(keys), *vector.shape[1:]))
    np.add.at(found, place.ravel(), vector)
    first, second = np.divmod(keys, width)
    return first, second, found


def _dots(left: Floats, right: Floats) -> Floats:
    rows = len(left)
    return np.asarray((left * right).reshape(rows, math.prod(left.shape[1:])).sum(axis=1))
