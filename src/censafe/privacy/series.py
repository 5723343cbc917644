"""Sums of the discrete Gaussian to 60 decimal digits, by the series that converges fast.

For sigma2 >= 1/2 Poisson summation turns the sums over the integers into sums whose second term is below 1e-4:
with x = exp(-2 pi^2 sigma2 j^2),

    sum_k exp(-k^2 / (2 sigma2))      = sqrt(2 pi sigma2) (1 + 2 sum_j x)
    sum_k k^2 exp(-k^2 / (2 sigma2))  = sqrt(2 pi sigma2) sigma2 (1 + 2 sum_j (1 - 4 pi^2 sigma2 j^2) x)
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from fractions import Fraction

__all__ = ["DIGITS", "PI", "SLACK", "decimal_of", "float_above", "gaussian_sums", "working_precision"]

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
        for k in _positive_integers():
            weight = (-Decimal(k * k) / (2 * s2)).exp()
            mass += weight
            moment += k * k * weight
            if k * k * weight < _NEGLIGIBLE * moment:
                return 1 + 2 * mass, 2 * moment
    scale = (2 * PI * s2).sqrt()
    rate = 2 * PI * PI * s2
    for j in _positive_integers():
        weight = (-rate * j * j).exp()
        mass += weight
        moment += (1 - 2 * rate * j * j) * weight
        if rate * j * j * weight < _NEGLIGIBLE:
            break
    return scale * (1 + 2 * mass), scale * s2 * (1 + 2 * moment)


def _positive_integers() -> Iterator[int]:
    k = 0
    while True:
        k += 1
        yield k
