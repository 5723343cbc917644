"""CONFIDENTIAL. Sizes of errors by stratum of areas and by answer, and how much answers vary over repeated runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from censafe.errors import UsageError
from censafe.evaluation.areas.areas import Strata, everything
from censafe.evaluation.counts.cells import MatchedCells
from censafe.evaluation.counts.error_metrics import ErrorSample, error_metrics
from censafe.evaluation.counts.frames import LossMode, Subject, Value, long_frame
from censafe.evaluation.loss.residuals import ZeroCells, counted

POOLED: Final = "pooled"
_EVERY: Final = -1


_Metrics = Mapping[tuple[int, int], Mapping[str, tuple[float, float, float]]]
"""By class of areas and answer."""


def accuracy(
    runs: Sequence[MatchedCells],
    *,
    mode: LossMode = "corrected",
    zeros: ZeroCells | None = None,
    strata: Strata | None = None,
    by_answer: bool = False,
    suite: str = "accuracy",
) -> pa.Table:
    """Every error metric of one query at one level, as a long frame (``frames.LONG``).

    Rows are for each run and, where there are several, for all runs ``pooled``, with mean and standard deviation over runs
    (metrics ``<name>_run_mean`` and ``<name>_run_sd``). lo and hi of mean_ae, me and rmse are a 90 % interval with areas as
    clusters; NaN where a class has fewer than two areas.

    Args:
        runs: matched counts of the same areas, one entry a run.

    Example:
        >>> from censafe.evaluation.counts.cells import cells_of_counts
        >>> found = accuracy([cells_of_counts(np.array([0, 0, 10, 200, 100]), np.array([0, 3, 12, 190, 100]))])
        >>> row = found.column("metric").to_pylist().index("mape")
        >>> found.column("value")[row].as_py()
        45.0
    """
    if len({(cells.query, cells.answers, len(cells.areas)) for cells in runs}) != 1:
        raise ValueError("the runs must be matched counts of one query and the same areas")
    counted_zeros: ZeroCells = zeros or ("all" if mode == "corrected" else "either")
    classes = strata or everything(len(runs[0].areas))
    answers = tuple(range(runs[0].answers)) if by_answer else (_EVERY,)

    def metrics(some: Sequence[MatchedCells]) -> _Metrics:
        return {
            key: error_metrics(sample, non_zero_counts=mode == "as_published")
            for key, sample in _samples(some, counted_zeros, classes, answers)
        }

    def rows(cells: MatchedCells, by_key: _Metrics, number: int, run_id: str) -> Iterator[Value]:
        for (stratum, answer), named in by_key.items():
            name = cells.query if answer == _EVERY else f"{cells.query}={answer}"
            size_class = classes.names[stratum]
            subject = Subject(run_id, suite, mode, cells.level, cells.area_class, size_class, name)
            units = int((classes.of_area == stratum).sum())
            for metric, (value, low, high) in named.items():
                reason = "" if value == value else ("undefined" if units else "empty")
                yield Value(subject, metric, value, units, number, low, high, reason)

    by_run = [metrics([cells]) for cells in runs]
    values = [
        value for cells, own in zip(runs, by_run, strict=True) for value in rows(cells, own, 1, cells.run_id)
    ]
    if len(runs) > 1:
        for pooled in (metrics(runs), _over_runs(by_run)):
            values += rows(runs[0], pooled, len(runs), POOLED)
    return long_frame(values)


def _samples(
    runs: Sequence[MatchedCells], zeros: ZeroCells, strata: Strata, answers: Sequence[int]
) -> Iterator[tuple[tuple[int, int], ErrorSample]]:
    """Counts of every class and answer, all runs together."""
    classes = len(strata.names)
    areas = np.bincount(strata.of_area[strata.of_area >= 0], minlength=classes)
    true = np.concatenate([cells.confidential for cells in runs])
    public = np.concatenate([cells.published for cells in runs])
    area = np.concatenate([cells.area_of_entry for cells in runs])
    masks = [counted(cells, zeros) for cells in runs]
    group = strata.of_area[area].astype(np.int64)
    by_answer = tuple(answers) != (_EVERY,)
    if by_answer:
        answer = np.concatenate([cells.answer for cells in runs])
        group = np.where(group < 0, -1, group * len(answers) + answer)
    if masks[0] is not None:
        group[~np.concatenate([one for one in masks if one is not None])] = -1
    order, starts = _ordered(group, classes * len(answers))
    for stratum in range(classes):
        domain = int(areas[stratum]) * len(runs) * (1 if by_answer else runs[0].answers)
        for at, answer_ in enumerate(answers):
            place = stratum * len(answers) + at
            chosen = slice(None) if order is None else order[starts[place] : starts[place + 1]]
            counts = true[chosen]
            empty = domain - len(counts) if zeros == "all" else 0
            sample = ErrorSample(counts, public[chosen], area[chosen], empty, int(areas[stratum]), domain)
            yield (stratum, answer_), sample


def _ordered(group: NDArray[np.int64], groups: int) -> tuple[NDArray[np.int64] | None, NDArray[np.int64]]:
    """Entries by group and where each group starts; None where all entries are one group."""
    if groups == 1 and not bool((group < 0).any()):
        return None, np.array([0, len(group)])
    members = np.flatnonzero(group >= 0)
    order = members[np.argsort(group[members], kind="stable")]
    return order, np.searchsorted(group[order], np.arange(groups + 1)).astype(np.int64)


def _over_runs(by_run: Sequence[_Metrics]) -> _Metrics:
    """Mean and standard deviation over runs of every metric."""
    over_runs: dict[tuple[int, int], dict[str, tuple[float, float, float]]] = {}
    none = float("nan")
    for key, metrics in by_run[0].items():
        over_runs[key] = {}
        for name in metrics:
            values = np.array([one[key][name][0] for one in by_run])
            over_runs[key][f"{name}_run_mean"] = (float(values.mean()), none, none)
            over_runs[key][f"{name}_run_sd"] = (float(values.std(ddof=1)), none, none)
    return over_runs


_Floats = NDArray[np.float64]


def run_variability(runs: Sequence[MatchedCells], *, strata: Strata | None = None) -> pa.Table:
    """Standard deviation, CV and RMSE over runs of every answer, averaged over answers and areas.

    Returns:
        A long frame (suite ``variability``): mean_sd (one degree of freedom less), mean_cv in percent (answers whose mean over
        runs is above zero), mean_rmse, mean_abs_bias, and n_answers, how many are not zero everywhere.
    """
    if len(runs) < 2:
        raise UsageError("variability over runs needs two runs or more; publish with other seeds, too")
    # areas and answers that are not zero somewhere, their true counts, and published counts, shape (runs, keys)
    answers = runs[0].answers
    own: list[NDArray[Any]] = [
        cells.area_of_entry.astype(np.int64) * answers + cells.answer for cells in runs
    ]
    keys = np.unique(np.concatenate(own))
    true, public = np.zeros(len(keys)), np.zeros((len(runs), len(keys)))
    for run, (place, cells) in enumerate(zip(own, runs, strict=True)):
        at = np.searchsorted(keys, place)
        true[at] = cells.confidential
        public[run, at] = cells.published
    classes = strata or everything(len(runs[0].areas))
    group = classes.of_area[keys // answers]
    return long_frame(
        row
        for stratum, name in enumerate(classes.names)
        for row in _rows_of_variability(
            runs,
            name,
            int((classes.of_area == stratum).sum()),
            true[group == stratum],
            public[:, group == stratum],
        )
    )


def _rows_of_variability(
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
