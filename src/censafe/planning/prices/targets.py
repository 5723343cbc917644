"""Accuracy targets as people write them, and the variance that each allows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from statistics import NormalDist
from typing import Any, Final

from censafe.errors import ConfigError
from censafe.model import NoiseLaw
from censafe.model.bounds import lower, upper
from censafe.model.parsing import parse_number
from censafe.planning.numbers import decimal_text
from censafe.planning.prices.program import (
    Goal,
    Solution,
    Term,
    exact_goal_variance,
    least_budgets,
    round_budget,
)
from censafe.privacy.loss.margins import exact_coverage, exact_margin, z_of

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
