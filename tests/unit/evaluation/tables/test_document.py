"""How sure shares and margins of a table product's evaluation are, against draws and sums of the laws themselves."""

import math
from fractions import Fraction

import numpy as np
import pytest

from censafe.evaluation.tables.document import bias_doubt, chance_within, few_draws, pooled_share, share_doubt
from censafe.model import NoiseLaw

LAPLACE = np.random.Generator(np.random.PCG64(1)).laplace(size=(4_000, 40))
NORMAL = np.random.Generator(np.random.PCG64(2)).normal(size=(4_000, 40))


def test_the_chance_of_a_sum_is_that_of_the_convolved_laws() -> None:
    support = np.arange(-80, 81)
    one = np.exp(-(support**2) / 18.0)
    one /= one.sum()
    three = np.convolve(np.convolve(one, one), one)
    center = len(three) // 2
    for margin in (0, 3, 11):
        wanted = three[center - margin : center + margin + 1].sum()
        assert chance_within(NoiseLaw.gaussian(Fraction(9)), 3, margin) == pytest.approx(wanted, abs=1e-12)
    assert math.isnan(chance_within(NoiseLaw.gaussian(Fraction(1)), 3, 2))


@pytest.mark.parametrize(("symbol", "errors"), [("rho", NORMAL), ("epsilon", LAPLACE)])
@pytest.mark.parametrize("draws", [20, 40])
def test_few_draws_find_too_small_a_margin_by_as_much_as_is_said(
    symbol: str, errors: np.ndarray, draws: int
) -> None:
    sizes = np.sort(np.abs(errors[:, :draws]), axis=1)[:, math.ceil(0.9 * draws) - 1]
    margin = 1.6448536 if symbol == "rho" else math.log(10)
    said = few_draws({"symbol": symbol, "confidence": 0.9}, draws)
    assert np.median(sizes) / margin == pytest.approx(said, abs=0.02)


@pytest.mark.parametrize(
    ("symbol", "errors", "margin"), [("rho", NORMAL, 1.6448536), ("epsilon", LAPLACE, math.log(10))]
)
def test_the_doubt_of_a_bias_is_two_standard_errors(symbol: str, errors: np.ndarray, margin: float) -> None:
    said = bias_doubt({"symbol": symbol, "confidence": 0.9}, [30, 10], [margin, margin])
    assert said == pytest.approx(2 * errors.mean(axis=1).std(), rel=0.06)


def test_shares_of_nothing_have_no_number() -> None:
    assert math.isnan(pooled_share([], []))
    assert math.isnan(share_doubt(0.9, 0))
    assert pooled_share([0, 2], [None, 0.5]) == 0.5
    assert math.isnan(pooled_share([1, 2], [None, 0.5]))
