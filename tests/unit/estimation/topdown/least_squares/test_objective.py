from dataclasses import replace

import numpy as np
import pytest

from censafe.estimation.topdown.least_squares.objective import (
    LevelObjective,
    StoredAnswers,
    query_weight,
    reads_of_cells,
)
from censafe.model.topdown.answers import Families
from censafe.products.topdown.configuration.shipped import shipped_schemas

PERSONS = shipped_schemas()["pl94-persons"]
QUERIES = [PERSONS.query(text) for text in ("total", "hhinstlevels", "hispanic * cenrace", "detailed")]
VARIANCES = (3.5, 1.25, 40.0, 0.75)


def objective(seed: int, geounits: int) -> LevelObjective:
    rng = np.random.default_rng(seed)
    values = [rng.integers(-9, 30, (geounits, query.answers)).astype(np.int32) for query in QUERIES]
    return LevelObjective.of([query.label for query in QUERIES], VARIANCES, values)


@pytest.mark.parametrize("seed", range(5))
def test_equations_are_those_of_the_explicit_matrices(seed):
    rng = np.random.default_rng(100 + seed)
    level = objective(seed, 7)
    support = np.sort(rng.choice(2016, 40, replace=False))
    h, h_of, b = level.equations(2, 6, support)
    wanted_h, wanted_b = np.zeros((40, 40)), np.zeros((4, 40))
    for query, variance, values in zip(QUERIES, VARIANCES, level.source.values, strict=True):
        a = np.zeros((query.answers, 40))
        a[query.label[support], np.arange(40)] = 1
        wanted_h += a.T @ a / variance
        wanted_b += values[2:6] @ a / variance
    assert h.shape == (1, 40, 40)
    assert h_of.tolist() == [0] * 4
    np.testing.assert_allclose(h[0], wanted_h, rtol=1e-14)
    np.testing.assert_allclose(b, wanted_b, rtol=1e-13)


def test_answers_of_cells_that_the_parent_lacks_change_nothing():
    level = objective(1, 3)
    support = np.array([0, 5, 70, 300])
    before = level.equations(0, 3, support)
    raised = level.source.values[3].copy()
    raised[:, np.setdiff1d(np.arange(2016), support)] += 1000
    changed = replace(level, source=StoredAnswers((*level.source.values[:3], raised)))
    for one, two in zip(before, changed.equations(0, 3, support), strict=True):
        assert np.array_equal(one, two)


def test_a_weight_is_the_inverse_variance_and_stays_finite():
    assert query_weight(2.0) == 0.5
    assert query_weight(0.0) == query_weight(1e-30) == 1e4
    assert query_weight(np.inf) == 0.0


@pytest.mark.parametrize("support", [np.array([3, 4, 90, 800, 2000]), np.arange(0, 2016, 7)])
def test_geounits_of_different_budgets_have_equations_of_their_own(support):
    kinds = np.array([2, 0, 2, 1, 1], np.int32)
    variances = np.array([VARIANCES, [np.inf] * 4, np.array(VARIANCES) / 3])
    even = objective(5, 5)
    mixed = LevelObjective.of(even.labels, variances, even.source.values, kinds)
    h, h_of, b = mixed.equations(0, 5, support)
    assert h_of.tolist() == [2, 0, 2, 1, 1]
    plain_h, _, plain_b = even.equations(0, 5, support)
    np.testing.assert_allclose(h, plain_h * np.array([1, 0, 3])[:, None, None], rtol=1e-14)
    np.testing.assert_allclose(b, plain_b * np.array([3, 1, 3, 0, 0])[:, None], rtol=1e-13)
    present, h_of, _ = mixed.equations(2, 5, support)
    assert len(present) == 2
    assert h_of.tolist() == [1, 0, 0]
    assert np.array_equal(present, h[[1, 2]])


