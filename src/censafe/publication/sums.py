"""Variance and margin of error of a sum of independent noise draws of one law."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, reduce

import numpy as np

from censafe.errors import ConfigError
from censafe.model import NoiseLaw
from censafe.privacy.margins import exact_margin, paper_margin, z_of
from censafe.privacy.variance import exact_variance, reference_variance

__all__ = ["SumAccuracy", "accuracy_of_sum", "exact_margin_of_sum", "require_confidence"]

_GUARD = 1e-12  # coverage demanded above the level, so that rounding never makes a margin too small
_SMOOTH = 4  # from this sigma2 on, a sum of discrete Gaussians is one to 1e-15


def require_confidence(confidence: Fraction) -> None:
    """Check, before anything is spent, that margins of error can be stated at a level.

    Raises:
        ConfigError: the papers have no rule for it.
    """
    try:
        z_of(confidence)
    except ValueError:
        raise ConfigError(
            f"margins of error are stated with confidence 0.9 or 0.95, not {float(confidence):g}; "
            "choose one of the two"
        ) from None


@dataclass(frozen=True)
class SumAccuracy:
    """Accuracy of one published answer.

    Args:
        variance: exact variance of its noise.
        variance_reference: what the Bureau's VARIANCE column holds.
        margin: margin of error in the papers' form.
        margin_exact: smallest integer whose interval covers at least the level.
    """

    variance: float
    variance_reference: float
    margin: float
    margin_exact: int


@lru_cache(maxsize=4096)
def accuracy_of_sum(law: NoiseLaw, terms: int, confidence: Fraction) -> SumAccuracy:
    """Accuracy of a published answer.

    Args:
        law: of one draw.
        terms: number of independent draws in the answer, at least 1.
        confidence: nominal coverage of the margins, 9/10 or 19/20.

    Returns:
        variances and margins. The papers' form of a sum is sqrt(terms) times that of one draw.

    Example:
        >>> found = accuracy_of_sum(NoiseLaw.gaussian(Fraction(625)), 2, Fraction(19, 20))
        >>> found.variance_reference, round(found.margin, 1), found.margin_exact
        (1250.0, 69.3, 69)
    """
    return SumAccuracy(
        variance=terms * exact_variance(law),
        variance_reference=terms * reference_variance(law),
        margin=math.sqrt(terms) * paper_margin(law, confidence),
        margin_exact=exact_margin_of_sum(law, terms, confidence),
    )


def exact_margin_of_sum(law: NoiseLaw, terms: int, level: Fraction) -> int:
    """Smallest integer m with P(abs(X_1 + ... + X_terms) <= m) >= level.

    Args:
        law: of each X.
        terms: how many; at most 2 for the two-sided geometric law.
        level: nominal coverage.

    Raises:
        ValueError: for fewer than one term, or more terms than there is a formula for.

    Source: for discrete Gaussians with sigma2 >= 4 the sum is a discrete Gaussian of the summed sigma2
    up to 10 terms exp(-pi^2 sigma2), Kairouz, Liu & Steinke (2021), Theorem 1; smaller ones are convolved.
    """
    if terms < 1:
        raise ValueError("a published answer holds at least one noise draw")
    if terms == 1:
        return exact_margin(law, level)
    if law.kind == "gaussian":
        if law.parameter >= _SMOOTH:
            return exact_margin(NoiseLaw.gaussian(terms * law.parameter), level)
        return _convolved_margin(float(law.parameter), terms, float(level))
    if terms > 2:
        raise ValueError("margins of sums of more than two two-sided geometric draws are not supported")
    return _two_geometric_margin(float(law.parameter), float(level))


def _convolved_margin(sigma2: float, terms: int, level: float) -> int:
    support = np.arange(-40, 41, dtype=np.float64)  # twenty standard deviations of the largest sigma2
    weights = np.exp(-(support**2) / (2 * sigma2))
    law = reduce(np.convolve, [weights / weights.sum()] * terms)
    centre = len(law) // 2
    folded = law[centre:] + law[centre::-1]
    folded[0] = law[centre]
    return int(np.argmax(np.cumsum(folded) >= level + _GUARD))


def _two_geometric_margin(scale: float, level: float) -> int:
    """P(X + Y = k) = c^2 q^k (k + a) for k >= 0, summed over k > m on both sides."""
    q, gap, gap2 = math.exp(-1 / scale), -math.expm1(-1 / scale), -math.expm1(-2 / scale)
    c, a = gap / (1 + q), (1 + q * q) / gap2

    def tail(m: int) -> float:
        return 2 * c * c * math.exp(-(m + 1) / scale) * ((m + 1 + a) / gap + q / gap**2)

    low, high = -1, 1
    while tail(high) > 1 - level - _GUARD:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if tail(middle) > 1 - level - _GUARD:
            low = middle
        else:
            high = middle
    return high
