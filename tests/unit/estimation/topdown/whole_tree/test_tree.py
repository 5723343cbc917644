"""Linear estimates on the tree against generalized least squares of all cells at once."""

from dataclasses import replace

import numpy as np
import pytest

from censafe.errors import CheckError
from censafe.estimation.topdown.least_squares.objective import LevelObjective
from censafe.estimation.topdown.whole_tree.cells import CellBlocks
from censafe.estimation.topdown.whole_tree.downward import pooled
from censafe.estimation.topdown.whole_tree.upward import TreeLevel, lower_estimates
from support.linear_trees import (
    CELLS,
    LABELS,
    SIZES,
    SweptTree,
    Weights,
    lower_covariance,
    lower_estimate,
    small_tree,
)


@pytest.mark.parametrize("exact", [0, 2, 4])
@pytest.mark.parametrize("seed", range(3))
def test_estimates_from_the_whole_tree_are_those_of_the_stacked_system(seed, exact):
    small = small_tree(seed, exact=exact)
    cells = small.dense()[0].reshape(-1, CELLS)
    for depth, member in enumerate(small.members):
        found = small.tree.estimate(depth, np.arange(SIZES[depth]))
        np.testing.assert_allclose(member @ cells, found, atol=1e-9)


@pytest.mark.parametrize("exact", [0, 2])
def test_sums_over_any_geounits_have_the_variances_of_the_stacked_system(exact):
    small, rng, number = small_tree(5, exact=exact), np.random.default_rng(9), 6
    sums, rows = {}, np.zeros((number, SIZES[3] * CELLS))
    for depth in (0, 1, 2, 3):
        which, node = rng.integers(0, number, 8), rng.integers(0, SIZES[depth], 8)
        vectors = rng.normal(size=(8, CELLS))
        sums[depth] = Weights(which, node, vectors)
        for one, place, vector in zip(which, node, vectors, strict=True):
            rows[one] += np.kron(small.members[depth][place], vector)
    cells, covariance = small.dense()
    found, variances = small.tree.variances(sums, number)
    np.testing.assert_allclose(rows @ cells, found, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(np.einsum("fi,ij,fj->f", rows, covariance, rows), variances, rtol=1e-9)


def test_lower_estimates_use_own_answers_and_those_below_alone():
    small = small_tree(2)
    for depth, node in ((1, 1), (2, 3), (3, 4)):
        member = small.members[depth][node]
        inside = np.repeat(member > 0, CELLS)
        used = ~(small.rows[:, ~inside] != 0).any(axis=1)
        local = replace(small, free=small.free & inside)
        cells, covariance = local.solve(used, exact=False)
        add = np.kron(member, np.eye(CELLS))
        found = lower_estimate(small.tree, depth, np.array([node]))[0]
        np.testing.assert_allclose(add @ cells, found, atol=1e-9)
        operator = lower_covariance(small.tree, depth, np.array([node]))
        columns = [
            small.tree.blocks.flat(small.tree.blocks.apply(operator, small.tree.blocks.spread(unit[None])))[0]
            for unit in np.eye(CELLS)
        ]
        np.testing.assert_allclose(add @ covariance @ add.T, np.array(columns), atol=1e-9)


@pytest.mark.parametrize("exact", [0, 2])
def test_the_pooled_objective_is_the_distance_to_the_lower_estimate(exact):
    small = small_tree(3, exact=exact)
    objectives = pooled(small.tree.blocks, small.tree.levels, small.tree.lower)
    assert objectives[3] is small.tree.levels[3].objective
    for depth, node in ((1, 2), (2, 1), (2, 6)):
        support = np.flatnonzero(small.tree.levels[depth].support[node][small.tree.blocks.combination])
        h, h_of, b = objectives[depth].equations(node, node + 1, support)
        estimate = lower_estimate(small.tree, depth, np.array([node]))[0, support]
        np.testing.assert_allclose(h[h_of[0]] @ estimate, b[0], rtol=1e-9, atol=1e-9)
        operator = lower_covariance(small.tree, depth, np.array([node]))
        unit = np.zeros((1, CELLS))
        unit[0, support[5]] = 1.0
        column = small.tree.blocks.flat(small.tree.blocks.apply(operator, small.tree.blocks.spread(unit)))[0]
        np.testing.assert_allclose(np.eye(len(support))[5], h[h_of[0]] @ column[support], atol=1e-9)
        alone = objectives[depth].fitting((0,)).equations(node, node + 1, support)
        variance = small.tree.blocks.apply(operator, small.tree.blocks.spread(np.ones((1, CELLS)))).sum()
        np.testing.assert_allclose(1 / variance, alone[0][0], rtol=1e-9)
        np.testing.assert_allclose(estimate.sum() / variance, alone[2][0], rtol=1e-9)


def test_sums_before_cells_have_the_curvature_of_the_sums_alone():
    small = small_tree(4)
    objective = pooled(small.tree.blocks, small.tree.levels, small.tree.lower)[0]
    label, coarse = objective.coarse
    support = np.flatnonzero(small.tree.levels[0].support[0][small.tree.blocks.combination])
    sums, first = np.unique(label[support], return_index=True)
    assert len(sums) < len(support)
    h, _, b = coarse.equations(0, 1, support[first])
    add = (label[support] == sums[:, None]).astype(float)
    operator = lower_covariance(small.tree, 0, np.array([0]))
    units = np.eye(CELLS)[support]
    blocks = small.tree.blocks
    covariance = blocks.flat(blocks.apply(operator, blocks.spread(units)))[:, support]
    np.testing.assert_allclose(np.linalg.inv(add @ covariance @ add.T), h[0], atol=1e-9)
    estimate = add @ lower_estimate(small.tree, 0, np.array([0]))[0, support]
    np.testing.assert_allclose(h[0] @ estimate, b[0], rtol=1e-9)


def test_larger_blocks_and_covariances_that_are_not_shared_change_nothing():
    small, wide, apart = small_tree(6), small_tree(6, third_alike=True), small_tree(6, apart=True)
    assert small.tree.blocks.sizes == (2, 4)
    assert wide.tree.blocks.sizes == (4,)
    assert len(apart.tree.lower[3].kind) > len(small.tree.lower[3].kind)
    for depth in range(4):
        nodes = np.arange(SIZES[depth])
        own = lower_estimate(small.tree, depth, nodes)
        np.testing.assert_allclose(own, lower_estimate(wide.tree, depth, nodes), rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(own, lower_estimate(apart.tree, depth, nodes), rtol=1e-11, atol=1e-11)
    assert np.array_equal(
        lower_covariance(small.tree, 3, np.arange(15)), lower_covariance(apart.tree, 3, np.arange(15))
    )


def test_closed_cases():
    one = CellBlocks.of((2,), (np.arange(2),))
    assert one.curvature((np.arange(2),), np.array([[1 / 1.5]])).ravel().tolist() == [1 / 1.5] * 2
    axes = np.indices((2, 3)).reshape(2, -1)
    labels = [label.astype(np.int32) for label in (np.arange(6), axes[0], axes[1], np.zeros(6))]
    values = [np.zeros((1, label.max() + 1), np.int32) for label in labels]
    blocks = CellBlocks.of((2, 3), labels)
    level = TreeLevel(
        "only", LevelObjective.of(labels, (1.0,) * 4, values), np.array([-1]), np.ones((1, 1), bool)
    )
    tree = SweptTree(blocks, [level], lower_estimates(blocks, [level]))
    cell, row = np.eye(6)[0], (axes[0] == 0).astype(float)
    three = Weights(np.arange(3), np.zeros(3, np.int64), np.stack([cell, row, cell + row]))
    _, variance = tree.variances({0: three}, 3)
    np.testing.assert_allclose([1 / 2, 1 / 2], variance[:2], rtol=1e-14)
    np.testing.assert_allclose(1 / 6, (variance[2] - variance[0] - variance[1]) / 2, rtol=1e-14)


def test_answers_that_do_not_determine_the_cells_are_refused():
    labels = LABELS[:5]
    blocks = CellBlocks.of((3, 2, 2, 4), labels)
    values = [np.zeros((2, label.max() + 1), np.int32) for label in labels]
    support = np.ones((2, blocks.combinations), bool)
    level = TreeLevel("Block", LevelObjective.of(labels, (1.0,) * 5, values), np.array([-1, -1]), support)
    with pytest.raises(CheckError, match=r"level Block: .* do not determine its cells"):
        lower_estimates(blocks, [level])


@pytest.mark.parametrize("exact", [0, 2])
@pytest.mark.parametrize(("depth", "parent"), [(1, 0), (2, 1), (2, 2)])
def test_once_the_parent_is_known_the_whole_tree_says_no_more_than_what_is_below(depth, parent, exact):
    small = small_tree(7, exact=exact)
    rng = np.random.default_rng(depth)
    member = small.members[depth - 1][parent]
    support = np.flatnonzero(np.kron(member, np.eye(CELLS)) @ small.free)
    known = rng.integers(5, 40, CELLS) * np.isin(np.arange(CELLS), support)
    if exact >= depth:  # a parent whose total is exact has that total
        known[support[0]] += small.truth[depth - 1][parent].sum() - known.sum()
    cells, covariance = small.dense()
    add = np.kron(member, np.eye(CELLS))[support]
    gain = covariance @ add.T @ np.linalg.pinv(add @ covariance @ add.T, rcond=1e-9)
    whole = cells + gain @ (known[support] - add @ cells)
    children = np.flatnonzero(small.tree.levels[depth].parent == parent)
    lower = lower_estimate(small.tree, depth, children)
    units = small.tree.blocks.spread(np.eye(CELLS))
    variances = [
        small.tree.blocks.flat(
            small.tree.blocks.apply(lower_covariance(small.tree, depth, np.array([child])), units)
        )
        for child in children
    ]
    totals = [small.truth[depth][child].sum() if exact > depth else None for child in children]
    for place, total in enumerate(totals):
        if total is not None:
            v = variances[place]
            lower[place] += v.sum(axis=1) * (total - lower[place].sum()) / v.sum()
            variances[place] = v - np.outer(v.sum(axis=1), v.sum(axis=1)) / v.sum()
    together = np.linalg.pinv(sum(variances), rcond=1e-9)
    for child, own, v in zip(children, lower, variances, strict=True):
        found = own + v @ together @ (known - lower.sum(axis=0))
        wanted = np.kron(small.members[depth][child], np.eye(CELLS)) @ whole
        np.testing.assert_allclose(wanted, found, rtol=1e-7, atol=1e-7)
