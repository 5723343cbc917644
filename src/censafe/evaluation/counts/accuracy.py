"""CONFIDENTIAL. Sizes of errors by stratum of areas and by answer, and how much answers vary over repeated runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True)
class _Asked:
    """The choices of a call."""

    mode: LossMode
    zeros: ZeroCells
    strata: Strata
    answers: tuple[int, ...]
    suite: str


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
    asked = _Asked(
        mode,
        zeros or ("all" if mode == "corrected" else "either"),
        strata or everything(len(runs[0].areas)),
        tuple(range(runs[0].answers)) if by_answer else (_EVERY,),
        suite,
    )
    by_run = [_metrics([cells], asked) for cells in runs]
    rows = [row for cells, found in zip(runs, by_run, strict=True) for row in _rows(cells, found, asked, 1)]
    if len(runs) > 1:
        rows += _rows(runs[0], _metrics(runs, asked), asked, len(runs), POOLED)
        rows += _rows(runs[0], _over_runs(by_run), asked, len(runs), POOLED)
    return long_frame(rows)


_Found = Mapping[tuple[int, int], Mapping[str, tuple[float, float, float]]]


def _metrics(runs: Sequence[MatchedCells], asked: _Asked) -> _Found:
    """Metrics by class of areas and answer."""
    return {
        key: error_metrics(sample, non_zero_counts=asked.mode == "as_published")
        for key, sample in _samples(runs, asked)
    }


def _samples(runs: Sequence[MatchedCells], asked: _Asked) -> Iterator[tuple[tuple[int, int], ErrorSample]]:
    """Counts of every class and answer, all runs together."""
    classes = len(asked.strata.names)
    areas = np.bincount(asked.strata.of_area[asked.strata.of_area >= 0], minlength=classes)
    true = np.concatenate([cells.confidential for cells in runs])
    public = np.concatenate([cells.published for cells in runs])
    area = np.concatenate([cells.area_of_entry for cells in runs])
    masks = [counted(cells, asked.zeros) for cells in runs]
    group = asked.strata.of_area[area].astype(np.int64)
    if asked.answers != (_EVERY,):
        answer = np.concatenate([cells.answer for cells in runs])
        group = np.where(group < 0, -1, group * len(asked.answers) + answer)
    if masks[0] is not None:
        group[~np.concatenate([one for one in masks if one is not None])] = -1
    order, starts = _ordered(group, classes * len(asked.answers))
    for stratum in range(classes):
        for at, answer_ in enumerate(asked.answers):
            place = stratum * len(asked.answers) + at
            chosen = slice(None) if order is None else order[starts[place] : starts[place + 1]]
            held = true[chosen]
            domain = int(areas[stratum]) * len(runs) * (runs[0].answers if answer_ == _EVERY else 1)
            empty = domain - len(held) if asked.zeros == "all" else 0
            yield (
                (stratum, answer_),
                ErrorSample(held, public[chosen], area[chosen], empty, int(areas[stratum]), domain),
            )


def _ordered(group: NDArray[np.int64], groups: int) -> tuple[NDArray[np.int64] | None, NDArray[np.int64]]:
    """Entries by group and where each group starts; None where all entries are one group."""
    if groups == 1 and not bool((group < 0).any()):
        return None, np.array([0, len(group)])
    members = np.flatnonzero(group >= 0)
    order = members[np.argsort(group[members], kind="stable")]
    return order, np.searchsorted(group[order], np.arange(groups + 1)).astype(np.int64)


def _over_runs(by_run: Sequence[_Found]) -> _Found:
    """Mean and standard deviation over runs of every metric."""
    found: dict[tuple[int, int], dict[str, tuple[float, float, float]]] = {}
    none = float("nan")
    for key, metrics in by_run[0].items():
        found[key] = {}
        for name in metrics:
            values = np.array([one[key][name][0] for one in by_run])
            found[key][f"{name}_run_mean"] = (float(values.mean()), none, none)
            found[key][f"{name}_run_sd"] = (float(values.std(ddof=1)), none, none)
    return found


def _rows(
    cells: MatchedCells, found: _Found, asked: _Asked, runs: int, run_id: str | None = None
) -> Iterator[Value]:
    for (stratum, answer), metrics in found.items():
        name = cells.query if answer == _EVERY else f"{cells.query}={answer}"
        subject = Subject(
            run_id or cells.run_id, asked.suite, asked.mode, cells.level, cells.area_class,
            asked.strata.names[stratum], name,
        )  # fmt: skip
        units = int((asked.strata.of_area == stratum).sum())
        for metric, (value, low, high) in metrics.items():
            reason = "" if value == value else ("undefined" if units else "empty")
            yield Value(subject, metric, value, units, runs, low, high, reason)


_Floats = NDArray[np.float64]


def run_variability(runs: Sequence[MatchedCells], *, strata: Strata | None = None) -> pa.Table:
    """Standard deviation, CV and RMSE over runs of every answer, averaged over answers and areas.

    Returns:
        A long frame (suite ``variability``): mean_sd (one degree of freedom less), mean_cv in percent (answers whose mean over
        runs is above zero), mean_rmse, mean_abs_bias, and n_answers, how many are not zero everywhere.
    """
    if len(runs) < 2:
        raise UsageError("variability over runs needs two runs or more; publish with other seeds, too")
    keys, true, public = _aligned(runs)
    classes = strata or everything(len(runs[0].areas))
    group = classes.of_area[keys // runs[0].answers]
    return long_frame(
        row
        for at, name in enumerate(classes.names)
        for row in _rows_of_variability(
            runs, name, int((classes.of_area == at).sum()), true[group == at], public[:, group == at]
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
