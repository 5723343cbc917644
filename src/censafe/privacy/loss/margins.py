"""Margins of error: the papers' rules, the exact discrete tail, and the budget that a margin costs.

Decisions are taken with 60 digits: the weights of the discrete Gaussian follow from two exponentials by
multiplication, w(k+1) = w(k) r(k) and r(k+1) = r(k) r, so that a margin of several thousand costs milliseconds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import lru_cache

from censafe.model import NoiseLaw
from censafe.model.proven import proven
from censafe.privacy.loss.budget import exact
from censafe.privacy.noise.variance import SLACK, decimal_of, gaussian_sums, working_precision

# Above this sigma2 the sum over the tail would be long, and the midpoint rule is exact to 1e-17.
_LARGEST_SUMMED = Fraction(10**8)
_FLOAT_SLACK = 1e-15


class MarginRule(Enum):
    """Which factor z multiplies the standard deviation."""

    PAPER = "paper"  # 1.645 and 1.96, as the planning tables of the papers
    REFERENCE = "reference"  # 1.64 and 1.96, as the evaluation reports of the reference programs
    EXACT_Z = "exact-z"  # quantiles of the normal law to 16 digits


_Z: dict[tuple[MarginRule, Fraction], Fraction] = {
    (MarginRule.PAPER, Fraction(9, 10)): Fraction("1.645"),
    (MarginRule.PAPER, Fraction(19, 20)): Fraction("1.96"),
    (MarginRule.REFERENCE, Fraction(9, 10)): Fraction("1.64"),
    (MarginRule.REFERENCE, Fraction(19, 20)): Fraction("1.96"),
    (MarginRule.EXACT_Z, Fraction(9, 10)): Fraction("1.644853626951472714864"),
    (MarginRule.EXACT_Z, Fraction(19, 20)): Fraction("1.959963984540054235524"),
}


def z_of(level: Fraction, rule: MarginRule = MarginRule.PAPER) -> Fraction:
    """The factor z of a margin of error.

    Source: PHSafe and SafeTab papers, appendices on margins of error.

    Example:
        >>> z_of(Fraction(9, 10))
        Fraction(329, 200)
    """
    try:
        return _Z[rule, exact(level, "level")]
    except KeyError:
        raise ValueError(f"there is a rule for the levels 9/10 and 19/20, not for {level}") from None


def paper_margin(law: NoiseLaw, level: Fraction, rule: MarginRule = MarginRule.PAPER) -> float:
    """Margin of error as the papers state it.

    Example:
        >>> round(paper_margin(NoiseLaw.gaussian(Fraction(22**2 * 10**6, 2 * 2619)), Fraction(9, 10)), 2)
        500.04
    """
    if law.kind == "laplace":
        return pure_margin(law.parameter, level)
    return float(z_of(level, rule)) * math.sqrt(law.parameter)


def pure_margin(scale: Fraction, level: Fraction = Fraction(9, 10)) -> float:
    """Expected margin of error of two-sided geometric noise, as the reference's evaluation report prints it.

    The real m with 2 q^(m+1) / (1+q) = 1 - level: b ln(2 / ((1 - level) (1 + exp(1/b)))), at level 9/10
    b ln(20 / (1 + exp(1/b))); zero where that is negative.

    Example:
        >>> round(pure_margin(Fraction(12)), 1)
        27.1
    """
    b = float(exact(scale, "scale"))
    tail = float(1 - _checked_level(level))
    log_sum = 1 / b + math.log1p(math.exp(-1 / b))
    return max(0.0, b * (math.log(2 / tail) - log_sum))


def exact_coverage(law: NoiseLaw, margin: int) -> float:
    """P(abs(X) <= margin) of the discrete law, to the nearest float.

    Example:
        >>> round(exact_coverage(NoiseLaw.laplace(Fraction(2)), 5), 5)
        0.93802
    """
    if isinstance(margin, bool) or not isinstance(margin, int):
        raise TypeError(f"margin must be an int, not {type(margin).__name__}")
    if margin < 0:
        raise ValueError("a margin cannot be negative")
    with working_precision():
        if law.kind == "laplace":
            return float(1 - _laplace_tail(law.parameter, margin))
        if law.parameter > _LARGEST_SUMMED:
            return _midpoint_coverage(law.parameter, margin)
        total, _ = gaussian_sums(law.parameter)
        for k, mass in enumerate(_central_masses(law.parameter)):
            if k == margin or mass >= total:
                break
        return float(min(mass / total, Decimal(1)))


@lru_cache(maxsize=4096)
@proven("margins.proof.md", digest="402f6d5894fc2c10")
def exact_margin(law: NoiseLaw, level: Fraction) -> int:
    """Smallest integer m with P(abs(X) <= m) >= level for the discrete law.

    Args:
        law: the noise law.
        level: nominal coverage, a Fraction in [0, 1).

    Returns:
        m; the interval of m on both sides covers at least the level, and m - 1 would not.

    Example:
        >>> exact_margin(NoiseLaw.gaussian(Fraction(625)), Fraction(19, 20))
        49
    """
    coverage = _checked_level(level)
    with working_precision():
        if law.kind == "laplace":
            return _laplace_margin(law.parameter, coverage)
        if law.parameter > _LARGEST_SUMMED:
            return _midpoint_margin(law.parameter, coverage)
        total, _ = gaussian_sums(law.parameter)
        needed = decimal_of(coverage) * total * SLACK
        for k, mass in enumerate(_central_masses(law.parameter)):
            if mass >= needed:
                return k
    raise ValueError(f"level {level} is closer to 1 than 45 digits can tell")


def one_sided_threshold(law: NoiseLaw, chance: Fraction) -> int:
    """Smallest integer t with P(X <= t) >= chance; a count is published only when its noisy value is above t.

    Source: SafeTab-P, suppression of small detailed groups. By symmetry P(X <= t) = (1 + P(abs(X) <= t)) / 2.

    Example:
        >>> one_sided_threshold(NoiseLaw.gaussian(Fraction(625)), Fraction("0.9999"))
        93
    """
    if not Fraction(1, 2) <= exact(chance, "chance") < 1:
        raise ValueError(f"chance must be at least 1/2 and below 1, not {chance}")
    return exact_margin(law, 2 * Fraction(chance) - 1)


def rho_for_margin(
    margin: Fraction, sensitivity_squared: Fraction, level: Fraction, rule: MarginRule = MarginRule.PAPER
) -> Fraction:
    """Budget rho = sensitivity^2 z^2 / (2 margin^2) of a discrete Gaussian with the given margin of error.

    Args:
        margin: margin of error, in persons or units, positive.

    Source: PHSafe paper, budget planning; SafeTab-P paper, appendix B.

    Example:
        >>> round(float(rho_for_margin(Fraction(500), Fraction(22**2), Fraction(9, 10))), 6)
        0.002619
    """
    half_width, squared = exact(margin, "margin"), exact(sensitivity_squared, "sensitivity_squared")
    if half_width <= 0 or squared <= 0:
        raise ValueError("margin and sensitivity must be positive")
    return squared * z_of(level, rule) ** 2 / (2 * half_width**2)


def _checked_level(level: Fraction) -> Fraction:
    fraction = exact(level, "level")
    if not 0 <= fraction < 1:
        raise ValueError(f"level must be at least 0 and below 1, not {level}")
    return fraction


def _central_masses(sigma2: Fraction) -> Iterator[Decimal]:
    """Unnormalized P(abs(X) <= k) for k = 0, 1, ... until the weights no longer change the sum."""
    s2 = decimal_of(sigma2)
    weight, mass = Decimal(1), Decimal(1)
    ratio, step = (-1 / (2 * s2)).exp(), (-1 / s2).exp()
    before = Decimal(0)
    while mass != before:
        yield mass
        before = mass
        weight *= ratio
        ratio *= step
        mass += 2 * weight


def _laplace_tail(scale: Fraction, margin: int) -> Decimal:
    q = (-1 / decimal_of(scale)).exp()
    return 2 * q ** (margin + 1) / (1 + q)


def _laplace_margin(scale: Fraction, level: Fraction) -> int:
    tail = decimal_of(1 - level)
    b = decimal_of(scale)
    q = (-1 / b).exp()
    guess = max(0, int(b * (2 / (tail * (1 + q))).ln()) - 2)
    while _laplace_tail(scale, guess) * SLACK > tail:
        guess += 1
    return guess


def _midpoint_coverage(sigma2: Fraction, margin: int) -> float:
    """Euler-Maclaurin: the sum over abs(k) <= m is the integral to m + 1/2 less f'(m + 1/2) / 12."""
    sigma = math.sqrt(sigma2)
    x = (margin + 0.5) / sigma
    correction = x * math.exp(-x * x / 2) / (math.sqrt(2 * math.pi) * 12 * float(sigma2))
    return min(1.0, math.erf(x / math.sqrt(2)) + correction)


def _midpoint_margin(sigma2: Fraction, level: Fraction) -> int:
    needed = float(level) + _FLOAT_SLACK
    if needed >= 1 - 1e-12:
        raise ValueError(f"level {level} is too close to 1 for sigma2 above {_LARGEST_SUMMED}")
    low, high = -1, 1
    while _midpoint_coverage(sigma2, high) < needed:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if _midpoint_coverage(sigma2, middle) < needed:
            low = middle
        else:
            high = middle
    return high
