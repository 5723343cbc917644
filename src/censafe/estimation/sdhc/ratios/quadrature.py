"""Ratios of noisy counts whose bounds are known, by quadrature: averages per household (PH1, PH5, PH8)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise

import numpy as np
from scipy.special import erfcx, ndtr

from censafe.estimation.sdhc.posteriors import log_interval
from censafe.estimation.sdhc.ratios.intervals import (
    Curve,
    RatioEstimate,
    RatioModel,
    ratio_ends,
    require_noise,
)
from censafe.estimation.sdhc.ratios.unbounded import unbounded_joint, unbounded_single
from censafe.model.arrays import Floats

_NODES = 128
_LEAST = 1e-12
_NATS = 45.0  # weights below the largest by more than this factor of e are left out
_REACH = 12.0
_COARSER = 4
_FEWEST = 24
_STEP_WIDTH = 8.0  # ratio of standard deviations that the usual number of points still resolves
_MOST_TIMES = 64
_PANEL = 256
_MOST_TOGETHER = 1024  # points of one rule, which takes the cube of their number to find
_ROOT2 = float(np.sqrt(2.0))


@dataclass(frozen=True, eq=False)
class DenominatorLaw:
    """Posterior of the denominator of a ratio that is measured once, on a grid."""

    low: float
    high: float
    at: Floats = field(repr=False)
    weight: Floats = field(repr=False)
    mean: Floats = field(repr=False)


def denominator_law(
    num: tuple[float, float], den: tuple[float, float], model: RatioModel, nodes: int
) -> DenominatorLaw:
    """Posterior of the denominator, and what it says of the numerator.

    Source: given the denominator, the numerator is a normal cut off at both bounds.
    """
    (zn, vn), (zd, vd) = num, den
    sn, sd = vn**0.5, vd**0.5

    def log_weight(d: Floats) -> Floats:
        a, b = (model.lowest * d - zn) / sn, (model.largest * d - zn) / sn
        return np.asarray(-((d - zd) ** 2) / (2 * vd) + log_interval(a, b))

    reach = max(zd, zn / model.lowest, 1.0) + _REACH * (sd + sn / model.lowest)
    low, high = _support(log_weight, 1.0, reach)
    at, weight = _pieces(log_weight, [low, high], nodes)
    a, b = (model.lowest * at - zn) / sn, (model.largest * at - zn) / sn
    return DenominatorLaw(low, high, at, weight, zn + sn * _cut_mean(a, b))


def estimate_single(
    num: tuple[float, float], den: tuple[float, float], model: RatioModel, nodes: int | None = None
) -> RatioEstimate:
    """Posterior of num / den where each is measured once (PH8).

    Source: quadrature over the denominator; given it, the numerator is a normal cut off at both bounds.

    Example:
        >>> estimate = estimate_single((100, 1709), (60, 1709), RatioModel(1))
        >>> round(estimate.ratio, 4), round(estimate.low, 4), round(estimate.high, 4)
        (2.5079, 1.074, 6.2708)
    """
    far = unbounded_single(num, den, model)
    if far is not None:
        return far
    require_noise(num[1], den[1])
    law = denominator_law(num, den, model, nodes or denominator_nodes(num[1], den[1]))
    d, w, zn, sn = law.at, law.weight, num[0], num[1] ** 0.5
    a, b = (model.lowest * d - zn) / sn, (model.largest * d - zn) / sn

    def below(x: float) -> float:
        return float(w @ _share(a, b, ((x * d - zn) / sn)[:, None])[:, 0])

    low, high = ratio_ends(below, model, model.lowest)
    return RatioEstimate(float(w @ (law.mean / d)), low, high, float(w @ law.mean), float(w @ d))


def estimate_joint(
    first: tuple[float, float],
    second: tuple[float, float],
    den: tuple[float, float],
    model: RatioModel,
    nodes: int | None = None,
) -> tuple[RatioEstimate, RatioEstimate, RatioEstimate]:
    """Posteriors of (first + second) / den, first / den and second / den (PH1, PH5).

    Both parts are 0 or more; the bounds hold for their sum.

    Source: quadrature over the sum t of the parts; given t, the first part and the denominator are independent normals,
        each cut off at two bounds.

    Example:
        >>> estimate = estimate_joint((300, 1709), (700, 1709), (380, 1709), RatioModel(1))
        >>> [round(part.ratio, 4) for part in estimate], round(estimate[0].low, 4), round(estimate[0].high, 4)
        ([2.6639, 0.7992, 1.8647], 2.1683, 3.2689)
    """
    far = unbounded_joint(first, second, den, model)
    if far is not None:
        return far
    require_noise(first[1], second[1], den[1])
    nodes = nodes or _nodes(first[1], second[1], den[1])
    fine = _Joint(first, second, den, model, nodes)
    coarse = _Joint(first, second, den, model, max(nodes // _COARSER, _FEWEST))
    ends = []
    least = (model.lowest, _LEAST, _LEAST)  # the search for a part's lower end starts a little above 0
    for curve, near, low in zip(fine.curves(), coarse.curves(), least, strict=True):
        start, end = ratio_ends(curve, model, low, near)
        ends.append((0.0 if start <= _LEAST else start, end))
    return fine.estimates(ends)


class _Joint:
    """The posterior of a sum t of two parts and of the denominator on a grid."""

    def __init__(
        self,
        first: tuple[float, float],
        second: tuple[float, float],
        den: tuple[float, float],
        model: RatioModel,
        nodes: int,
    ) -> None:
        (self._z2, v2), (z3, v3), (self._zd, vd) = first, second, den
        self._model, self._inner_nodes, self._sd = model, max(nodes // 2, 2), vd**0.5
        self._total, self._spread = self._z2 + z3, v2 + v3
        self._part, self._conditional = v2 / self._spread, (v2 * v3 / self._spread) ** 0.5
        deep = _REACH * (self._spread**0.5 + self._sd * model.largest)
        reach = max(self._total, self._zd * model.largest, model.largest) + deep
        left, right = _support(self._log_weight, model.lowest, reach)
        kinks = [model.largest] if left < model.largest < right else []
        self._t, self._w = _pieces(self._log_weight, [left, *kinks, right], nodes)
        self._mean, self._a, self._b, self._c, self._e = self._bounds(self._t)

    def curves(self) -> tuple[Curve, ...]:
        """Distribution functions of the ratios of sum, first and second part to the denominator."""
        return (
            lambda x: float(self._w @ self._sum_below(x)),
            lambda x: self._part_below(x, upper=False),
            lambda x: self._part_below(x, upper=True),
        )

    def estimates(
        self, ends: Sequence[tuple[float, float]]
    ) -> tuple[RatioEstimate, RatioEstimate, RatioEstimate]:
        """Means with the ends of the intervals already found, for sum, first and second part."""
        t, w = self._t, self._w
        at, weight = self._inner(np.full(t.shape, np.inf))
        numerator = self._mean + self._conditional * _cut_mean(self._a, self._b)
        reciprocal = w * (weight / at).sum(axis=1)
        den = float(w @ (weight * at).sum(axis=1))
        total, first, second = (
            RatioEstimate(float(reciprocal @ number), low, high, float(w @ number), den)
            for number, (low, high) in zip((t, numerator, t - numerator), ends, strict=True)
        )
        return total, first, second

    def _bounds(self, t: Floats) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        mean = self._z2 + self._part * (t - self._total)
        d1, d2 = np.maximum(1.0, t / self._model.largest), t / self._model.lowest
        a, b = -mean / self._conditional, (t - mean) / self._conditional
        return mean, a, b, (d1 - self._zd) / self._sd, (d2 - self._zd) / self._sd

    def _log_weight(self, t: Floats) -> Floats:
        _, a, b, c, e = self._bounds(t)
        centered = -((t - self._total) ** 2) / (2 * self._spread)
        return np.asarray(centered + log_interval(a, b) + log_interval(c, e))

    def _inner(self, most: Floats) -> tuple[Floats, Floats]:
        """Points and weights of the denominator below ``most`` for every t, shape (t, nodes), where its normal law has mass."""
        d1 = np.maximum(1.0, self._t / self._model.largest)
        d2 = np.maximum(np.minimum(self._t / self._model.lowest, most), d1)
        mode = np.clip(self._zd, d1, d2)
        slope = np.abs(mode - self._zd) / self._sd**2
        width = np.minimum(_REACH * self._sd, _NATS / np.maximum(slope, 1e-300))
        left, right = np.maximum(d1, mode - width), np.minimum(d2, mode + width)
        x, gauss = legendre(self._inner_nodes)
        half = ((right - left) / 2)[:, None]
        at = half * x + ((left + right) / 2)[:, None]
        logs = -((at - self._zd) ** 2) / (2 * self._sd**2)
        weight = np.exp(logs - logs.max(axis=1, keepdims=True)) * gauss
        return at, weight / weight.sum(axis=1, keepdims=True)

    def _sum_below(self, x: float) -> Floats:
        return np.asarray(1 - _share(self._c, self._e, ((self._t / x - self._zd) / self._sd)[:, None])[:, 0])

    def _part_below(self, x: float, *, upper: bool) -> float:
        sure = self._sum_below(x)  # where x den is above t, both parts are below it
        at, weight = self._inner(self._t / x)
        bound = self._t[:, None] - x * at if upper else x * at
        share = _share(self._a, self._b, (bound - self._mean[:, None]) / self._conditional)
        share = (weight * (1 - share if upper else share)).sum(axis=1)
        return float(self._w @ (sure + (1 - sure) * share))


def denominator_nodes(num_variance: float, den_variance: float) -> int:
    """Points for a denominator's law; a narrow numerator makes sharp steps in a wide one."""
    apart = (den_variance / num_variance) ** 0.5
    return 2 * _NODES * min(max(1, int(np.ceil(apart / _STEP_WIDTH))), _MOST_TIMES)


