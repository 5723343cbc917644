"""Sums over geounits and unions, from all answers, against generalized least squares of all cells at once."""

from functools import cache

import numpy as np
import pytest

from censafe.errors import CheckError
from censafe.estimation.topdown.least_squares.objective import LevelObjective
from censafe.estimation.topdown.whole_tree.sums import (
    Functionals,
    Members,
    fewest_members,
    level_sums,
    union_covariances,
)
from censafe.estimation.topdown.whole_tree.sweep import TreeLevel, lower_estimates
from support.linear_trees import AXES, CELLS, LABELS, SIZES, SweptTree, Weights, small_tree

TREES = [
    {"seed": 1, "exact": 2},
    {"seed": 3, "alone": True},
    {"seed": 4, "alone": True, "exact": 1, "third_alike": True},
    {"seed": 5, "alone": True, "apart": True, "exact": 4},
    {"seed": 6, "parted": True, "exact": 2},
]
UNIONS, LEAVES = 6, SIZES[3]


def some_sums(seed: int = 1) -> np.ndarray:
    """A cell, the total, margins and arbitrary weights."""
    rng = np.random.default_rng(seed)
    rows = [np.eye(CELLS)[5], np.ones(CELLS), AXES[1] == 1, (AXES[2] == 0) & (AXES[3] > 1), AXES[0] == 2]
    return np.array([*rows, rng.normal(size=CELLS)], float)


@cache
def planted(number: int):
    """A tree, and estimates and covariances of all cells of its leaves."""
    small = small_tree(**TREES[number])
    return small, small.dense()


def dense_sums(solved, members: np.ndarray, sums: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Values and variances of sums over weighted leaves, shape (areas, sums)."""
    cells, covariance = solved
    rows = np.einsum("al,fc->aflc", members, sums).reshape(len(members) * len(sums), -1)
    shape = (len(members), len(sums))
    return (rows @ cells).reshape(shape), np.einsum("ri,ij,rj->r", rows, covariance, rows).reshape(shape)


@pytest.mark.parametrize("number", range(len(TREES)))
def test_sums_over_the_cells_of_every_geounit(number):
    (small, solved), sums = planted(number), some_sums()
    functionals = Functionals.of(small.tree.blocks, sums)
    for level, members in zip(level_sums(small.tree, functionals), small.members, strict=True):
        values, variances = dense_sums(solved, members, sums)
        np.testing.assert_allclose(values, level.values, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(variances, level.variances[level.pattern], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("number", range(len(TREES)))
def test_sums_over_unions_that_follow_no_geounits(number):
    (small, solved), sums, rng = planted(number), some_sums(), np.random.default_rng(3)
    union_of = rng.integers(-1, UNIONS, LEAVES)
    union_of[small.members[2][4] > 0] = 2
    union_of[0] = 1
    members = np.array([(union_of == union).astype(float) for union in range(UNIONS)])
    rows = fewest_members(small.tree, union_of)
    assert len(rows[2].node)  # a union holds a whole geounit above the leaves
    operators = union_covariances(small.tree, rows, UNIONS)
    found = Functionals.of(small.tree.blocks, sums).variances(operators)
    np.testing.assert_allclose(dense_sums(solved, members, sums)[1], found, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("number", range(len(TREES)))
def test_weighted_and_overlapping_unions_of_any_levels(number):
    """The difference of two areas, one inside of the other, with some geounits named twice."""
    (small, solved), sums, rng = planted(number), some_sums(2), np.random.default_rng(4)
    members, rows = np.zeros((UNIONS, LEAVES)), {}
    for depth in range(4):
        union, node = rng.integers(0, UNIONS, 9), rng.integers(0, SIZES[depth], 9)
        weight = rng.choice([1.0, -1.0, 0.5], 9)
        rows[depth] = Members(union, node, weight)
        np.add.at(members, union, small.members[depth][node] * weight[:, None])
    operators = union_covariances(small.tree, rows, UNIONS)
    found = Functionals.of(small.tree.blocks, sums).variances(operators)
    np.testing.assert_allclose(dense_sums(solved, members, sums)[1], found, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("number", range(len(TREES)))
def test_covariances_of_sums_over_different_areas(number):
    (small, solved), rng, pairs = planted(number), np.random.default_rng(5), 5
    sides, dense = [], []
    for _ in range(2):
        rows, weights = np.zeros((pairs, LEAVES * CELLS)), {}
        for depth in rng.permutation(4)[:3].tolist():
            which, node = rng.integers(0, pairs, 6), rng.integers(0, SIZES[depth], 6)
            vectors = rng.normal(size=(6, CELLS))
            weights[depth] = Weights(which, node, vectors)
            for one, place, vector in zip(which, node, vectors, strict=True):
                rows[one] += np.kron(small.members[depth][place], vector)
        sides.append(weights)
        dense.append(rows)
    found = small.tree.covariances(*sides, pairs)
    expected = np.einsum("fi,ij,fj->f", dense[0], solved[1], dense[1])
    np.testing.assert_allclose(expected, found, rtol=1e-8, atol=1e-8)


def test_an_exact_total_has_no_variance_at_all():
    small = small_tree(1, exact=2)
    functionals = Functionals.of(small.tree.blocks, np.ones((1, CELLS)))
    levels = list(level_sums(small.tree, functionals))
    assert [level.variances.max() == 0.0 for level in levels] == [True, True, False, False]
    halves = {1: Members(np.zeros(2, np.int64), np.array([0, 2]), np.ones(2))}
    assert functionals.variances(union_covariances(small.tree, halves, 1)).tolist() == [[0.0]]


def test_an_only_child_without_answers_is_its_parent():
    small = small_tree(3, alone=True)
    leaf = small.tree.levels[3].parent[0]
    np.testing.assert_array_equal(
        small.tree.estimate(2, np.array([leaf])), small.tree.estimate(3, np.array([0]))
    )
    vector = np.ones((1, CELLS))
    at = [Weights(np.array([0]), np.array([node]), vector) for node in (leaf, 0)]
    for one, other in zip(
        small.tree.variances({2: at[0]}, 1), small.tree.variances({3: at[1]}, 1), strict=True
    ):
        assert one.tolist() == other.tolist()


def test_siblings_without_answers_are_refused():
    small = small_tree(0)
    levels = list(small.tree.levels)
    bare = levels[3].objective
    variances = np.full((1, len(LABELS)), np.inf)
    none = LevelObjective.of(LABELS, variances, bare.source.values, np.zeros(SIZES[3], np.int32))
    levels[3] = TreeLevel("Block", none, levels[3].parent, levels[3].support)
    kinds = np.where(levels[2].objective.kinds == 2, 0, levels[2].objective.kinds).astype(np.int32)
    middle = LevelObjective(LABELS, levels[2].objective.weights, kinds, levels[2].objective.source)
    levels[2] = TreeLevel("Block_Group", middle, levels[2].parent, levels[2].support)
    tree = SweptTree(small.tree.blocks, levels, lower_estimates(small.tree.blocks, levels))
    functionals = Functionals.of(tree.blocks, np.ones((1, CELLS)))
    with pytest.raises(CheckError, match=r"level Block: 15 geounits have no answers.* not the only child"):
        list(level_sums(tree, functionals))
    with pytest.raises(CheckError, match="level Block: 15 geounits"):
        union_covariances(tree, fewest_members(tree, np.zeros(15, np.int64) - 1), 1)
