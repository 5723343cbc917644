"""CONFIDENTIAL. How much answers vary over repeated runs of one setting."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from censafe.evaluation.histograms.cells import MatchedCells

__all__ = ["run_variability"]


def run_variability(runs: Sequence[MatchedCells]) -> pa.Table:
    """Standard deviation, CV and RMSE over runs of every answer, averaged over answers and areas.

    Args:
        runs: matched counts of the same areas, two runs or more.

    Returns:
        A long frame (suite ``variability``): mean_sd, mean_cv (answers of mean above 0), mean_rmse, mean_abs_bias.

    Raises:
        UsageError: fewer than two runs.
    """
    raise NotImplementedError
