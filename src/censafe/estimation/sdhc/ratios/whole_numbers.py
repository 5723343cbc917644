"""Ratios of whole counts with discrete Gaussian or two-sided geometric noise: which numbers matter, and how much."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from scipy.optimize import nnls

from censafe.estimation.sdhc.posteriors import geometric_scale
from censafe.estimation.sdhc.ratios.intervals import RatioEstimate, RatioModel, UnansweredError
from censafe.model.arrays import Floats, Integers

_POINTS = 64  # ratios at which the distribution function is evaluated at once
_CLOSE = 1e-10
_BLOCK = 1 << 19  # pairs at a time
_STORED_PAIRS = 1 << 23  # pairs up to which the sums are stored
_MOST_PAIRS = 1 << 26  # noise of a standard deviation of 500 on both sides
_SLACK = 1e-12
_RARE = 1e-9  # of the likeliest pair among its like; rarer ones cannot move an interval


@dataclass(frozen=True, eq=False)
class CountWeights:
    """Weights of whole numbers one after another, not normalized."""

    first: int
    weight: Floats = field(repr=False)
    least: int = 0

    @property
    def values(self) -> Integers:
        """The numbers."""
        return self.first + np.arange(self.weight.size, dtype=np.int64)

    def between(self, low: Integers, high: Integers) -> Floats:
        """Weight of the numbers from ``low`` to ``high``, 0 where low is above high.

        Whatever lies above the likeliest number is summed from above, so that small sums keep their digits.
        """
        below = np.concatenate([[0.0], np.cumsum(self.weight)])
        above = np.concatenate([np.cumsum(self.weight[::-1])[::-1], [0.0]])
        start = np.clip(low - self.first, 0, self.weight.size)
        end = np.clip(high - self.first + 1, start, self.weight.size)
        upper = start > int(np.argmax(self.weight))
        return np.asarray(np.where(upper, above[start] - above[end], below[end] - below[start]))

    def rooms(self, low: Integers, high: Integers, others: Integers) -> Floats:
        """As ``between`` of low - n and high - n for every n of ``others``, which follow one another.

        Args:
            low: shape (rows,).
            high: shape (rows,).
            others: shape (columns,).

        Returns:
            shape (rows, columns).
        """
        size, width = self.weight.size, others.size
        # seen from one row, positions fall by 1 from column to column, so that every row is a window of one array
        place = np.clip(np.arange(size + width, -width - 1, -1), 0, size)
        below = np.concatenate([[0.0], np.cumsum(self.weight)])[place]
        above = np.concatenate([np.cumsum(self.weight[::-1])[::-1], [0.0]])[place]
        upper = place > int(np.argmax(self.weight))
        nearest, farthest = self.first + int(others[0]), self.first + int(others[-1]) + size
        start, end = (
            size + width - (np.clip(limit, nearest, farthest) - self.first - int(others[0]))
            for limit in (low, high + 1)
        )
        cut, rest, tails = (sliding_window_view(array, width) for array in (below, above, upper))
        weights = np.where(tails[start], rest[start] - rest[end], cut[end] - cut[start])
        return np.asarray(np.maximum(weights, 0.0))

    def times(self, values: Floats) -> CountWeights:
        """The weights with a factor each."""
        return CountWeights(self.first, self.weight * values, self.least)


class RatioLattice:
    """Posterior of num / den over whole numbers within bounds.

    Args:
        other: weights of another part of the numerator; None where there is none.
    """

    def __init__(
        self, num: CountWeights, den: CountWeights, model: RatioModel, other: CountWeights | None = None
    ) -> None:
        self._num, self._den, self._model, self._other = num, den, model, other
        self._d = den.values
        self._least = -_floor(np.float64(-model.lowest), self._d)
        self._most = _floor(np.float64(model.largest), self._d)
        if (other is not None or model.shortest) and num.weight.size * den.weight.size > _MOST_PAIRS:
            raise UnansweredError(
                "the noise is too wide for the exact law over whole numbers (model = discrete)"
            )
        self._stored: list[tuple[slice, Floats]] | None = None
        self._marginal, self._first, self._tops = self._sums()
        self.total = float(self._marginal.sum())

    @property
    def edge(self) -> float:
        """Largest share of the probability at an end of the numbers looked at that is not their natural limit."""
        ends = []
        for number, shares in ((self._num, self._tops), (self._den, self._marginal)):
            if shares.size > 1:  # an exact count has no neighbors
                ends.append(shares[-1])
                ends += [shares[0]] if number.first > number.least else []
        return float(max(ends, default=0.0)) / self.total if self.total > 0 else 1.0

    def estimate(self) -> RatioEstimate:
        """Means and the ends of the interval."""
        level = 1 - 2 * self._model.tail
        low, high = self._shortest(level) if self._model.shortest else self._quantiles()
        d = self._d.astype(np.float64)
        return RatioEstimate(
            float(self._first @ (1 / d)) / self.total,
            low,
            high,
            float(self._first.sum()) / self.total,
            float(self._marginal @ d) / self.total,
        )

    def below(self, ratios: Floats) -> Floats:
        """Probability that the ratio is at most each of the given ones, shape of ``ratios``."""
        shares = np.zeros(ratios.size)
        if self._other is None:
            for rows in _blocks(self._d.size, ratios.size):
                last = np.minimum(_floor(ratios[None, :], self._d[rows, None]), self._most[rows, None])
                inside = self._num.between(np.broadcast_to(self._least[rows, None], last.shape), last)
                shares += self._den.weight[rows] @ inside
            return shares / self.total
        for rows, sums in self._rows():
            last = _floor(ratios[None, :], self._d[rows, None]) - self._num.first
            inside = np.take_along_axis(sums, np.clip(last, 0, sums.shape[1] - 1), axis=1)
            shares += np.where(last >= 0, inside, 0.0).sum(axis=0)
        return shares / self.total

    def _sums(self) -> tuple[Floats, Floats, Floats]:
        """Weights of the denominators, with the numerator as a factor, and weights of the numerators."""
        n = self._num.values.astype(np.float64)
        if self._other is None:
            room = (
                self._num.between(self._least, self._most),
                self._num.times(n).between(self._least, self._most),
            )
            ratios = np.array([self._model.lowest, self._model.largest])
            least = -_floor(-1 / ratios[1], self._num.values)
            most = _floor(1 / ratios[0], self._num.values) if ratios[0] else np.full(n.size, self._d[-1])
            tops = self._den.between(least, most)
            return self._den.weight * room[0], self._den.weight * room[1], self._num.weight * tops
        marginal, first, tops = np.zeros(self._d.size), np.zeros(self._d.size), np.zeros(n.size)
        for rows, sums in self._rows():
            mass = np.diff(sums, axis=1, prepend=0.0)
            marginal[rows], first[rows] = sums[:, -1], mass @ n
            tops += mass.sum(axis=0)
        return marginal, first, tops

    def _rows(self) -> Iterator[tuple[slice, Floats]]:
        """Cumulative weights along the numerator, for some denominators at a time; stored where there are few."""
        if self._stored is not None:
            yield from self._stored
            return
        width = self._num.weight.size
        blocks: list[tuple[slice, Floats]] = []
        for rows in _blocks(self._d.size, width):
            block = (rows, np.cumsum(self._weights(rows), axis=1))
            if width * self._d.size <= _STORED_PAIRS:
                blocks.append(block)
            yield block
        self._stored = blocks or None

    def _weights(self, rows: slice) -> Floats:
        """Weights of pairs of denominator and numerator."""
        n, least, most = self._num.values, self._least[rows], self._most[rows]
        if self._other is None:
            room = ((n >= least[:, None]) & (n <= most[:, None])).astype(np.float64)
        else:
            room = self._other.rooms(least, most, n)
        return np.asarray(self._den.weight[rows, None] * self._num.weight[None, :] * room)

    def _quantiles(self) -> tuple[float, float]:
        """Smallest ratios that occur whose cumulative probability is at least that of the tails."""
        tails = (self._model.tail, 1 - self._model.tail)
        ends = np.array([[0.0 if self._other else self._model.lowest, self._model.largest]] * 2)
        ends[:, 0] -= _CLOSE
        while (ends[:, 1] - ends[:, 0] > 2 * _CLOSE * np.maximum(ends[:, 1], 1.0)).any():
            points = np.linspace(ends[:, 0], ends[:, 1], _POINTS, axis=1)
            shares = self.below(points.reshape(-1)).reshape(points.shape)
            for row, p in enumerate(tails):
                at = int(np.argmax(shares[row, 1:] >= p - _SLACK)) + 1
                ends[row] = points[row, at - 1], points[row, at]
        return self._attained(float(ends[0, 1])), self._attained(float(ends[1, 1]))

    def _attained(self, bound: float) -> float:
        """Largest ratio of whole numbers up to a bound."""
        return float((_floor(np.float64(bound), self._d) / self._d).max())

    def _shortest(self, level: float) -> tuple[float, float]:
        """Shortest interval between two ratios that holds at least the given probability; all pairs are sorted."""
        values, weights = [], []
        for rows, sums in self._rows():
            mass = np.diff(sums, axis=1, prepend=0.0)
            some = mass > _RARE * mass.max(initial=0.0)
            ratio = self._num.values[None, :] / self._d[rows, None]
            values.append(ratio[some])
            weights.append(mass[some])
        at, index = np.unique(np.concatenate(values), return_inverse=True)
        mass = np.bincount(index, np.concatenate(weights), at.size) / self.total
        total = np.concatenate([[0.0], np.cumsum(mass)])
        last = np.searchsorted(total, total[:-1] + level - _SLACK)
        first = np.flatnonzero(last < total.size)
        best = int(np.argmin(at[last[first] - 1] - at[first]))
        return float(at[first[best]]), float(at[last[first[best]] - 1])


def _floor(ratio: Floats | np.float64, den: Integers) -> Integers:
    """Largest whole number up to ratio x den, where products that miss one by rounding count as it."""
    product = ratio * den
    return np.asarray(np.floor(product + _SLACK * np.abs(product)), np.int64)


def _blocks(rows: int, width: int) -> Iterator[slice]:
    step = max(1, _BLOCK // max(width, 1))
    for start in range(0, rows, step):
        yield slice(start, start + step)


def _sum(first: CountWeights, second: CountWeights) -> CountWeights:
    """Weights of the sum of two counts; every product is positive, so that small ones keep their digits."""
    weight = np.convolve(first.weight, second.weight)
    return CountWeights(first.first + second.first, weight, first.least + second.least)


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
    def pair(self) -> tuple[float, float]:
        """The count and the variance of its noise."""
        return self.z, self.variance

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
        >>> estimate = lattice_single(NoisyCount(5, (2.0,), (False,)), NoisyCount(2, (2.0,), (False,)), RatioModel(1))
        >>> round(estimate.ratio, 4), round(estimate.low, 4), estimate.high
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
        >>> [round(part.ratio, 3) for part in lattice_joint(*counts, RatioModel(1))]
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
        first_part, second_part = (
            _weights(count, at, widening, 0) for count, at in zip((first, second), mode, strict=False)
        )
        bottom = _weights(den, mode[2], widening, 1)
        total = RatioLattice(_sum(first_part, second_part), bottom, model)
        lowest, highest = (
            sum(int(part.values[end]) for part in (first_part, second_part)) for end in (0, -1)
        )
        # where no pair of numbers within the windows meets a bound, a part stands alone
        if lowest >= model.lowest * bottom.values[-1] and highest <= model.largest * bottom.values[0]:
            ends = [
                RatioLattice(
                    part,
                    bottom,
                    replace(model, lowest=0.0, largest=float(part.values[-1] / bottom.first + 1)),
                )
                for part in (first_part, second_part)
            ]
        else:
            ends = [
                RatioLattice(first_part, bottom, model, second_part),
                RatioLattice(second_part, bottom, model, first_part),
            ]
        return [total, *ends]

    total, first_ratio, second_ratio = (lattice.estimate() for lattice in _settled(fit))
    return total, first_ratio, second_ratio


def _settled(fit: Callable[[float], list[RatioLattice]]) -> list[RatioLattice]:
    """Lattices wide enough that nothing to speak of lies beyond their ends."""
    for step in range(_WIDENINGS):
        lattices = fit(2.0**step)
        if not all(lattice.total > _FAINT for lattice in lattices):
            break
        if all(lattice.edge < _EDGE for lattice in lattices):
            return lattices
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
