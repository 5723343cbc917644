"""Owners and renters together: the ratio of the total that two fitted parts imply (PH8)."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from censafe.estimation.sdhc.posteriors import log_interval
from censafe.estimation.sdhc.ratios.intervals import Curve, RatioEstimate, RatioModel, ratio_ends
from censafe.estimation.sdhc.ratios.quadrature import denominator_law, denominator_nodes, legendre
from censafe.estimation.sdhc.ratios.unbounded import unbounded_single
from censafe.model.arrays import Floats

__all__ = ["estimate_tenure"]

_Noisy = tuple[float, float]

_NODES = 96
_COARSE = 40
_INNER = 4  # a quarter of the points of the denominator's law, of which only a part is integrated over
_TAIL = 9.5  # standard deviations beyond which a numerator has no weight


def estimate_tenure(
    first: tuple[_Noisy, _Noisy], second: tuple[_Noisy, _Noisy], model: RatioModel
) -> RatioEstimate:
    """Posterior of (n2 + n3) / (d2 + d3), where each part lies within the bounds of its own ratio.

    The two parts have the posteriors of their own fits, which are independent; the total follows from them, and so lies
    between them in every possible truth.

    Args:
        first: noisy numerator and denominator of one part, each with its variance.
        second: those of the other part.
        model: the bounds of both ratios.

    Source: n2 + n3 <= x (d2 + d3) where the independent n2 - x d2 and n3 - x d3 have a sum of 0 or less; quadrature over
        the first, with the density of the one and the distribution function of the other by quadrature over d.

    Example:
        >>> found = estimate_tenure(((300, 1709), (100, 1709)), ((700, 1709), (350, 1709)), RatioModel(1))
        >>> round(found.ratio, 3), round(found.low, 2), round(found.high, 2)
        (2.235, 1.78, 2.79)
    """
    total = tuple((one[0] + other[0], one[1] + other[1]) for one, other in zip(first, second, strict=True))
    if all(unbounded_single(num, den, model) is not None for num, den in (first, second)):
        far = unbounded_single(total[0], total[1], model)
        if far is not None:
            return far
    parts = _Part(first, model), _Part(second, model)
    low, high = ratio_ends(_curve(parts, model, _NODES), model, model.lowest, _curve(parts, model, _COARSE))
    one, other = parts
    weight = one.weight[:, None] * other.weight[None, :]
    number = one.mean[:, None] + other.mean[None, :]
    den = one.at[:, None] + other.at[None, :]
    return RatioEstimate(
        float((weight * number / den).sum()),
        low,
        high,
        float((weight * number).sum()),
        float((weight * den).sum()),
    )


def _curve(parts: tuple[_Part, _Part], model: RatioModel, nodes: int) -> Curve:
    """Distribution function of the ratio of the totals."""
    one, other = parts
    x_nodes, gauss = legendre(nodes)

    def below(x: float) -> float:
        if x <= model.lowest:
            return 0.0
        if x >= model.largest:
            return 1.0
        low, high = one.range(x)
        kinks = (model.lowest - x, 0.0, model.largest - x)
        edges = [low, *(kink for kink in kinks if low < kink < high), high]
        at = np.concatenate([(b - a) / 2 * x_nodes + (a + b) / 2 for a, b in pairwise(edges)])
        factor = np.concatenate([(b - a) / 2 * gauss for a, b in pairwise(edges)])
        density = one.excess(at, x, density=True) * factor
        return float(density @ other.excess(-at, x, density=False) / density.sum())

    return below


class _Part:
    """The posterior of one numerator and denominator.

    Args:
        noisy: numerator and denominator, each with its variance.
        model: the bounds of their ratio.
    """

    def __init__(self, noisy: tuple[_Noisy, _Noisy], model: RatioModel) -> None:
        (self._zn, vn), (self._zd, self._vd) = noisy
        points = denominator_nodes(vn, self._vd)
        law = denominator_law(*noisy, model, points)
        self._sn, self._model, self._inner = vn**0.5, model, points // _INNER
        self.at, self.weight, self.mean = law.at, law.weight, law.mean
        self._first, self._last = law.low, law.high
        _, gauss = legendre(points)
        self._top = float(self._log_weight(self.at).max())
        weight = np.exp(self._log_weight(self.at) - self._top)
        self._norm = float(weight @ gauss) * (law.high - law.low) / 2

    def _log_weight(self, d: Floats) -> Floats:
        a, b = (self._model.lowest * d - self._zn) / self._sn, (self._model.largest * d - self._zn) / self._sn
        return np.asarray(-((d - self._zd) ** 2) / (2 * self._vd) + log_interval(a, b))

    def range(self, x: float) -> tuple[float, float]:
        """Where num - x den has weight."""
        low, high = self._model.lowest * self.at, self._model.largest * self.at
        mode = np.clip(self._zn, low, high)
        start = np.maximum(low, mode - _TAIL * self._sn) - x * self.at
        end = np.minimum(high, mode + _TAIL * self._sn) - x * self.at
        return float(start.min()), float(end.max())

    def excess(self, a: Floats, x: float, *, density: bool) -> Floats:
        """Density of num - x den at every ``a``, or the probability that it is at most ``a``.

        For ``a`` above 0 denominators below a / (largest - x) lie wholly below, for others those below -a / (x - lowest)
        wholly above; only those beyond need quadrature.
        """
        positive = a > 0
        first = np.where(positive, a / (self._model.largest - x), -a / (x - self._model.lowest))
        first = np.clip(first, self._first, self._last)
        nodes, gauss = legendre(self._inner)
        half = ((self._last - first) / 2)[:, None]
        d = half * nodes + ((self._last + first) / 2)[:, None]
        n = (x * d + a[:, None] - self._zn) / self._sn
        base = -((d - self._zd) ** 2) / (2 * self._vd) - self._top
        if density:
            inside = np.exp(base - n**2 / 2) / (self._sn * np.sqrt(2 * np.pi))
            return np.asarray((half * gauss * inside).sum(axis=1) / self._norm)
        least, most = (bound * d - self._zn for bound in (self._model.lowest, self._model.largest))
        near = np.where(positive[:, None], n, least / self._sn)
        far = np.where(positive[:, None], most / self._sn, n)
        share = (half * gauss * np.exp(base + log_interval(near, np.maximum(far, near)))).sum(
            axis=1
        ) / self._norm
        return np.asarray(np.where(positive, 1 - share, share))
