"""Linear estimates on the tree against generalized least squares of all cells at once."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from censafe.errors import CheckError
from censafe.estimation.topdown.least_squares.objective import LevelObjective
from censafe.estimation.topdown.whole_tree.cells import CellBlocks
from censafe.estimation.topdown.whole_tree.information import pooled_objectives
from censafe.estimation.topdown.whole_tree.sweep import TreeLevel, lower_estimates, pooled
from censafe.geography.spines.tree import Spine, SpineLevel
from censafe.model.topdown.answers import AnswerReads
from censafe.products.topdown.configuration.shipped import shipped_schemas
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


# Answers pooled with those below, query by query: the best linear unbiased objective where children are alike, unbiased with exact variances anywhere.


POOLED_CELLS = 6
POOLED_LABELS = (
    np.arange(POOLED_CELLS, dtype=np.int32),
    np.array([0, 0, 1, 1, 2, 2], np.int32),
    np.array([0, 1, 0, 1, 0, 1], np.int32),
)
NAMES = ("detailed", "pairs", "parity")
ALL = [(query, answer) for query, label in enumerate(POOLED_LABELS) for answer in range(int(label.max()) + 1)]


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
    values = [rng.integers(-40, 40, (nodes, int(label.max()) + 1)) for label in POOLED_LABELS]
    return LevelObjective.of(POOLED_LABELS, variances, values, kinds.astype(np.int32))


def equations(objective: LevelObjective, node: int) -> tuple[np.ndarray, np.ndarray]:
    """H and b of a geounit, from all answers that the source gathers."""
    query = np.array([one for one, _ in ALL], np.int32)
    answer = np.array([one for _, one in ALL], np.int32)
    wanted = AnswerReads(np.array([0, 1]), np.array([node]), np.array([0, len(ALL)]), query, answer)
    values, weights = objective.source.gather(wanted), objective.weights[objective.kinds[node]]
    h, b = np.zeros((POOLED_CELLS, POOLED_CELLS)), np.zeros(POOLED_CELLS)
    for (one, number), value in zip(ALL, values.tolist(), strict=True):
        row = (POOLED_LABELS[one] == number).astype(float)
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


# Redistricting cells: four blocks of 16 by 16 against the published form with one 64 by 64 matrix of a race and the sum over races.


PERSONS = shipped_schemas()["pl94-persons"]
QUERIES = tuple(
    PERSONS.query(text)
    for text in (
        "total", "cenrace", "hispanic", "votingage", "hhinstlevels", "hhgq", "hispanic * cenrace", "votingage * cenrace",
        "votingage * hispanic", "votingage * hispanic * cenrace", "detailed",
    )
)  # fmt: skip
HHGQ, VOTING, HISPANIC, RACE = np.indices(PERSONS.schema.shape).reshape(4, -1)
RACE_CELLS, RACES = 32, 63
ALLOWED = PERSONS.allowed()
PARENTS = (np.array([-1]), np.zeros(3, np.int64), np.array([0, 0, 0, 1, 1, 2]))


def maps(weights: np.ndarray) -> np.ndarray:
    """Precision of own answers on pairs of a race's cells and the sums over races, shape (64, 64)."""
    same, summed = np.zeros((RACE_CELLS, RACE_CELLS)), np.zeros((RACE_CELLS, RACE_CELLS))
    for query, weight in zip(QUERIES, weights, strict=True):
        label = query.label.reshape(RACE_CELLS, RACES)
        agree = weight * (label[:, :1] == label[None, :, 0])
        if (label[:, 0] == label[:, 1]).all():
            summed += agree
        else:
            same += agree
    return np.block([[same, summed], [np.zeros_like(same), same + RACES * summed]])


def inverse(form: np.ndarray, support: np.ndarray) -> np.ndarray:
    both = np.flatnonzero(np.tile(support, 2))
    found = np.zeros_like(form)
    found[np.ix_(both, both)] = np.linalg.inv(form[np.ix_(both, both)])
    return found


def act(form: np.ndarray, cells: np.ndarray) -> np.ndarray:
    """The map on all cells, through the cells of each race and their sums."""
    pairs = np.vstack([cells, np.repeat(cells.sum(axis=1, keepdims=True), RACES, axis=1)])
    return (form @ pairs)[:RACE_CELLS]


def right_side(values: list[np.ndarray], weights: np.ndarray, node: int) -> np.ndarray:
    found = np.zeros(RACE_CELLS * RACES)
    for query, weight, answers in zip(QUERIES, weights, values, strict=True):
        found += weight * answers[node][query.label]
    return found.reshape(RACE_CELLS, RACES)


def test_the_blocks_are_the_published_form() -> None:
    rng = np.random.default_rng(11)
    levels, given = [], []
    held = rng.random((6, 8)) < 0.5
    held[:, 0] = True
    facilities = [
        held.any(axis=0)[None],
        np.array([held[PARENTS[2] == node].any(axis=0) for node in range(3)]),
        held,
    ]
    labels = [query.label for query in QUERIES]
    blocks = CellBlocks.of(PERSONS.schema.shape, labels, (ALLOWED, HHGQ))
    assert (blocks.combinations, blocks.sizes) == (16, (2, 63))
    for parent, kinds in zip(PARENTS, facilities, strict=True):
        variances = rng.uniform(0.5, 300, len(QUERIES))
        values = [rng.integers(-99, 999, (len(parent), query.answers)).astype(np.int32) for query in QUERIES]
        support = kinds[:, HHGQ] & ALLOWED
        given.append((1 / variances, values, support[:, RACE == 0]))
        own = LevelObjective.of(labels, variances, values)
        places = np.array([support[node][blocks.order].reshape(16, -1)[:, 0] for node in range(len(parent))])
        levels.append(TreeLevel(f"level {len(levels)}", own, parent, places))
    found = lower_estimates(blocks, levels)
    covariance: dict[tuple[int, int], np.ndarray] = {}
    estimate: dict[tuple[int, int], np.ndarray] = {}
    for depth in (2, 1, 0):
        weights, values, support = given[depth]
        for node in range(len(PARENTS[depth])):
            precision, right = maps(weights), right_side(values, weights, node)
            below = np.zeros_like(precision)
            if depth < 2:
                children = np.flatnonzero(PARENTS[depth + 1] == node)
                below = inverse(sum(covariance[depth + 1, child] for child in children), support[node])
                right = right + act(below, sum(estimate[depth + 1, child] for child in children))
            form = inverse(precision + below, support[node])
            covariance[depth, node], estimate[depth, node] = form, act(form, right)
            own = found[depth]
            pattern = own.pattern[node]
            unit = np.zeros((RACE_CELLS, RACES))
            unit[2, 7] = 1.0  # a cell of households, which may hold records everywhere
            for vector in (unit, np.ones((RACE_CELLS, RACES))):
                wanted = act(form, vector).ravel()
                spread = blocks.spread(vector.reshape(1, -1))
                cells = blocks.flat(blocks.apply(own.covariance[pattern][None], spread))[0]
                np.testing.assert_allclose(wanted, cells, rtol=1e-9, atol=1e-9 * np.abs(wanted).max())
            if own.right is not None:
                whole = act(below, sum(estimate[depth + 1, child] for child in children)).ravel()
                cells = blocks.flat(own.right[node : node + 1])[0]
                np.testing.assert_allclose(whole, cells, rtol=1e-9, atol=1e-9 * np.abs(whole).max())
