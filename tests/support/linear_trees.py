"""Small trees of geounits with noisy answers, and generalized least squares on all of their cells at once."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from censafe.estimation.topdown.least_squares.objective import LevelObjective
from censafe.estimation.topdown.whole_tree.cells import CellBlocks
from censafe.estimation.topdown.whole_tree.sweep import (
    LinearTree,
    TreeLevel,
    lower_estimates,
    own_right_sides,
    passing,
    shifts,
)
from censafe.model.arrays import Flags, Floats, Ordinals

SHAPE = (3, 2, 2, 4)
CELLS = 48
AXES = np.indices(SHAPE).reshape(4, -1)
SIZES = (1, 3, 7, 15)


def query(*axes: int) -> np.ndarray:
    label = np.zeros(CELLS, np.int64)
    for axis in axes:
        label = label * SHAPE[axis] + AXES[axis]
    return np.unique(label, return_inverse=True)[1].ravel().astype(np.int32)


GROUPED = (AXES[0] > 0).astype(np.int32)
LABELS = (query(), query(3), query(2, 3), GROUPED, query(1, 3), query(0, 1, 2, 3))
ALLOWED = ~((AXES[0] == 2) & (AXES[1] == 0))


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


class SweptTree(LinearTree):
    """Estimates of any geounits and variances of any sums, in sweeps up and down that the package's own sums are held against."""

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
            held = self.blocks.apply(self.lower[depth].conditioned()[self.lower[depth].pattern[node]], vector)
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
        found = self.blocks.apply(self.lower[depth].conditioned()[pattern], right)
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
        held = self.lower[depth].conditioned()[pattern]
        return found + self.blocks.apply(held, news[place.ravel()])


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


@dataclass(frozen=True, eq=False)
class SmallTree:
    """A tree, and every answer as a row over the cells of all leaves."""

    tree: SweptTree
    members: tuple[np.ndarray, ...]  # of every level, which leaves a geounit has
    truth: tuple[np.ndarray, ...]
    rows: np.ndarray
    answers: np.ndarray
    weights: np.ndarray
    free: np.ndarray  # cells of all leaves that may hold records
    exact: int  # levels with exact totals

    def dense(self) -> tuple[np.ndarray, np.ndarray]:
        """Estimates and covariances of all cells of all leaves."""
        return self.solve(np.ones(len(self.rows), bool), exact=True)

    def solve(self, used: np.ndarray, *, exact: bool) -> tuple[np.ndarray, np.ndarray]:
        a, w = self.rows[used][:, self.free], self.weights[used]
        v = np.linalg.inv(a.T @ (a * w[:, None]))
        z = v @ (a.T @ (w * self.answers[used]))
        if exact and self.exact:
            lowest = self.exact - 1
            q = np.kron(self.members[lowest], np.ones(CELLS))[:, self.free]
            gain = v @ q.T @ np.linalg.inv(q @ v @ q.T)
            z, v = z + gain @ (self.truth[lowest].sum(axis=1) - q @ z), v - gain @ q @ v
        full, cov = np.zeros(len(self.free)), np.zeros((len(self.free),) * 2)
        full[self.free] = z
        cov[np.ix_(self.free, self.free)] = v
        return full, cov


