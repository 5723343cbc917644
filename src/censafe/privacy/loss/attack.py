"""The best attack on one record: power of the likelihood-ratio test over all answers that the record moves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import NDArray

from censafe.model import Definition
from censafe.model.proven import proven

_ORDERS = 1 + np.logspace(-4, 3, 4000)  # a grid of orders is a valid bound: more orders only lower it


def largest_power(loss: Fraction, definition: Definition, level: Fraction) -> float:
    """Largest chance with which any test can detect a difference between neighbors.

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


@proven("guess.proof.md", digest="45ac16e39b776b53")
def best_guess(loss: Fraction, definition: Definition) -> float:
    """Largest chance to guess right which of two equally likely neighbors was the input, rounded up to a ten-thousandth.

    Source: data processing inequality, as in :func:`largest_power`, at equal error both ways; ``guess.proof.md``.

    Example:
        >>> best_guess(Fraction(1, 4), Definition.PURE), best_guess(Fraction(1, 10), Definition.ZCDP), best_guess(Fraction(0), Definition.ZCDP)
        (0.5622, 0.6109, 0.5)
    """
    if loss < 0:
        raise ValueError("the loss must not be negative")
    if definition is Definition.PURE:
        chance = 1 / (1 + math.exp(-float(loss)))
    else:
        low, chance = 0.5, 1.0
        for _ in range(60):
            middle = (low + chance) / 2
            if middle in (low, chance):
                break
            if _possible(float(loss), 1 - middle, middle):
                low = middle
            else:
                chance = middle
    return min(1.0, math.ceil(chance * 10_000 - 1e-6) / 10_000)


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


_DEVIATIONS: Final = 12.0
_STEPS: Final = 10_000  # of the lattice, by standard deviation of the log-likelihood ratio


@dataclass(frozen=True)
class MovedQuery:
    """A query that one record moves.

    Args:
        cells: answers that move: two where a record moves from one to another, one where it is added.
    """

    sigma2: Fraction
    cells: int = 2
    step: int = 1


def gaussian_power(rho: Fraction, level: float) -> float:
    """Power of the likelihood-ratio test of continuous Gaussian answers with total loss rho.

    Example:
        >>> round(gaussian_power(Fraction("0.1115007"), 0.05), 5)
        0.12047
    """
    normal = NormalDist()
    return normal.cdf(normal.inv_cdf(level) + math.sqrt(2 * rho))


def zcdp_power(rho: Fraction, level: float) -> float:
    """Bound on the power of every test against every mechanism of that loss, rounded up to 4 digits.

    Example:
        >>> [zcdp_power(Fraction("0.1115007"), level) for level in (0.01, 0.05, 0.10)]
        [0.0374, 0.1402, 0.2404]
    """
    return largest_power(rho, Definition.ZCDP, Fraction(str(level)))


@dataclass(frozen=True, eq=False)
class Attack:
    """The best test for one record: the law of its log-likelihood ratio on a lattice, under both hypotheses.

    Args:
        null: float64, mass by ratio, where the record is as supposed.
    """

    null: NDArray[np.float64]
    other: NDArray[np.float64]

    def powers(self, levels: Sequence[float], *, randomized: bool = True) -> list[float]:
        """Power at each level of false alarms: the largest ratios first, until their mass under the null is the level."""
        size = np.cumsum(np.maximum(self.null, 0)[::-1])
        power = np.cumsum(np.maximum(self.other, 0)[::-1])
        powers = []
        for level in levels:
            place = int(np.searchsorted(size, level, side="right"))
            before = (size[place - 1], power[place - 1]) if place else (0.0, 0.0)
            value = float(before[1])
            if randomized and place < len(size) and size[place] > before[0]:
                value += (level - before[0]) / (size[place] - before[0]) * (power[place] - before[1])
            powers.append(float(min(1.0, value)))
        return powers


def best_attack(queries: Sequence[MovedQuery]) -> Attack:
    """The likelihood-ratio test over the discrete Gaussian answers of all queries that a record moves.

    The log-likelihood ratio is a sum over queries; its law under both hypotheses is the convolution of theirs. The ratio of
    each query is rounded to a lattice of 1 / 10,000 of the standard deviation of the sum, under both hypotheses alike: that is
    a function of the answers, so the result is the exact power of a real test, which differs from the best one by less than
    1e-5.

    Source: Neyman & Pearson; Canonne, Kamath & Steinke (2020) for the law.

    Example:
        >>> query = MovedQuery(Fraction(4), 1)
        >>> [round(power, 4) for power in best_attack([query]).powers([0.05])]
        [0.1248]
    """
    if not queries:
        raise ValueError("power needs at least one query")
    variance = float(sum(Fraction(query.cells * query.step**2) / query.sigma2 for query in queries))
    step = math.sqrt(variance) / _STEPS
    null, other = np.ones(1), np.ones(1)
    for query in queries:
        own_null, own_other = _lattice(query, step)
        null, other = _trimmed(_convolved(null, own_null), _convolved(other, own_other))
    return Attack(null, other)


def _lattice(query: MovedQuery, step: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Law of one query's log-likelihood ratio on the lattice, under both hypotheses."""
    sigma2 = float(query.sigma2)
    reach = math.ceil(_DEVIATIONS * math.sqrt(sigma2 * query.cells)) + query.cells * query.step + 1
    sums = np.arange(-reach, reach + 1)
    total = np.exp(-sums * sums / (2 * sigma2))
    total /= total.sum()
    if query.cells > 1:
        circle = np.zeros(1 << (2 * reach).bit_length())
        circle[sums] = total
        powers = np.fft.irfft(np.fft.rfft(circle) ** query.cells, len(circle))
        total = np.maximum(powers[sums], 0)
    # what moves each cell moves the sum of their noises by as much for each
    half = query.cells * query.step / 2
    places = [
        np.rint(query.step * (sums + shift - half) / (sigma2 * step)).astype(np.int64)
        for shift in (0, query.cells * query.step)
    ]
    start = int(places[0][0])
    width = int(places[1][-1]) - start + 1
    null, other = (
        np.bincount(place - start, weights=total, minlength=width).astype(np.float64) for place in places
    )
    return null, other


def _convolved(first: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.float64]:
    """Linear convolution by FFT."""
    length = len(first) + len(second) - 1
    size = 1 << (length - 1).bit_length()
    return np.fft.irfft(np.fft.rfft(first, size) * np.fft.rfft(second, size), size)[:length]


def _trimmed(
    null: NDArray[np.float64], other: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Both laws without ends whose mass is below 1e-16."""
    both = np.maximum(null, 0) + np.maximum(other, 0)
    low = int(np.searchsorted(np.cumsum(both), 1e-16))
    high = len(both) - int(np.searchsorted(np.cumsum(both[::-1]), 1e-16))
    return null[low:high], other[low:high]
