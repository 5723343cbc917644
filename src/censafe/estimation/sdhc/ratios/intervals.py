"""Bounds of a ratio, its estimate, and the ends of its interval: equal tails, or the shortest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.polynomial.chebyshev import Chebyshev
from scipy.interpolate import PchipInterpolator
from scipy.optimize import brentq


class UnansweredError(ValueError):
    """Noisy counts from which no estimate of their ratio follows."""


def require_noise(*variances: float) -> None:
    """Refuse counts of which some are exact."""
    if not all(variances):
        raise UnansweredError(
            "some counts are exact and others noisy, so that their ratio has no estimate near its bounds"
        )


@dataclass(frozen=True)
class RatioModel:
    """What is known before the noise: lowest x den <= num <= largest x den, and den is 1 or more.

    Args:
        tail: probability outside the interval on each side; twice that in all where it is the shortest.
        shortest: whether the interval is the shortest of its probability and not the one of equal tails.
    """

    lowest: float
    largest: float = 10.0
    tail: float = 0.05
    shortest: bool = False


@dataclass(frozen=True)
class RatioEstimate:
    """Posterior of one ratio."""

    ratio: float
    low: float
    high: float
    num: float
    den: float


Curve = Callable[[float], float]
"""Probability that a ratio is at most the given value."""

_CLOSE = 1e-9
_SETTLED = 1e-8  # a step this small, taken, leaves an error of the size of its square
_SLOPE_STEP = 1e-3
_STEPS = 6
_SCAN = 48  # points of either end at which the shortest interval is first sought
_ASIDE = 4  # of these points, on both sides of the best, among which the ends lie
_MASS_TOLERANCE = 1e-7
_SPARE = 0.05  # of the range of the upper end, for what the approximation misses
_DEGREE = (
    16  # of the polynomials that stand for the distribution function near the ends of the shortest interval
)


def ratio_ends(
    curve: Curve, model: RatioModel, least: float, near: Curve | None = None
) -> tuple[float, float]:
    """Ends of the interval that the model asks for.

    Example:
        >>> [round(end, 6) for end in ratio_ends(lambda x: ((x - 1) / 9) ** 2, RatioModel(1, shortest=True), 1.0)]
        [3.84605, 10.0]
    """
    equal = tuple(_quantile(curve, p, least, model.largest, near) for p in (model.tail, 1 - model.tail))
    ends = equal[0], equal[1]
    return _shortest(curve, near or curve, model, least, ends) if model.shortest else ends


def _shortest(
    curve: Curve, near: Curve, model: RatioModel, least: float, equal: tuple[float, float]
) -> tuple[float, float]:
    """A scan of the approximation finds the neighborhood, polynomials through the costly function the ends in it.

    Of all intervals of this probability the shortest is no longer than the one of equal tails. So its lower end is
    at most the quantile of both tails together, its upper end at least the mirrored one, and neither is farther off
    than that length.
    """
    tail, level, length = 2 * model.tail, 1 - 2 * model.tail, equal[1] - equal[0]
    inner = [_quantile(near, p, least, model.largest) for p in (tail, level)]
    lows = np.linspace(max(least, inner[1] - length), inner[0], _SCAN)
    nearest = inner[1] - _SPARE * (inner[1] - inner[0])  # since the approximation's quantile may be too high
    highs = np.linspace(nearest, min(model.largest, inner[0] + length), _SCAN)
    below, at = (np.array([near(float(x)) for x in points]) for points in (lows, highs))
    at, unique_at = np.unique(at, return_index=True)
    ends = PchipInterpolator(at, highs[unique_at], extrapolate=False)(np.maximum(below + level, at[0]))
    if not np.isfinite(ends).any():  # the approximation holds less between its ends than the interval must
        return equal if near is curve else _shortest(curve, curve, model, least, equal)
    best = int(np.nanargmin(ends - lows))
    first, last = max(best - _ASIDE, 0), min(best + _ASIDE, int(np.isfinite(ends).sum()) - 1)
    spare = (highs[-1] - highs[0]) * _SPARE
    upper = (max(ends[first] - spare, nearest), min(ends[last] + spare, highs[-1]))
    narrow = ((lows[first], lows[last]), upper)
    wide = ((lows[0], lows[-1]), (highs[0], highs[-1]))
    for start, end in (narrow, wide):
        refined = _refined(_polynomial(curve, start), _polynomial(curve, end), level)
        if refined is not None and abs(curve(refined[1]) - curve(refined[0]) - level) < _MASS_TOLERANCE:
            return refined
    low = float(lows[best])  # several modes: as good as the scan
    return low, _upper(curve, curve(low) + level, inner[0], model.largest)


def _polynomial(curve: Curve, domain: tuple[float, float]) -> Chebyshev:
    return Chebyshev.interpolate(
        lambda points: np.array([curve(float(x)) for x in points]), _DEGREE, domain=list(domain)
    )


def _refined(lower: Chebyshev, upper: Chebyshev, level: float) -> tuple[float, float] | None:
    """The pair of ends with equal densities; the first lower end where density only falls; None where neither holds."""
    first, last = (float(x) for x in lower.domain)
    slope, rise = lower.deriv(), upper.deriv()

    def end(low: float) -> float:
        return _upper(upper, float(lower(low)) + level, *(float(x) for x in upper.domain))

    def gain(low: float) -> float:
        return float(slope(low)) - float(rise(end(low)))

    low = first
    if gain(first) < 0 < gain(last):
        low = float(brentq(gain, first, last, xtol=_CLOSE * (last - first), rtol=_CLOSE))
    high = end(low)
    mass = float(upper(high)) - float(lower(low))
    return (low, high) if abs(mass - level) < _CLOSE and (low > first or gain(first) >= 0) else None


def _upper(curve: Curve, p: float, low: float, high: float) -> float:
    """The x at which an increasing function reaches p; the nearer limit where it does not."""
    if curve(high) <= p:
        return high
    if curve(low) >= p:
        return low
    return float(brentq(lambda x: curve(x) - p, low, high, xtol=_CLOSE * low, rtol=_CLOSE))


def _quantile(below: Curve, p: float, low: float, high: float, near: Curve | None = None) -> float:
    """The x at which an increasing function reaches p."""
    if near is None:
        return float(brentq(lambda x: below(x) - p, low, high, xtol=_CLOSE, rtol=_CLOSE))
    x = _quantile(near, p, low, high)
    step = max(_SLOPE_STEP * x, 1e-9)
    slope = (near(x + step) - near(max(x - step, low))) / (x + step - max(x - step, low))
    value = below(x) - p
    for _ in range(_STEPS):
        if not slope > 0:
            break
        following = min(max(x - value / slope, low), high)
        if abs(following - x) <= _SETTLED * x:
            return following
        changed = below(following) - p
        slope, x, value = (changed - value) / (following - x), following, changed
    return _quantile(below, p, low, high)
