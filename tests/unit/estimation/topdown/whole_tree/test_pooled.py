"""Answers pooled with those below, query by query: the best linear unbiased objective where children are alike, unbiased with exact variances anywhere."""

import itertools

import numpy as np
import pytest

from censafe.estimation.topdown.least_squares.objective import LevelObjective
from censafe.estimation.topdown.whole_tree.information import pooled_objectives
from censafe.geography.spines.tree import Spine, SpineLevel
from censafe.model.topdown.families import AnswerReads

CELLS = 6
LABELS = (
    np.arange(CELLS, dtype=np.int32),
    np.array([0, 0, 1, 1, 2, 2], np.int32),
    np.array([0, 1, 0, 1, 0, 1], np.int32),
)
NAMES = ("detailed", "pairs", "parity")
ALL = [(query, answer) for query, label in enumerate(LABELS) for answer in range(int(label.max()) + 1)]


def spine(parents: list[np.ndarray]) -> Spine:
    levels = []
    for depth, parent in enumerate(parents):
        edges = np.zeros(len(parent) + 1, np.int64)
        if depth + 1 < len(parents):
            edges = np.searchsorted(parents[depth + 1], np.arange(len(parent) + 1)).astype(np.int64)
        levels.append(SpineLevel(str(depth), 2, "", np.arange(len(parent)), parent.astype(np.int32), edges))
    return Spine(tuple(levels))


def measured(
    rng: np.random.Generator, nodes: int, variances: np.ndarray, kinds: np.ndarray
) -> LevelObjective:
    values = [rng.integers(-40, 40, (nodes, int(label.max()) + 1)) for label in LABELS]
    return LevelObjective.of(LABELS, variances, values, kinds.astype(np.int32))


def equations(objective: LevelObjective, node: int) -> tuple[np.ndarray, np.ndarray]:
    """H and b of a geounit, from all answers that the source gathers."""
    query = np.array([one for one, _ in ALL], np.int32)
    answer = np.array([one for _, one in ALL], np.int32)
    wanted = AnswerReads(np.array([0, 1]), np.array([node]), np.array([0, len(ALL)]), query, answer)
    values, weights = objective.source.gather(wanted), objective.weights[objective.kinds[node]]
    h, b = np.zeros((CELLS, CELLS)), np.zeros(CELLS)
    for (one, number), value in zip(ALL, values.tolist(), strict=True):
        row = (LABELS[one] == number).astype(float)
        h += weights[one] * np.outer(row, row)
        b += weights[one] * value * row
    return h, b


def lower(
    tree: Spine, objectives: list[LevelObjective], depth: int, node: int
) -> tuple[np.ndarray, np.ndarray]:
    """Best linear unbiased: information and right side of a geounit, dense."""
    h, b = equations(objectives[depth], node)
    level = tree.levels[depth]
    children = range(int(level.first_child[node]), int(level.first_child[node + 1]))
    if len(children):
        parts = [lower(tree, objectives, depth + 1, child) for child in children]
        precision = np.linalg.inv(sum(np.linalg.inv(one) for one, _ in parts))
        h, b = h + precision, b + precision @ sum(np.linalg.solve(one, right) for one, right in parts)
    return h, b


@pytest.mark.parametrize("seed", range(3))
def test_children_that_are_alike_but_for_a_number_give_the_best_objective(
    seed: int,
) -> None:
    """Queries in the same proportions at all levels, budgets that differ by a number between geounits."""
    rng = np.random.default_rng(seed)
    parents = [np.array([-1]), np.array([0, 0, 0]), np.array([0, 0, 1, 2, 2, 2, 2])]
    tree, shares = spine(parents), rng.uniform(1, 20, len(NAMES))
    own = [
        measured(rng, len(parent), np.outer(rng.uniform(0.5, 4, 2), shares), rng.integers(0, 2, len(parent)))
        for parent in parents
    ]
    found = pooled_objectives(tree, [NAMES] * 3, own)
    for depth, parent in enumerate(parents):
        for node in range(len(parent)):
            for made, dense in zip(equations(found[depth], node), lower(tree, own, depth, node), strict=True):
                assert np.allclose(dense, made, rtol=1e-10, atol=1e-10)


def test_every_answer_is_the_weighted_mean_with_its_variance_where_budgets_and_queries_differ() -> None:
    """A geounit without own answers takes those below, an only child without any leaves its parent as it is, an unknown query the own answers."""
    rng = np.random.default_rng(4)
    parents = [np.array([-1]), np.array([0, 0]), np.array([0, 0, 1])]
    tree = spine(parents)
    variances = [rng.uniform(1, 20, (3, len(NAMES))) for _ in parents]
    variances[1][2] = variances[2][2] = np.inf
    kinds = [np.array([0]), np.array([2, 1]), np.array([0, 1, 2])]
    own = [measured(rng, len(p), v, k) for p, v, k in zip(parents, variances, kinds, strict=True)]
    names = [NAMES, NAMES, ("detailed", "other", "parity")]
    found = pooled_objectives(tree, names, own)
    for query in range(len(NAMES)):
        known: list[list[tuple[np.ndarray, float]]] = [[], [], []]
        for depth in (2, 1, 0):
            for node in range(len(parents[depth])):
                below = (
                    [one for one, parent in enumerate(parents[depth + 1]) if parent == node]
                    if depth < 2
                    else []
                )
                parts = [known[depth + 1][one] for one in below]
                if depth == 1 and query == 1:
                    parts = []
                y, v = (
                    own[depth].source.values[query][node].astype(float),
                    variances[depth][kinds[depth][node], query],
                )  # type: ignore[attr-defined]
                t = sum(one[1] for one in parts) if parts else np.inf
                w = 1 / v + 1 / t
                z = (y / v + (sum(one[0] for one in parts) / t if np.isfinite(t) else 0)) / w if w else y * 0
                known[depth].append((z, 1 / w if w else np.inf))
        for depth, node in itertools.chain.from_iterable(
            [(depth, node) for node in range(len(parents[depth]))] for depth in range(3)
        ):
            value, variance = known[depth][node]
            answers = found[depth].source.answers(query, node, node + 1, np.arange(len(value)))[0]
            weight = found[depth].weights[found[depth].kinds[node], query]
            assert np.allclose(value, answers, rtol=1e-12, atol=1e-12)
            assert np.isclose(0 if np.isinf(variance) else 1 / variance, weight, rtol=1e-12)
