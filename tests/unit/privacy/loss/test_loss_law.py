"""The composition of discrete Gaussians against published values and against adding up every outcome."""

import math
from fractions import Fraction

import numpy as np
import pytest

from censafe.privacy.loss.attack import MovedQuery
from censafe.privacy.loss.conversions import gaussian_epsilon, slide_epsilon, tight_epsilon
from censafe.privacy.loss.loss_law import composed_epsilon, gathered, loss_of, spare_variance

DELTA = Fraction(1, 10**10)


def delta_by_enumeration(queries: list[MovedQuery], epsilon: float) -> float:
    """Sum of (P - e^epsilon Q)+ over all outcomes, every cell by itself."""
    p, q = np.ones(1), np.ones(1)
    for query in queries:
        sigma2 = float(query.sigma2)
        reach = math.ceil(9 * math.sqrt(sigma2)) + query.step
        k = np.arange(-reach, reach + 1)
        one, moved = (np.exp(-((k - shift) ** 2) / (2 * sigma2)) for shift in (query.step, 0))
        whole = np.exp(-(np.arange(-2 * reach, 2 * reach + 1) ** 2) / (2 * sigma2)).sum()
        for _ in range(query.cells):
            p = np.multiply.outer(p, one / whole).ravel()
            q = np.multiply.outer(q, moved / whole).ravel()
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


@pytest.mark.parametrize(
    "queries",
    [
        [MovedQuery(Fraction(4), 2)],
        [MovedQuery(Fraction(1, 2), 1)],
        [MovedQuery(Fraction(3), 2), MovedQuery(Fraction(9), 1, 3)],
        [MovedQuery(Fraction(400), 1, 22), MovedQuery(Fraction(2), 1)],
    ],
)
@pytest.mark.parametrize("delta", [Fraction(1, 1000), Fraction(1, 10**6)])
def test_the_bracket_holds_the_sum_over_all_outcomes(queries: list[MovedQuery], delta: Fraction) -> None:
    found = composed_epsilon(queries, delta)
    assert 0 < found.upper - found.lower < 2e-3
    assert delta_by_enumeration(queries, found.upper) <= delta * (1 + 1e-9)
    assert delta_by_enumeration(queries, found.lower) > delta * (1 - 1e-9)


@pytest.mark.parametrize(
    ("rho", "low", "high"),
    [("2.56", 16.472, 16.486), ("2.63", 16.735, 16.750), ("0.07", 2.272, 2.287)],
)
def test_72_equal_queries(rho: str, low: float, high: float) -> None:
    found = composed_epsilon([MovedQuery(72 / Fraction(rho), 2)] * 72, DELTA)
    assert low < found.lower < found.upper < high


def test_fewer_points_give_a_wider_bracket_around_the_same_value() -> None:
    queries = [MovedQuery(Fraction(s), 2) for s in (3, 5, 8, 40, 90)]
    fine, coarse = (composed_epsilon(queries, DELTA, points=1 << n) for n in (17, 12))
    assert coarse.lower < fine.lower < fine.upper < coarse.upper


def test_many_small_queries_are_one_continuous_gaussian() -> None:
    queries = [MovedQuery(Fraction(2000), 500)]
    found = composed_epsilon(queries, DELTA)
    assert found.upper == pytest.approx(gaussian_epsilon(loss_of(queries), DELTA), abs=1e-3)
    assert found.upper < tight_epsilon(loss_of(queries), DELTA)


def test_a_loss_too_small_to_see_needs_no_epsilon() -> None:
    assert composed_epsilon([MovedQuery(Fraction(10**6), 1)], Fraction(1, 10)).upper == 0
    with pytest.raises(ValueError, match="at least one query"):
        composed_epsilon([], DELTA)


def test_spare_variance_keeps_the_promise_and_cannot_be_raised() -> None:
    queries = [MovedQuery(Fraction(20), 2), MovedQuery(Fraction(7), 2)]
    epsilon = slide_epsilon(loss_of(queries), DELTA)
    spare = Fraction(str(spare_variance(queries, DELTA, epsilon)))
    after, more = (
        composed_epsilon([MovedQuery(q.sigma2 * (1 - share), q.cells) for q in queries], DELTA)
        for share in (spare, spare + Fraction(2, 1_000))
    )
    assert after.upper <= epsilon < more.upper
    assert spare_variance(queries, DELTA, 0.01) == 0


def test_cells_of_one_law_are_gathered() -> None:
    queries = [MovedQuery(Fraction(4), 2), MovedQuery(Fraction(4), 1, 2), MovedQuery(Fraction(4), 5)]
    assert gathered(queries) == (MovedQuery(Fraction(4), 7), MovedQuery(Fraction(4), 1, 2))
    assert loss_of(gathered(queries)) == loss_of(queries)