def _nodes(*variances: float) -> int:
    """Points for standard deviations that differ by some factor; narrow laws inside wide ones need more."""
    apart = (max(variances) / min(variances)) ** 0.5
    return int(_NODES * (1 if apart <= 3 else 2 if apart <= 10 else 4 if apart <= 40 else 8))


def _pieces(
    log_weight: Callable[[Floats], Floats], edges: Sequence[float], nodes: int
) -> tuple[Floats, Floats]:
    """Points in pieces that end at the edges, and weights that sum to 1."""
    x, gauss = legendre(nodes)
    at = np.concatenate([(b - a) / 2 * x + (a + b) / 2 for a, b in pairwise(edges)])
    factor = np.concatenate([(b - a) / 2 * gauss for a, b in pairwise(edges)])
    logs = log_weight(at)
    weight = np.exp(logs - logs.max()) * factor
    return at, weight / weight.sum()


def _support(log_weight: Callable[[Floats], Floats], low: float, high: float) -> tuple[float, float]:
    """Narrow a range to where the logarithm of the weight is near its largest value, twice."""
    for _ in range(4):
        u = np.linspace(0.0, 1.0, 400)
        at = np.concatenate([low + (high - low) * u, low + (high - low) * u**4])
        at = np.unique(at)
        logs = log_weight(at)
        near = np.flatnonzero(logs >= np.nanmax(logs) - _NATS)
        low, high = float(at[max(near[0] - 1, 0)]), float(at[min(near[-1] + 1, at.size - 1)])
    return low, high


