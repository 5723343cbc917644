"""Non-negative counts with intervals for the tables of counts, cells and sums, from the noisy cells of one table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.fft import irfft, next_fast_len, rfft
from scipy.special import log_ndtr, ndtr, ndtri

from censafe.errors import DataError
from censafe.estimation.sdhc.draws import Drawn, drawn_counts, generator
from censafe.estimation.sdhc.posteriors import (
    CountPosterior,
    noisy_posterior,
    shortest_interval,
    summed,
    truncated_mean,
    truncated_quantile,
    truncated_variance,
)
from censafe.estimation.sdhc.settings import CountRules
from censafe.model.arrays import Floats, Integers
from censafe.model.sdhc import CountEstimates, EstimateSettings, Key, NoisyCells, key_text


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
    numbers: dict[int, Integers] = {}
    inner = {cell: set(of) for cell, of in rules.margins.items()}
    for number, cells in inner.items():
        for other in inner.values():
            if cells & other and not (cells <= other or other <= cells):
                raise ValueError(f"{rules.table}: sum {number} shares some cells with another sum")
    for number in sorted(inner, key=lambda cell: -len(inner[cell])):
        if number not in numbers:
            numbers[number] = np.rint(means[number]).astype(np.int64)
        parts = _parts(number, inner)
        shares = largest_remainder(np.stack([means[part] for part in parts], axis=1), numbers[number])
        numbers |= dict(zip(parts, shares.T, strict=True))
    for cell in rules.basis:
        numbers.setdefault(cell, np.rint(means[cell]).astype(np.int64))
    return numbers


def _parts(number: int, inner: Mapping[int, set[int]]) -> Sequence[int]:
    """The widest sums within a sum, and its cells outside of those."""
    within = [other for other, cells in inner.items() if other != number and cells < inner[number]]
    widest = [part for part in within if not any(inner[part] < inner[other] for other in within)]
    rest = inner[number].difference(*(inner[part] for part in widest))
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
    sigmas = np.sqrt(variances)
    spread = float(np.sqrt(truncated_variance(means, variances).sum()))
    start, mass = _convolved([_masses(m, s, spread / _STEPS) for m, s in zip(means, sigmas, strict=True)])
    edges = (start + np.arange(mass.size + 1)) * spread / _STEPS
    total = np.concatenate([[0.0], np.cumsum(mass)])
    # cells narrower than a step make the grid's mean drift; the exact mean is known
    middle = float((edges[:-1] + edges[1:]) @ mass / (2 * total[-1]))
    drift = float(truncated_mean(means, variances).sum()) - middle
    at, below = edges + drift, total / total[-1]
    return SumDistribution(at, below, known)


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
    mass_of_sum = irfft(product, length)[:size]
    return sum(first for first, _ in cells), np.maximum(mass_of_sum, 0.0)


@dataclass(frozen=True, eq=False)
class GroupedCells:
    """Noisy counts of one table with one row a population group and one column a cell.

    Args:
        count: int64, shape (groups, cells).
        variance: float64, shape (groups, cells).
        geometric: bool, shape (groups, cells).
    """

    table: str
    keys: tuple[Key, ...]
    cells: tuple[int, ...]
    count: NDArray[np.int64] = field(repr=False)
    variance: Floats = field(repr=False)
    geometric: NDArray[np.bool_] = field(repr=False)

    def rows(self, places: Sequence[int]) -> GroupedCells:
        """Some of the groups, by row, in the given order."""
        chosen = list(places)
        return GroupedCells(
            self.table,
            tuple(self.keys[row] for row in chosen),
            self.cells,
            self.count[chosen],
            self.variance[chosen],
            self.geometric[chosen],
        )


def grouped(noisy: NoisyCells, cells: Sequence[int]) -> GroupedCells:
    """One row for each population group, complete in the given cells.

    Args:
        noisy: rows of one table.
    """
    keys: dict[Key, int] = {}
    columns = {cell: column for column, cell in enumerate(cells)}
    place = np.empty((noisy.cell.size, 2), np.int64)
    texts = zip(noisy.region_type.tolist(), noisy.region.tolist(), noisy.iteration.tolist(), strict=True)
    for row, (key, cell) in enumerate(zip(texts, noisy.cell.tolist(), strict=True)):
        if cell not in columns:
            listed = ", ".join(map(str, cells))
            raise DataError(f"{key_text(noisy.table, key, cell)}: not a basis cell; they are {listed}")
        place[row] = keys.setdefault(key, len(keys)), columns[cell]
    ordered = tuple(keys)
    seen = np.zeros((len(keys), len(cells)), np.int64)
    np.add.at(seen, tuple(place.T), 1)
    for group, column in np.argwhere(seen != 1)[:1].tolist():
        problem = "is missing" if seen[group, column] == 0 else f"occurs {seen[group, column]} times"
        raise DataError(f"{key_text(noisy.table, ordered[group], cells[column])}: the row {problem}")
    for row in np.flatnonzero(~(np.isfinite(noisy.variance) & (noisy.variance >= 0)))[:1].tolist():
        where = key_text(noisy.table, ordered[place[row, 0]], int(noisy.cell[row]))
        raise DataError(f"{where}: VARIANCE is {noisy.variance[row]}; it is 0 or more")
    groups = GroupedCells(
        noisy.table,
        ordered,
        tuple(cells),
        np.zeros(seen.shape, np.int64),
        np.zeros(seen.shape, np.float64),
        np.zeros(seen.shape, np.bool_),
    )
    at = tuple(place.T)
    groups.count[at], groups.variance[at], groups.geometric[at] = noisy.count, noisy.variance, noisy.geometric
    return groups


_Law = SumDistribution | CountPosterior | Drawn
_REFERENCE_TAIL = 0.05


def margin_factor(settings: EstimateSettings) -> float:
    """Margin of error of a noisy count in standard deviations; always that of 90% in the reference's conventions.

    Example:
        >>> round(margin_factor(EstimateSettings()), 7)
        1.6448536
    """
    tail = _REFERENCE_TAIL if settings.conventions == "reference" else settings.alpha
    return float(-ndtri(tail))


def estimate_counts(
    noisy: GroupedCells, rules: CountRules, settings: EstimateSettings, *, workers: int = 1
) -> CountEstimates:
    """Posterior means and intervals of basis cells and of their sums.

    Source: normal noise about counts of 0 or more under a flat prior, or the exact law of the noise about whole numbers.

    Example:
        >>> one = lambda *values: np.array([values])
        >>> cells = GroupedCells("PH4", (("STATE", "44", "*"),), (2, 3), one(-64, 30), one(147.8, 147.8), one(False, False))
        >>> estimates = estimate_counts(cells, CountRules("PH4", {1: (2, 3)}), EstimateSettings())
        >>> estimates.cells, estimates.pred.tolist(), estimates.low.tolist(), estimates.high.tolist()
        ((1, 2, 3), [[32, 2, 30]], [[12, 0, 10]], [[53, 7, 51]])
    """
    members = [[noisy.cells.index(cell) for cell in cells] for cells in rules.margins.values()]
    columns = [*members, *([column] for column in range(len(noisy.cells)))]
    mean, low, high = _solved(noisy, members, settings, workers)
    return CountEstimates(
        table=noisy.table,
        keys=noisy.keys,
        cells=(*rules.margins, *noisy.cells),
        noisy=np.stack([noisy.count[:, cells].sum(axis=1) for cells in columns], axis=1),
        variance=np.stack([noisy.variance[:, cells].sum(axis=1) for cells in columns], axis=1),
        geometric=np.stack([noisy.geometric[:, cells].any(axis=1) for cells in columns], axis=1),
        factor=margin_factor(settings),
        mean=mean,
        pred=_integer_counts(mean, (*rules.margins, *noisy.cells), members, rules, settings),
        low=np.floor(low).astype(np.int64),
        high=np.ceil(high).astype(np.int64),
        sums=len(members),
    )


def _integer_counts(
    mean: Floats,
    columns: Sequence[int],
    members: Sequence[Sequence[int]],
    rules: CountRules,
    settings: EstimateSettings,
) -> NDArray[np.int64]:
    """Rounded means of sums and cells, shape (groups, sums + cells)."""
    if settings.marginals == "largest-remainder":
        numbers = adding_up(dict(zip(columns, mean.T, strict=True)), rules)
        return np.stack([numbers[number] for number in columns], axis=1)
    rounded = np.rint(mean).astype(np.int64)
    if settings.marginals == "sum-of-rounded":
        cells = rounded[:, len(members) :]
        rounded[:, : len(members)] = np.stack([cells[:, of].sum(axis=1) for of in members], axis=1)
    return rounded


def _solved(
    noisy: GroupedCells, members: Sequence[Sequence[int]], settings: EstimateSettings, workers: int
) -> tuple[Floats, Floats, Floats]:
    """Means and ends of sums and cells, shape (groups, sums + cells) each."""
    width = len(members) + len(noisy.cells)
    mean, low, high = (np.zeros((len(noisy.keys), width)) for _ in range(3))
    discrete = settings.model == "discrete" or (
        settings.conventions == "censafe" and bool(noisy.geometric.any())
    )
    normal = settings.method == "exact" and not discrete
    if normal:
        start = len(members)
        mean[:, start:], low[:, start:], high[:, start:] = _normal_cells(noisy, settings)

    def solve(group: int) -> None:
        if normal:
            z, variance = noisy.count[group].astype(np.float64), noisy.variance[group]
            for column, cells in enumerate(members):
                mean[group, column] = mean[group, start:][list(cells)].sum()
                distribution = sum_distribution(z[list(cells)], variance[list(cells)])
                low[group, column], high[group, column] = _ends(distribution, settings)
            return
        laws = _laws(noisy, group, members, settings)
        for column, (center, law) in enumerate(laws):
            mean[group, column] = center
            low[group, column], high[group, column] = _ends(law, settings)

    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(solve, range(len(noisy.keys))))
    return mean, low, high


def _ends(law: _Law, settings: EstimateSettings) -> tuple[float, float]:
    if settings.interval == "shortest":
        low, high = law.shortest(1 - 2 * settings.alpha)
        return float(low), float(high)
    ends = law.quantiles((settings.alpha, 1 - settings.alpha))
    return float(ends[0]), float(ends[1])


def _normal_cells(noisy: GroupedCells, settings: EstimateSettings) -> tuple[Floats, Floats, Floats]:
    known = noisy.variance == 0
    z, variance = noisy.count.astype(np.float64), np.where(known, 1.0, noisy.variance)
    exact = np.maximum(z, 0.0)
    if settings.interval == "shortest":
        low, high = shortest_interval(1 - 2 * settings.alpha, z, variance)
    else:
        low = truncated_quantile(settings.alpha, z, variance)
        high = truncated_quantile(1 - settings.alpha, z, variance)
    estimates = (truncated_mean(z, variance), low, high)
    mean, low, high = (np.where(known, exact, values) for values in estimates)
    return mean, low, high


def _laws(
    noisy: GroupedCells, group: int, members: Sequence[Sequence[int]], settings: EstimateSettings
) -> list[tuple[float, _Law]]:
    """Mean and law of every sum and cell of a group, by whole numbers or by draws."""
    if settings.method == "sample":
        rng = generator(settings.seed, noisy.table, noisy.keys[group])
        draws = drawn_counts(noisy.count[group], noisy.variance[group], noisy.geometric[group], settings, rng)
        columns = [*(draws[:, list(cells)].sum(axis=1) for cells in members), *draws.T]
        return [(float(column.mean()), Drawn(np.sort(column))) for column in columns]
    posteriors = [
        noisy_posterior(z, variance, geometric=geometric)
        for z, variance, geometric in zip(
            noisy.count[group].tolist(),
            noisy.variance[group].tolist(),
            noisy.geometric[group].tolist(),
            strict=True,
        )
    ]
    sums = [summed([posteriors[cell] for cell in cells]) for cells in members]
    means = [posterior.mean for posterior in posteriors]
    centers = [sum(means[cell] for cell in cells) for cells in members]
    return list(zip([*centers, *means], [*sums, *posteriors], strict=True))