def small_tree(
    seed: int,
    *,
    exact: int = 0,
    third_alike: bool = False,
    apart: bool = False,
    alone: bool = False,
    parted: bool = False,
    scale: Sequence[float] = (1.0,) * 4,
    apart_types: bool = False,
) -> SmallTree:
    """Four levels, empty facility types and cells, unequal variances, a geounit without answers.

    Args:
        seed: of everything.
        exact: number of levels with exact totals, from the root.
        third_alike: whether the third attribute is among the ``alike`` of the cell blocks, so that the blocks are larger.
        apart: whether every geounit has a kind of budget of its own, so that no covariance is shared.
        alone: whether the first leaf is an only child without answers.
        parted: whether the second level holds sums of parts, of which nothing but the totals is known.
        scale: factor of the variances of every level.
        apart_types: whether no leaf may hold records of more than one facility type, so that exact totals fix sums of types.
    """
    rng = np.random.default_rng(seed)
    alike = (AXES[0], ALLOWED, *((AXES[2],) if third_alike else ()))
    blocks = CellBlocks.of(SHAPE, LABELS, alike)
    parents = (
        np.array([-1]),
        np.zeros(3, np.int64),
        np.array([0, 0, 1, 1, 1, 2, 2]),
        np.sort(np.append(np.arange(7), rng.integers(int(alone), 7, 8))),
    )
    members, types = [np.eye(SIZES[3])], [rng.random((SIZES[3], 3)) < 0.6]
    types[0][:, 0] = True
    if apart_types:
        types[0] = np.eye(3, dtype=bool)[rng.integers(0, 3, SIZES[3])]
    for depth in (3, 2, 1):
        up = np.zeros((SIZES[depth - 1], SIZES[depth]))
        up[parents[depth], np.arange(SIZES[depth])] = 1
        members.insert(0, up @ members[0])
        types.insert(0, up @ types[0] > 0)
    leaf = types[3][:, AXES[0]] & ALLOWED
    counts = rng.integers(0, 9, (SIZES[3], CELLS)) * leaf
    truth = tuple(member @ counts for member in members)
    levels, rows, answers, weights = [], [], [], []
    for depth in range(4):
        kinds = rng.integers(0, 2, SIZES[depth]).astype(np.int32)
        variances = np.vstack(
            [(rng.random((2, len(LABELS))) * 5 + 0.5) * scale[depth], np.full(len(LABELS), np.inf)]
        )
        if depth == 2:
            kinds[1] = 2
        if depth == 3 and alone:
            kinds[0] = 2
        sums = depth == 1 and parted
        if sums:
            kinds[:] = 2
        values = []
        for number, label in enumerate(LABELS):
            a = np.zeros((label.max() + 1, CELLS))
            a[label, np.arange(CELLS)] = 1
            y = np.rint(truth[depth] @ a.T + rng.normal(0, 3, (SIZES[depth], len(a)))).astype(np.int32)
            values.append(y)
            for node in np.flatnonzero(np.isfinite(variances[kinds, number])):
                rows.append(np.kron(members[depth][node], a))
                answers.append(y[node])
                weights.append(np.full(len(a), 1 / variances[kinds[node], number]))
        if apart:
            variances, kinds = variances[kinds], np.arange(SIZES[depth], dtype=np.int32)
        support = types[depth][:, blocks.first(AXES[0])] & blocks.first(ALLOWED)
        totals = truth[depth].sum(axis=1).astype(np.int64) if depth < exact else None
        objective = None if sums else LevelObjective.of(LABELS, variances, values, kinds)
        levels.append(TreeLevel(f"level {depth}", objective, parents[depth], support, totals))
    tree = SweptTree(blocks, levels, lower_estimates(blocks, levels))
    return SmallTree(
        tree, tuple(members), truth, np.vstack(rows), np.concatenate(answers), np.concatenate(weights),
        leaf.ravel(), exact,
    )  # fmt: skip


def lower_estimate(tree: LinearTree, depth: int, nodes: np.ndarray) -> np.ndarray:
    """Estimates of some geounits from their own answers and all below them, shape (len(nodes), cells)."""
    swept = SweptTree(tree.blocks, tree.levels, tree.lower)
    return tree.blocks.flat(swept._lower(depth, nodes, exact=False))


def lower_covariance(tree: LinearTree, depth: int, nodes: np.ndarray) -> np.ndarray:
    """Covariance operators of these estimates, shape (len(nodes), subsets, M, M)."""
    own = tree.lower[depth]
    return own.covariance[own.pattern[nodes]]
