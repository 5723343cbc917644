import math
from fractions import Fraction
from statistics import NormalDist

import pytest

from censafe.model import Definition
from censafe.privacy.loss.attack import largest_power

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
