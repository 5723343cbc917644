"""Targets as they are written, the variance that each allows, and the cheapest budgets: closed forms, certificates, and rounding that never misses a target."""

from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

from censafe.errors import ConfigError
from censafe.model import NoiseLaw
from censafe.planning.prices.targets import (
    Goal,
    Request,
    Target,
    TargetQuery,
    Term,
    achieve,
    exact_goal_variance,
    factor_of,
    largest_variance,
    least_budgets,
    parse_target,
    round_budget,
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


def goal(name: str, limit: int | Fraction, *terms: tuple[int | Fraction, dict[str, int]]) -> Goal:
    return Goal(
        name,
        Fraction(limit),
        tuple(Term(Fraction(a), {k: Fraction(v) for k, v in weights.items()}) for a, weights in terms),
    )


SHARED = [
    goal("sum", 5, (2, {"total": 4, "cells": 1}), (3, {"cells": 1})),
    goal("cell", 2, (1, {"total": 1, "cells": 4}), (Fraction(1, 2), {"cells": 2, "pairs": 1})),
    goal("pairs", 9, (4, {"pairs": 3, "cells": 1})),
]


def test_the_largest_demand_on_one_budget_decides_and_alone_has_a_price() -> None:
    found = least_budgets(
        [goal("a", 4, (2, {"x": 1})), goal("b", 1, (2, {"x": 1})), goal("c", 5, (1, {"y": 1}))]
    )
    assert found.budgets == {"x": Fraction(2), "y": Fraction(1, 5)}
    assert found.prices == pytest.approx((0, 2, 0.04))
    assert found.lower_bound == pytest.approx(2.2)


def test_shared_budgets_meet_every_goal_in_fractions_and_no_others_are_cheaper() -> None:
    found = least_budgets(SHARED)
    for one in SHARED:
        variance = exact_goal_variance(one, found.budgets)
        assert variance is not None
        assert variance <= one.limit
    assert found.lower_bound <= found.total <= found.lower_bound * (1 + 1e-4)


def test_the_lower_bound_holds_for_random_budgets_that_meet_the_goals() -> None:
    found = least_budgets(SHARED)
    random = np.random.default_rng(7)
    for draw in random.dirichlet(np.ones(3), 400):
        trial = {name: Fraction(float(x)) for name, x in zip(found.budgets, draw, strict=True)}
        needed = max(float(exact_goal_variance(one, trial) or 10**9) / float(one.limit) for one in SHARED)
        assert needed >= found.lower_bound * (1 - 1e-9)


def test_prices_are_what_a_wider_limit_saves() -> None:
    found = least_budgets(SHARED)
    for i, one in enumerate(SHARED):
        step = one.limit / 1000
        wider = [*SHARED[:i], Goal(one.name, one.limit + step, one.terms), *SHARED[i + 1 :]]
        saved = (found.lower_bound - least_budgets(wider).lower_bound) / float(step)
        assert found.prices[i] == pytest.approx(saved, rel=0.02, abs=1e-4)


def test_nothing_measured_is_said() -> None:
    with pytest.raises(ConfigError, match="lost: no budget reaches this target"):
        least_budgets([goal("lost", 1, (1, {}))])
    assert exact_goal_variance(goal("x", 1, (1, {"a": 1})), {}) is None


def test_budgets_are_rounded_to_the_safe_side() -> None:
    third = Fraction(1, 3)
    assert round_budget(third, up=False) < third < round_budget(third, up=True)
    assert round_budget(Fraction(5), up=True) == 5
    assert round_budget(Fraction(0), up=True) == 0


def test_a_solver_that_fails_leaves_a_plan_that_meets_its_targets(monkeypatch: pytest.MonkeyPatch) -> None:
    goals = [goal("one", 4, (2, {"a": 1, "b": 1})), goal("two", 9, (3, {"a": 1, "c": 2}))]

    def failing(*arguments: object, **options: object) -> None:
        raise RuntimeError("Maximum number of iterations reached.")

    monkeypatch.setattr("scipy.optimize.minimize", lambda *a, **o: SimpleNamespace(x=np.full(3, np.nan)))
    monkeypatch.setattr("scipy.optimize.nnls", failing)
    solution = least_budgets(goals)
    assert all((exact_goal_variance(one, solution.budgets) or 99) <= one.limit for one in goals)
    assert solution.lower_bound == 0
