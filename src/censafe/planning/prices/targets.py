"""Accuracy targets as people write them, the variance that each allows, and the cheapest budgets that meet them.

The variance of a target is a sum of a / (weighted sum of budgets), convex in the budgets. The least total follows from a float
solution that is rounded up and checked in fractions; multipliers of the targets give a lower bound by duality, and the prices.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from statistics import NormalDist
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from censafe.errors import ConfigError
from censafe.model import NoiseLaw
from censafe.model.bounds import lower, upper
from censafe.model.parsing import parse_number
from censafe.planning.numbers import decimal_text
from censafe.privacy.loss.margins import exact_coverage, exact_margin, z_of

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


LEAST_MARGIN: Final = Fraction(1, 10**6)
MOST_MARGIN: Final = Fraction(10**9)
"""Margins outside are refused: their noise is all zeros, or wider than any count."""
_PUBLISHED: Final = (Fraction(9, 10), Fraction(19, 20))
_HALVINGS: Final = 30
_HIGHEST: Final = 1 - Fraction(1, 10**12)


@dataclass(frozen=True)
class Target:
    """A target margin of error.

    Args:
        margin: in persons or units, positive.
    """

    name: str
    margin: Fraction
    confidence: Fraction | None


@dataclass(frozen=True)
class TargetQuery:
    """What one target means in a product.

    Args:
        integral: whether an answer is one draw of discrete Gaussian noise, so that its tail is known exactly.
    """

    name: str
    terms: tuple[Term, ...]
    integral: bool


@dataclass(frozen=True)
class Request:
    """A target, resolved: one of the answers that it names, with the variance that it allows."""

    query: TargetQuery
    margin: Fraction
    confidence: Fraction

    @property
    def goal(self) -> Goal:
        """For the program."""
        limit = largest_variance(self.margin, self.confidence, integral=self.query.integral)
        return Goal(f"{self.query.name}={decimal_text(self.margin)}", limit, self.query.terms)


@dataclass(frozen=True)
class Achieved:
    """What budgets do for one request.

    Args:
        coverage: exact chance that the noise stays within the target margin; None for combinations of answers.
        price: how much total budget one more person or unit of margin would save.
    """

    request: Request
    variance: Fraction
    margin: float
    coverage: float | None
    price: float


@dataclass(frozen=True)
class Outcome:
    """Budgets that follow from targets: by name, what they do, and the least that would have met them."""

    budgets: Mapping[str, Fraction]
    achieved: tuple[Achieved, ...]
    solution: Solution


def parse_target(text: str) -> Target:
    """Read ``NAME=MARGIN`` or ``NAME=MARGIN@CONFIDENCE``; the confidence is written ``90%`` or ``0.9``.

    Example:
        >>> parse_target("PH3/state_A-G=20@90%")
        Target(name='PH3/state_A-G', margin=Fraction(20, 1), confidence=Fraction(9, 10))
    """
    name, separator, value = text.rpartition("=")
    if not separator or not name:
        raise ConfigError(f"target {text!r}: write NAME=MARGIN@CONFIDENCE, for example PH3/state_A-G=20@90%")
    number, at, level = value.partition("@")
    margin = parse_number(number, f"target {text!r}: the margin of error")
    if margin <= 0:
        raise ConfigError(f"target {text!r}: a margin of error of {number} has no budget; give one above 0")
    if not LEAST_MARGIN <= margin <= MOST_MARGIN:
        raise ConfigError(
            f"target {text!r}: a margin of error of {number} is out of reach; give one from 0.000001 to 1000000000"
        )
    if not at:
        return Target(name, margin, None)
    confidence = parse_number(level.removesuffix("%"), f"target {text!r}: the confidence")
    confidence /= 100 if level.endswith("%") else 1
    if not 0 < confidence < 1:
        raise ConfigError(f"target {text!r}: a confidence of {level} is not between 0 and 1 (or 0% and 100%)")
    return Target(name, margin, confidence)


def factor_of(confidence: Fraction) -> Fraction:
    """The factor z between standard deviation and margin: the papers' at 90% and 95%, otherwise the normal quantile, rounded up.

    Example:
        >>> factor_of(Fraction(9, 10)), float(factor_of(Fraction(99, 100)))
        (Fraction(329, 200), 2.57583)
    """
    if confidence in _PUBLISHED:
        return z_of(confidence)
    if confidence > _HIGHEST:
        raise ConfigError(
            f"a confidence of {float(confidence)!r} is closer to 1 than margins are computed for"
        )
    return Fraction(ceil(NormalDist().inv_cdf(float(1 + confidence) / 2) * 10**5), 10**5)


def largest_variance(margin: Fraction, confidence: Fraction, *, integral: bool) -> Fraction:
    """Largest variance with that margin by the papers' rule and, for integral noise, by its exact tail as well.

    Example:
        >>> round(float(largest_variance(Fraction(20), Fraction(9, 10), integral=True)), 2)
        147.82
    """
    limit: Fraction = (margin / factor_of(confidence)) ** 2
    inside = int(margin)
    if not integral or _covers(limit, inside, confidence):
        return limit
    low, high = limit, limit
    while not _covers(low, inside, confidence):
        low, high = low / 4, low
        if low < Fraction(1, 10**4):
            raise ConfigError(
                f"a margin of {decimal_text(margin)} at confidence {decimal_text(confidence)} is out of reach"
            )
    for _ in range(_HALVINGS):
        middle = ((low + high) / 2).limit_denominator(10**12)
        low, high = (middle, high) if _covers(middle, inside, confidence) else (low, middle)
    return low


def _covers(sigma2: Fraction, inside: int, confidence: Fraction) -> bool:
    try:
        return exact_margin(NoiseLaw.gaussian(sigma2), confidence) <= inside
    except ValueError as problem:
        raise ConfigError(f"confidence {decimal_text(confidence)}: {problem}") from None


def achieve(requests: Sequence[Request], fixed: Fraction, total: Fraction | None) -> Outcome:
    """Budgets of least total that meet all requests or, with a total, the same in that size: all margins change by one factor.

    Source: variances are homogeneous of degree -1 in the budgets, so the program that makes the worst ratio of variance to
        limit smallest under a total is the program of least total, scaled.

    Example:
        >>> query = TargetQuery("t", (Term(Fraction(2), {"a": Fraction(1)}),), True)
        >>> outcome = achieve([Request(query, Fraction(20), Fraction(9, 10))], Fraction(0), None)
        >>> outcome.budgets, round(outcome.achieved[0].margin, 3), round(outcome.achieved[0].coverage, 4)
        ({'a': Fraction(67651, 5000000)}, 20.0, 0.9083)
    """
    solution = least_budgets([request.goal for request in requests])
    budgets = dict(solution.budgets)
    scale = 1.0
    if total is not None:
        if total <= fixed:
            raise ConfigError(
                f"`total` {decimal_text(total)}: {decimal_text(fixed)} of it is spent on what no target is about; "
                "give a larger total, or set those budgets to 0"
            )
        share = (total - fixed) / solution.total
        budgets = {name: round_budget(value * share, up=False) for name, value in budgets.items()}
        scale = float(share)
    achieved = []
    for request, price in zip(requests, solution.prices, strict=True):
        goal = request.goal
        variance = exact_goal_variance(goal, budgets)
        if variance is None:
            raise ConfigError(f"{goal.name}: nothing it follows from has a budget")
        z, integral = factor_of(request.confidence), request.query.integral
        coverage = exact_coverage(NoiseLaw.gaussian(variance), int(request.margin)) if integral else None
        # variance = (margin / z)^2, so d total / d margin is the price of the variance times 2 margin / z^2
        # at limits that are 1/scale of the requested ones, the slope is that of a function of degree -2
        slope = scale**1.5 * price * 2 * float(request.margin) / float(z) ** 2
        achieved.append(Achieved(request, variance, float(z) * float(variance) ** 0.5, coverage, slope))
    return Outcome(budgets, tuple(achieved), solution)


def target_sentences(outcome: Outcome, symbol: str) -> tuple[str, ...]:
    """One line a request, and how close the total is to the least possible."""
    lines, solution = [], outcome.solution
    for achieved in outcome.achieved:
        request = achieved.request
        covers = "" if achieved.coverage is None else f", covers {lower(100 * achieved.coverage, 2):.2f}%"
        price = (
            f"one more in the margin saves {symbol} {achieved.price:.3g}"
            if achieved.price > 0
            else "does not bind, costs nothing"
        )
        lines.append(
            f"Target {request.query.name}: wanted {decimal_text(request.margin)} at "
            f"{decimal_text(100 * request.confidence)}%, reached {upper(achieved.margin, 2):.2f}{covers}; {price}."
        )
    excess = float(solution.total) / solution.lower_bound - 1 if solution.lower_bound > 0 else 0.0
    lines.append(
        f"The budgets of the targets cost {symbol} {decimal_text(solution.total)} where all are just met; no budgets cost less than "
        f"{lower(solution.lower_bound, digits=6):.6g} ({upper(100 * max(0.0, excess), digits=2):.2g}% below, rounding included)."
    )
    return tuple(lines)


def target_record(outcome: Outcome) -> dict[str, Any]:
    """As plain values for JSON; exact numbers are text."""
    return {
        "least_total": str(outcome.solution.total),
        "least_total_lower_bound": outcome.solution.lower_bound,
        "budgets": {
            name: {"fraction": str(value), "decimal": decimal_text(value)}
            for name, value in outcome.budgets.items()
        },
        "targets": [
            {
                "name": achieved.request.query.name,
                "margin_wanted": decimal_text(achieved.request.margin),
                "confidence": decimal_text(achieved.request.confidence),
                "variance_allowed": str(achieved.request.goal.limit),
                "variance": str(achieved.variance),
                "margin": achieved.margin,
                "coverage_exact": achieved.coverage,
                "shadow_price": achieved.price,
            }
            for achieved in outcome.achieved
        ],
    }
