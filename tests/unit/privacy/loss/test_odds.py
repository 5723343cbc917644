"""How far odds about one record move: against brute force over laws, and over random releases."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from censafe.model import Definition
from censafe.privacy.loss.attack import MovedQuery
from censafe.privacy.loss.conversions import ODDS_DELTAS, odds_bound
from censafe.privacy.loss.loss_law import loss_of, odds_epsilon

QUERIES = (
    (MovedQuery(Fraction(4), 2),),
    (MovedQuery(Fraction(1), 1, 3),),
    (MovedQuery(Fraction(9, 4), 1), MovedQuery(Fraction(1, 2), 1)),
)


def losses(queries: tuple[MovedQuery, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Every value of the privacy loss and its mass, cell by cell, without lattice, tilt or FFT."""
    values, mass = np.zeros(1), np.ones(1)
    for query in queries:
        sigma2 = float(query.sigma2)
        noise = np.arange(-math.ceil(16 * math.sqrt(sigma2)), math.ceil(16 * math.sqrt(sigma2)) + 1)
        weights = np.exp(-(noise**2) / (2 * sigma2))
        one = (2 * query.step * noise + query.step**2) / (2 * sigma2)
        for _ in range(query.cells):
            values = (values[:, None] + one).ravel()
            mass = (mass[:, None] * (weights / weights.sum())).ravel()
    return values, mass


def moved(queries: tuple[MovedQuery, ...], epsilon: float) -> float:
    """Chance that the odds move further than that, either way."""
    values, mass = losses(queries)
    return float(mass[np.abs(values) > epsilon].sum())


@pytest.mark.parametrize(
    ("queries", "delta"), list(itertools.product(QUERIES, (Fraction(1, 10), Fraction(1, 1000))))
)
def test_the_bracket_holds_the_smallest_epsilon(queries: tuple[MovedQuery, ...], delta: Fraction) -> None:
    found = odds_epsilon(queries, delta, points=1 << 15)
    assert moved(queries, found.upper) <= float(delta)
    assert moved(queries, found.lower - 1e-9) > float(delta)
    assert found.upper - found.lower < 0.01


def test_a_smaller_sigma_than_stated_is_found() -> None:
    stated, drawn = (MovedQuery(Fraction(4), 2),), (MovedQuery(Fraction(1), 2),)
    assert moved(drawn, odds_epsilon(stated, Fraction(1, 100), points=1 << 14).upper) > 0.05


@pytest.mark.parametrize("queries", QUERIES)
def test_rho_alone_bounds_what_the_noise_does(queries: tuple[MovedQuery, ...]) -> None:
    rho = loss_of(queries)
    for delta in ODDS_DELTAS[:4]:
        bound = odds_bound(rho, Definition.ZCDP, delta)
        assert moved(queries, bound) <= float(delta)
        assert odds_epsilon(queries, delta, points=1 << 14).upper <= bound


@pytest.mark.parametrize("rho", ["1/100", "1/2", "7/2"])
def test_both_tails_of_the_bound_are_delta_at_most(rho: str) -> None:
    for delta in ODDS_DELTAS:
        epsilon, loss = odds_bound(Fraction(rho), Definition.ZCDP, delta), float(Fraction(rho))
        tail = (1 + math.exp(-epsilon)) * math.exp(-((epsilon - loss) ** 2) / (4 * loss))
        assert 0.5 * float(delta) < tail <= float(delta)


def test_an_attacker_with_a_prior_is_right_no_more_often() -> None:
    """40,000 releases of two answers with noise of sigma2 = 4: posterior odds by Bayes' rule from a prior of 1 to 9."""
    rng = np.random.default_rng(5)
    law = np.exp(-(np.arange(-40, 41) ** 2) / 8)
    noise = rng.choice(np.arange(-40, 41), (40_000, 2), p=law / law.sum())
    delta = Fraction(1, 20)
    epsilon = odds_epsilon((MovedQuery(Fraction(4), 2),), delta, points=1 << 15).upper
    true, other = (np.exp(-(shift**2) / 8).prod(axis=1) for shift in (noise, noise + np.array([1, -1])))
    prior = 0.1
    posterior = prior * true / (prior * true + (1 - prior) * other)
    factor = posterior / (1 - posterior) / (prior / (1 - prior))
    further = float(np.mean(np.abs(np.log(factor)) > epsilon + 1e-9))
    assert further <= float(delta) + 5 * math.sqrt(0.05 * 0.95 / 40_000)  # false alarm 3e-7
    assert further > 0.02


def test_without_a_loss_no_odds_move_and_pure_privacy_bounds_them_always() -> None:
    assert odds_bound(Fraction(0), Definition.ZCDP, Fraction(1, 10)) == 0.0
    assert {odds_bound(Fraction(1, 4), Definition.PURE, delta) for delta in ODDS_DELTAS} == {0.25}
    with pytest.raises(ValueError, match="at least one query"):
        odds_epsilon((), Fraction(1, 10))
