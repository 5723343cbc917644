"""Exact composition of discrete Gaussians: a proven bracket of epsilon at delta, by privacy-loss distributions.

The privacy loss L of the answers that a record moves is a sum over independent laws. Each is put on a lattice of step h in
two ways, and the sums are convolved by FFT under an exponential tilt, which makes rounding errors small relative to delta.
``loss_law.proof.md`` shows that one way gives delta from above and the other from below.

The same law says how far a release moves an attacker's odds about one record. For two candidate records the odds after the release are those before, times exp(L), where L is the privacy loss of what was
published. So they move by a factor of at most e^epsilon with probability at least 1 - delta over the release, epsilon being where the two tails
of L hold delta together. ``odds.proof.md`` proves both ways to find it: from the exact law of L, and from rho alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from censafe.model import Definition
from censafe.model.proven import proven
from censafe.privacy.loss.attack import MovedQuery
from censafe.privacy.loss.conversions import gaussian_epsilon, odds_bound

_Vector = NDArray[np.float64]
_REACH: Final = 14.0  # standard deviations of every law and of their sum; the mass beyond is below 1e-40
_ERROR: Final = 1e-8  # mass under the tilt, for floats and for what lies beyond the reach; see the proof
_POINTS: Final = 1 << 17
_SEARCH_POINTS: Final = 1 << 14
_PARTS: Final = 1_000  # of the variances
_STRIDE: Final = 8
_HALVINGS: Final = 80
_FAR: Final = 0.1


@dataclass(frozen=True)
class EpsilonBracket:
    """Epsilon at delta of the composed answers lies in [lower, upper]."""

    lower: float
    upper: float


def loss_of(queries: Sequence[MovedQuery]) -> Fraction:
    """Rho of the answers that a record moves: the sum of cells step^2 / (2 sigma2).

    Example:
        >>> loss_of([MovedQuery(Fraction(4), 2), MovedQuery(Fraction(2), 1, 3)])
        Fraction(5, 2)
    """
    return sum((query.cells * query.step**2 / (2 * query.sigma2) for query in queries), Fraction(0))


def gathered(queries: Sequence[MovedQuery]) -> tuple[MovedQuery, ...]:
    """The same cells with those of one law and step in one entry, in order of first occurrence.

    Example:
        >>> gathered([MovedQuery(Fraction(4), 2), MovedQuery(Fraction(4), 1)])
        (MovedQuery(sigma2=Fraction(4, 1), cells=3, step=1),)
    """
    cells: dict[tuple[Fraction, int], int] = {}
    for query in queries:
        cells[query.sigma2, query.step] = cells.get((query.sigma2, query.step), 0) + query.cells
    return tuple(MovedQuery(sigma2, number, step) for (sigma2, step), number in cells.items())


@proven("loss_law.proof.md", digest="d1ba5e48f996b936")
def composed_epsilon(
    queries: Sequence[MovedQuery], delta: Fraction, *, points: int = _POINTS
) -> EpsilonBracket:
    """Smallest epsilon at delta of all answers together, for a record that moves exactly these cells.

    Args:
        queries: the cells that move; their noise is independent and discrete Gaussian.
        delta: a Fraction in (0, 1).
        points: of the lattice; more of them narrow the bracket.

    Raises:
        ValueError: no query.

    Source: Sommer, Meiser & Mohammadi (2019), privacy-loss distributions; Doroshenko et al. (2022), connecting the dots.

    Example:
        >>> bounds = composed_epsilon([MovedQuery(Fraction(4), 2)], Fraction(1, 10**6), points=1 << 14)
        >>> round(bounds.lower, 2), round(bounds.upper, 2)
        (3.29, 3.29)
    """
    if not queries:
        raise ValueError("a composition needs at least one query")
    laws = gathered(queries)
    rho = loss_of(laws)
    guess = max(gaussian_epsilon(rho, delta), 1e-6)
    bounds = _bracket(laws, float(rho), float(delta), guess, points)
    if abs(bounds.upper - guess) > _FAR * math.sqrt(2 * rho):
        bounds = _bracket(laws, float(rho), float(delta), max(bounds.upper, 1e-6), points)
    return bounds


def spare_variance(queries: Sequence[MovedQuery], delta: Fraction, epsilon: float) -> float:
    """Share of all variances that may be saved so that the composed answers still have this epsilon at delta.

    Example:
        >>> spare_variance([MovedQuery(Fraction(4), 2)], Fraction(1, 10**6), 3.6)
        0.134
    """
    laws = gathered(queries)

    def holds(parts: int) -> bool:
        factor = 1 - Fraction(parts, _PARTS)
        less = [MovedQuery(law.sigma2 * factor, law.cells, law.step) for law in laws]
        return composed_epsilon(less, delta, points=_SEARCH_POINTS).upper <= epsilon

    if not holds(0):
        return 0.0
    low, high = 0, _PARTS  # low holds, high does not
    rho = loss_of(laws)
    while high - low > 1:
        middle = _next_parts(rho, delta, epsilon, low, high)
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low / _PARTS


def _next_parts(rho: Fraction, delta: Fraction, epsilon: float, low: int, high: int) -> int:
    """Where continuous Gaussians would be, when that is inside; the middle otherwise."""
    if high - low < _PARTS:
        return min(low + _STRIDE, (low + high) // 2) if high == _PARTS else (low + high) // 2
    most = Fraction(1)
    while gaussian_epsilon(rho * most, delta) < epsilon:
        most *= 2
    least = most / 2
    for _ in range(14):
        middle = (least + most) / 2
        if gaussian_epsilon(rho * middle, delta) <= epsilon:
            least = middle
        else:
            most = middle
    return min(max(int(_PARTS * (1 - 1 / most)), low + 1), high - 1)


def _bracket(
    laws: Sequence[MovedQuery], rho: float, delta: float, guess: float, points: int
) -> EpsilonBracket:
    """Bounds by the tilt under which the mean loss is about ``guess``."""
    spread = math.sqrt(2 * rho)
    tilt = max(0.0, (guess - rho) / (2 * rho))
    step = 2 * _REACH * spread / points
    pairs = [_lattice(law, tilt, step) for law in laws]
    lower, upper = (LossTotal.of([pair[way] for pair in pairs], points, step, tilt) for way in (0, 1))
    above = _smallest(lambda epsilon: upper.delta(epsilon, _ERROR) <= delta, float(upper.losses[-1]))
    below = _largest(lambda epsilon: lower.delta(epsilon, -_ERROR) > delta, above, lower.width)
    return EpsilonBracket(min(above, below), above)


def lower_total(laws: Sequence[MovedQuery], rho: float, guess: float, points: int) -> LossTotal:
    """The composed law with the loss of every query moved down by less than one step of the lattice, and never up."""
    tilt, step = max(0.0, (guess - rho) / (2 * rho)), 2 * _REACH * math.sqrt(2 * rho) / points
    return LossTotal.of([_lattice(law, tilt, step)[0] for law in laws], points, step, tilt)


@dataclass(frozen=True, eq=False)
class _Law:
    """Weights exp(tilt loss) P(loss) on consecutive points of the lattice, scaled to sum to one."""

    first: int
    weights: _Vector
    log_sum: float


def _lattice(law: MovedQuery, tilt: float, step: float) -> tuple[_Law, _Law]:
    """One law on the lattice, from below and from above."""
    first, mass, log_sum = _tilted_sum(law, tilt)
    loss = law.step * (first + np.arange(len(mass)) + law.cells * law.step / 2) / float(law.sigma2)
    cell = np.floor(loss / step).astype(np.int64)
    start = int(cell[0])
    width = int(cell[-1]) - start + 2
    at_low = mass * np.exp(tilt * (cell * step - loss))
    lower = np.bincount(cell - start, weights=at_low, minlength=width)
    # from above: the mass goes to both ends of its cell, so that the mean of exp(-loss) is kept
    moved = np.clip(np.expm1(cell * step - loss) / math.expm1(-step), 0.0, 1.0)
    upper = np.bincount(cell - start, weights=at_low * (1 - moved), minlength=width) + np.bincount(
        cell - start + 1, weights=at_low * moved * math.exp(tilt * step), minlength=width
    )
    return _scaled(start, lower, log_sum), _scaled(start, upper, log_sum)


def _scaled(first: int, weights: NDArray[Any], log_sum: float) -> _Law:
    total = float(weights.sum())
    return _Law(first, weights / total, log_sum + math.log(total))


def _tilted_sum(law: MovedQuery, tilt: float) -> tuple[int, _Vector, float]:
    """Sum of the noises of all cells under the tilt: its first value, its law, and the log of exp(tilt loss)'s mean."""
    sigma2, sigma = float(law.sigma2), math.sqrt(law.sigma2)
    center = tilt * law.step
    middle = round(center)
    reach = math.ceil(_REACH * sigma) + 1
    noise = np.arange(middle - reach, middle + reach + 1)
    tilted = np.exp(-((noise - center) ** 2) / (2 * sigma2))
    untilted = float(np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * sigma2)).sum())
    log_factor = center * center / (2 * sigma2) + math.log(float(tilted.sum()) / untilted)
    offset = tilt * law.cells * law.step**2 / (2 * sigma2)
    if law.cells == 1:
        return middle - reach, tilted / tilted.sum(), log_factor + offset
    wide = math.ceil(_REACH * sigma * math.sqrt(law.cells)) + law.cells + 2
    size = 1 << (2 * wide).bit_length()
    circle = np.zeros(size)
    circle[(noise - middle) % size] = tilted / tilted.sum()
    power = np.fft.irfft(np.fft.rfft(circle) ** law.cells, size)
    mass = np.maximum(power[np.arange(-wide, wide + 1) % size], 0.0)
    return law.cells * middle - wide, mass / mass.sum(), law.cells * log_factor + offset


