"""Variances of the noise laws, the exact one and the one that the Bureau's files print, to 60 decimal digits, and of weighted sums."""

from __future__ import annotations

import decimal
import itertools
import math
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

from censafe.model import NoiseLaw

if TYPE_CHECKING:
    from censafe.model.groups import GroupNoise


DIGITS = 60
PI = Decimal("3.141592653589793238462643383279502884197169399375105820974944592307816406286208998628")
# One unit in the 45th digit covers the rounding of 60-digit sums of up to 10^5 terms.
SLACK = Decimal("1." + "0" * 44 + "1")
_NEGLIGIBLE = Decimal(10) ** -70


@contextmanager
def working_precision() -> Iterator[None]:
    """Decimal arithmetic with 60 digits and the widest range of exponents."""
    with decimal.localcontext(decimal.Context(prec=DIGITS, Emin=decimal.MIN_EMIN, Emax=decimal.MAX_EMAX)):
        yield


def decimal_of(value: Fraction) -> Decimal:
    """The fraction rounded to the current precision."""
    return Decimal(value.numerator) / Decimal(value.denominator)


def float_above(value: Decimal) -> float:
    """The smallest float that is at least ``value``."""
    nearest = float(value)
    return math.nextafter(nearest, math.inf) if Decimal(nearest) < value else nearest


def gaussian_sums(sigma2: Fraction) -> tuple[Decimal, Decimal]:
    """Sums over all integers of exp(-k^2 / (2 sigma2)) and of k^2 exp(-k^2 / (2 sigma2)).

    Call it within :func:`working_precision`.
    """
    s2 = decimal_of(sigma2)
    mass, moment = Decimal(0), Decimal(0)
    if sigma2 < Fraction(1, 2):
        for k in itertools.count(1):
            weight = (-Decimal(k * k) / (2 * s2)).exp()
            mass += weight
            moment += k * k * weight
            if k * k * weight < _NEGLIGIBLE * moment:
                return 1 + 2 * mass, 2 * moment
    scale = (2 * PI * s2).sqrt()
    rate = 2 * PI * PI * s2
    for j in itertools.count(1):
        weight = (-rate * j * j).exp()
        mass += weight
        moment += (1 - 2 * rate * j * j) * weight
        if rate * j * j * weight < _NEGLIGIBLE:
            break
    return scale * (1 + 2 * mass), scale * s2 * (1 + 2 * moment)


@lru_cache(maxsize=4096)
def exact_variance(law: NoiseLaw) -> float:
    """Variance of a noise law, the nearest float to a 60-digit sum.

    The variance of the discrete Gaussian is its parameter sigma2 up to exp(-2 pi^2 sigma2), and well below it
    for sigma2 < 1. The two-sided geometric law has variance 2 q / (1 - q)^2 with q = exp(-1 / scale).

    Source: Canonne, Kamath & Steinke (2020), section 2; Poisson summation.

    Example:
        >>> from fractions import Fraction
        >>> round(exact_variance(NoiseLaw.gaussian(Fraction(1, 4))), 6)
        0.215013
    """
    with working_precision():
        if law.kind == "gaussian":
            mass, moment = gaussian_sums(law.parameter)
            return float(moment / mass)
        q = (-1 / decimal_of(law.parameter)).exp()
        return float(2 * q / (1 - q) ** 2)


def reference_variance(law: NoiseLaw) -> float:
    """The number in the VARIANCE column of the Bureau's files.

    That is the parameter sigma2 for the discrete Gaussian and the exact variance for the two-sided geometric law.

    Example:
        >>> from fractions import Fraction
        >>> reference_variance(NoiseLaw.gaussian(Fraction(1, 4)))
        0.25
    """
    return float(law.parameter) if law.kind == "gaussian" else exact_variance(law)


@lru_cache(maxsize=65536)
def variance_of_cells(noise: GroupNoise, count: int) -> float:
    """Variance of the noise in a sum of some cells of a group, before rounding.

    Example:
        >>> from fractions import Fraction
        >>> from censafe.model import NoiseLaw
        >>> from censafe.model.groups import GroupNoise
        >>> variance_of_cells(GroupNoise(NoiseLaw.gaussian(Fraction(625)), 8), 8)
        5000.0
    """
    if not 1 <= count <= noise.cells:
        raise ValueError(f"a group of {noise.cells} cells has no sum of {count}")
    return sum(term.weight**2 * term.draws * exact_variance(term.law) for term in noise.terms(count))
