"""The cheapest budgets that meet accuracy targets: a convex program, solved, rounded safely, and certified.

The variance of a target is a sum of a / (weighted sum of budgets), convex in the budgets. The least total follows from a float
solution that is rounded up and checked in fractions; multipliers of the targets give a lower bound by duality, and the prices.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from censafe.errors import ConfigError

_DIGITS: Final = 6
_TINY: Final = 1e-9
_Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class Term:
    """One summand of a variance, ``coefficient / sum of weight x budget``."""

    coefficient: Fraction
    weights: Mapping[str, Fraction]


@dataclass(frozen=True)
class Goal:
    """A variance that must not be exceeded."""

    name: str
    limit: Fraction
    terms: tuple[Term, ...]


@dataclass(frozen=True)
class Solution:
    """Budgets that meet all goals.

    Args:
        prices: by position of the goal, how much the total falls when the goal's limit rises by one unit of variance; 0 where the goal
            does not bind.
        lower_bound: no budgets with a smaller total meet the goals, up to the rounding of floats.
    """

    budgets: Mapping[str, Fraction]
    prices: tuple[float, ...]
    lower_bound: float

    @property
    def total(self) -> Fraction:
        """Sum of the budgets."""
        return sum(self.budgets.values(), Fraction(0))


def round_budget(value: Fraction, *, up: bool) -> Fraction:
    """A positive budget with six significant digits, rounded to the stated side.

    Example:
        >>> round_budget(Fraction(1, 3), up=True), round_budget(Fraction(1, 3), up=False)
        (Fraction(166667, 500000), Fraction(333333, 1000000))
    """
    if value == 0:
        return value
    unit = Fraction(10) ** (_DIGITS - 1 - math.floor(math.log10(value)))
    return Fraction(math.ceil(value * unit) if up else math.floor(value * unit)) / unit


def exact_goal_variance(goal: Goal, budgets: Mapping[str, Fraction]) -> Fraction | None:
    """Variance of a goal at these budgets; None where a summand has no budget at all.

    Example:
        >>> exact_goal_variance(Goal("x", Fraction(1), (Term(Fraction(2), {"a": Fraction(1)}),)), {"a": Fraction(4)})
        Fraction(1, 2)
    """
    total = Fraction(0)
    for term in goal.terms:
        information = sum(
            (weight * budgets.get(name, Fraction(0)) for name, weight in term.weights.items()), Fraction(0)
        )
        if information == 0:
            return None
        total += term.coefficient / information
    return total


def least_budgets(goals: Sequence[Goal]) -> Solution:
    """The budgets of least total under which no goal's variance exceeds its limit.

    Example:
        >>> one = Goal("own", Fraction(4), (Term(Fraction(2), {"a": Fraction(1)}),))
        >>> solution = least_budgets([one])
        >>> solution.budgets, solution.prices, solution.lower_bound
        ({'a': Fraction(1, 2)}, (0.125,), 0.5)
    """
    for goal in goals:
        if goal.limit <= 0 or not goal.terms or not all(term.weights for term in goal.terms):
            raise ConfigError(
                f"{goal.name}: no budget reaches this target; nothing it follows from is measured"
            )
    names = tuple(dict.fromkeys(name for goal in goals for term in goal.terms for name in term.weights))
    problem = _Problem(names, goals)
    budgets = problem.closed_form() if problem.separate else problem.solve()
    prices, bound = problem.certificate(budgets)
    exact = _rounded(goals, dict(zip(names, budgets, strict=True)))
    return Solution(exact, tuple(prices.tolist()), bound)


def _rounded(goals: Sequence[Goal], budgets: Mapping[str, float]) -> dict[str, Fraction]:
    """Six digits, upward, and upward again until every goal holds in fractions."""
    largest = max(budgets.values())
    scale = Fraction(1)
    for _ in range(60):
        exact = {
            name: round_budget(Fraction(f"{value:.12g}") * scale, up=True)
            if value > _TINY * largest
            else Fraction(0)
            for name, value in budgets.items()
        }
        variances = [exact_goal_variance(goal, exact) for goal in goals]
        if all(
            value is not None and value <= goal.limit for value, goal in zip(variances, goals, strict=True)
        ):
            return exact
        scale += Fraction(1, 10**6)
    raise ConfigError("the targets differ too much in size to be met together; give them in several plans")


class _Problem:
    """Variances and their gradients as arrays; budgets are in the order of ``names``."""

    def __init__(self, names: Sequence[str], goals: Sequence[Goal]) -> None:
        self.goals = goals
        place = {name: i for i, name in enumerate(names)}
        terms = [(i, term) for i, goal in enumerate(goals) for term in goal.terms]
        self.owner = np.array([i for i, _ in terms])
        self.coefficients = np.array([float(term.coefficient) for _, term in terms])
        self.weights = np.zeros((len(terms), len(names)))
        for row, (_, term) in enumerate(terms):
            for name, weight in term.weights.items():
                self.weights[row, place[name]] = float(weight)
        self.limits = np.array([float(goal.limit) for goal in goals])

    @property
    def separate(self) -> bool:
        """Whether every goal has one term with one budget."""
        return len(self.owner) == len(self.limits) and bool(np.all((self.weights > 0).sum(axis=1) == 1))

    def closed_form(self) -> _Matrix:
        """The largest budget that any goal of it asks for."""
        needed = self.coefficients / (self.weights.max(axis=1) * self.limits)
        budgets: _Matrix = np.max(np.where(self.weights > 0, needed[:, None], 0.0), axis=0)
        return budgets

    def ratios(self, budgets: _Matrix) -> _Matrix:
        """Variance over limit of every goal."""
        parts = self.coefficients / (self.weights @ budgets)
        return np.bincount(self.owner, weights=parts, minlength=len(self.limits)) / self.limits

    def gradients(self, budgets: _Matrix) -> _Matrix:
        """Derivatives of the ratios, shape (goals, budgets); none is positive."""
        slopes = -(self.coefficients / (self.weights @ budgets) ** 2)[:, None] * self.weights
        gradients = np.zeros((len(self.limits), self.weights.shape[1]))
        np.add.at(gradients, self.owner, slopes)
        return gradients / self.limits[:, None]

    def solve(self) -> _Matrix:
        """Sequential quadratic programming on budgets in units that make the start feasible."""
        from scipy import optimize  # half a second that most plans need not wait for

        start = np.ones(self.weights.shape[1])
        unit = float(self.ratios(start).max())
        size = len(start)
        outcome: Any = optimize.minimize(
            lambda x: float(x.sum()) / size,
            start,
            jac=lambda x: np.full(size, 1 / size),
            bounds=[(1e-12, None)] * size,
            constraints={
                "type": "ineq",
                "fun": lambda x: 1 - self.ratios(unit * x),
                "jac": lambda x: -unit * self.gradients(unit * x),
            },
            method="SLSQP",
            options={"maxiter": 1000, "ftol": 1e-13},
        )
        point = (
            np.asarray(outcome.x) if np.isfinite(outcome.x).all() else start
        )  # which is feasible, and certified as far as it is optimal
        budgets: _Matrix = unit * np.maximum(point, 0.0)
        scaled: _Matrix = budgets * self.ratios(budgets).max()
        return scaled

    def certificate(self, budgets: _Matrix) -> tuple[_Matrix, float]:
        """Prices of the limits, and a lower bound on the total.

        With f the sum of multiplier times ratio, convex and homogeneous of degree -1, any feasible r has
        sum of multipliers >= f(r) >= 2 f(b) - max slope x sum(r).
        """
        from scipy import optimize

        slopes, ratios = -self.gradients(budgets), self.ratios(budgets)
        binding = ratios > 1 - 1e-6
        used = budgets > _TINY * budgets.max()
        scale = float(budgets.sum())
        multipliers = np.zeros(len(ratios))
        try:
            multipliers[binding] = optimize.nnls(
                slopes[np.ix_(binding, used)].T * scale, np.ones(int(used.sum())), maxiter=100 * len(ratios)
            )[0]
        except RuntimeError:  # no multipliers were found: the bound is 0
            return multipliers, 0.0
        multipliers *= scale
        steepest = float((multipliers @ slopes).max())
        bound = (2 * float(multipliers @ ratios) - float(multipliers.sum())) / steepest
        return multipliers / self.limits, bound
