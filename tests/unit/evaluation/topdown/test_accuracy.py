"""Bias by class of areas: a slow recount, and classes without areas."""

import numpy as np
import pytest

from censafe.evaluation.areas import Strata
from censafe.evaluation.counts.cells import cells_of_counts
from censafe.evaluation.topdown.accuracy import Compared, _slope
from censafe.evaluation.topdown.evaluation import bias_by_class, bias_frame


def test_bias_is_the_mean_residual_of_the_areas_of_a_class_whatever_is_empty() -> None:
    draws = np.random.default_rng(5)
    true = draws.poisson(0.7, (40, 3))
    runs = [draws.poisson(0.7, (40, 3)) for _ in range(3)]
    of_area = draws.integers(-1, 4, 40).astype(np.int32)
    of_area[of_area == 2] = 0  # nobody is in class 2
    of_area[np.flatnonzero(of_area == 3)[1:]] = 1  # and one area in class 3
    found = bias_by_class([cells_of_counts(true, one) for one in runs], of_area, 4)
    for at in (0, 1, 3):
        inside = np.flatnonzero(of_area == at)
        assert len(inside) == found["n_areas"][at]
        for answer in range(3):
            errors = [np.mean([run[area, answer] - true[area, answer] for run in runs]) for area in inside]
            assert np.mean(errors) == pytest.approx(found["bias"][at, answer])
            assert np.mean(true[inside, answer]) == pytest.approx(found["count_mean"][at, answer])
            if len(inside) > 1:
                error = np.std(errors, ddof=1) / np.sqrt(len(inside))
                assert error == pytest.approx(found["se"][at, answer])
    assert found["n_areas"][2] == 0
    assert np.isnan(found["bias"][2]).all()
    assert np.isnan(found["se"][3]).all()


def test_the_frame_has_a_row_for_each_answer_of_each_class_that_holds_areas() -> None:
    cells = cells_of_counts(np.array([[1, 0], [2, 2]]), np.array([[0, 0], [2, 5]]), level="County")
    one = Compared("persons", "County", "sex", {"topdown": (cells,)})
    strata = Strata("population", ("0-9", "10+"), np.zeros(2, np.int32))
    rows = bias_frame([one], {"County": [strata]}, {"persons/sex": ["male", "female"]}).to_pylist()
    assert [(row["label"], row["class"], row["bias"]) for row in rows] == [
        ("male", "0-9", -0.5),
        ("female", "0-9", 1.5),
    ]


# The slope of squared errors on the number of blocks, on errors whose growth is known.


@pytest.mark.parametrize("wanted", [0.0, 1.0])
def test_a_planted_slope_is_found(wanted: float) -> None:
    rng = np.random.default_rng(3)
    number = rng.integers(2, 2000, 3000)
    squares = (rng.standard_normal((4, 3000)) ** 2 * 50.0 * number**wanted).mean(axis=0)
    # standard error about sqrt(2 / 4 / 3000) / sd(log n) = 0.013
    assert _slope(number, squares) == pytest.approx(wanted, abs=0.06)


def test_few_areas_equal_numbers_and_exact_totals_have_no_slope() -> None:
    some = np.arange(1, 9)
    assert np.isnan(_slope(some, some.astype(float)))
    assert np.isnan(_slope(np.full(20, 5), np.ones(20)))
    assert np.isnan(_slope(np.arange(1, 21), np.zeros(20)))
