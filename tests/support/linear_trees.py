"""Small trees of geounits with noisy answers, and generalized least squares on all of their cells at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from censafe.estimation.topdown.least_squares.objective import LevelObjective
from censafe.estimation.topdown.whole_tree.cells import CellBlocks
from censafe.estimation.topdown.whole_tree.downward import LinearTree
from censafe.estimation.topdown.whole_tree.tree_levels import TreeLevel
from censafe.estimation.topdown.whole_tree.upward import lower_estimates

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
class SmallTree:
    """A tree, and every answer as a row over the cells of all leaves."""

    tree: LinearTree
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
    tree = LinearTree(blocks, levels, lower_estimates(blocks, levels))
    return SmallTree(
        tree, tuple(members), truth, np.vstack(rows), np.concatenate(answers), np.concatenate(weights),
        leaf.ravel(), exact,
    )  # fmt: skip


def lower_estimate(tree: LinearTree, depth: int, nodes: np.ndarray) -> np.ndarray:
    """Estimates of some geounits from their own answers and all below them, shape (len(nodes), cells)."""
    return tree.blocks.flat(tree._lower(depth, nodes, exact=False))


def lower_covariance(tree: LinearTree, depth: int, nodes: np.ndarray) -> np.ndarray:
    """Covariance operators of these estimates, shape (len(nodes), subsets, M, M)."""
    own = tree.lower[depth]
    return own.covariance[own.pattern[nodes]]
