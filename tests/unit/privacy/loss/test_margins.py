"""Margins of error against the papers' tables, the golden table and direct sums."""

from fractions import Fraction

import mpmath
import pytest

from censafe.model import NoiseLaw
from censafe.privacy.loss.margins import (
    MarginRule,
    exact_coverage,
    exact_margin,
    one_sided_threshold,
    paper_margin,
    pure_margin,
    rho_for_margin,
    z_of,
)

NINETY, NINETY_FIVE = Fraction(9, 10), Fraction(19, 20)


def gaussian(sensitivity_squared, rho):
    return NoiseLaw.gaussian(Fraction(sensitivity_squared) / (2 * Fraction(rho)))


GOLDEN = [
    (gaussian(9, "1.9208"), NINETY_FIVE, "3.000", 3, "0.98009"),
    (gaussian(9, "0.142869"), NINETY_FIVE, "11.000", 11, "0.95981"),
    (gaussian(9, "0.006915"), NINETY_FIVE, "50.000", 50, "0.95227"),
    (gaussian(10, "2.134"), NINETY_FIVE, "3.000", 3, "0.98008"),
    (gaussian(10, "0.159"), NINETY_FIVE, "10.991", 11, "0.95997"),
    (gaussian(10, "0.008"), NINETY_FIVE, "49.000", 49, "0.95231"),
    (gaussian(22**2, "0.002619"), NINETY, "500.04", 500, "0.90034"),
    (gaussian(22**2, "0.016371"), NINETY, "200.00", 200, "0.90087"),
    (gaussian(22**2, "0.141622"), NINETY, "68.00", 68, "0.90251"),
    (gaussian(14**2, "0.001061"), NINETY, "499.94", 500, "0.90041"),
    (gaussian(14**2, "0.006630"), NINETY, "200.00", 200, "0.90088"),
    (gaussian(14**2, "0.662976"), NINETY, "20.00", 20, "0.90832"),
    (gaussian(4, "0.000022"), NINETY, "495.99", 496, "0.90038"),
    (gaussian(4, "0.000135"), NINETY, "200.22", 200, "0.90050"),
    (gaussian(4, "0.00117"), NINETY, "68.01", 68, "0.90245"),
]


@pytest.mark.parametrize(("law", "level", "paper", "margin", "coverage"), GOLDEN)
def test_golden_table_of_the_discrete_gaussian(law, level, paper, margin, coverage):
    digits = len(paper.partition(".")[2])
    # The table's paper column rounds 10.99995 and 49.9996 up to the target, so half a unit is allowed.
    assert paper_margin(law, level) == pytest.approx(float(paper), abs=max(0.5 * 10**-digits, 5e-4))
    assert (margin, coverage) == (exact_margin(law, level), f"{exact_coverage(law, margin):.5f}")


@pytest.mark.parametrize(
    ("scale", "margin", "coverage"), [(2, 5, ".93802"), (12, 28, ".90707"), (22, 51, ".90378")]
)
def test_golden_table_of_the_geometric_law(scale, margin, coverage):
    law = NoiseLaw.laplace(Fraction(scale))
    assert (margin, f"0{coverage}") == (exact_margin(law, NINETY), f"{exact_coverage(law, margin):.5f}")


def test_suppression_thresholds():
    chance = Fraction("0.9999")
    thresholds = [one_sided_threshold(NoiseLaw.gaussian(Fraction(s2)), chance) for s2 in ("31.4465", "625")]
    assert thresholds == [21, 93]


@pytest.mark.parametrize("law", [NoiseLaw.gaussian(Fraction("2.5")), NoiseLaw.laplace(Fraction(10, 3))])
@pytest.mark.parametrize("level", [Fraction(0), Fraction(1, 2), NINETY, NINETY_FIVE, 1 - Fraction(1, 10**12)])
def test_margin_is_the_smallest_that_covers(law, level):
    with mpmath.workdps(40):
        weights = [weight_of(law, k) for k in range(400)]
        total = weights[0] + 2 * mpmath.fsum(weights[1:])
        masses = [(weights[0] + 2 * mpmath.fsum(weights[1 : m + 1])) / total for m in range(200)]
        needed = mpmath.mpf(level.numerator) / level.denominator
        expected = next(m for m, mass in enumerate(masses) if mass >= needed)
        coverages = [float(mass) for mass in masses]
    assert expected == exact_margin(law, level)
    assert coverages == pytest.approx([exact_coverage(law, m) for m in range(200)], rel=1e-15)


def weight_of(law, k):
    parameter = mpmath.mpf(law.parameter.numerator) / law.parameter.denominator
    return mpmath.exp(-k * k / (2 * parameter) if law.kind == "gaussian" else -k / parameter)


