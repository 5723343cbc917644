"""What rho means: four conversions from rho-zCDP to (epsilon, delta), and how far it moves odds, each rounded up.

Formulas are evaluated with 60 digits and rounded to the next float above. The tight conversion is an infimum over
orders alpha: every order gives a valid epsilon, so the float search for the best order cannot make it too small.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Final

from censafe.model import Definition
from censafe.model.proven import proven
from censafe.privacy.loss.budget import exact
from censafe.privacy.noise.variance import PI, SLACK, decimal_of, float_above, working_precision

# Relative error of the float evaluation of either term of the Gaussian's delta.
_FLOAT_ERROR = 2e-14
_GOLDEN = (math.sqrt(5) - 1) / 2
_ODDS_UP = 1 + 1e-12
ODDS_DELTAS: Final = tuple(
    Fraction(text) for text in ("1/10", "1/20", "1/100", "1/1000", "1/1000000", "1/10000000000")
)
"""Chances, over the release, that the odds move further: where the curve is drawn."""


@dataclass(frozen=True)
class Epsilons:
    """Four readings of one rho at one delta.

    Args:
        tight: Canonne, Kamath & Steinke, Corollary 13; valid for every rho-zCDP mechanism, and the one to quote.
        gaussian: of one continuous Gaussian answer; for information, not a bound for other mechanisms.
    """

    slide: float
    prefactor: float
    tight: float
    gaussian: float


def epsilons(rho: Fraction, delta: Fraction) -> Epsilons:
    """All four conversions.

    Example:
        >>> converted = epsilons(Fraction("2.63"), Fraction(1, 10**10))
        >>> [round(value, 4) for value in (converted.slide, converted.prefactor, converted.tight, converted.gaussian)]
        [18.1938, 18.5466, 17.4306, 16.742]
    """
    return Epsilons(
        slide_epsilon(rho, delta),
        prefactor_epsilon(rho, delta),
        tight_epsilon(rho, delta),
        gaussian_epsilon(rho, delta),
    )


def slide_epsilon(rho: Fraction, delta: Fraction) -> float:
    """Epsilon = rho + 2 sqrt(rho ln(1/delta)), rounded up.

    Source: Bun & Steinke (2016), Proposition 1.3.
    """
    rho, delta = _checked(rho, delta)
    with working_precision():
        r = decimal_of(rho)
        return float_above((r + 2 * (r * -decimal_of(delta).ln()).sqrt()) * SLACK)


def prefactor_epsilon(rho: Fraction, delta: Fraction) -> float:
    """Epsilon = rho + 2 sqrt(rho ln(sqrt(pi rho)/delta)), rounded up; rho itself where the logarithm is negative.

    Source: Bun & Steinke (2016), Lemma 3.6. Below the slide's epsilon only where pi rho < 1.
    """
    rho, delta = _checked(rho, delta)
    if rho == 0:
        return 0.0
    with working_precision():
        r = decimal_of(rho)
        log = ((PI * r).sqrt() / decimal_of(delta)).ln()
        return float_above((r + 2 * (r * max(log, Decimal(0))).sqrt()) * SLACK)


@proven("odds.proof.md", digest="2a0fb00eb0b25cc5")
def odds_bound(loss: Fraction, definition: Definition, delta: Fraction) -> float:
    """Epsilon so that, with probability at least 1 - delta, no odds about one record move by more than e^epsilon either way.

    Args:
        loss: rho or epsilon of the change.
        definition: which of the two it is. Under pure DP the odds never move further than epsilon.
        delta: chance over the release, in (0, 1).

    Source: Bun & Steinke (2016), Lemma 3.5 and its proof, for one direction; both in ``odds.proof.md``.

    Example:
        >>> round(odds_bound(Fraction("2.63"), Definition.ZCDP, Fraction(1, 100)), 3)
        9.59
        >>> odds_bound(Fraction(1, 4), Definition.PURE, Fraction(1, 100))
        0.25
    """
    if definition is Definition.PURE:
        return float(loss)
    if loss == 0:
        return 0.0
    first = slide_epsilon(loss, delta)
    rho, share = float(loss), -math.log(float(delta)) + math.log1p(math.exp(-first))
    return (rho + 2 * math.sqrt(rho * share)) * _ODDS_UP


def tight_epsilon(rho: Fraction, delta: Fraction) -> float:
    """Smallest epsilon that rho-zCDP implies at delta by the best order, rounded up.

    The infimum over alpha > 1 of alpha rho + (ln(1/delta) + (alpha-1) ln(1-1/alpha) - ln alpha) / (alpha-1).

    Source: Canonne, Kamath & Steinke (2020), Corollary 13.
    """
    rho, delta = _checked(rho, delta)
    if rho == 0:
        return 0.0
    log_delta = math.log(delta.numerator) - math.log(delta.denominator)
    best = _best_order(float(rho), -log_delta)
    with working_precision():
        above = Decimal(best)  # alpha - 1
        alpha = above + 1
        log_terms = -decimal_of(delta).ln() + above * (above / alpha).ln() - alpha.ln()
        epsilon = alpha * decimal_of(rho) + log_terms / above
        return max(0.0, float_above(epsilon + abs(epsilon) * (SLACK - 1)))


def gaussian_epsilon(rho: Fraction, delta: Fraction) -> float:
    """Epsilon of one continuous Gaussian answer with sensitivity^2 / sigma2 = 2 rho, for information.

    Source: Balle & Wang (2018), Theorem 8. Rounded up by a bound on the error of the float evaluation.
    """
    rho, delta = _checked(rho, delta)
    mu, target = math.sqrt(2 * rho), float(delta)
    if rho == 0 or delta_of_gaussian(mu, 0.0) <= target:
        return 0.0
    low, high = 0.0, 1.0
    while delta_of_gaussian(mu, high) > target:
        low, high = high, 2 * high
    middle = (low + high) / 2
    while low < middle < high:
        if delta_of_gaussian(mu, middle) > target:
            low = middle
        else:
            high = middle
        middle = (low + high) / 2
    return high


def delta_of_gaussian(mu: float, epsilon: float) -> float:
    """Delta(epsilon) of the Gaussian mechanism, Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu), rounded up.

    The second term is written as phi(b) M(a) with a = eps/mu + mu/2, b = eps/mu - mu/2 and Mills' ratio
    M(a) = Phi(-a)/phi(a), so that no exponential overflows.
    """
    upper, lower = epsilon / mu + mu / 2, epsilon / mu - mu / 2
    density = math.exp(-lower * lower / 2) / math.sqrt(2 * math.pi)
    gain, loss = math.erfc(lower / math.sqrt(2)) / 2, density * _mills(upper)
    return gain - loss + _FLOAT_ERROR * (gain + loss)


def _mills(a: float) -> float:
    if a < 10:
        return math.erfc(a / math.sqrt(2)) / 2 * math.exp(a * a / 2) * math.sqrt(2 * math.pi)
    term, total = 1.0, 1.0
    for n in range(1, 25):
        term *= -(2 * n - 1) / (a * a)
        total += term
    return total / a


def _best_order(rho: float, log_inverse_delta: float) -> float:
    """Golden-section search for log(alpha - 1); the objective is unimodal there."""

    def objective(log_above: float) -> float:
        above = math.exp(log_above)
        alpha = above + 1
        log_terms = log_inverse_delta - above * math.log1p(1 / above) - math.log(alpha)
        return alpha * rho + log_terms / above

    scale = math.log(math.sqrt((log_inverse_delta + 1) / max(rho, 1e-300)))
    low, high = min(math.log(1e-8), scale - 10), max(math.log(1e5), scale + 10)
    inner_low, inner_high = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    value_low, value_high = objective(inner_low), objective(inner_high)
    for _ in range(120):
        if value_low <= value_high:
            high, inner_high, value_high = inner_high, inner_low, value_low
            inner_low = high - _GOLDEN * (high - low)
            value_low = objective(inner_low)
        else:
            low, inner_low, value_low = inner_low, inner_high, value_high
            inner_high = low + _GOLDEN * (high - low)
            value_high = objective(inner_high)
    return math.exp((low + high) / 2)


def _checked(rho: Fraction, delta: Fraction) -> tuple[Fraction, Fraction]:
    loss, failure = exact(rho, "rho"), exact(delta, "delta")
    if loss < 0:
        raise ValueError(f"rho must be at least 0, not {rho}")
    if not 0 < failure < 1:
        raise ValueError(f"delta must be above 0 and below 1, not {delta}")
    return loss, failure
