"""CONFIDENTIAL. How much answers vary over repeated runs of one setting."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from censafe.errors import UsageError
from censafe.evaluation.histograms.cells import MatchedCells
from censafe.evaluation.histograms.frames import Subject, Value, long_frame
from censafe.evaluation.histograms.strata import Strata, everything

__all__ = ["run_variability"]

_Floats = NDArray[np.float64]


def run_variability(runs: Sequence[MatchedCells], *, strata: Strata | None = None) -> pa.Table:
    """Standard deviation, CV and RMSE over runs of every answer, averaged over answers and areas.

    Args:
        runs: matched counts of the same areas, two runs or more.
        strata: one row set for each class of areas; without, one for all.

    Returns:
        A long frame (suite ``variability``): mean_sd (one degree of freedom less), mean_cv in percent (answers whose mean over
        runs is above zero), mean_rmse, mean_abs_bias, and n_answers, how many are not zero everywhere.

    Raises:
        UsageError: fewer than two runs.
    """
    if len(runs) < 2:
        raise UsageError("variability over runs needs two runs or more; publish again with other seeds")
    keys, true, public = _aligned(runs)
    classes = strata or everything(len(runs[0].areas))
    group = classes.of_area[keys // runs[0].answers]
    return long_frame(
        row
        for at, name in enumerate(classes.names)
        for row in _rows(
            runs, name, int((classes.of_area == at).sum()), true[group == at], public[:, group == at]
        )
    )


def _rows(
    runs: Sequence[MatchedCells], size_class: str, areas: int, true: _Floats, public: _Floats
) -> Iterator[Value]:
    """Rows of one class: counts of answers that are not zero everywhere, published ones of shape (runs, answers)."""
    mean = public.mean(axis=0)
    deviation = public.std(axis=0, ddof=1)
    rmse = np.sqrt(((public - true) ** 2).mean(axis=0))
    positive = mean > 0
    number = areas * runs[0].answers
    subject = Subject(
        "pooled", "variability", "corrected", runs[0].level, runs[0].area_class, size_class, runs[0].query
    )
    none = float("nan")
    values = {
        "mean_sd": float(deviation.sum() / number) if number else none,
        "mean_cv": float((100 * deviation[positive] / mean[positive]).mean()) if positive.any() else none,
        "mean_rmse": float(rmse.sum() / number) if number else none,
        "mean_abs_bias": float(np.abs(mean - true).sum() / number) if number else none,
        "n_answers": float(len(true)),
    }
    for name, value in values.items():
        yield Value(subject, name, value, areas, len(runs), reason="" if value == value else "empty")


def _aligned(
    runs: Sequence[MatchedCells],
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Areas and answers that are not zero somewhere, their true counts, and published counts, shape (runs, keys)."""
    answers = runs[0].answers
    own: list[NDArray[Any]] = [
        cells.area_of_entry.astype(np.int64) * answers + cells.answer for cells in runs
    ]
    keys = np.unique(np.concatenate(own))
    true = np.zeros(len(keys))
    public = np.zeros((len(runs), len(keys)))
    for row, (place, cells) in enumerate(zip(own, runs, strict=True)):
        at = np.searchsorted(keys, place)
        true[at] = cells.confidential
        public[row, at] = cells.published
    return keys, true, public
