"""Redistricting cells: four blocks of 16 by 16 against the published form with one 64 by 64 matrix of a race and the sum over races."""

import numpy as np

from censafe.estimation.topdown.least_squares.objective import LevelObjective
from censafe.estimation.topdown.whole_tree.cells import CellBlocks
from censafe.estimation.topdown.whole_tree.upward import TreeLevel, lower_estimates
from censafe.products.topdown.configuration.shipped import shipped_schemas

PERSONS = shipped_schemas()["pl94-persons"]
QUERIES = tuple(
    PERSONS.query(text)
    for text in (
        "total", "cenrace", "hispanic", "votingage", "hhinstlevels", "hhgq", "hispanic * cenrace", "votingage * cenrace",
        "votingage * hispanic", "votingage * hispanic * cenrace", "detailed",
    )
)  # fmt: skip
HHGQ, VOTING, HISPANIC, RACE = np.indices(PERSONS.schema.shape).reshape(4, -1)
CELLS, RACES = 32, 63
ALLOWED = PERSONS.allowed()
PARENTS = (np.array([-1]), np.zeros(3, np.int64), np.array([0, 0, 0, 1, 1, 2]))


def maps(weights: np.ndarray) -> np.ndarray:
    """Precision of own answers on pairs of a race's cells and the sums over races, shape (64, 64)."""
    same, summed = np.zeros((CELLS, CELLS)), np.zeros((CELLS, CELLS))
    for query, weight in zip(QUERIES, weights, strict=True):
        label = query.label.reshape(CELLS, RACES)
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
    return (form @ pairs)[:CELLS]


def right_side(values: list[np.ndarray], weights: np.ndarray, node: int) -> np.ndarray:
    found = np.zeros(CELLS * RACES)
    for query, weight, answers in zip(QUERIES, weights, values, strict=True):
        found += weight * answers[node][query.label]
    return found.reshape(CELLS, RACES)


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
            unit = np.zeros((CELLS, RACES))
            unit[2, 7] = 1.0  # a cell of households, which may hold records everywhere
            for vector in (unit, np.ones((CELLS, RACES))):
                wanted = act(form, vector).ravel()
                spread = blocks.spread(vector.reshape(1, -1))
                cells = blocks.flat(blocks.apply(own.covariance[pattern][None], spread))[0]
                np.testing.assert_allclose(wanted, cells, rtol=1e-9, atol=1e-9 * np.abs(wanted).max())
            if own.right is not None:
                whole = act(below, sum(estimate[depth + 1, child] for child in children)).ravel()
                cells = blocks.flat(own.right[node : node + 1])[0]
                np.testing.assert_allclose(whole, cells, rtol=1e-9, atol=1e-9 * np.abs(whole).max())
