"""Targets as they are written, and the variance that each allows."""

from fractions import Fraction

import pytest

from censafe.errors import ConfigError
from censafe.model import NoiseLaw
from censafe.planning.prices.targets import (
    Request,
    Target,
    TargetQuery,
    Term,
    achieve,
    factor_of,
    largest_variance,
    parse_target,
)
from censafe.privacy.loss.margins import exact_coverage

NINETY = Fraction(9, 10)


def asked(name: str, l2_squared: int) -> TargetQuery:
    return TargetQuery(name, (Term(Fraction(l2_squared, 2), {name: Fraction(1)}),), True)


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("PH3/state_A-G=20@90%", Target("PH3/state_A-G", Fraction(20), NINETY)),
        ("county_2=2.5@0.95", Target("county_2", Fraction(5, 2), Fraction(19, 20))),
        ("persons.a * b/County=1/3", Target("persons.a * b/County", Fraction(1, 3), None)),
    ],
)
def test_targets_are_read_exactly(text: str, target: Target) -> None:
    assert parse_target(text) == target


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("PH3", "write NAME=MARGIN@CONFIDENCE"),
        ("=3", "write NAME=MARGIN@CONFIDENCE"),
        ("PH3=0", "a margin of error of 0 has no budget"),
        ("PH3=-4@90%", "a margin of error of -4 has no budget"),
        ("PH3=many", "the margin of error: 'many' is not a number"),
        ("PH3=1/0", "is not a finite number"),
        ("PH3=20@high", "the confidence: 'high' is not a number"),
        ("PH3=20@100%", "a confidence of 100% is not between"),
        ("PH3=20@0", "a confidence of 0 is not between"),
    ],
)
def test_what_is_wrong_with_a_target_is_said(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_target(text)


@pytest.mark.parametrize("margin", ["0.5", "1.9", "2", "7.99", "20", "500"])
@pytest.mark.parametrize("confidence", ["0.5", "0.9", "0.95", "0.999"])
def test_the_allowed_noise_covers_exactly_and_by_the_rule(margin: str, confidence: str) -> None:
    m, c = Fraction(margin), Fraction(confidence)
    limit = largest_variance(m, c, integral=True)
    assert exact_coverage(NoiseLaw.gaussian(limit), int(m)) >= float(c)
    assert factor_of(c) ** 2 * limit <= m**2
    assert largest_variance(m, c, integral=False) >= limit


def test_a_confidence_out_of_reach_is_said() -> None:
    with pytest.raises(ConfigError, match=r"out of reach|closer to 1"):
        largest_variance(Fraction(1, 2), 1 - Fraction(1, 10**50), integral=True)


def test_a_total_is_shared_out_in_proportion_and_never_exceeded() -> None:
    requests = [Request(asked("a", 4), Fraction(10), NINETY), Request(asked("b", 9), Fraction(30), NINETY)]
    least = achieve(requests, Fraction(0), None)
    assert sum(least.budgets.values()) == least.solution.total
    total = 1 + Fraction(3, 2) * least.solution.total
    shared = achieve(requests, Fraction(1), total)
    assert Fraction(99999, 100000) * total < 1 + sum(shared.budgets.values()) <= total
    for before, after in zip(least.achieved, shared.achieved, strict=True):
        assert after.margin == pytest.approx(before.margin / 1.5**0.5, rel=1e-4)
        assert after.price > before.price
    with pytest.raises(ConfigError, match="is spent on what no target is about"):
        achieve(requests, Fraction(1), Fraction(1))


def test_the_price_of_a_margin_is_what_one_more_saves() -> None:
    (narrow,), (wide,) = (
        achieve([Request(asked("a", 484), Fraction(m), NINETY)], Fraction(0), None).achieved
        for m in ("100", "100.01")
    )
    rho = [484 / (2 * float(one.variance)) for one in (narrow, wide)]
    assert narrow.price == pytest.approx((rho[0] - rho[1]) / 0.01, rel=2e-2)
