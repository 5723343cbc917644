"""The slope of squared errors on the number of blocks, on errors whose growth is known."""

import numpy as np
import pytest

from censafe.evaluation.topdown.accuracy import _slope


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
