"""Quantiles of sums of independent non-negative counts, and whole numbers near posterior means that add up to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike
from scipy.fft import irfft, next_fast_len, rfft
from scipy.special import log_ndtr, ndtr

from censafe.estimation.sdhc.posteriors import truncated_mean, truncated_variance
from censafe.estimation.sdhc.settings import CountRules
from censafe.model.arrays import Floats, Integers


def largest_remainder(means: Floats, totals: Integers) -> Integers:
    """Round down, then add 1 where the remainder is largest until the total is met.

    Args:
        means: 0 or more, shape (groups, cells).
        totals: of each group, no farther than 1 from the sum of its means; shape (groups,).

    Example:
        >>> largest_remainder(np.array([[1.4, 2.4, 3.4]]), np.array([7])).tolist()
        [[2, 2, 3]]
    """
    floors = np.floor(means)
    missing = totals - floors.sum(axis=1).astype(np.int64)
    order = np.argsort(floors - means, axis=1, kind="stable")
    rank = np.empty_like(order)
    np.put_along_axis(rank, order, np.arange(means.shape[1])[None, :], axis=1)
    return np.asarray(floors + (rank < missing[:, None]), np.int64)


def adding_up(means: Mapping[int, Floats], rules: CountRules) -> dict[int, Integers]:
    """Integers numbers for sums and cells: the widest sums rounded, what they contain by largest remainder within them.

    Args:
        means: posterior means of sums and basis cells by number, shape (groups,) each.
    """
    found: dict[int, Integers] = {}
    inner = {cell: set(of) for cell, of in rules.margins.items()}
    for number, cells in inner.items():
        for other in inner.values():
            if cells & other and not (cells <= other or other <= cells):
                raise ValueError(f"{rules.table}: sum {number} shares some cells with another sum")
    for number in sorted(inner, key=lambda cell: -len(inner[cell])):
        if number not in found:
            found[number] = np.rint(means[number]).astype(np.int64)
        parts = _parts(number, inner)
        shares = largest_remainder(np.stack([means[part] for part in parts], axis=1), found[number])
        found |= dict(zip(parts, shares.T, strict=True))
    for cell in rules.basis:
        found.setdefault(cell, np.rint(means[cell]).astype(np.int64))
    return found


def _parts(number: int, inner: Mapping[int, set[int]]) -> Sequence[int]:
    """The widest sums within a sum, and its cells outside of those."""
    within = [other for other, cells in inner.items() if other != number and cells < inner[number]]
    widest = [one for one in within if not any(inner[one] < inner[other] for other in within)]
    rest = inner[number].difference(*(inner[one] for one in widest))
    return [*widest, *sorted(rest)]


_STEPS = 128  # grid steps in the standard deviation of the sum
_REACH = 9.0  # standard deviations beyond which a cell has no mass
_NORMAL = 7.0  # standard deviations above zero from which the cut cannot be seen
_MOST_CELLS = 16
_STARTS = 4001  # lower ends among which the shortest interval is sought
_NORMAL_POINTS = 4001


@dataclass(frozen=True, eq=False)
class SumDistribution:
    """Distribution of a sum of counts."""

    at: Floats = field(repr=False)
    below: Floats = field(repr=False)
    known: float = 0.0

    def quantiles(self, p: ArrayLike) -> Floats:
        """Values below which the sum is with the given probabilities, of their shape."""
        return np.asarray(
            np.maximum(np.interp(np.asarray(p, np.float64), self.below, self.at), 0.0) + self.known
        )

    def shortest(self, level: float) -> tuple[float, float]:
        """Ends of the shortest interval that holds the sum with the given probability."""
        starts = np.linspace(0.0, 1 - level, _STARTS)
        lows, highs = self.quantiles(starts), self.quantiles(starts + level)
        best = int(np.argmin(highs - lows))
        return float(lows[best]), float(highs[best])


def sum_distribution(z: ArrayLike, variance: ArrayLike) -> SumDistribution:
    """Distribution of the sum of independent normal variables that are each known to be 0 or more.

    Args:
        z: means before the cut, shape (cells,).
        variance: variances before the cut, 0 or more; a cell of variance 0 is max(0, z); shape (cells,).

    Source: convolution of the cells' masses on a common grid. Cells that no cut can reach make one normal variable.
    """
    means, variances = np.broadcast_arrays(np.asarray(z, np.float64), np.asarray(variance, np.float64))
    if not 1 <= means.size <= _MOST_CELLS:
        raise ValueError(f"a sum has 1 to {_MOST_CELLS} cells")
    noisy = variances > 0
    known = float(np.maximum(means[~noisy], 0.0).sum())
    means, variances = means[noisy], variances[noisy]
    far = means > _NORMAL * np.sqrt(variances)
    if far.any():  # their sum cannot be told from one normal variable
        means = np.append(means[~far], means[far].sum())
        variances = np.append(variances[~far], variances[far].sum())
    if means.size == 0:
        return SumDistribution(np.zeros(2), np.array([0.0, 1.0]), known)
    if far.all():
        u = np.linspace(-_REACH, _REACH, _NORMAL_POINTS)
        return SumDistribution(means[0] + np.sqrt(variances[0]) * u, ndtr(u), known)
    at, below = _gridded(means, variances)
    return SumDistribution(at, below, known)


def _gridded(means: Floats, variances: Floats) -> tuple[Floats, Floats]:
    sigmas = np.sqrt(variances)
    spread = float(np.sqrt(truncated_variance(means, variances).sum()))
    start, mass = _convolved([_masses(m, s, spread / _STEPS) for m, s in zip(means, sigmas, strict=True)])
    edges = (start + np.arange(mass.size + 1)) * spread / _STEPS
    total = np.concatenate([[0.0], np.cumsum(mass)])
    # cells narrower than a step make the grid's mean drift; the exact mean is known
    middle = float((edges[:-1] + edges[1:]) @ mass / (2 * total[-1]))
    drift = float(truncated_mean(means, variances).sum()) - middle
    return edges + drift, total / total[-1]


def _masses(mean: float, sigma: float, step: float) -> tuple[int, Floats]:
    """First grid step and the masses from there on of one cell."""
    low = max(0.0, mean - _REACH * sigma)
    high = max(mean, 0.0) + _REACH * sigma
    first = int(low / step)
    edges = (np.arange(first, int(np.ceil(high / step)) + 1) * step - mean) / sigma
    upper = log_ndtr(-edges)  # relative to the first edge, so that nothing underflows far above the mean
    mass = -np.diff(np.exp(upper - upper[0]))
    return first, mass / mass.sum()


def _convolved(cells: list[tuple[int, Floats]]) -> tuple[int, Floats]:
    size = sum(mass.size for _, mass in cells) - len(cells) + 1
    length = next_fast_len(size, real=True)
    product = np.ones(length // 2 + 1, np.complex128)
    for _, mass in cells:
        product *= rfft(mass, length)
    found = irfft(product, length)[:size]
    return sum(first for first, _ in cells), np.maximum(found, 0.0)