def _share(a: Floats, b: Floats, u: Floats) -> Floats:
    """Probability below u of a standard normal variable that lies between a and b.

    Args:
        a: shape (n,).
        b: shape (n,).
        u: shape (n, m).
    """
    flip = b < 0
    low, high = np.where(flip, -b, a)[:, None], np.where(flip, -a, b)[:, None]
    at = np.clip(np.where(flip[:, None], -u, u), low, high)
    far = low > 0

    def tail(v: Floats) -> Floats:
        tails = ndtr(-v)
        rows = far[:, 0]
        if rows.any():
            # relative to exp(-low^2 / 2), so that nothing underflows
            some, base = v[rows], low[rows]
            tails[rows] = erfcx(some / _ROOT2) * np.exp((base - some) * (base + some) / 2) / 2
        return np.asarray(tails)

    start, end = tail(low), tail(high)
    below = (start - tail(at)) / (start - end)
    return np.asarray(np.where(flip[:, None], 1 - below, below))


def _cut_mean(a: Floats, b: Floats) -> Floats:
    """Mean of a standard normal variable that lies between a and b, shape (n,)."""
    logs = log_interval(a, b)
    difference = np.exp(-(a**2) / 2 - logs) - np.exp(-(b**2) / 2 - logs)
    return np.asarray(np.clip(difference / np.sqrt(2 * np.pi), a, b))


@lru_cache(maxsize=16)
def legendre(nodes: int) -> tuple[Floats, Floats]:
    """Gauss-Legendre points and weights between -1 and 1; where there are many, in panels of 256 each."""
    panels = max(1, nodes // _PANEL) if nodes > _MOST_TOGETHER else 1
    x, weight = np.polynomial.legendre.leggauss(nodes // panels)
    if panels == 1:
        return x, weight
    middles = (np.arange(panels) + 0.5) * 2 / panels - 1
    return (middles[:, None] + x / panels).ravel(), np.tile(weight / panels, panels)
