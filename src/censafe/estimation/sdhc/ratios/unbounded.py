"""Ratios of noisy counts that lie so far within their bounds that the bounds cannot be seen: closed forms."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from censafe.estimation.sdhc.ratios.intervals import RatioEstimate, RatioModel, ratio_ends

_FAR = 8.0  # standard deviations from a bound beyond which there is no mass in double precision
_NODES = 80
_LEAST_DENOMINATOR = 1.0

_Noisy = tuple[float, float]


def unbounded_single(num: _Noisy, den: _Noisy, model: RatioModel) -> RatioEstimate | None:
    """Posterior of num / den when no bound has mass beyond it, else None.

    Source: Fieller (1954): num - x den is normal, so the quantiles solve a quadratic.

    Example:
        >>> estimate = unbounded_single((50_000, 1709), (20_000, 1709), RatioModel(1))
        >>> round(estimate.ratio, 5), round(estimate.low, 5), round(estimate.high, 5)
        (2.50001, 2.49087, 2.50918)
    """
    return _ratio(num, den, model) if _within(num, den, model) else None


def unbounded_joint(
    first: _Noisy, second: _Noisy, den: _Noisy, model: RatioModel
) -> tuple[RatioEstimate, RatioEstimate, RatioEstimate] | None:
    """Posteriors of (first + second) / den, first / den and second / den when no bound has mass beyond it, else None.

    Example:
        >>> estimate = unbounded_joint((20_000, 100), (30_000, 100), (20_000, 100), RatioModel(1))
        >>> [round(part.ratio, 4) for part in estimate]
        [2.5, 1.0, 1.5]
        >>> unbounded_joint((20, 100), (30_000, 100), (20_000, 100), RatioModel(1)) is None
        True
    """
    total = (first[0] + second[0], first[1] + second[1])
    inside = all(z > _FAR * variance**0.5 for z, variance in (first, second))
    if not (inside and _within(total, den, model)):
        return None
    return _ratio(total, den, model), _ratio(first, den, model), _ratio(second, den, model)


def _within(num: _Noisy, den: _Noisy, model: RatioModel) -> bool:
    (zn, vn), (zd, vd) = num, den
    return (
        zd - _LEAST_DENOMINATOR > _FAR * vd**0.5
        and zn - model.lowest * zd > _FAR * (vn + model.lowest**2 * vd) ** 0.5
        and model.largest * zd - zn > _FAR * (vn + model.largest**2 * vd) ** 0.5
    )


def _ratio(num: _Noisy, den: _Noisy, model: RatioModel) -> RatioEstimate:
    (zn, vn), (zd, vd) = num, den
    reach = float(-ndtri(model.tail))
    middle, square = zn * zd, zd**2 - reach**2 * vd
    half = reach * max(zn**2 * vd + zd**2 * vn - reach**2 * vn * vd, 0.0) ** 0.5
    u, weight = _normal()
    mean = zn * float(weight @ (1 / (zd + vd**0.5 * u)))
    low, high = (middle - half) / square, (middle + half) / square
    if model.shortest:
        low, high = _shortest(num, den, model, (low, high))
    return RatioEstimate(mean, low, high, zn, zd)


def _shortest(num: _Noisy, den: _Noisy, model: RatioModel, equal: tuple[float, float]) -> tuple[float, float]:
    (zn, vn), (zd, vd) = num, den
    around = replace(
        model, largest=2 * equal[1]
    )  # the bounds cannot be seen, and parts may have no more than 0

    def curve(x: float) -> float:
        return float(ndtr((x * zd - zn) / (vn + x**2 * vd) ** 0.5))

    return ratio_ends(curve, around, equal[0] / 2)


@lru_cache(maxsize=1)
def _normal() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Points and weights of the standard normal law, short of its ends where a denominator could be 0."""
    x, gauss = np.polynomial.legendre.leggauss(_NODES)
    u = (_FAR - 0.25) * x
    weight = gauss * np.exp(-(u**2) / 2)
    return u, weight / weight.sum()
