"""CONFIDENTIAL. Residuals of pooled runs, and their empirical privacy loss: how fast their distribution falls from one value to the next, and its estimates for noise whose loss is known.

It is not a bound on the loss of a mechanism: it takes areas to be exchangeable, and published facts can make it larger than
epsilon. Its maximum is biased upwards, the more the fewer residuals there are.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from censafe.evaluation.areas import Strata, everything
from censafe.evaluation.counts.cells import MatchedCells
from censafe.evaluation.counts.error_metrics import DEVIATIONS, Tally, tally_of
from censafe.evaluation.counts.frames import LossMode
from censafe.geography.identifiers import AREA_COLUMNS, AreaNames
from censafe.model import NoiseLaw

ZeroCells = Literal["all", "either", "confidential", "published"]
"""Which answers count: ``all`` of the domain; ``either`` side not zero (Petti & Flaxman); the ``confidential`` or the
``published`` side not zero."""


@dataclass(frozen=True, eq=False)
class Residuals:
    """CONFIDENTIAL. A tally of residuals.

    Args:
        values: different residuals, rising; int64, or float64 of weighted samples, shape (v,).
        counts: how often each occurs, int64, shape (v,).
        by_group: the same by group of areas, shape (groups, v); areas are dealt to groups at random.
    """

    values: NDArray[Any] = field(repr=False)
    counts: NDArray[np.int64] = field(repr=False)
    by_group: NDArray[np.int64] | None = field(default=None, repr=False)
    areas: int = 0

    @property
    def number(self) -> int:
        """How many residuals there are."""
        return int(self.counts.sum())

    @property
    def tally(self) -> Tally:
        """Values and counts."""
        return Tally(self.values, self.counts)


def residuals_of(values: NDArray[Any]) -> Residuals:
    """A tally of plain numbers.

    Example:
        >>> residuals_of(np.array([0, -2, 0])).counts.tolist()
        [1, 2]
    """
    tally = tally_of(values)
    return Residuals(tally.values, tally.counts)


def counted(cells: MatchedCells, zeros: ZeroCells) -> NDArray[np.bool_] | None:
    """Which entries count, shape (m,); None for all of them."""
    if zeros == "confidential":
        return cells.confidential > 0
    return cells.published != 0 if zeros == "published" else None


def pooled_residuals(
    runs: Sequence[MatchedCells],
    *,
    zeros: ZeroCells = "all",
    strata: Strata | None = None,
    stratum: int = 0,
    groups: int = 0,
    seed: int = 1,
) -> Residuals:
    """Residuals of one query at one level, all runs together.

    Args:
        runs: matched counts of the same areas, one entry a run.
    """
    areas = len(runs[0].areas)
    inside = (strata or everything(areas)).of_area == stratum
    number = int(inside.sum())
    group = _groups(areas, inside, min(groups, number), seed)
    entries = [_entries(cells, zeros, inside) for cells in runs]
    values = np.concatenate([value for value, _ in entries])
    entry_area = np.concatenate([area for _, area in entries])
    empty = sum(number * cells.answers for cells in runs) - len(values) if zeros == "all" else 0
    tally = tally_of(values).with_zeros(empty)
    if not groups:
        return Residuals(tally.values, tally.counts, areas=number)
    width = len(tally.values)
    place = np.searchsorted(tally.values, values)
    filled_groups = int(group.max(initial=0)) + 1
    by_group = np.bincount(group[entry_area] * width + place, minlength=filled_groups * width)
    by_group = by_group.reshape(filled_groups, width)
    if empty:
        cells_of_group = np.bincount(group[inside], minlength=filled_groups) * sum(
            cells.answers for cells in runs
        )
        by_group[:, np.searchsorted(tally.values, 0)] += cells_of_group - np.bincount(
            group[entry_area], minlength=filled_groups
        )
    return Residuals(tally.values, tally.counts, by_group, number)


def _entries(
    cells: MatchedCells, zeros: ZeroCells, inside: NDArray[np.bool_]
) -> tuple[NDArray[Any], NDArray[np.int32]]:
    """Residual and area of the entries that count."""
    residual, area = cells.residual, cells.area_of_entry
    included = counted(cells, zeros)
    if not inside.all():
        included = inside[area] if included is None else included & inside[area]
    return (residual, area) if included is None else (residual[included], area[included])


def _groups(areas: int, inside: NDArray[np.bool_], groups: int, seed: int) -> NDArray[np.int64]:
    """Group of every area: areas in random order, dealt in turn."""
    group = np.zeros(areas, np.int64)
    if groups:
        order = np.random.default_rng(seed).permutation(np.flatnonzero(inside))
        group[order] = np.arange(len(order)) % groups
    return group


def residual_frame(cells: MatchedCells, areas: AreaNames | None = None) -> pa.Table:
    """CONFIDENTIAL. Every count that is not zero on both sides."""
    area = cells.area_of_entry
    size = len(area)
    about = {"run_id": cells.run_id, "level": cells.level, "area_class": cells.area_class}
    known = (areas or AreaNames()).of_level(cells.level, cells.areas)
    names = {"geocode": cells.areas, **dict.fromkeys(AREA_COLUMNS, np.full(len(cells.areas), "")), **known}
    return pa.table(
        {
            **{name: _repeated(value, size) for name, value in about.items()},
            **{
                name: pa.array(texts.tolist(), pa.string()).take(pa.array(area))
                for name, texts in names.items()
            },
            "characteristic": _repeated(cells.query, size),
            "answer": cells.answer,
            "confidential": cells.confidential,
            "published": cells.published,
            "residual": cells.residual,
        }
    )


def _repeated(text: str, times: int) -> pa.Array:
    return pa.array([text], pa.string()).take(pa.array(np.zeros(times, np.int32)))


_Floats = NDArray[np.float64]
_BLOCK: Final = 1 << 22
_MOST_POINTS: Final = 20_000
_THINNED: Final = 4_000


@dataclass(frozen=True, eq=False)
class Grid:
    """Edges one apart and the points between them; empty where the residuals are all alike.

    A grid of more than 20,000 points is thinned to 4,000: a kernel is smooth over so wide a range, and unit bins are empty.
    """

    edges: _Floats = field(repr=False)

    @property
    def points(self) -> _Floats:
        """Midpoints of the edges, or some of them."""
        points: _Floats = (self.edges[:-1] + self.edges[1:]) / 2
        if self.wide:
            return points[np.linspace(0, len(points) - 2, _THINNED).astype(np.int64)]
        return points

    @property
    def wide(self) -> bool:
        """Whether the points are some of many."""
        return len(self.edges) > _MOST_POINTS


@dataclass(frozen=True, eq=False)
class LossEstimate:
    """Losses by grid point.

    Args:
        density: shape (rows, points).
        loss: log ratio of a point to the next, shape (rows, points - 1); NaN or infinite where a density is zero.
    """

    density: _Floats = field(repr=False)
    loss: _Floats = field(repr=False)


def grid_of(tally: Tally, percentile: float, multiplier: float) -> Grid:
    """The grid of the study: from minus the larger end of the middle mass, in steps of one, to below that end.

    Example:
        >>> import numpy as np
        >>> from censafe.evaluation.counts.error_metrics import tally_of
        >>> r = np.array([-2, -1, -1, 0, 0, 0, 0, 1, 1, 2, 3, -3, 0, 1, -1])
        >>> grid_of(tally_of(r), 95, 1).points.round(6).tolist()
        [-1.8, -0.8, 0.2, 1.2]
    """
    share = percentile / 100
    end = max(abs(tally.quantile(1 - share)), abs(tally.quantile(share))) * multiplier
    if not end > 0:
        return Grid(np.zeros(0))
    return Grid(np.arange(-end, end))


def kernel(values: NDArray[Any], counts: _Floats, grid: Grid, deviation: float) -> LossEstimate:
    """Gaussian kernel density times the number of residuals, at the points of the grid."""
    points = grid.points
    density = _smoothed(values, counts, points, deviation)
    if grid.wide:
        return LossEstimate(density, _log_ratio(density, _smoothed(values, counts, points + 1, deviation)))
    return LossEstimate(density, _log_ratio(density[:, :-1], density[:, 1:]))


def _smoothed(values: NDArray[Any], counts: _Floats, points: _Floats, deviation: float) -> _Floats:
    density = np.zeros((len(counts), len(points)))
    step = max(1, _BLOCK // max(1, len(points)))
    for first in range(0, len(values), step):
        apart = (values[first : first + step, None].astype(np.float64) - points) / deviation
        density += counts[:, first : first + step] @ np.exp(-0.5 * apart * apart)
    return density / (deviation * np.sqrt(2 * np.pi))


def histogram(values: NDArray[Any], counts: _Floats, grid: Grid) -> LossEstimate:
    """Residuals in the unit bins of the grid; the last bin includes its upper edge, as numpy's histogram does."""
    binned = _binned(values, counts, grid)
    return LossEstimate(binned, _log_ratio(binned[:, :-1], binned[:, 1:]))


