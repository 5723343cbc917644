"""CONFIDENTIAL. Sizes of errors: absolute, squared, relative, by stratum of areas and by answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from censafe.evaluation.histograms.cells import MatchedCells
from censafe.evaluation.histograms.frames import Mode
from censafe.evaluation.histograms.residuals import ZeroCells
from censafe.evaluation.histograms.strata import Strata

__all__ = ["METRICS", "accuracy"]

METRICS: Final = (
    "mean_ae", "median_ae", "p90_ae", "pct95_ae", "max_ae", "rmse", "me", "median_d", "min_d", "max_d", "sd_r", "mape",
    "malpe", "median_ape", "p90_ape", "p95_ape", "max_ape", "mean_relative_error", "cv", "ape_2_to_5", "ape_over_5",
    "ape_over_10", "ae_over_200", "n_cells", "n_zero_zero", "n_from_zero", "count_median", "count_pct95", "count_mean",
    "count_std",
)  # fmt: skip


def accuracy(
    runs: Sequence[MatchedCells],
    *,
    mode: Mode = "corrected",
    zeros: ZeroCells | None = None,
    strata: Strata | None = None,
    by_answer: bool = False,
    suite: str = "accuracy",
) -> pa.Table:
    """Every error metric of one query at one level, as a long frame (``frames.LONG``).

    Rows are for each run and, where there are several, for all runs ``pooled`` with mean and standard deviation over runs
    (metrics ``<name>_run_mean`` and ``<name>_run_sd``). lo and hi of mean_ae, me and rmse are a 90 % interval from areas as
    clusters.

    Args:
        runs: matched counts of the same areas, one entry a run.
        mode: ``corrected`` uses all answers of the domain; ``as_published`` those not zero on either side, and summaries of
            true counts over non-zero cells.
        zeros: which answers count, in place of what the mode says.
        strata: one row set for each class of areas; an empty class has NaN and the reason ``empty``.
        by_answer: a row set for each answer of the query (characteristic ``query=answer``) instead of one for all.
        suite: what the column of this name says.
    """
    raise NotImplementedError
