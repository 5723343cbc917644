"""Variances against published values and direct sums."""

from fractions import Fraction

import mpmath
import pytest

from censafe.model import NoiseLaw
from censafe.privacy.noise.variance import exact_variance, reference_variance


@pytest.mark.parametrize(
    ("sigma2", "printed"),
    [
        ("0.01", "3.857e-22"),
        ("0.1", "0.0132967"),
        ("0.25", "0.215013"),
        ("0.5", "0.498979"),
        ("1", "0.99999979"),
        ("2", "2.0000000"),
    ],
)
def test_discrete_gaussian_against_the_golden_table(sigma2, printed):
    digits = len(printed.partition(".")[2].partition("e")[0])
    form = f".{digits}e" if "e" in printed else f".{digits}f"
    assert printed == format(exact_variance(NoiseLaw.gaussian(Fraction(sigma2))), form)


@pytest.mark.parametrize("sigma2", ["1/100", "1/7", "0.4999", "1/2", "0.5001", "1", "3.3", "40", "900"])
def test_discrete_gaussian_is_the_nearest_float_to_the_direct_sum(sigma2):
    with mpmath.workdps(50):
        s2 = mpmath.mpf(Fraction(sigma2).numerator) / Fraction(sigma2).denominator
        weights = [(k, mpmath.exp(-k * k / (2 * s2))) for k in range(1, 600)]
        moment = 2 * mpmath.fsum(k * k * weight for k, weight in weights)
        expected = float(moment / (1 + 2 * mpmath.fsum(weight for _, weight in weights)))
    assert expected == exact_variance(NoiseLaw.gaussian(Fraction(sigma2)))


@pytest.mark.parametrize("scale", ["1/7", "1", "2", "10/3", "300", "1e9"])
def test_geometric_against_the_hyperbolic_form(scale):
    with mpmath.workdps(50):
        half = mpmath.mpf(Fraction(scale).denominator) / Fraction(scale).numerator / 2
        expected = float(1 / (2 * mpmath.sinh(half) ** 2))
    assert expected == exact_variance(NoiseLaw.laplace(Fraction(scale)))


def test_reference_values_of_the_bureau():
    half = Fraction(1, 2)
    joins = [
        reference_variance(NoiseLaw.gaussian((2 * tau + 2) ** 2 / (2 * rho)))
        for tau, rho in ((half, half), (Fraction(1), Fraction(1)), (Fraction(2), Fraction(2)))
    ]
    assert joins == [9.0, 8.0, 9.0]
    assert reference_variance(NoiseLaw.gaussian(2 / half)) == 4.0
    assert reference_variance(NoiseLaw.laplace(Fraction(4))) == pytest.approx(31.83385287773731, rel=1e-14)
    assert reference_variance(NoiseLaw.laplace(Fraction(1))) == pytest.approx(1.8413471884155848, rel=1e-14)


def test_extreme_parameters_neither_overflow_nor_stall():
    assert exact_variance(NoiseLaw.gaussian(Fraction(1, 10**9))) == 0.0
    assert exact_variance(NoiseLaw.gaussian(Fraction(10**17))) == 1e17
    assert exact_variance(NoiseLaw.laplace(Fraction(1, 10**6))) == 0.0
