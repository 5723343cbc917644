"""Intervals from replicates: the Bureau's worked example, its conditions one by one, and replicates that do not belong together."""

import numpy as np
import pytest
from scipy.stats import t

from censafe.products.topdown.census_tables.intervals import ReplicateErrors


def replicated(value: float, errors: list[float], confidence: float = 0.9, *, whole: bool = True):
    found = ReplicateErrors(np.array([value]))
    for error in errors:
        found.add(np.array([value + error]))
    return found.intervals(confidence, outward=whole)


def test_the_worked_example_of_maine() -> None:
    bias, rmse = 2.96, 6.85
    spread = (rmse**2 - bias**2) ** 0.5
    found = replicated(831, [bias + spread, bias - spread] * 25)
    assert (found.bias[0], found.rmse[0]) == pytest.approx((bias, rmse))
    assert (found.low.tolist(), found.high.tolist()) == ([817], [845])


@pytest.mark.parametrize(
    ("value", "errors", "corrected"),
    [
        (100, [9, 11], True),
        (100, [-9, -11], True),
        (24, [9, 11], False),
        (24, [-9, -11], True),
        (5, [-2, -3], False),
        (100, [30, -10], False),
    ],
)
def test_the_bias_is_subtracted_where_the_rule_says(
    value: float, errors: list[float], *, corrected: bool
) -> None:
    found = replicated(value, errors * 5)
    middle = value - (np.mean(errors) if corrected else 0)
    half = t.ppf(0.95, 5) * np.sqrt(np.mean(np.square(errors)))
    assert found.low[0] == max(0, np.floor(middle - half))
    assert found.high[0] == np.ceil(middle + half)


def test_medians_are_neither_rounded_nor_corrected_and_those_of_nobody_have_no_interval() -> None:
    found = replicated(38.5, [1.0, 1.5] * 5, whole=False)
    half = t.ppf(0.95, 5) * np.sqrt((1 + 1.5**2) / 2)
    assert (found.low[0], found.high[0]) == pytest.approx((38.5 - half, 38.5 + half))
    nobody = replicated(float("nan"), [1.0, 1.5] * 5, whole=False)
    assert np.isnan(nobody.low[0])
    assert np.isnan(nobody.high[0])


def test_exact_values_have_intervals_without_width() -> None:
    found = replicated(40, [0] * 10)
    assert (found.low[0], found.high[0], found.rmse[0]) == (40, 40, 0)


@pytest.mark.parametrize("number", [1, 2, 9])
def test_few_replicates_are_refused(number: int) -> None:
    with pytest.raises(ValueError, match="10 replicates"):
        replicated(40, [0] * number)
