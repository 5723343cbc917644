"""Numbers of statements, rounded in the direction that keeps the statement true: losses and error bounds up, coverage down."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final

_LARGEST: Final = 600.0  # whose exponential is a float


def upper(value: Fraction | float, places: int = 0, *, digits: int | None = None) -> float:
    """The least number of so many decimals, or significant digits, that is not below the value; a float counts as its shortest decimal.

    Formatted with as many decimals or digits it is printed without a further change.

    Example:
        >>> upper(2.56231, 2), upper(2.56, 2), upper(Fraction(1, 3), digits=3), upper(-1.25, 1), upper(0.0, 2)
        (2.57, 2.56, 0.334, -1.2, 0.0)
        >>> f"{upper(2.56595000001, digits=6):.6g}"
        '2.56596'
    """
    if isinstance(value, float) and not math.isfinite(value):
        return value
    exact = Fraction(repr(float(value))) if isinstance(value, float) else Fraction(value)
    if digits is not None and exact:
        size = abs(exact)
        power = len(str(size.numerator)) - len(str(size.denominator))
        power -= size < Fraction(10) ** power
        places = digits - 1 - power
    unit = Fraction(10) ** places
    return float(math.ceil(exact * unit) / unit)


def lower(value: Fraction | float, places: int = 0, *, digits: int | None = None) -> float:
    """The largest such number that is not above the value.

    Example:
        >>> lower(0.9567, 3), lower(16.737, digits=4)
        (0.956, 16.73)
    """
    return -upper(-value, places, digits=digits) + 0.0


def factor_text(epsilon: float) -> str:
    """E to the power of epsilon, rounded up to three digits.

    Example:
        >>> factor_text(0.1), factor_text(8.2), factor_text(20.0), factor_text(700.2)
        ('1.11', '3,650', '4.86e+08', 'e^701')
    """
    if epsilon > _LARGEST:
        return f"e^{math.ceil(epsilon)}"
    factor = upper(math.exp(epsilon), digits=3)
    return f"{factor:,.0f}" if 1_000 <= factor < 1e6 else f"{factor:.3g}"