@dataclass(frozen=True, eq=False)
class LossTotal:
    """The composed law on the lattice, as sums over its upper tail.

    Args:
        losses: float64, shape (points,), ascending.
        tails: tilted back, the sums of the mass from each loss on, in units of exp(log_scale).
    """

    losses: NDArray[Any]
    tails: NDArray[Any]
    shrunk: NDArray[Any]
    tilt: float
    center: float
    log_scale: float

    @classmethod
    def of(cls, laws: Sequence[_Law], points: int, step: float, tilt: float) -> LossTotal:
        """Convolve the laws on a circle of lattice points."""
        spectrum = np.ones(points // 2 + 1, dtype=np.complex128)
        mean = 0.0
        for law in laws:
            places = law.first + np.arange(len(law.weights))
            mean += float(law.weights @ places)
            spectrum *= np.fft.rfft(np.bincount(places % points, weights=law.weights, minlength=points))
        circle = np.fft.irfft(spectrum, points)
        places = round(mean) - points // 2 + np.arange(points)
        mass = np.maximum(circle[places % points], 0.0)
        losses, center = places * step, round(mean) * step
        back = mass * np.exp(-tilt * (losses - center))
        shrunk = back * np.exp(-(losses - center))
        log_scale = sum(law.log_sum for law in laws) - tilt * center
        return cls(
            losses, np.cumsum(back[::-1])[::-1], np.cumsum(shrunk[::-1])[::-1], tilt, center, log_scale
        )

    @property
    def width(self) -> float:
        """One step of the lattice."""
        return float(self.losses[1] - self.losses[0])

    def both_tails(self, epsilon: float, *, surely: bool = False) -> float:
        """Chance that this loss is above epsilon or below minus epsilon, at most; at least where ``surely``."""
        place = int(np.searchsorted(self.losses, epsilon, side="right"))
        gap = epsilon - self.center
        inside = (
            0.0
            if place == len(self.losses)
            else float(self.tails[place]) + math.exp(-self.center) * float(self.shrunk[place])
        )
        error = 2 * (-_ERROR if surely else _ERROR) * math.exp(min(-self.tilt * gap, 700.0))
        return math.exp(self.log_scale) * (inside + error)

    def delta(self, epsilon: float, error: float) -> float:
        """Delta of this law at epsilon, with an error of the mass under the tilt."""
        place = int(np.searchsorted(self.losses, epsilon, side="right"))
        if place == len(self.losses):
            return 0.0
        gap = epsilon - self.center
        inside = float(self.tails[place]) - math.exp(min(gap, 700.0)) * float(self.shrunk[place])
        log_error = -self.tilt * gap
        return math.exp(self.log_scale) * (inside + error * math.exp(min(log_error, 700.0)))


@proven("odds.proof.md", digest="a545f83e8701b1f7")
def odds_epsilon(queries: Sequence[MovedQuery], delta: Fraction, *, points: int = _POINTS) -> EpsilonBracket:
    """The smallest such epsilon for the very noise that is drawn, for one who knows all other records.

    Args:
        queries: the cells that move between the two candidates; their noise is independent and discrete Gaussian.
        delta: chance over the release, in (0, 1).
        points: of the lattice; more of them narrow the bracket.

    Raises:
        ValueError: no query.

    Example:
        >>> bounds = odds_epsilon([MovedQuery(Fraction(4), 2)], Fraction(1, 100), points=1 << 14)
        >>> round(bounds.lower, 2), round(bounds.upper, 2)
        (2.0, 2.0)
    """
    if not queries:
        raise ValueError("odds need at least one query that moves")
    laws = gathered(queries)
    rho = loss_of(laws)
    most = odds_bound(rho, Definition.ZCDP, delta)
    total = lower_total(laws, float(rho), most, points)
    slack = len(laws) * total.width  # each law was moved down by less than one step
    target = float(delta)
    above = _smallest(lambda epsilon: total.both_tails(epsilon) <= target, most)
    below = _largest(
        lambda epsilon: total.both_tails(epsilon, surely=True) > target * math.exp(slack), above, total.width
    )
    return EpsilonBracket(below, min(above + slack, most))


def _smallest(holds: Callable[[float], bool], most: float) -> float:
    """A point at which a condition holds that holds from some point on, or ``most``; the smallest found."""
    if holds(0.0):
        return 0.0
    below, above = 0.0, most
    for _ in range(_HALVINGS):
        middle = (below + above) / 2
        below, above = (below, middle) if holds(middle) else (middle, above)
    return above


def _largest(fails: Callable[[float], bool], most: float, width: float) -> float:
    """A point up to ``most`` at which a condition fails for certain, sought from above; 0 where none is found."""
    while width < most and not fails(most - width):
        width *= 2
    if width >= most:
        return 0.0
    below, above = most - width, most
    for _ in range(_HALVINGS):
        middle = (below + above) / 2
        below, above = (middle, above) if fails(middle) else (below, middle)
    return below
