import numpy as np
import pytest

from censafe.estimation.topdown.normal_equations import LevelObjective, query_weight
from censafe.products.topdown.shipped import shipped_schemas

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
    h, b = level.equations(2, 6, support)
    wanted_h, wanted_b = np.zeros((40, 40)), np.zeros((4, 40))
    for query, variance, values in zip(QUERIES, VARIANCES, level.values, strict=True):
        a = np.zeros((query.answers, 40))
        a[query.label[support], np.arange(40)] = 1
        wanted_h += a.T @ a / variance
        wanted_b += values[2:6] @ a / variance
    np.testing.assert_allclose(h, wanted_h, rtol=1e-14)
    np.testing.assert_allclose(b, wanted_b, rtol=1e-13)


def test_answers_of_cells_that_the_parent_lacks_change_nothing():
    level = objective(1, 3)
    support = np.array([0, 5, 70, 300])
    before = level.equations(0, 3, support)
    touched = level.values[3].copy()
    touched[:, np.setdiff1d(np.arange(2016), support)] += 1000
    changed = LevelObjective(level.labels, level.weights, (*level.values[:3], touched))
    for one, two in zip(before, changed.equations(0, 3, support), strict=True):
        assert np.array_equal(one, two)


def test_a_weight_is_the_inverse_variance_and_stays_finite():
    assert query_weight(2.0) == 0.5
    assert query_weight(0.0) == query_weight(1e-30) == 1e4
