"""Estimators of empirical privacy loss as functions of how often each residual occurs, many weightings at a time.

Every estimator takes counts of shape (rows, v), one row a bootstrap sample, over one vector of values; its grid is fixed by the
sample itself, so that the rows can be compared.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from censafe.evaluation.counts.error_metrics import Tally

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


def neighbours_of_zero(values: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Positions of neighbouring whole values, one nearer to zero and the next one farther away."""
    at = np.flatnonzero(np.diff(values) == 1)
    positive = values[at] >= 0
    return np.where(positive, at, at + 1), np.where(positive, at + 1, at)


def discrete(
    values: NDArray[Any], counts: _Floats, chosen: tuple[NDArray[np.int64], NDArray[np.int64]]
) -> LossEstimate:
    """Log ratios of the counts of neighbouring whole residuals, the nearer to zero over the farther; by the chosen positions."""
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
