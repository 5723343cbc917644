"""Ratios of whole counts with discrete Gaussian or two-sided geometric noise: which numbers matter, and how much."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import nnls

from censafe.estimation.sdhc.posteriors import geometric_scale
from censafe.estimation.sdhc.ratios.intervals import RatioEstimate, RatioModel, UnansweredError
from censafe.estimation.sdhc.ratios.lattice import CountWeights, RatioLattice, convolved
from censafe.model.arrays import Floats

_NATS = (
    24.5  # outcomes less likely than the likeliest by a factor exp(-24.5) are left out, 7 standard deviations
)
_EDGE = 1e-9
_WIDENINGS = 4
_FAINT = 1e-250
_SMALL = 1e-12


@dataclass(frozen=True)
class NoisyCount:
    """A noisy count, or the sum of several.

    Args:
        geometric: of each of them, whether it is two-sided geometric and not discrete Gaussian.
    """

    z: int
    variances: tuple[float, ...]
    geometric: tuple[bool, ...]

    def __add__(self, other: NoisyCount) -> NoisyCount:
        return NoisyCount(
            self.z + other.z, self.variances + other.variances, self.geometric + other.geometric
        )

    @property
    def variance(self) -> float:
        """Of the noise."""
        return sum(self.variances)

    @property
    def scales(self) -> list[float]:
        """Of the geometric noises."""
        pairs = zip(self.variances, self.geometric, strict=True)
        return [float(geometric_scale(v)) for v, wide in pairs if wide and v > 0]

    @property
    def normal(self) -> float:
        """Variance of the discrete Gaussian noises together."""
        return sum(v for v, wide in zip(self.variances, self.geometric, strict=True) if not wide)

    @property
    def reach(self) -> float:
        """Distance from the likeliest number beyond which there is nothing to speak of."""
        return float(np.sqrt(2 * self.normal * _NATS) + sum(_NATS * scale for scale in self.scales))


def lattice_single(num: NoisyCount, den: NoisyCount, model: RatioModel) -> RatioEstimate:
    """Posterior of num / den over whole numbers, each measured once (PH8).

    Source: discrete Gaussian noise has weights exp(-(y - z)^2 / (2 D)), two-sided geometric noise exp(-|y - z| / b).

    Example:
        >>> found = lattice_single(NoisyCount(5, (2.0,), (False,)), NoisyCount(2, (2.0,), (False,)), RatioModel(1))
        >>> round(found.ratio, 4), round(found.low, 4), found.high
        (2.8077, 1.0, 6.0)
    """
    rows = [[1.0, -model.lowest], [-1.0, model.largest], [0.0, 1.0]]
    mode = _mode([num, den], rows, [0, 0, 1])

    def fit(widening: float) -> list[RatioLattice]:
        top, bottom = _weights(num, mode[0], widening, 1), _weights(den, mode[1], widening, 1)
        return [RatioLattice(top, bottom, model)]

    return _settled(fit)[0].estimate()


def lattice_joint(
    first: NoisyCount, second: NoisyCount, den: NoisyCount, model: RatioModel
) -> tuple[RatioEstimate, RatioEstimate, RatioEstimate]:
    """Posteriors of (first + second) / den, first / den and second / den over whole numbers (PH1, PH5).

    Example:
        >>> counts = (NoisyCount(z, (4.0,), (False,)) for z in (3, 7, 4))
        >>> [round(one.ratio, 3) for one in lattice_joint(*counts, RatioModel(1))]
        [2.968, 0.916, 2.052]
    """
    rows = [
        [1.0, 1.0, -model.lowest],
        [-1.0, -1.0, model.largest],
        [0.0, 0.0, 1.0],
        [1.0, 0.0, 0.0],
        [0.0, 1.0, 0.0],
    ]
    mode = _mode([first, second, den], rows, [0, 0, 1, 0, 0])

    def fit(widening: float) -> list[RatioLattice]:
        one, other = (
            _weights(count, at, widening, 0) for count, at in zip((first, second), mode, strict=False)
        )
        bottom = _weights(den, mode[2], widening, 1)
        total = RatioLattice(convolved((one, other)), bottom, model)
        if _free(one, other, bottom, model):
            ends = [RatioLattice(part, bottom, _unbounded(part, bottom, model)) for part in (one, other)]
        else:
            ends = [RatioLattice(one, bottom, model, other), RatioLattice(other, bottom, model, one)]
        return [total, *ends]

    total, one, other = (lattice.estimate() for lattice in _settled(fit))
    return total, one, other


def _settled(fit: Callable[[float], list[RatioLattice]]) -> list[RatioLattice]:
    """Lattices wide enough that nothing to speak of lies beyond their ends."""
    for step in range(_WIDENINGS):
        found = fit(2.0**step)
        if not all(lattice.total > _FAINT for lattice in found):
            break
        if all(lattice.edge < _EDGE for lattice in found):
            return found
    raise UnansweredError("the noisy counts contradict the bounds of their ratio too far")


def _mode(counts: Sequence[NoisyCount], rows: Sequence[Sequence[float]], least: Sequence[float]) -> Floats:
    """Likeliest values under normal noise where ``rows @ values >= least``.

    Source: Lawson and Hanson (1974), least distance programming by non-negative least squares. With normal noise every
        other allowed point is less likely by at least its distance from this one, so that windows around it hold all.
    """
    z = np.array([count.z for count in counts], np.float64)
    sigma = np.sqrt([count.variance for count in counts])
    bounds, limits = np.asarray(rows, np.float64), np.asarray(least, np.float64)
    missing = limits - bounds @ z
    if (missing <= 0).all():
        return z
    scaled = bounds * sigma
    norm = np.maximum(np.sqrt((scaled**2).sum(axis=1)), _SMALL)
    system = np.vstack([(scaled / norm[:, None]).T, missing / norm])
    target = np.append(np.zeros(z.size), 1.0)
    residual = system @ nnls(system, target, maxiter=100 * system.shape[1])[0] - target
    if residual[-1] == 0:
        raise UnansweredError("exact counts contradict the bounds of their ratio")
    return np.asarray(z - sigma * residual[:-1] / residual[-1])


def _weights(count: NoisyCount, mode: float, widening: float, least: int) -> CountWeights:
    """Likelihood of the numbers near the likeliest one, the largest 1."""
    if count.variance == 0:
        return CountWeights(max(count.z, least), np.ones(1), max(count.z, least))
    radius = widening * count.reach + 1
    low = max(int(np.floor(mode - radius)), least)
    lag = np.arange(low, max(int(np.ceil(mode + radius)), low) + 1, dtype=np.float64) - count.z
    if not count.scales:
        logs = -(lag**2) / (2 * count.normal)
    elif len(count.scales) == 1 and not count.normal:
        logs = -np.abs(lag) / count.scales[0]
    else:
        logs = np.log(_mixed(count, lag))
    return CountWeights(low, np.exp(logs - logs.max()), least)


def _mixed(count: NoisyCount, lag: Floats) -> Floats:
    """Probabilities of a sum of noises that are not all discrete Gaussian, at the given distances."""
    width = int(np.abs(lag).max() + np.ceil(count.reach))
    k = np.arange(-width, width + 1, dtype=np.float64)
    kernels = [np.exp(-np.abs(k) / scale) for scale in count.scales]
    kernels += [np.exp(-(k**2) / (2 * count.normal))] if count.normal else []
    law = kernels[0]
    for kernel in kernels[1:]:
        law = np.convolve(law, kernel, mode="same")
    return np.asarray(law[(lag + width).astype(np.int64)])


def _free(one: CountWeights, other: CountWeights, den: CountWeights, model: RatioModel) -> bool:
    """Whether no pair of numbers within the windows meets a bound."""
    lowest, highest = (sum(int(part.values[end]) for part in (one, other)) for end in (0, -1))
    return lowest >= model.lowest * den.values[-1] and highest <= model.largest * den.values[0]


def _unbounded(part: CountWeights, den: CountWeights, model: RatioModel) -> RatioModel:
    return replace(model, lowest=0.0, largest=float(part.values[-1] / den.first + 1))
