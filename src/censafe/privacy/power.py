"""What a privacy loss means to an attacker: the largest power of any test for one record."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from censafe.model import Definition

__all__ = ["largest_power"]

_ORDERS = 1 + np.logspace(-4, 3, 4000)  # a grid of orders is a valid bound: more orders only lower it


def largest_power(loss: Fraction, definition: Definition, level: Fraction) -> float:
    """Largest chance with which any test can detect a difference between neighbours.

    Args:
        loss: rho or epsilon.
        definition: which of the two it is.
        level: chance of a false alarm, in (0, 1).

    Returns:
        an upper bound on the power of every test, whatever the attacker knows, rounded up to 4 digits.

    Source: for epsilon the two inequalities of pure differential privacy; for rho Renyi divergence of
    order x at most rho x of the outcomes of the test, Bun & Steinke (2016), data processing inequality.

    Example:
        >>> largest_power(Fraction("0.1115007"), Definition.ZCDP, Fraction(5, 100))
        0.1402
    """
    if loss < 0 or not 0 < level < 1:
        raise ValueError("the loss must not be negative and the level must be between 0 and 1")
    alpha = float(level)
    if definition is Definition.PURE:
        epsilon = float(loss)
        power = min(1 - math.exp(-epsilon) * (1 - alpha), alpha * math.exp(min(epsilon, 700.0)))
    else:
        power = _zcdp_power(float(loss), alpha)
    return min(1.0, math.ceil(power * 10_000 - 1e-6) / 10_000)


def _zcdp_power(rho: float, alpha: float) -> float:
    low, high = alpha, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        if _possible(rho, alpha, middle):
            low = middle
        else:
            high = middle
    return high


def _possible(rho: float, alpha: float, power: float) -> bool:
    """Whether (alpha, power) keeps the divergence within rho x (x - 1) at every order, both ways round."""
    bound = rho * _ORDERS * (_ORDERS - 1)
    ways = ((power, alpha), (alpha, power))
    return all(bool(np.all(_log_moment(p, q) <= bound)) for p, q in ways)


def _log_moment(p: float, q: float) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    yes = _ORDERS * math.log(p) + (1 - _ORDERS) * math.log(q)
    no = _ORDERS * math.log1p(-p) + (1 - _ORDERS) * math.log1p(-q)
    return np.logaddexp(yes, no)
