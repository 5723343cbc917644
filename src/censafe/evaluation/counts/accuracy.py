"""CONFIDENTIAL. Sizes of errors by stratum of areas and by answer, bias of totals by how homogeneous or diverse an area is, and from which population on shares can be relied on."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from censafe.errors import UsageError
from censafe.evaluation.areas import ComparedAreas, Strata, everything
from censafe.evaluation.counts.cells import MatchedCells, match, match_runs
from censafe.evaluation.counts.error_metrics import (
    DEVIATIONS,
    ErrorSample,
    MetricInterval,
    error_metrics,
    tally_of,
)
from censafe.evaluation.counts.frames import LossMode, Subject, Value, labeled, long_frame, stacked
from censafe.evaluation.counts.pairing import Pair
from censafe.evaluation.loss import ZeroCells, counted
from censafe.model.schema import CellQuery
from censafe.model.topdown.histograms import HistogramSchema

POOLED: Final = "pooled"
_EVERY: Final = -1
_NAN: Final = float("nan")


_Metrics = Mapping[tuple[int, int], Mapping[str, MetricInterval]]
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
        over_runs: dict[tuple[int, int], dict[str, MetricInterval]] = {}
        for key, names in by_run[0].items():
            over_runs[key] = own_runs = {}
            for name in names:
                numbers = np.array([one[key][name][0] for one in by_run])
                own_runs[f"{name}_run_mean"] = (float(numbers.mean()), _NAN, _NAN)
                own_runs[f"{name}_run_sd"] = (float(numbers.std(ddof=1)), _NAN, _NAN)
        for pooled in (metrics(runs), over_runs):
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
    first, values = runs[0], []
    for stratum, name in enumerate(classes.names):
        areas = int((classes.of_area == stratum).sum())
        number = areas * answers
        own_true, own_public = true[group == stratum], public[:, group == stratum]
        mean, deviation = own_public.mean(axis=0), own_public.std(axis=0, ddof=1)
        rmse = np.sqrt(((own_public - own_true) ** 2).mean(axis=0))
        positive = mean > 0
        metrics = {
            "mean_sd": float(deviation.sum() / number) if number else _NAN,
            "mean_cv": float((100 * deviation[positive] / mean[positive]).mean()) if positive.any() else _NAN,
            "mean_rmse": float(rmse.sum() / number) if number else _NAN,
            "mean_abs_bias": float(np.abs(mean - own_true).sum() / number) if number else _NAN,
            "n_answers": float(len(own_true)),
        }
        subject = Subject(
            POOLED, "variability", "corrected", first.level, first.area_class, name, first.query
        )
        for metric, value in metrics.items():
            reason = "" if value == value else "empty"
            values.append(Value(subject, metric, value, areas, len(runs), reason=reason))
    return long_frame(values)


_RACES: Final = ("cenrace", "race")
_ALONE: Final = 6


def race_groups(schema: HistogramSchema, query: str | None = None) -> CellQuery:
    """Exclusive groups: Hispanic, then each race alone and two or more races, not Hispanic.

    Example:
        >>> from censafe.products.topdown.configuration.shipped import shipped_schemas
        >>> race_groups(shipped_schemas()["pl94-persons"]).answers, race_groups(shipped_schemas()["e2e-1940"]).answers
        (8, 7)
    """
    if query is not None:
        try:
            return schema.query(query)
        except ValueError as error:
            raise UsageError(str(error)) from None
    names = schema.schema.names
    race = next((name for name in _RACES if name in names), None)
    if race is None or "hispanic" not in names:
        raise UsageError(
            f"schema {schema.name} has no attributes hispanic and race; name a query whose answers are the groups"
        )
    levels = schema.schema.levels_of(race)
    label = np.where(schema.schema.levels_of("hispanic") == 1, 0, 1 + np.minimum(levels, _ALONE))
    answers = 1 + min(int(levels.max()) + 1, _ALONE + 1)
    return CellQuery.of_labels("hispanic, or race", answers, label.astype(np.int32), ("hispanic", race))


def diversity_index(pair: Pair, areas: ComparedAreas, groups: CellQuery) -> NDArray[np.float64]:
    """One less the sum of squared shares of the groups in the true population, shape (areas,); NaN without persons.

    The slide does not give its formula; this is the diversity index of the Census Bureau.
    """
    cells = match(pair, areas, groups)
    area = cells.area_of_entry
    true = cells.confidential.astype(np.float64)
    total = np.bincount(area, weights=true, minlength=areas.number)
    squares = np.bincount(area, weights=true * true, minlength=areas.number)
    with np.errstate(invalid="ignore"):
        return 1 - squares / total**2


def diversity_quintiles(index: NDArray[np.float64]) -> NDArray[np.int64]:
    """Quintile of every area, 0 the least diverse, in equal numbers; ties in the order of the areas; -1 for NaN.

    Example:
        >>> diversity_quintiles(np.array([0.5, 0.1, np.nan, 0.2, 0.4, 0.3])).tolist()
        [4, 0, -1, 1, 3, 2]
    """
    known = np.flatnonzero(~np.isnan(index))
    order = known[np.argsort(index[known], kind="stable")]
    quintile = np.full(len(index), -1, np.int64)
    quintile[order] = np.arange(len(order)) * 5 // max(1, len(order))
    return quintile


def bias_by_diversity(
    pair: Pair,
    areas: ComparedAreas,
    groups: CellQuery,
    *,
    strata: Strata | None = None,
    residuals: Mapping[str, NDArray[np.float64]] | None = None,
) -> pa.Table:
    """Mean residual by quintile of true diversity, pooled over runs. Meant for block groups and larger areas.

    Args:
        residuals: by characteristic, shape (runs, areas); without, those of the total.
    """
    quintile = diversity_quintiles(diversity_index(pair, areas, groups))
    return pa.Table.from_pylist(list(_bias_rows(pair, areas, "quintile", quintile, strata, residuals)))


def total_residuals(pair: Pair, areas: ComparedAreas) -> NDArray[np.float64]:
    """Residuals of the total, shape (runs, areas)."""
    residuals = np.zeros((len(pair.runs), areas.number))
    for run, cells in enumerate(match_runs(pair, areas, "total")):
        residuals[run, cells.area_of_entry] = cells.residual
    return residuals


def _bias_rows(
    pair: Pair,
    areas: ComparedAreas,
    column: str,
    classes: NDArray[np.int64],
    strata: Strata | None,
    residuals: Mapping[str, NDArray[np.float64]] | None,
) -> Iterator[dict[str, Any]]:
    """Number of areas, mean residual, standard error and 90 % interval of every class, of all areas and of each stratum.

    Args:
        classes: class of every area, such as its index, -1 for none, shape (areas,).
        residuals: by characteristic, shape (runs, areas); without, those of the total.
    """
    counted = residuals if residuals is not None else {"total": total_residuals(pair, areas)}
    for grouping in (everything(areas.number), *([] if strata is None else [strata])):
        for at, size_class in enumerate(grouping.names):
            inside = np.where(grouping.of_area == at, classes, -1)
            for name, errors in counted.items():
                means = errors.mean(axis=0)
                for place in np.unique(inside[inside >= 0]).tolist():
                    own = means[inside == place]
                    error = float(own.std(ddof=1) / np.sqrt(len(own))) if len(own) > 1 else float("nan")
                    bias = float(own.mean())
                    yield {
                        "level": areas.level,
                        "area_class": areas.area_class,
                        "size_class": size_class,
                        "characteristic": name,
                        column: place,
                        "n_areas": len(own),
                        "n_runs": len(errors),
                        "bias": bias,
                        "se": error,
                        "lo": bias - DEVIATIONS * error,
                        "hi": bias + DEVIATIONS * error,
                    }


def homogeneity_index(
    pair: Pair, areas: ComparedAreas, attributes: Sequence[str], *, mode: LossMode = "corrected"
) -> NDArray[np.int64]:
    """How many of the cells of some attributes are empty in the truth, shape (areas,).

    Source: Petti & Flaxman (2020) and their published code.
    """
    joint = pair.query(" * ".join(attributes))
    if mode == "corrected":
        return joint.answers - _occurring(pair, areas, joint.name)
    product = np.ones(areas.number, np.int64)
    for name in attributes:
        product *= _occurring(pair, areas, name)
    return joint.answers - product


def _occurring(pair: Pair, areas: ComparedAreas, query: str) -> NDArray[np.int64]:
    """How many answers are not zero in the truth of every area."""
    cells = match(pair, areas, query)
    return np.bincount(cells.area_of_entry[cells.confidential > 0], minlength=areas.number).astype(np.int64)


def bias_by_homogeneity(
    pair: Pair,
    areas: ComparedAreas,
    attributes: Sequence[str],
    *,
    mode: LossMode = "corrected",
    strata: Strata | None = None,
    residuals: Mapping[str, NDArray[np.float64]] | None = None,
) -> pa.Table:
    """Mean residual by index, pooled over runs.

    Args:
        residuals: by characteristic, shape (runs, areas); without, those of the total.
    """
    cells = math.prod(pair.query(name).answers for name in attributes)
    index = homogeneity_index(pair, areas, attributes, mode=mode)
    rows = _bias_rows(pair, areas, "index", index, strata, residuals)
    return pa.Table.from_pylist([{"mode": mode, **row, "cells": cells} for row in rows])


def residuals_by_homogeneity(
    pair: Pair, areas: ComparedAreas, attributes: Sequence[str], *, mode: LossMode = "corrected"
) -> pa.Table:
    """Residuals of the total by index, for violins: columns mode, level, index, run_id, residual, n."""
    index = homogeneity_index(pair, areas, attributes, mode=mode)
    residuals = total_residuals(pair, areas)
    frames = []
    for empty_cells in np.unique(index).tolist():
        for run, values in zip(pair.runs, residuals[:, index == empty_cells], strict=True):
            tally = tally_of(values)
            about = {"mode": mode, "level": areas.level, "index": empty_cells, "run_id": run.run_id}
            frames.append(labeled(pa.table({"residual": tally.values, "n": tally.counts}), about))
    return stacked(frames)


@dataclass(frozen=True)
class Tolerance:
    """What counts as reliable."""

    alpha: float = 0.05
    beta: float = 0.05

    @property
    def points(self) -> str:
        """The largest difference in words, in percentage points.

        Example:
            >>> Tolerance(0.025).points, Tolerance(beta=0.1).areas
            ('2.5 points', '90%')
        """
        return f"{100 * self.alpha:.6g} points"

    @property
    def areas(self) -> str:
        """The least share of areas in words, in percent."""
        return f"{100 * (1 - self.beta):.6g}%"


_USUAL: Final = Tolerance()
_BINS: Final = pa.schema(
    [
        *((name, pa.string()) for name in ("run_id", "level", "area_class")),
        ("bin_low", pa.int64()),
        ("bin", pa.string()),
        ("n_areas", pa.int64()),
        ("n_reliable", pa.int64()),
        ("share", pa.float64()),
    ]
)


def reliability(
    pair: Pair,
    areas: ComparedAreas,
    groups: CellQuery,
    *,
    run: int = 0,
    tolerance: Tolerance = _USUAL,
    bin_width: int = 50,
) -> tuple[str, str, pa.Table]:
    """The smallest population bin in which enough areas have the share of their largest group close to the true one.

    Returns:
        The smallest bin such that it and all larger ones are reliable, such as ``200-249``, and the smallest that is reliable itself, empty
        when there is none; and columns run_id, level, area_class, bin_low, bin, n_areas, n_reliable, share of the bins with areas.

    Source: Wright & Irimata (SSS 2021-02).
    """
    true, public = match(pair, areas, groups, run).dense()
    peopled = true.sum(axis=1) > 0
    close = _close(true[peopled], public[peopled], tolerance.alpha)
    place = true.sum(axis=1)[peopled] // bin_width
    number = np.bincount(place)
    good = np.bincount(place[close], minlength=len(number))
    filled = np.flatnonzero(number)
    # whole numbers where they decide, so that 95 of 100 is not lost to rounding
    enough = good[filled] >= (1 - tolerance.beta) * number[filled] - 1e-9
    lasting = np.logical_and.accumulate(enough[::-1])[::-1]
    rows: list[dict[str, Any]] = [
        {
            "run_id": pair.runs[run].run_id,
            "level": areas.level,
            "area_class": areas.area_class,
            "bin_low": int(place) * bin_width,
            "bin": _name(int(place), bin_width),
            "n_areas": int(number[place]),
            "n_reliable": int(good[place]),
            "share": float(good[place] / number[place]),
        }
        for place in filled
    ]
    first, alone = (
        "".join(_name(place, bin_width) for place in filled[chosen][:1].tolist())
        for chosen in (lasting, enough)
    )
    return first, alone, pa.Table.from_pylist(rows, schema=_BINS)


def _name(place: int, width: int) -> str:
    return f"{place * width}-{place * width + width - 1}"


def _close(true: NDArray[np.int64], public: NDArray[Any], alpha: float) -> NDArray[np.bool_]:
    """Whether the share of the group that is largest in the truth is within alpha."""
    rows = np.arange(len(true))
    largest = true.argmax(axis=1)
    total = public.sum(axis=1)
    share = np.where(total > 0, public[rows, largest] / np.where(total > 0, total, 1), 0.0)
    return np.abs(share - true[rows, largest] / true.sum(axis=1)) <= alpha + 1e-12