def test_b_is_the_same_bits_wherever_the_answers_come_from():
    class Drawn:
        """Answers that are handed out on demand, in chosen columns only."""

        def __init__(self, values):
            self._values = values

        def answers(self, query, first, last, chosen):
            return self._values[query][first:last].astype(np.int64)[:, chosen].copy()

    stored = objective(6, 9)
    drawn = LevelObjective.drawing(stored.labels, VARIANCES, stored.kinds, Drawn(stored.source.values))
    for support in (np.array([0, 7, 8, 1999]), np.arange(2016)):
        for one, two in zip(stored.equations(1, 8, support), drawn.equations(1, 8, support), strict=True):
            assert np.array_equal(one, two)


CELLS, GEOUNITS = 60, 40


def random_objective(kinds=3, seed=1):
    rng = np.random.default_rng(seed)
    labels = [rng.integers(0, size, CELLS).astype(np.int32) for size in (1, 4, 25)]
    labels.append(np.arange(CELLS, dtype=np.int32))
    values = [rng.integers(-80, 80, (GEOUNITS, int(label.max()) + 1)).astype(np.int32) for label in labels]
    values[1] = values[1].astype(np.int64) << 40
    variances = rng.random((kinds, len(labels))) * 9 + 0.1
    variances[0, 2] = np.inf
    return LevelObjective.of(labels, variances, values, rng.integers(0, kinds, GEOUNITS).astype(np.int32))


def families(seed=2):
    """Parents of all sizes: of one cell, of no children, of many of both; children in a row."""
    rng = np.random.default_rng(seed)
    children, cells = [4, 1, 0, 20, 15], [7, 1, 3, 60, 12]
    return Families(
        np.cumsum([0, *children]).astype(np.int64),
        np.arange(sum(children), dtype=np.int64),
        np.cumsum([0, *cells]).astype(np.int64),
        np.concatenate([np.sort(rng.choice(CELLS, size, replace=False)) for size in cells]).astype(np.int32),
    )


def test_right_sides_of_many_parents_are_the_bits_of_one_parent_after_another():
    level, some = random_objective(), families()
    found, start = level.right_sides(some), 0
    for parent in range(some.parents):
        first, last = (int(one) for one in some.child_ptr[parent : parent + 2])
        support = some.cell[some.cell_ptr[parent] : some.cell_ptr[parent + 1]].astype(np.int64)
        size = (last - first) * len(support)
        if size:
            alone = level.equations(first, last, support)[2]
            assert np.array_equal(alone.reshape(-1), found[start : start + size])
        start += size
    assert start == len(found)


def test_children_need_not_be_all_of_them():
    level = random_objective()
    support = np.array([3, 8, 9, 40], np.int32)
    one = Families(
        np.array([0, 7]),
        np.arange(5, 12),
        np.array([0, len(support)]),
        np.ascontiguousarray(support, np.int32),
    )
    whole = level.right_sides(one).reshape(7, 4)
    some = Families(np.array([0, 3]), np.array([6, 7, 11]), np.array([0, 4]), support)
    assert np.array_equal(whole[[1, 2, 6]], level.right_sides(some).reshape(3, 4))


def test_exactly_the_answers_with_a_cell_are_wanted_once_and_rising():
    level, some = random_objective(), families()
    wanted, place = reads_of_cells(some, level.label_matrix)
    for parent in range(some.parents):
        answers = slice(int(wanted.answer_ptr[parent]), int(wanted.answer_ptr[parent + 1]))
        cells = slice(int(some.cell_ptr[parent]), int(some.cell_ptr[parent + 1]))
        expected = [
            (query, answer)
            for query, label in enumerate(level.labels)
            for answer in sorted(set(label[some.cell[cells]].tolist()))
        ]
        named = list(zip(wanted.query[answers].tolist(), wanted.answer[answers].tolist(), strict=True))
        assert expected == named
        for query, label in enumerate(level.labels):
            chosen = [named[one] for one in place[query, cells]]
            assert [(query, int(label[cell])) for cell in some.cell[cells]] == chosen