def test_one_sided_threshold_by_direct_sum():
    law = NoiseLaw.gaussian(Fraction(3))
    with mpmath.workdps(40):
        weights = {k: weight_of(law, abs(k)) for k in range(-80, 81)}
        total = mpmath.fsum(weights.values())
        below = [mpmath.fsum(w for k, w in weights.items() if k <= t) / total for t in range(20)]
    for chance in (Fraction(1, 2), Fraction(3, 4), Fraction(99, 100)):
        expected = next(t for t, mass in enumerate(below) if mass >= float(chance))
        assert expected == one_sided_threshold(law, chance)


def test_large_sigma2_agrees_with_the_sum_and_is_monotone():
    summed, midpoint = NoiseLaw.gaussian(Fraction(10**8)), NoiseLaw.gaussian(Fraction(10**8) + 1)
    assert exact_margin(summed, NINETY) == exact_margin(midpoint, NINETY) == 16449
    assert exact_coverage(summed, 16449) == pytest.approx(exact_coverage(midpoint, 16449), rel=1e-8)
    assert exact_margin(NoiseLaw.gaussian(Fraction(10**14)), NINETY_FIVE) == 19599640
    with pytest.raises(ValueError, match="too close to 1"):
        exact_margin(midpoint, 1 - Fraction(1, 10**13))


def test_expected_margins_of_the_reference_reports():
    rule = MarginRule.REFERENCE
    assert paper_margin(gaussian(12**2, "0.1"), NINETY, rule) == pytest.approx(44.0, abs=0.05)
    assert paper_margin(gaussian(4, "0.2"), NINETY, rule) == pytest.approx(5.19, abs=0.005)
    doubled = NoiseLaw.gaussian(2 * gaussian(12**2, "0.1").parameter)
    assert paper_margin(doubled, NINETY, rule) == pytest.approx(62.2, abs=0.05)
    assert paper_margin(gaussian(22**2, "0.1"), NINETY, rule) == pytest.approx(80.7, abs=0.05)
    assert paper_margin(gaussian(32**2, "0.1"), NINETY, rule) == pytest.approx(117.3, abs=0.05)
    assert pure_margin(Fraction(12)) == pytest.approx(27.1, abs=0.05)
    assert paper_margin(NoiseLaw.laplace(Fraction(12)), NINETY) == pure_margin(Fraction(12))


def test_pure_margin_of_tiny_scales_is_zero():
    assert pure_margin(Fraction(1, 7)) == 0.0
    assert pure_margin(Fraction(1, 10**6)) == 0.0


def test_budget_and_margin_are_inverse_to_each_other():
    squared = Fraction(22**2)
    rho = rho_for_margin(Fraction(68), squared, NINETY)
    assert rho == squared * Fraction("1.645") ** 2 / (2 * 68**2)
    assert paper_margin(NoiseLaw.gaussian(squared / (2 * rho)), NINETY) == pytest.approx(68.0, rel=1e-15)
    assert round(float(rho), 6) == 0.141622


def test_exact_z_is_the_normal_quantile():
    from statistics import NormalDist

    for level, tail in ((NINETY, 0.95), (NINETY_FIVE, 0.975)):
        assert float(z_of(level, MarginRule.EXACT_Z)) == pytest.approx(NormalDist().inv_cdf(tail), rel=1e-14)


@pytest.mark.parametrize(
    "call",
    [
        lambda: exact_margin(NoiseLaw.gaussian(Fraction(1)), 0.9),
        lambda: exact_coverage(NoiseLaw.gaussian(Fraction(1)), 1.0),
        lambda: one_sided_threshold(NoiseLaw.gaussian(Fraction(1)), 0.9),
        lambda: rho_for_margin(500.0, Fraction(4), NINETY),
        lambda: pure_margin(2.0),
        lambda: z_of(0.9),
    ],
)
def test_floats_are_type_errors(call):
    with pytest.raises(TypeError, match="must be"):
        call()


@pytest.mark.parametrize(
    "call",
    [
        lambda: exact_margin(NoiseLaw.gaussian(Fraction(1)), Fraction(1)),
        lambda: exact_margin(NoiseLaw.gaussian(Fraction(1)), 1 - Fraction(1, 10**50)),
        lambda: exact_coverage(NoiseLaw.gaussian(Fraction(1)), -1),
        lambda: one_sided_threshold(NoiseLaw.gaussian(Fraction(1)), Fraction(1, 3)),
        lambda: rho_for_margin(Fraction(0), Fraction(4), NINETY),
        lambda: z_of(Fraction(1, 2)),
    ],
)
def test_values_out_of_range_are_refused(call):
    with pytest.raises(ValueError, match=r"level|margin|chance|rho|positive"):
        call()
