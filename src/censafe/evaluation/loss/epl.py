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

from censafe.errors import UsageError
from censafe.evaluation.counts.error_metrics import Tally
from censafe.evaluation.counts.frames import LossMode, frame_of
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
    held = _binned(values, counts, grid)
    return LossEstimate(held, _log_ratio(held[:, :-1], held[:, 1:]))


def cumulative(values: NDArray[Any], counts: _Floats, grid: Grid) -> LossEstimate:
    """Residuals in the bins after each one; the log ratio of a bin's to the one before. A geometric tail of loss z gives -z."""
    held = _binned(values, counts, grid)
    after = held.sum(axis=1, keepdims=True) - np.cumsum(held, axis=1)
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
    held = np.zeros((len(counts), len(edges) - 1))
    np.add.at(held.T, place[inside], counts[:, inside].T)
    return held


def _log_ratio(over: _Floats, under: _Floats) -> _Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.log(over / under)


_FACTOR: Final = 0.1
_PERCENTILE: Final = 95.0
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
    bandwidth_factor: float | None = None,
    bandwidth_persons: float | None = None,
    percentile: float = _PERCENTILE,
    multiplier: float = 1.0,
) -> pa.Table:
    """Densities of residuals and their log ratios on the unit grid of the study.

    Args:
        bandwidth_persons: kernel standard deviation in persons; one of the two, not both.

    Source: Petti & Flaxman (2020), methods; their published code.

    Example:
        >>> from censafe.evaluation.loss.residuals import residuals_of
        >>> r = residuals_of(np.array([-2, -1, -1, 0, 0, 0, 0, 1, 1, 2, 3, -3, 0, 1, -1]))
        >>> [round(one, 6) for one in epl_curve(r, bandwidth_factor=0.5).column("smooth_epl").to_pylist()[:3]]
        [-0.647474, -0.181404, 0.403341]
    """
    deviation = _deviation(residuals, bandwidth_factor, bandwidth_persons)
    grid = grid_of(residuals.tally, percentile, multiplier)
    if len(grid.edges) < 3:
        names = ("x", "hist", "epl_hist", "epl_cusum", "smooth_hist", "smooth_epl")
        return frame_of({name: np.zeros(0) for name in names})
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
    return frame_of({"x": points, **columns, "smooth_hist": smooth.density[0], "smooth_epl": ratios})


@dataclass(frozen=True, eq=False)
class _Sample:
    """Residuals with their bootstrap samples: row 0 is the sample itself."""

    residuals: Residuals
    counts: NDArray[np.float64]
    confidence: float


def epl_summary(
    residuals: Residuals,
    *,
    mode: LossMode = "corrected",
    bandwidth_factor: float | None = None,
    bandwidth_persons: float | None = None,
    n_min: int = 25,
    replicates: int = 200,
    confidence: float = 0.9,
    seed: int = 1,
) -> pa.Table:
    """Maximum, median and weighted mean of every estimator, with bootstrap intervals over areas.

    Intervals are basic bootstrap intervals (twice the value less the quantiles of the replicates), since the replicates of a
    maximum lie above it; ``bias`` is the mean of the replicates less the value, and shows by how much the maximum is too high.
    Grid and bandwidth are those of the sample itself.
    """
    sample = _Sample(residuals, _bootstrap(residuals, replicates, seed), confidence)
    whole = residuals.values.dtype.kind in "iu"
    reported = ("kernel", "max") if mode == "as_published" else (_corrected(residuals, n_min), "median")
    if len(residuals.values) < 2:
        value, reason = (np.inf, "all_equal") if len(residuals.values) else (np.nan, "too_few")
        row = _row(sample, reported, value, 0) | {"mode": mode, "reported": True, "reason": reason}
        return pa.Table.from_pylist([row], schema=_SUMMARY)
    rows = []
    grid = grid_of(residuals.tally, _PERCENTILE, 1.0)
    deviation = _deviation(residuals, bandwidth_factor, bandwidth_persons)
    for name, estimate in _estimates(sample, grid, deviation, n_min, whole=whole):
        rows += [
            row | {"mode": mode, "reported": (name, row["statistic"]) == reported}
            for row in _statistics(sample, name, estimate)
        ]
    return pa.Table.from_pylist(rows, schema=_SUMMARY)


