"""Intervals of published counts from further runs."""

import numpy as np
import pytest

from censafe.estimation.topdown.intervals.simulated import ErrorClass, ErrorClasses


def test_many_errors_give_their_own_quantiles_turned_round():
    errors = np.repeat(np.arange(-10, 11), 10)
    skew = np.repeat([-1, 8], [300, 40])
    assert ErrorClass.of(skew).interval(0.9) == (-8.0, 1.0)
    assert ErrorClass.of(errors).interval(0.9) == (-9.0, 9.0)
    assert ErrorClass.of(errors).ends(0.9) == (-9.0, 9.0)
    assert ErrorClass.of(errors, empty=10_000).interval(0.9) == (0.0, 0.0)


def test_few_errors_give_mean_and_spread():
    low, high = ErrorClass.of(np.array([1, 3, 5])).interval(0.95)
    spread = 1.959964 * np.sqrt(8 / 3)
    np.testing.assert_allclose([-3 - spread, -3 + spread], [low, high], rtol=1e-6)


def test_joined_classes_are_those_of_all_errors():
    rng = np.random.default_rng(1)
    parts = [rng.integers(-4, 5, 300) for _ in range(3)]
    joined = ErrorClass.joined([ErrorClass.of(part) for part in parts])
    whole = ErrorClass.of(np.concatenate(parts))
    assert (whole.values.tolist(), whole.counts.tolist()) == (joined.values.tolist(), joined.counts.tolist())
    assert (900, whole.mean_size()) == (joined.number, float(np.abs(np.concatenate(parts)).mean()))


def test_errors_are_pooled_by_the_further_count_and_used_by_the_published_one():
    classes = ErrorClasses()
    published = np.repeat([[0, 50]], 300, axis=0)
    classes.add(published, published + np.array([0, 7]))
    low, high = classes.ends(np.array([[0, 57], [3, 20_000]]), 0.9)
    assert low.tolist() == [[0.0, 50.0], [3.0, 19_993.0]]
    assert high.tolist() == [[0.0, 50.0], [3.0, 19_993.0]]


def test_ends_are_not_below_zero_and_need_errors():
    classes = ErrorClasses()
    with pytest.raises(ValueError, match="no errors"):
        classes.ends(np.array([1]), 0.9)
    classes.add(np.repeat(2, 400), np.tile([1, 3], 200))
    assert [end.tolist() for end in classes.ends(np.array([0]), 0.9)] == [[0.0], [1.0]]