def cumulative(values: NDArray[Any], counts: _Floats, grid: Grid) -> LossEstimate:
    """Residuals in the bins after each one; the log ratio of a bin's to the one before. A geometric tail of loss z gives -z."""
    binned = _binned(values, counts, grid)
    after = binned.sum(axis=1, keepdims=True) - np.cumsum(binned, axis=1)
    return LossEstimate(after, _log_ratio(after[:, 1:], after[:, :-1]))


def neighbors_of_zero(values: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Positions of neighboring whole values, one nearer to zero and the next one farther away."""
    at = np.flatnonzero(np.diff(values) == 1)
    positive = values[at] >= 0
    return np.where(positive, at, at + 1), np.where(positive, at + 1, at)


def discrete(
    values: NDArray[Any], counts: _Floats, chosen: tuple[NDArray[np.int64], NDArray[np.int64]]
) -> LossEstimate:
    """Log ratios of the counts of neighboring whole residuals, the nearer to zero over the farther; by the chosen positions."""
    near, far = counts[:, chosen[0]], counts[:, chosen[1]]
    return LossEstimate(near, _log_ratio(near, far))


def _binned(values: NDArray[Any], counts: _Floats, grid: Grid) -> _Floats:
    edges = grid.edges
    place = np.searchsorted(edges, values, side="right") - 1
    place[values == edges[-1]] = len(edges) - 2
    inside = (place >= 0) & (place < len(edges) - 1)
    sums = np.zeros((len(counts), len(edges) - 1))
    np.add.at(sums.T, place[inside], counts[:, inside].T)
    return sums


def _log_ratio(over: _Floats, under: _Floats) -> _Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.log(over / under)


_FACTOR: Final = 0.1
_PERCENTILE: Final = 95.0
_TAIL: Final = (1 - 0.9) / 2  # outside of each end of an interval
_SUMMARY: Final = pa.schema(
    [
        *((name, pa.string()) for name in ("mode", "estimator", "statistic")),
        ("reported", pa.bool_()),
        *((name, pa.float64()) for name in ("value", "lo", "hi", "bias")),
        *((name, pa.int64()) for name in ("n", "n_grid", "n_areas")),
        ("reason", pa.string()),
    ]
)


def epl_curve(
    residuals: Residuals,
    *,
    bandwidth_factor: float = _FACTOR,
    multiplier: float = 1.0,
) -> pa.Table:
    """Densities of residuals and their log ratios on the unit grid of the study.

    Source: Petti & Flaxman (2020), methods; their published code.

    Example:
        >>> from censafe.evaluation.loss import residuals_of
        >>> r = residuals_of(np.array([-2, -1, -1, 0, 0, 0, 0, 1, 1, 2, 3, -3, 0, 1, -1]))
        >>> [round(one, 6) for one in epl_curve(r, bandwidth_factor=0.5).column("smooth_epl").to_pylist()[:3]]
        [-0.647474, -0.181404, 0.403341]
    """
    deviation = bandwidth_factor * residuals.tally.deviation
    grid = grid_of(residuals.tally, _PERCENTILE, multiplier)
    if len(grid.edges) < 3:
        names = ("x", "hist", "epl_hist", "epl_cusum", "smooth_hist", "smooth_epl")
        return pa.table({name: np.zeros(0) for name in names})
    counts = residuals.counts[None].astype(np.float64)
    points = grid.points
    smooth = kernel(residuals.values, counts, grid, deviation)
    columns = {name: np.full(len(points), np.nan) for name in ("hist", "epl_hist", "epl_cusum")}
    if not grid.wide:
        binned = histogram(residuals.values, counts, grid)
        columns["hist"] = binned.density[0]
        columns["epl_hist"][:-1] = binned.loss[0]
        columns["epl_cusum"][:-1] = cumulative(residuals.values, counts, grid).loss[0]
    ratios = np.full(len(points), np.nan)
    ratios[: smooth.loss.shape[1]] = smooth.loss[0]
    return pa.table({"x": points, **columns, "smooth_hist": smooth.density[0], "smooth_epl": ratios})


def epl_summary(
    residuals: Residuals,
    *,
    mode: LossMode = "corrected",
    bandwidth_factor: float = _FACTOR,
    n_min: int = 25,
    replicates: int = 200,
    seed: int = 1,
) -> pa.Table:
    """Maximum, median and weighted mean of every estimator, with 90% bootstrap intervals over areas.

    Intervals are basic bootstrap intervals (twice the value less the quantiles of the replicates), since the replicates of a
    maximum lie above it; ``bias`` is the mean of the replicates less the value, and shows by how much the maximum is too high.
    Grid and bandwidth are those of the sample itself.
    """
    reported = ("kernel", "max") if mode == "as_published" else (_corrected(residuals, n_min), "median")
    if len(residuals.values) < 2:
        value, reason = (np.inf, "all_equal") if len(residuals.values) else (np.nan, "too_few")
        keys = dict(zip(("estimator", "statistic"), reported, strict=True))
        rows: list[dict[str, Any]] = [keys | {"value": value, "reason": reason}]
    else:
        rows = []
        counts = residuals.counts[None].astype(np.float64)
        if residuals.by_group is not None and replicates:  # replicates draw groups of areas with replacement
            groups = len(residuals.by_group)
            chances = np.full(groups, 1 / groups)
            weights = np.random.default_rng(seed).multinomial(groups, chances, size=replicates)
            drawn = weights.astype(np.float64) @ residuals.by_group.astype(np.float64)
            counts = np.concatenate([counts, drawn])
        deviation = bandwidth_factor * residuals.tally.deviation
        for name, estimate in _estimates(residuals, counts, deviation, n_min):
            rows += _statistics(name, estimate)
    about = {"mode": mode, "n": residuals.number, "n_areas": residuals.areas}
    rows = [
        {**_UNKNOWN, **about, **row, "reported": (row["estimator"], row["statistic"]) == reported}
        for row in rows
    ]
    return pa.Table.from_pylist(rows, schema=_SUMMARY)


_UNKNOWN: Final = {"lo": np.nan, "hi": np.nan, "bias": np.nan, "n_grid": 0, "reason": ""}


def _estimates(
    residuals: Residuals, counts: _Floats, deviation: float, n_min: int
) -> list[tuple[str, LossEstimate]]:
    """Losses by every estimator, of the sample and its replicates; none at grids that are too small or too wide."""
    values, grid = residuals.values, grid_of(residuals.tally, _PERCENTILE, 1.0)
    nothing = LossEstimate(np.zeros((len(counts), 0)), np.zeros((len(counts), 0)))
    estimates = []
    if values.dtype.kind in "iu":
        estimates.append(("discrete", discrete(values, counts, _enough(residuals, n_min))))
    several = len(grid.edges) >= 3
    estimates.append(("kernel", kernel(values, counts, grid, deviation) if several else nothing))
    narrow = several and not grid.wide
    estimates.append(("histogram", histogram(values, counts, grid) if narrow else nothing))
    estimates.append(("cumulative", cumulative(values, counts, grid) if narrow else nothing))
    return estimates


def _statistics(name: str, estimate: LossEstimate) -> list[dict[str, Any]]:
    """Rows of one estimator; points at which the sample itself has no finite ratio are left out.

    Ratios of whole residuals point away from zero, so that their median and mean keep the sign: chance then cancels out.
    """
    finite = np.isfinite(estimate.loss[0])
    if not finite.any():
        reason = "too_few" if name == "discrete" else "no_ratio"
        return [
            {"estimator": name, "statistic": statistic, "value": np.nan, "reason": reason}
            for statistic in ("max", "median", "mean")
        ]
    ratios = np.where(np.isfinite(estimate.loss), estimate.loss, np.nan)[:, finite]
    ratios = ratios[~np.isnan(ratios).all(axis=1)]  # row 0, the sample, stays
    size = np.abs(ratios)
    loss = ratios if name == "discrete" else size
    weight = estimate.density[0, : len(finite)][finite]
    statistics = {
        "max": np.nanmax(size, axis=1),
        "median": np.nanmedian(loss, axis=1),
        "mean": np.nansum(loss * weight, axis=1) / np.where(np.isnan(loss), 0.0, weight).sum(axis=1),
    }
    rows = []
    for statistic, values in statistics.items():
        value = float(values[0])
        row = {"estimator": name, "statistic": statistic, "value": value, "n_grid": int(finite.sum())}
        if len(values) > 1:
            low, high = np.quantile(values[1:], [_TAIL, 1 - _TAIL])
            row |= {"lo": float(2 * value - high), "hi": float(2 * value - low)}
            row["bias"] = float(values[1:].mean() - value)
        rows.append(row)
    return rows


def _corrected(residuals: Residuals, n_min: int) -> str:
    """Whole residuals where at least half of all lie at values with enough of them; the kernel otherwise.

    The discrete estimator is nearly unbiased at any loss but needs counts; the kernel needs few and is wrong above a loss of 0.5.
    """
    if residuals.values.dtype.kind not in "iu":
        return "kernel"
    used = np.unique(np.concatenate(_enough(residuals, n_min)))
    return "discrete" if 2 * int(residuals.counts[used].sum()) >= residuals.number else "kernel"


def _enough(residuals: Residuals, n_min: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Positions of neighboring whole residuals of which both occur often enough."""
    near, far = neighbors_of_zero(residuals.values)
    enough = (residuals.counts[near] >= n_min) & (residuals.counts[far] >= n_min)
    return near[enough], far[enough]


_STATISTICS: Final = (
    ("kernel", "max"),
    ("kernel", "median"),
    ("discrete", "max"),
    ("discrete", "median"),
    ("discrete", "mean"),
)
_FAR: Final = 9.2  # standard deviations, beyond which a Gaussian has a mass of about 1e-19
_LEAST_COUNT: Final = 25  # of a residual that the discrete estimator takes
_MASS: Final = 1_000_000_000_000


def noise_law_masses(law: NoiseLaw, added: int = 1) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Values and probabilities of the sum of independent draws of a noise law, its far tails cut off.

    Example:
        >>> from fractions import Fraction
        >>> for added in (1, 10):
        ...     k, p = noise_law_masses(NoiseLaw.laplace(Fraction(1)), added)
        ...     print(round(float((p * k**2).sum()), 6))
        1.841347
        18.413472
    """
    size = float(law.parameter)
    gaussian = law.kind == "gaussian"
    reach = int(np.ceil(_FAR * np.sqrt(size) if gaussian else 45 * size)) + 2  # tails below 1e-18 are cut off
    k = np.arange(-reach, reach + 1)
    mass = np.exp(-(k * k / (2 * size) if gaussian else np.abs(k) / size))
    mass /= mass.sum()
    if added == 1:
        return k, mass
    deviation = float(np.sqrt(added * (mass * k.astype(float) ** 2).sum()))
    reach = max(int(k[-1]), int(np.ceil(_FAR * deviation)) + 2)
    length = 1 << (2 * reach + 1).bit_length()
    circle = np.zeros(length)
    circle[k] = mass
    summed = np.fft.irfft(np.fft.rfft(circle) ** added, length)
    wide = np.arange(-reach, reach + 1)
    chances = np.maximum(summed[wide], 0.0)
    return wide, chances / chances.sum()


def calibrate(
    law: NoiseLaw,
    sizes: Sequence[int],
    *,
    added: int = 1,
    trials: int = 20,
    seed: int = 1,
) -> pa.Table:
    """Estimates of pure noise and their true values."""
    k, mass = noise_law_masses(law, added)
    rng = np.random.default_rng(seed)
    rows: list[dict[str, Any]] = []
    for size in sizes:
        draws = rng.multinomial(size, mass, size=trials)
        estimates = [_values(k, counts, _LEAST_COUNT) for counts in draws]
        expected = np.round(mass * _MASS).astype(np.int64)
        exact = _values(k, expected, max(1, _LEAST_COUNT * _MASS // size))
        for key in _STATISTICS:
            values = np.array([one[key] for one in estimates])
            truth = 1 / float(law.parameter) if law.kind == "laplace" and added == 1 else exact[key]
            mean = float(values.mean())
            with np.errstate(invalid="ignore"):  # estimates may be infinite, and then have no spread
                width = DEVIATIONS * float(values.std(ddof=1)) / np.sqrt(trials) if trials > 1 else np.nan
            rows.append(
                {
                    "law": law.kind, "parameter": float(law.parameter), "n": size, "estimator": key[0], "statistic": key[1],
                    "truth": truth, "mean": mean, "lo": mean - width, "hi": mean + width, "bias": mean - truth,
                }
            )  # fmt: skip
    return pa.Table.from_pylist(rows)


def _values(k: NDArray[np.int64], counts: NDArray[np.int64], n_min: int) -> dict[tuple[str, str], float]:
    """Estimates of residuals that occur as often as counted."""
    residuals = Residuals(k[counts > 0], counts[counts > 0])
    rows = epl_summary(residuals, n_min=n_min, replicates=0).to_pylist()
    values = {(row["estimator"], row["statistic"]): row["value"] for row in rows}
    return {key: values.get(key, float("nan")) for key in _STATISTICS}


def linear_noise_examples(epsilons: Sequence[float]) -> pa.Table:
    """Three mechanisms on trees of 9,261 leaves of 100 persons: noise at leaves, a mean of four draws, raking to the root.

    The first is geometric noise of epsilon at every leaf, the second the mean of four draws of epsilon / 4 each, the third has a
    quarter of epsilon at each of root, two levels and leaves, and children are scaled to the total of their parent.
    """
    rng = np.random.default_rng(1)
    columns: dict[str, list[Any]] = {"mechanism": [], "epsilon": [], "epl": [], "ratio": []}
    for epsilon in epsilons:
        errors_of: dict[str, list[NDArray[np.float64]]] = {}
        for leaves in rng.multinomial(1_000_000, np.full(21**3, 21.0**-3), size=4):
            true = leaves.reshape(21, 21, 21)
            draws = [_geometric(rng, epsilon / 4, true.shape) for _ in range(4)]
            errors = {
                "noise at leaves": _geometric(rng, epsilon, true.shape),
                "mean of four draws": np.mean(draws, axis=0),
                "raked from the root": _raked(rng, true, epsilon / 4) - true,
            }
            for name, error in errors.items():
                errors_of.setdefault(name, []).append(error.reshape(-1))
        for name, parts in errors_of.items():
            curve = epl_curve(residuals_of(np.concatenate(parts)), bandwidth_factor=0.15, multiplier=1.5)
            loss = np.abs(curve.column("smooth_epl").to_numpy()[:-1])
            value = float(np.median(loss[np.isfinite(loss)]))
            for column, item in zip(columns, (name, epsilon, value, value / epsilon), strict=True):
                columns[column].append(item)
    return pa.table(columns)


def _geometric(rng: np.random.Generator, z: float, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Two-sided geometric noise: the difference of two geometric draws."""
    chance = -np.expm1(-z)
    return (rng.geometric(chance, shape) - rng.geometric(chance, shape)).astype(np.float64)


def _raked(rng: np.random.Generator, true: NDArray[np.int64], z: float) -> NDArray[np.float64]:
    """Noisy counts of every level, children scaled so that they add up to their parent."""
    scaled = np.array(true.sum() + _geometric(rng, z, ()))
    for depth in range(1, 4):
        noisy = true.reshape(*true.shape[:depth], -1).sum(axis=-1) + _geometric(rng, z, true.shape[:depth])
        scaled = noisy * (scaled / noisy.sum(axis=-1))[..., None]
    return scaled


_TRIALS: Final = 10
_FEWEST: Final = 100  # errors
_LEAST: Final = 0.003  # loss, below which the law has so many values that nothing can be estimated
_EPSILONS: Final = (0.05, 0.1)
_ABOUT: Final = ("level", "area_class", "characteristic")
_SCHEMA: Final = pa.schema(
    [
        *((name, pa.string()) for name in (*_ABOUT, "law")),
        ("parameter", pa.float64()),
        ("n", pa.int64()),
        *((name, pa.string()) for name in ("estimator", "statistic")),
        *((name, pa.float64()) for name in ("truth", "mean", "lo", "hi", "bias", "measured_epl")),
    ]
)


def epl_noise_frames(epl: pa.Table) -> dict[str, pa.Table]:
    """What the same estimators say of pure noise of the loss that was measured, and of three known mechanisms."""
    measured: dict[tuple[Any, ...], dict[tuple[str, str], Mapping[str, Any]]] = {}
    for row in epl.to_pylist():
        if row["size_class"] == "all":
            key = tuple(row[name] for name in _ABOUT)
            measured.setdefault(key, {})[row["estimator"], row["statistic"]] = row
    rows = [
        dict(zip(_ABOUT, key, strict=True)) | row
        for key, values in measured.items()
        for row in _of_noise(values)
    ]
    return {"epl_noise": pa.Table.from_pylist(rows, schema=_SCHEMA), "epl_examples": _examples()}


def _of_noise(values: Mapping[tuple[str, str], Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Estimates of noise of the reported loss, and those of one subject; none where nothing can be estimated."""
    reported = next((row for row in values.values() if row["reported"]), None)
    if reported is None or reported["n"] < _FEWEST:
        return []
    loss = reported["value"]
    if loss is None or not _LEAST <= loss < math.inf:
        return []
    rows = []
    for law in _laws(loss):
        for row in calibrate(law, [reported["n"]], trials=_TRIALS).to_pylist():
            own = values.get((row["estimator"], row["statistic"]), {})
            rows.append(row | {"measured_epl": own.get("value")})
    return rows


def _laws(loss: float) -> tuple[NoiseLaw, NoiseLaw]:
    """Two-sided geometric noise of a loss, and discrete Gaussian noise of its variance."""
    share = math.exp(-loss)
    variance = 2 * share / (1 - share) ** 2
    scale, sigma2 = (Fraction(value).limit_denominator(10**6) for value in (1 / loss, max(variance, 1e-3)))
    return NoiseLaw.laplace(scale), NoiseLaw.gaussian(sigma2)


@functools.cache
def _examples() -> pa.Table:
    return linear_noise_examples(_EPSILONS)
