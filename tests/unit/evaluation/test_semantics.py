import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from censafe.evaluation.semantics import power_curve
from censafe.privacy.loss.attack import (
    MovedQuery,
    best_attack,
    gaussian_power,
    zcdp_power,
)


def enumerated(queries: list[tuple[float, int]], level: float, *, randomized: bool) -> float:
    """Power of the best test by listing every outcome of all cells."""
    outcomes: dict[float, list[float]] = {}
    axes = []
    for sigma2, cells in queries:
        reach = math.ceil(8 * math.sqrt(sigma2)) + 1
        mass = [math.exp(-k * k / (2 * sigma2)) for k in range(-reach, reach + 2)]
        whole = sum(math.exp(-k * k / (2 * sigma2)) for k in range(-60, 61))
        axes += [[(k, sigma2, mass[k + reach] / whole) for k in range(-reach, reach + 2)]] * cells
    for point in product(*axes):
        ratio = sum(
            (k - 0.5) / sigma2 for k, sigma2, _ in point
        )  # an answer k is k under one, k - 1 under the other
        null = math.prod(p for _, _, p in point)
        held = outcomes.setdefault(round(ratio, 9), [0.0, 0.0])
        held[0] += null
        held[1] += null * math.exp(ratio)
    size = power = 0.0
    for ratio in sorted(outcomes, reverse=True):
        null, other = outcomes[ratio]
        if size + null > level:
            return power + ((level - size) / null * other if randomized else 0.0)
        size, power = size + null, power + other
    return power


@pytest.mark.parametrize(
    ("queries", "randomized"),
    [
        *(
            (queries, True)
            for queries in ([(4.0, 1)], [(2.0, 2)], [(1.5, 1), (3.0, 1)], [(1.0, 2), (2.7, 1)])
        ),
        ([(4.0, 1)], False),
        ([(2.0, 2)], False),
    ],
)
def test_power_equals_the_enumeration_of_all_outcomes(
    queries: list[tuple[float, int]], randomized: bool
) -> None:
    """Without randomization it stops before the level; where two queries have equal ratios, the lattice breaks their ties, and enumeration does not."""
    moved = [MovedQuery(Fraction(str(sigma2)), cells) for sigma2, cells in queries]
    levels = [0.013, 0.0517, 0.31]
    expected = [enumerated(queries, level, randomized=randomized) for level in levels]
    assert best_attack(moved).powers(levels, randomized=randomized) == pytest.approx(expected, abs=1e-5)


def test_power_nears_the_gaussian_for_wide_noise_and_never_exceeds_the_bound() -> None:
    levels = [0.01, 0.05, 0.5, 0.99]
    curve = power_curve(Fraction(1, 5), [MovedQuery(Fraction(5))], levels)
    assert curve.column_names == [
        "false_alarm", "gaussian", "discrete_gaussian", "discrete_gaussian_randomized", "bound",
    ]  # fmt: skip
    wide = best_attack([MovedQuery(Fraction(5_000), 1)] * 4).powers(levels)
    exact = [gaussian_power(Fraction(4, 10_000), level) for level in levels]
    assert wide == pytest.approx(exact, abs=1e-4)
    for level, power in zip(levels, exact, strict=True):
        assert level < power <= zcdp_power(Fraction(4, 10_000), level)


def test_power_needs_a_query() -> None:
    with pytest.raises(ValueError, match="at least one query"):
        best_attack([])


def test_wide_noise_adds_little_to_the_level_and_power_rises_with_it() -> None:
    found = best_attack([MovedQuery(Fraction(10**6))]).powers([0.05, 0.5])
    assert found == pytest.approx(
        [gaussian_power(Fraction(1, 10**6), level) for level in (0.05, 0.5)], abs=1e-6
    )
    assert np.all(
        np.diff(best_attack([MovedQuery(Fraction(2))]).powers(np.linspace(0.01, 0.99, 50).tolist())) > 0
    )
