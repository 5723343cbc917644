"""Posteriors of counts: normal distributions cut off below zero, exact to the last digits, and those of whole counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.signal import fftconvolve
from scipy.special import erfcx, log_ndtr, ndtr, ndtri, ndtri_exp

from censafe.model.arrays import Floats

_FAR = 3.0  # standard deviations below zero from which continued fractions take over
_TERMS = 200
_STEPS = 30
_ROOT2 = float(np.sqrt(2.0))
_DENSITY = float(1 / np.sqrt(2 * np.pi))


def truncated_mean(z: ArrayLike, variance: ArrayLike) -> Floats:
    """Mean of a normal variable known to be 0 or more.

    Source: hazard of the normal law; Laplace's continued fraction of Mills' ratio below -3 standard deviations.

    Example:
        >>> truncated_mean([-100.0, 5.0], [147.8, 1.0]).round(4).tolist()
        [1.4372, 5.0]
    """
    r, sigma = _standard(z, variance)
    excess, _ = _excess(np.minimum(r, -_FAR))
    near = np.maximum(r, -_FAR)
    return np.where(r < -_FAR, excess, near + _hazard(near)) * sigma


def truncated_variance(z: ArrayLike, variance: ArrayLike) -> Floats:
    """Variance of a normal variable known to be 0 or more.

    Example:
        >>> truncated_variance([0.0, -40.0], [1.0, 1.0]).round(7).tolist()
        [0.3633802, 0.0006227]
    """
    r, sigma = _standard(z, variance)
    excess, second = _excess(np.minimum(r, -_FAR))
    near = np.maximum(r, -_FAR)
    hazard = _hazard(near)
    return np.where(r < -_FAR, excess * (second - excess), 1 - hazard * (hazard + near)) * sigma**2


def truncated_quantile(p: ArrayLike, z: ArrayLike, variance: ArrayLike) -> Floats:
    """Quantile of a normal variable known to be 0 or more.

    Source: inversion in the upper tail; far below zero Newton steps on the logarithm of the tail.

    Example:
        >>> truncated_quantile([0.05, 0.95], -10.0, 1.0).round(6).tolist()
        [0.005078, 0.292467]
    """
    r, sigma = _standard(z, variance)
    tail = np.log1p(-np.asarray(p, np.float64))
    r, tail = np.broadcast_arrays(r, tail)
    near = np.maximum(r, -_FAR)
    standard = near - ndtri_exp(tail + log_ndtr(near))
    far = r < -_FAR
    if far.any():
        standard = np.where(far, _far_quantile(np.where(far, -r, _FAR), -tail), standard)
    return np.asarray(np.maximum(standard, 0.0) * sigma)


def shortest_interval(level: float, z: ArrayLike, variance: ArrayLike) -> tuple[Floats, Floats]:
    """Shortest interval that holds a normal variable known to be 0 or more with the given probability.

    Example:
        >>> [round(float(end), 4) for end in shortest_interval(0.9, 0.0, 1.0)]
        [0.0, 1.6449]
    """
    r, sigma = _standard(z, variance)
    half = -ndtri((1 - level * ndtr(r)) / 2)
    inner = r >= half
    upper = np.where(inner, (r + half) * sigma, truncated_quantile(level, z, variance))
    return np.where(inner, (r - half) * sigma, 0.0), upper


def log_interval(a: ArrayLike, b: ArrayLike) -> Floats:
    """Logarithm of the probability that a standard normal variable lies between a and b, a below b.

    Example:
        >>> log_interval([-1.0, 40.0], [1.0, 41.0]).round(4).tolist()
        [-0.3817, -804.6084]
    """
    low, high = np.asarray(a, np.float64), np.asarray(b, np.float64)
    swap = low > 0
    low, high = np.where(swap, -high, low), np.where(swap, -low, high)
    upper = log_ndtr(high)
    with np.errstate(divide="ignore"):
        return np.asarray(upper + np.log1p(-np.exp(np.minimum(log_ndtr(low) - upper, 0.0))))


def _standard(z: ArrayLike, variance: ArrayLike) -> tuple[Floats, Floats]:
    sigma = np.sqrt(np.asarray(variance, np.float64))
    return np.asarray(np.asarray(z, np.float64) / sigma), sigma


def _hazard(r: Floats) -> Floats:
    """Density at r over the probability below r."""
    return np.asarray(_DENSITY * np.exp(-(r**2) / 2) / ndtr(r))


def _excess(r: Floats) -> tuple[Floats, Floats]:
    """For r far below zero: mean above zero in standard deviations, 1 / (s + 2 / (s + 3 / ...)) with s = -r.

    The second value is the inner fraction 2 / (s + 3 / ...), from which the variance follows without cancellation.
    """
    s = -r
    inner = np.zeros_like(s)
    for term in range(_TERMS, 1, -1):
        inner = term / (s + inner)
    return 1 / (s + inner), inner


def _far_quantile(s: Floats, depth: Floats) -> Floats:
    """The y at which the tail beyond s + y is exp(-depth) of the tail beyond s."""
    scaled = erfcx(s / _ROOT2)
    y = depth / s
    for _ in range(_STEPS):
        beyond = erfcx((s + y) / _ROOT2)
        missing = s * y + y**2 / 2 - np.log(beyond / scaled) - depth
        step = missing * beyond / (2 * _DENSITY)
        y = np.maximum(y - step, y / 2)
        if np.all(np.abs(step) <= 4e-16 * np.maximum(y, 1e-300)):
            break
    return np.asarray(y)


Noise = Literal["gaussian", "geometric"]

_NATS = 60.0  # outcomes less likely than the likeliest by a factor exp(-60) are left out


@dataclass(frozen=True, eq=False)
class CountPosterior:
    """Probabilities of whole numbers."""

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


def noisy_posterior(z: int, variance: float, *, geometric: bool) -> CountPosterior:
    """The same from the variance of the noise; a count without noise is itself, or 0."""
    if variance == 0:
        return CountPosterior(max(z, 0), np.ones(1))
    if geometric:
        return count_posterior(z, float(geometric_scale(variance)), "geometric")
    return count_posterior(z, variance, "gaussian")


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
