"""Empirical privacy loss: how fast the distribution of residuals falls from one value to the next.

It is not a bound on the loss of a mechanism: it takes areas to be exchangeable, and published facts can make it larger than
epsilon. Its maximum is biased upwards, the more the fewer residuals there are.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from censafe.evaluation.counts.error_metrics import Tally
from censafe.evaluation.counts.frames import LossMode
from censafe.evaluation.loss.residuals import Residuals

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
        >>> from censafe.evaluation.loss.residuals import residuals_of
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
        counts = _bootstrap(residuals, replicates, seed)
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


def _bootstrap(residuals: Residuals, replicates: int, seed: int) -> NDArray[np.float64]:
    """Counts of the sample and of replicates that draw groups of areas with replacement."""
    own = residuals.counts[None].astype(np.float64)
    if residuals.by_group is None or not replicates:
        return own
    groups = len(residuals.by_group)
    rng = np.random.default_rng(seed)
    weights = rng.multinomial(groups, np.full(groups, 1 / groups), size=replicates).astype(np.float64)
    return np.concatenate([own, weights @ residuals.by_group.astype(np.float64)])


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
