import math
from fractions import Fraction
from statistics import NormalDist

import pytest

from censafe.model import Definition
from censafe.privacy.loss.attack import best_guess, largest_power

FIVE = Fraction(5, 100)


@pytest.mark.parametrize(("level", "power"), [("1/100", 0.03739), ("5/100", 0.14018), ("1/10", 0.24036)])
def test_the_bound_for_rho_is_the_published_one(level: str, power: float) -> None:
    found = largest_power(Fraction("0.1115007"), Definition.ZCDP, Fraction(level))
    assert power == pytest.approx(found, abs=1e-4)
    assert found >= power - 1e-5


@pytest.mark.parametrize("rho", ["1/1000", "1/10", "1", "2", "5"])
def test_no_gaussian_test_beats_the_bound(rho: str) -> None:
    normal = NormalDist()
    gaussian = normal.cdf(math.sqrt(2 * Fraction(rho)) - normal.inv_cdf(0.95))
    assert gaussian <= largest_power(Fraction(rho), Definition.ZCDP, FIVE) <= 1


def test_the_bound_for_epsilon_is_attained_by_randomized_response() -> None:
    epsilon = math.log(3)
    found = largest_power(Fraction(epsilon), Definition.PURE, Fraction(1, 4))
    assert found == pytest.approx(0.75, abs=1e-4)


@pytest.mark.parametrize("definition", list(Definition))
def test_the_bound_starts_at_the_level_and_grows_with_the_loss(definition: Definition) -> None:
    losses = [Fraction(n, 10) for n in range(40)]
    powers = [largest_power(loss, definition, FIVE) for loss in losses]
    assert powers[0] == pytest.approx(0.05)
    assert sorted(powers) == powers
    assert largest_power(Fraction(1000), definition, FIVE) == 1.0


def test_nonsense_is_refused() -> None:
    with pytest.raises(ValueError, match="negative"):
        largest_power(Fraction(-1), Definition.PURE, FIVE)
    with pytest.raises(ValueError, match="level"):
        largest_power(Fraction(1), Definition.PURE, Fraction(1))


@pytest.mark.parametrize("definition", list(Definition))
@pytest.mark.parametrize("loss", ["1/1000", "1/10", "1", "3"])
def test_no_point_of_the_curve_gives_a_better_guess(definition: Definition, loss: str) -> None:
    """Both bounds are of the same region: the best point of the curve is the one with equal errors, and the guess attains it."""
    best = best_guess(Fraction(loss), definition)
    levels = [Fraction(number, 200) for number in range(1, 200)]
    guesses = [(1 - float(level) + largest_power(Fraction(loss), definition, level)) / 2 for level in levels]
    assert max(guesses) <= best + 1e-4
    assert max(guesses) >= best - 0.004


@pytest.mark.parametrize("rho", ["1/1000", "1/10", "1", "2"])
def test_no_guess_from_gaussian_noise_beats_the_bound(rho: str) -> None:
    gaussian = NormalDist().cdf(math.sqrt(2 * Fraction(rho)) / 2)
    assert gaussian <= best_guess(Fraction(rho), Definition.ZCDP) <= 1


def test_randomized_response_attains_the_guess_of_pure_dp() -> None:
    assert best_guess(Fraction(math.log(3)), Definition.PURE) == pytest.approx(0.75, abs=1e-4)
    with pytest.raises(ValueError, match="negative"):
        best_guess(Fraction(-1), Definition.PURE)
