"""Empirical privacy loss: how fast the distribution of residuals falls from one value to the next.

It is not a bound on the loss of a mechanism: it takes areas to be exchangeable, and published facts can make it larger than
epsilon. Its maximum is biased upwards, the more the fewer residuals there are.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from censafe.evaluation.histograms.frames import Mode
from censafe.evaluation.histograms.residuals import Residuals

__all__ = ["CAUTION", "epl_curve", "epl_discrete", "epl_summary"]

CAUTION: Final = (
    "Empirical privacy loss is no bound on privacy loss: it takes areas to be exchangeable, and facts published exactly can "
    "make it larger than epsilon. Its maximum is biased upwards; the median is nearly unbiased for losses up to about 0.5."
)


def epl_curve(
    residuals: Residuals,
    *,
    bandwidth_factor: float | None = None,
    bandwidth_persons: float | None = None,
    percentile: float = 95.0,
    multiplier: float = 1.0,
) -> pa.Table:
    """Densities of residuals and their log ratios on the unit grid of the study.

    Args:
        residuals: pooled residuals.
        bandwidth_factor: kernel standard deviation as a share of that of the residuals (the study: 0.1).
        bandwidth_persons: kernel standard deviation in persons; one of the two, not both.
        percentile: the grid ends at the larger of this percentile and the opposite one, by size.
        multiplier: of that end.

    Returns:
        Columns x, hist, epl_hist, epl_cusum, smooth_hist, smooth_epl; the last row has no ratios. No rows where the grid has
        fewer than two points.

    Source: Petti & Flaxman (2020), methods; their published code.
    """
    raise NotImplementedError


def epl_discrete(residuals: Residuals, *, n_min: int = 25) -> pa.Table:
    """Log ratios of neighbouring whole residuals, away from zero: columns k, towards, n_near, n_far, epl.

    Args:
        residuals: whole numbers.
        n_min: both counts must be at least this.
    """
    raise NotImplementedError


def epl_summary(
    residuals: Residuals,
    *,
    mode: Mode = "corrected",
    bandwidth_factor: float | None = None,
    bandwidth_persons: float | None = None,
    n_min: int = 25,
    replicates: int = 200,
    confidence: float = 0.9,
    seed: int = 1,
) -> pa.Table:
    """Maximum, median and weighted mean of every estimator, with bootstrap intervals over areas.

    Args:
        residuals: with ``by_group`` for intervals.
        mode: ``as_published`` (kernel, factor 0.1, maximum) or ``corrected`` (whole residuals with enough counts; kernel for
            weighted samples). Both give all estimators that apply; ``reported`` marks the one that the mode reports.
        bandwidth_factor: see :func:`epl_curve`.
        bandwidth_persons: see :func:`epl_curve`.
        n_min: see :func:`epl_discrete`.
        replicates: of the bootstrap.
        confidence: of the intervals.
        seed: of the bootstrap.

    Returns:
        Columns mode, estimator (discrete, kernel, histogram, cumulative), statistic (max, median, mean), reported, value, lo,
        hi, bias (bootstrap estimate), n, n_grid, reason (``all_equal``, ``grid_too_small``, ``too_few``).
    """
    raise NotImplementedError
