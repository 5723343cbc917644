"""Cheapest budgets: closed forms, certificates of optimality, and rounding that never misses a target."""

from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

from censafe.errors import ConfigError
from censafe.planning.prices.targets import Goal, Term, exact_goal_variance, least_budgets, round_budget


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