def _estimates(
    sample: _Sample, grid: Grid, deviation: float, n_min: int, *, whole: bool
) -> list[tuple[str, LossEstimate]]:
    values, counts = sample.residuals.values, sample.counts
    nothing = LossEstimate(np.zeros((len(counts), 0)), np.zeros((len(counts), 0)))
    found = [("discrete", discrete(values, counts, _enough(sample.residuals, n_min)))] if whole else []
    several = len(grid.edges) >= 3
    found.append(("kernel", kernel(values, counts, grid, deviation) if several else nothing))
    narrow = several and not grid.wide
    found.append(("histogram", histogram(values, counts, grid) if narrow else nothing))
    found.append(("cumulative", cumulative(values, counts, grid) if narrow else nothing))
    return found


def _statistics(sample: _Sample, name: str, estimate: LossEstimate) -> list[dict[str, Any]]:
    """Rows of one estimator; points at which the sample itself has no finite ratio are left out.

    Ratios of whole residuals point away from zero, so that their median and mean keep the sign: chance then cancels out.
    """
    finite = np.isfinite(estimate.loss[0])
    if not finite.any():
        reason = "too_few" if name == "discrete" else "no_ratio"
        return [
            _row(sample, (name, statistic), np.nan, 0) | {"reason": reason}
            for statistic in ("max", "median", "mean")
        ]
    found = np.where(np.isfinite(estimate.loss), estimate.loss, np.nan)[:, finite]
    found = found[~np.isnan(found).all(axis=1)]  # row 0, the sample, stays
    size = np.abs(found)
    loss = found if name == "discrete" else size
    weight = estimate.density[0, : len(finite)][finite]
    statistics = {
        "max": np.nanmax(size, axis=1),
        "median": np.nanmedian(loss, axis=1),
        "mean": np.nansum(loss * weight, axis=1) / np.where(np.isnan(loss), 0.0, weight).sum(axis=1),
    }
    return [
        _row(sample, (name, statistic), float(values[0]), int(finite.sum()))
        | _interval(values, sample.confidence)
        for statistic, values in statistics.items()
    ]


def _interval(values: NDArray[np.float64], confidence: float) -> dict[str, float]:
    """Basic bootstrap interval and bias of the first value from the others; nothing without them."""
    if len(values) < 2:
        return {}
    share = (1 - confidence) / 2
    low, high = np.quantile(values[1:], [share, 1 - share])
    return {
        "lo": float(2 * values[0] - high),
        "hi": float(2 * values[0] - low),
        "bias": float(values[1:].mean() - values[0]),
    }


def _row(sample: _Sample, key: tuple[str, str], value: float, grid: int) -> dict[str, Any]:
    return {
        "estimator": key[0],
        "statistic": key[1],
        "value": value,
        "lo": np.nan,
        "hi": np.nan,
        "bias": np.nan,
        "n": sample.residuals.number,
        "n_grid": grid,
        "n_areas": sample.residuals.areas,
        "reason": "",
    }


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
    if residuals.values.dtype.kind not in "iu":
        raise UsageError("residuals of weighted samples are not whole; use the kernel estimator")
    near, far = neighbors_of_zero(residuals.values)
    enough = (residuals.counts[near] >= n_min) & (residuals.counts[far] >= n_min)
    return near[enough], far[enough]


def _deviation(residuals: Residuals, factor: float | None, persons: float | None) -> float:
    if factor is not None and persons is not None:
        raise UsageError("give bandwidth_factor or bandwidth_persons, not both")
    if (factor is not None and factor <= 0) or (persons is not None and persons <= 0):
        raise UsageError("a bandwidth must be above zero")
    if persons is not None:
        return persons
    return (_FACTOR if factor is None else factor) * residuals.tally.deviation
