"""Variance and margin of error of a sum of independent noise draws of one law."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache, reduce

import numpy as np

from censafe.errors import ConfigError
from censafe.model import NoiseLaw
from censafe.privacy.loss.margins import exact_margin, paper_margin, z_of
from censafe.privacy.noise.variance import (
    SLACK,
    decimal_of,
    exact_variance,
    reference_variance,
    working_precision,
)

_GUARD = 1e-12  # coverage demanded above the level, so that rounding never makes a margin too small
_SMOOTH = 4  # from this sigma2 on, a sum of discrete Gaussians is one to 1e-15


def require_confidence(confidence: Fraction) -> None:
    """Check, before anything is spent, that margins of error can be stated at a level."""
    try:
        z_of(confidence)
    except ValueError:
        raise ConfigError(
            f"margins of error are stated with confidence 0.9 or 0.95, not {float(confidence):g}; "
            "choose one of the two"
        ) from None


@dataclass(frozen=True)
class SumAccuracy:
    """Accuracy of one published answer."""

    variance: float
    variance_reference: float
    margin: float
    margin_exact: int


@lru_cache(maxsize=4096)
def accuracy_of_sum(law: NoiseLaw, terms: int, confidence: Fraction) -> SumAccuracy:
    """Accuracy of a published answer.

    Example:
        >>> result = accuracy_of_sum(NoiseLaw.gaussian(Fraction(625)), 2, Fraction(19, 20))
        >>> result.variance_reference, round(result.margin, 1), result.margin_exact
        (1250.0, 69.3, 69)
    """
    return SumAccuracy(
        variance=terms * exact_variance(law),
        variance_reference=terms * reference_variance(law),
        margin=math.sqrt(terms) * paper_margin(law, confidence),
        margin_exact=exact_margin_of_sum(law, terms, confidence),
    )


@lru_cache(maxsize=4096)
def exact_margin_of_sum(law: NoiseLaw, terms: int, level: Fraction) -> int:
    """Smallest integer m with P(abs(X_1 + ... + X_terms) <= m) >= level.

    Source: for discrete Gaussians with sigma2 >= 4 the sum is a discrete Gaussian of the summed sigma2
    up to 10 terms exp(-pi^2 sigma2), Kairouz, Liu & Steinke (2021), Theorem 1; smaller ones are convolved. Sums of two-sided
    geometric draws have a closed form, evaluated with 60 digits.
    """
    if terms < 1:
        raise ValueError("a published answer holds at least one noise draw")
    if terms == 1:
        return exact_margin(law, level)
    if law.kind == "gaussian":
        if law.parameter >= _SMOOTH:
            return exact_margin(NoiseLaw.gaussian(terms * law.parameter), level)
        return _convolved_margin(float(law.parameter), terms, float(level))
    return _geometric_margin(law.parameter, terms, level)


def _convolved_margin(sigma2: float, terms: int, level: float) -> int:
    support = np.arange(-40, 41, dtype=np.float64)  # twenty standard deviations of the largest sigma2
    weights = np.exp(-(support**2) / (2 * sigma2))
    law = reduce(np.convolve, [weights / weights.sum()] * terms)
    center = len(law) // 2
    folded = law[center:] + law[center::-1]
    folded[0] = law[center]
    return int(np.argmax(np.cumsum(folded) >= level + _GUARD))


def _geometric_margin(scale: Fraction, terms: int, level: Fraction) -> int:
    with working_precision():
        tail, outside = _geometric_tail(scale, terms), decimal_of(1 - level)
        low, high = -1, 1
        while tail(high) * SLACK > outside:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            if tail(middle) * SLACK > outside:
                low = middle
            else:
                high = middle
    return high


def _geometric_tail(scale: Fraction, terms: int) -> Callable[[int], Decimal]:
    """P(abs(X_1 + ... + X_n) > m) as a function of m, in 60 digits.

    The generating function of the sum is (1 - q)^2n (1 - q z)^-n (1 - q / z)^-n, so that the sum is a difference of two
    negative binomials. With u = 1 - q z and r = 1 / (1 - q^2) the last factor is r^n (1 + (r - 1) u / (1 - r u))^n,
    a power series in u whose coefficients h_i are positive. The principal part at u = 0 alone makes the
    probabilities of k >= 0: P(k) = (1 - q)^2n q^k sum over i < n of h_i C(k + n - i - 1, k). Summed over k > m, each
    term is the tail of a negative binomial, which is a finite sum of binomial probabilities. Nothing is subtracted, so
    nothing cancels.
    """
    q = (-1 / decimal_of(scale)).exp()
    p, r = 1 - q, 1 / (1 - q * q)
    weights = [
        r**terms * p ** (terms + order)
        * (sum((math.comb(terms, j) * math.comb(order - 1, j - 1) * (r - 1) ** j * r ** (order - j)
               for j in range(1, order + 1)), Decimal(0)) if order else Decimal(1))
        for order in range(terms)
    ]  # fmt: skip

    def tail(m: int) -> Decimal:
        total = Decimal(0)
        for order, weight in enumerate(weights):
            trials = m + terms - order
            probability = q**trials
            fewer = probability
            for successes in range(1, terms - order):
                probability *= p / q * (trials - successes + 1) / successes
                fewer += probability
            total += weight * fewer
        return 2 * total

    return tail
