"""Exact totals below the root, at budgets of any size: against generalized least squares in the subspace that they leave."""

from itertools import product

import numpy as np
import pytest

from censafe.estimation.topdown.least_squares.objective import LevelObjective
from censafe.estimation.topdown.whole_tree.cells import CellBlocks
from censafe.estimation.topdown.whole_tree.sweep import TreeLevel, lower_estimates
from support.linear_trees import CELLS, SIZES, SmallTree, SweptTree, Weights, small_tree

SHARES = (1.0, 1e-2, 1e-4)


def within(small: SmallTree) -> tuple[np.ndarray, np.ndarray]:
    """Estimates of all cells of all leaves, and a root of their covariance, in a basis of what exact totals leave free."""
    lowest = small.exact - 1
    q = np.kron(small.members[lowest], np.ones(CELLS))[:, small.free]
    left = np.linalg.svd(q)[2][np.linalg.matrix_rank(q) :].T
    start = np.linalg.lstsq(q, small.truth[lowest].sum(axis=1), rcond=None)[0]
    a, w = small.rows[:, small.free], small.weights
    bent = a @ left
    precision = bent.T @ (bent * w[:, None])
    root = np.zeros((len(small.free), left.shape[1]))
    root[small.free] = left @ np.linalg.inv(np.linalg.cholesky(precision)).T
    cells = root @ (root[small.free].T @ (a.T @ (w * (small.answers - a @ start))))
    cells[small.free] += start
    return cells, root


@pytest.mark.parametrize("apart_types", [False, True])
@pytest.mark.parametrize("exact", [1, 2, 3, 4])
@pytest.mark.parametrize("power", [1, 2], ids=["gaussian", "geometric"])
def test_exact_totals_at_any_level_beside_any_shares(power: int, exact: int, apart_types: bool) -> None:
    shares = [(1.0, 1e-2, 1e-4, 1.0), (1e-4, 1.0, 1.0, 1e-4)]
    for seed, own in enumerate(shares):
        scale = [one**-power for one in own]
        small = small_tree(seed, exact=exact, scale=scale, apart_types=apart_types)
        cells, root = within(small)
        for depth in range(4):
            nodes = np.arange(SIZES[depth])
            found = small.tree.estimate(depth, nodes)
            wanted = small.members[depth] @ cells.reshape(-1, CELLS)
            roots = np.tensordot(small.members[depth], root.reshape(SIZES[3], CELLS, -1), 1)
            spread = np.sqrt((roots**2).sum(axis=2)).reshape(-1)
            error = np.abs(found - wanted).reshape(-1)
            assert (error <= 1e-5 * spread + 1e-6).all(), (own, depth, error.max())
            if depth < exact:
                np.testing.assert_allclose(found.sum(axis=1), small.truth[depth].sum(axis=1), atol=1e-6)


def test_totals_of_different_types_fix_the_sums_of_the_types_above_them() -> None:
    small = small_tree(2, exact=4, apart_types=True)
    assert small.tree.lower[0].groups.max() == 2
    combination = small.tree.blocks.combination
    for depth in range(4):
        own = small.tree.lower[depth]
        groups = own.groups[own.pattern]
        for node, found in enumerate(small.tree.estimate(depth, np.arange(SIZES[depth]))):
            for number in range(groups[node].max() + 1):
                cells = groups[node][combination] == number
                truth = small.truth[depth][node][cells].sum()
                np.testing.assert_allclose(found[cells].sum(), truth, atol=1e-8)
                vector = Weights(np.zeros(1, np.int64), np.array([node]), cells[None].astype(float))
                assert small.tree.variances({depth: vector}, 1)[1][0] == pytest.approx(0.0, abs=1e-10)


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("cells", [1, 2])
def test_a_histogram_whose_total_is_all_there_is_or_nearly(cells: int, share: float) -> None:
    """Units of a block: one cell or two, which are exchangeable; nothing but rounding was left of the variance of the total."""
    label = np.arange(cells, dtype=np.int32)
    blocks = CellBlocks.of((cells,), (label,))
    parents = (np.array([-1]), np.zeros(3, np.int64), np.repeat(np.arange(3), 7))
    for scales in product((1.0, share**-2), repeat=3):
        levels = []
        for parent, scale in zip(parents, scales, strict=True):
            nodes, leaves = len(parent), 21 // len(parent)
            objective = LevelObjective.of(
                (label,), (0.37 * scale,), [np.full((nodes, cells), 3 * leaves, np.int32)]
            )
            support = np.ones((nodes, blocks.combinations), bool)
            levels.append(TreeLevel("level", objective, parent, support, np.full(nodes, 3 * cells * leaves)))
        tree = SweptTree(blocks, levels, lower_estimates(blocks, levels))
        for depth in range(3):
            nodes = np.arange(len(parents[depth]))
            np.testing.assert_allclose(tree.estimate(depth, nodes), 63 // len(nodes), rtol=1e-9)
        vector = Weights(np.zeros(1, np.int64), np.zeros(1, np.int64), np.eye(cells)[:1])
        leaf = 0.37 * scales[2] / 2 * (cells - 1)
        whole = (
            1 / (1 / (21 * leaf) + 1 / (3 * 0.37 * scales[1] / 2) + 2 / (0.37 * scales[0])) if leaf else 0.0
        )
        np.testing.assert_allclose(tree.variances({0: vector}, 1)[1][0], whole, rtol=1e-9, atol=1e-12)
