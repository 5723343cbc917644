from fractions import Fraction

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from censafe.privacy.noise.enclosures import Magnitudes, enclose, exp_neg
from support.noise import exact_fraction, folded_probabilities, law


@settings(max_examples=150)
@given(
    st.fractions(min_value=0, max_value=2000, max_denominator=10**9),
    st.integers(min_value=8, max_value=400),
)
def test_exp_neg_encloses_the_truth_within_two_units(x: Fraction, bits: int) -> None:
    lower, upper = exp_neg(x, bits)
    with mpmath.workprec(4 * bits + 4000):
        truth = mpmath.ldexp(mpmath.exp(-exact_fraction(x)), bits)
        assert lower <= truth <= upper
    assert 0 <= upper - lower <= 2


def test_exp_neg_of_zero_is_exact() -> None:
    assert exp_neg(Fraction(0), 70) == (1 << 70, 1 << 70)


def test_exp_neg_of_a_huge_exponent_is_below_one_unit() -> None:
    assert exp_neg(Fraction(10**12), 64) == (0, 1)


def test_exp_neg_refuses_a_negative_exponent() -> None:
    with pytest.raises(ValueError, match="at least 0"):
        exp_neg(Fraction(-1, 10), 64)


@pytest.mark.parametrize(
    ("kind", "parameter"),
    [("gaussian", "4"), ("gaussian", "1/100"), ("gaussian", "7849/3"), ("laplace", "1/7"), ("laplace", "40")],
)
def test_probabilities_lie_between_their_bounds(kind: str, parameter: str) -> None:
    noise = law(kind, parameter)
    enclosure = enclose(Magnitudes.of(noise), 200)
    with mpmath.workprec(500):
        truth = folded_probabilities(noise, 330)
        for k, (low, high) in enumerate(zip(enclosure.lower, enclosure.upper, strict=True)):
            assert low <= mpmath.ldexp(truth[k], 200) <= high
            assert high - low <= 2
        assert sum(truth[len(enclosure.lower) :]) < mpmath.ldexp(1, -199)


def test_one_sided_law_counts_every_outcome_once() -> None:
    noise = law("laplace", "8")
    enclosure = enclose(Magnitudes.of(noise, folded=False, divisor=4), 100)
    with mpmath.workprec(300):
        q = mpmath.exp(mpmath.mpf(-1) / 2)
        for k in range(20):
            truth = mpmath.ldexp((1 - q) * q**k, 100)
            assert enclosure.lower[k] <= truth <= enclosure.upper[k]


@pytest.mark.parametrize("step", [Fraction(0), Fraction(1, 1 << 90)])
def test_a_ratio_that_looks_like_one_is_refused(step: Fraction) -> None:
    with pytest.raises(ArithmeticError, match="told from 1"):
        enclose(Magnitudes(Fraction(1, 1 << 90), step, folded=True), 2)
