"""Exact posteriors of whole counts: discrete Gaussian and two-sided geometric noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.signal import fftconvolve

__all__ = ["CountPosterior", "count_posterior", "geometric_scale", "summed"]

Floats = NDArray[np.float64]
Noise = Literal["gaussian", "geometric"]

_NATS = 60.0  # outcomes less likely than the likeliest by a factor exp(-60) are left out


@dataclass(frozen=True, eq=False)
class CountPosterior:
    """Probabilities of whole numbers.

    Args:
        first: the smallest count with mass.
        mass: of that count and those after it, sum 1.
    """

    first: int
    mass: Floats = field(repr=False)

    @property
    def mean(self) -> float:
        """Posterior mean."""
        return float(self.first + np.arange(self.mass.size) @ self.mass)

    @property
    def variance(self) -> float:
        """Posterior variance."""
        values = self.first + np.arange(self.mass.size)
        return float((values - self.mean) ** 2 @ self.mass)

    def quantiles(self, p: Sequence[float]) -> NDArray[np.int64]:
        """Smallest counts whose cumulative probability is at least p."""
        total = np.cumsum(self.mass)
        return np.asarray(self.first + np.searchsorted(total, np.asarray(p) * total[-1] - 1e-12), np.int64)

    def shortest(self, level: float) -> tuple[int, int]:
        """Shortest run of counts that holds at least the given probability; the lower one of two alike."""
        total = np.concatenate([[0.0], np.cumsum(self.mass)])
        ends = np.searchsorted(total, total + level * total[-1] - 1e-12)
        starts = np.flatnonzero(ends < total.size)
        best = starts[np.argmin((ends - np.arange(ends.size))[starts])]
        return self.first + int(best), self.first + int(ends[best]) - 1


def count_posterior(z: int, scale: float, noise: Noise) -> CountPosterior:
    """Posterior of a count of 0 or more under a flat prior, given its noisy value.

    Args:
        z: noisy count.
        scale: sigma squared of the discrete Gaussian (the parameter, not the variance), or b of the geometric law
            exp(-|k| / b); above 0.
        noise: which law.

    Example:
        >>> posterior = count_posterior(-3, 4.0, "gaussian")
        >>> posterior.first, round(posterior.mean, 4)
        (0, 0.5163)
    """
    if noise == "gaussian":
        reach = np.sqrt(2 * scale * _NATS)
        high = z + reach if z >= 0 else z + np.sqrt(z * z + 2 * scale * _NATS)
    else:
        reach = scale * _NATS
        high = max(z, 0) + reach
    first = max(0, int(np.floor(z - reach)))
    y = np.arange(first, int(np.ceil(high)) + 1, dtype=np.float64)
    logs = -((y - z) ** 2) / (2 * scale) if noise == "gaussian" else -np.abs(y - z) / scale
    mass = np.exp(logs - logs.max())
    return CountPosterior(first, mass / mass.sum())


def summed(cells: Sequence[CountPosterior]) -> CountPosterior:
    """Posterior of a sum of independent counts, by exact discrete convolution."""
    first, mass = cells[0].first, cells[0].mass
    for cell in cells[1:]:
        small = min(mass.size, cell.mass.size) < 64
        mass = np.convolve(mass, cell.mass) if small else np.maximum(fftconvolve(mass, cell.mass), 0.0)
        first += cell.first
    return CountPosterior(first, mass / mass.sum())


def geometric_scale(variance: ArrayLike) -> Floats:
    """Scale b of the two-sided geometric law exp(-|k| / b) with the given variance.

    Example:
        >>> round(float(geometric_scale(17.834255)), 4)
        3.0
    """
    v = np.asarray(variance, np.float64)
    return np.asarray(1 / np.arccosh(1 + 1 / v))
