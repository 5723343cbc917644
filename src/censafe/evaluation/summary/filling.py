"""CONFIDENTIAL. Tables of summary metrics filled from a pair, as far as its schemas, levels and lists of areas go."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from censafe.errors import ConfigError
from censafe.evaluation.areas import ComparedAreas, in_threads
from censafe.evaluation.counts.accuracy import POOLED
from censafe.evaluation.counts.error_metrics import METRICS, ErrorSample, MetricInterval, error_metrics
from censafe.evaluation.counts.frames import Subject, Value, long_frame
from censafe.evaluation.pairs.inconsistencies import CONDITIONS, YEARS, Condition, Side, median_age
from censafe.evaluation.summary.counts import Counted, SummarySources
from censafe.evaluation.summary.tables import (
    ErrorRate,
    Line,
    SummaryAreas,
    SummaryBook,
    SummaryColumn,
    SummaryRequest,
    SummaryTable,
)
from censafe.model.entries import nearest

_NAN: Final = float("nan")
_Numbers = NDArray[Any]
Metrics = dict[str, MetricInterval]
_MALE, _FEMALE = SummaryRequest("person", ("male",)), SummaryRequest("person", ("female",))
COUNT_METRICS: Final = ("n_below", "median_reduction", "n_differs")


@dataclass(frozen=True, eq=False)
class RowCounts:
    """CONFIDENTIAL. What a row is measured from.

    Args:
        included: areas of the row, shape (areas,).
        no_quarters: areas without facilities of group quarters; None where they are not known.
    """

    counts: Mapping[SummaryRequest, Counted] = field(repr=False)
    included: NDArray[np.bool_] = field(repr=False)
    run: int
    rates: Mapping[str, ErrorRate]
    totals: tuple[float, float] = (_NAN, _NAN)
    no_quarters: NDArray[np.bool_] | None = field(default=None, repr=False)

    def sides(self, request: SummaryRequest) -> tuple[_Numbers, _Numbers]:
        """True and published counts at the areas of the row."""
        counted = self.counts[request]
        return counted.true[self.included], counted.published[self.run][self.included]


def required(line: Line, rates: Mapping[str, ErrorRate]) -> tuple[SummaryRequest, ...]:
    """What must be counted so that a row has any number."""
    if line.measure == "rate":
        rate = rates[line.options[0]]
        return (rate.of, rate.to)
    if line.measure == "ages and sexes":
        return ()
    if line.measure == "largest":
        return line.among
    if line.measure == "condition" and len(line.options) == 1:
        return CONDITIONS[line.options[0]].requests(line.request.terms)
    return (line.request,) if line.measure in ("counts", "shares") else ()


def size_request(line: Line) -> SummaryRequest | None:
    """What the class of areas of a row is by; None for all areas."""
    if line.size.low is None:
        return None
    if line.size.by == "own":
        return line.request
    return SummaryRequest("person", (line.size.by,) if line.size.by else ())


def _counts(line: Line, inputs: RowCounts) -> Metrics:
    true, public = inputs.sides(line.request)
    number = len(true)
    if not number:
        return dict.fromkeys((*METRICS, *COUNT_METRICS), (_NAN, _NAN, _NAN))
    some = np.flatnonzero((true != 0) | (public != 0))
    sample = ErrorSample(
        true[some], public[some], some.astype(np.int32), number - len(some), areas=number, domain=number
    )
    below = public < true
    reduced = 100.0 * (public[below] - true[below]) / true[below]
    return error_metrics(sample) | _alone(
        {
            "n_below": below.sum(),
            "median_reduction": np.median(reduced) if len(reduced) else _NAN,
            "n_differs": (public != true).sum(),
        }
    )


def _rate(line: Line, inputs: RowCounts) -> Metrics:
    rate = inputs.rates[line.options[0]]
    above, below = inputs.sides(rate.of), inputs.sides(rate.to)
    true, public = (
        rate.scale
        * np.divide(of, to, out=np.full(len(of), 0.0 if rate.empty_is_zero else _NAN), where=to > 0)
        for of, to in zip(above, below, strict=True)
    )
    known = ~(np.isnan(true) | np.isnan(public))
    change = (public - true)[known]
    if not len(change):
        return _alone({"n_undefined": len(known)})
    base = np.where(true[known] > 0, true[known], (true[known] + public[known]) / 2)
    percent = np.abs(np.divide(100 * change, base, out=np.zeros(len(change)), where=base > 0))
    size = np.abs(change)
    (true_of, public_of), (true_to, public_to) = above, below
    full, empty = (public_of == public_to) & (public_to > 0), (public_of == 0) & (public_to > 0)
    true_full, true_empty = (true_of == true_to) & (true_to > 0), (true_of == 0) & (true_to > 0)
    return _alone(
        {
            "mean_ae": size.mean(),
            "rmse": np.sqrt((change**2).mean()),
            "me": change.mean(),
            "ape_2_to_5": ((percent >= 2) & (percent <= 5)).sum(),
            "ape_over_5": (percent > 5).sum(),
            "full_only_published": (full & ~true_full).sum(),
            "none_only_published": (empty & ~true_empty).sum(),
            "points_2_to_5": ((size >= 2) & (size <= 5)).sum(),
            "points_over_5": (size > 5).sum(),
            "up_to_90": ((public[known] >= 90) & (true[known] < 90)).sum(),
            "n_undefined": (~known).sum(),
        }
    )


def _shares(line: Line, inputs: RowCounts) -> Metrics:
    true, public = inputs.sides(line.request)
    of_true, of_public = inputs.totals
    if not (len(true) and of_true > 0 and of_public > 0):
        return {"taes": (_NAN, _NAN, _NAN)}
    return _alone({"taes": np.abs(true / of_true - public / of_public).sum()})


def _ages_and_sexes(line: Line, inputs: RowCounts) -> Metrics:
    changes: dict[str, float] = {}
    undefined = 0
    years = [line.request.within([year]) for year in YEARS]
    if all(year in inputs.counts for year in years):
        both = [inputs.sides(year) for year in years]
        true, public = (median_age(np.stack([pair[side] for pair in both], axis=1)) for side in (0, 1))
        changes["median_age_change"], undefined = _mean_change(true, public)
    if {_MALE, _FEMALE} <= set(inputs.counts):
        ratios = [
            np.divide(100.0 * men, women, out=np.full(len(men), _NAN), where=women > 0)
            for men, women in zip(inputs.sides(_MALE), inputs.sides(_FEMALE), strict=True)
        ]
        changes["sex_ratio_change"], more = _mean_change(*ratios)
        undefined = max(undefined, more)
    return _alone({**changes, "n_undefined": undefined})


def _mean_change(true: _Numbers, public: _Numbers) -> tuple[float, int]:
    """Mean absolute change, and how many areas have none because a side has no value."""
    change = np.abs(public - true)
    known = ~np.isnan(change)
    return (float(change[known].mean()) if known.any() else _NAN), int((~known).sum())


def _largest(line: Line, inputs: RowCounts) -> Metrics:
    sides = [inputs.sides(request) for request in line.among]
    true, public = (np.stack([side[at] for side in sides], axis=1) for at in (0, 1))
    largest = true == true.max(axis=1, initial=0)[:, None]
    # of several that are largest any may stay so
    changed = (true.sum(axis=1) > 0) & ~largest[np.arange(len(true)), public.argmax(axis=1)]
    return _alone({"largest_changed": changed.sum()})


def _condition(line: Line, inputs: RowCounts) -> Metrics:
    metrics: Metrics = {}
    for name in line.options:
        condition = CONDITIONS[name]
        if all(request in inputs.counts for request in condition.requests(line.request.terms)):
            met = _met(condition, line, inputs)
            metrics |= met if len(line.options) == 1 else {}
            metrics[f"n_{name.replace('-', '_')}"] = met["met_published"]
    return metrics


def _met(condition: Condition, line: Line, inputs: RowCounts) -> Metrics:
    """Universe, number and percent of both sides."""
    requests = condition.requests(line.request.terms)
    known = None if inputs.no_quarters is None else inputs.no_quarters[inputs.included]
    true, public = (
        Side({request: inputs.sides(request)[at] for request in requests}, line.request.terms, known)
        for at in (0, 1)
    )
    numbers: dict[str, float] = {}
    for words, side in (("true", true), ("published", public)):
        universe, met = condition.test(side, true)
        inside = int(universe.sum())
        numbers |= {
            f"universe_{words}": inside,
            f"met_{words}": int(met.sum()),
            f"percent_met_{words}": 100 * int(met.sum()) / inside if inside else _NAN,
        }
    return _alone(numbers)


def _alone(values: Mapping[str, Any]) -> Metrics:
    """Numbers without intervals."""
    return {name: (float(value), _NAN, _NAN) for name, value in values.items()}


_MEASURES: Final[Mapping[str, Callable[[Line, RowCounts], Metrics]]] = {
    "counts": _counts,
    "rate": _rate,
    "shares": _shares,
    "ages and sexes": _ages_and_sexes,
    "largest": _largest,
    "condition": _condition,
}


SUITE: Final = "summary"
NO_AREAS: Final = "no such areas in these files"
NO_CLASS: Final = "no areas of this class"
_UNITS: Final = "n_units"
_AT_ONCE: Final = 400  # counts of so many sets of records are in memory at a time
_LEFT_OUT: Final = SummaryColumn("Areas left out", "n_undefined")
_MAY_LACK: Final = ("rate", "ages and sexes")
_FRAME: Final = pa.schema(
    [(name, pa.string()) for name in ("sheet", "number", "heading", "row", "column", "metric")]
    + [("n_units", pa.int64()), ("value", pa.float64()), ("reason", pa.string())]
)


@dataclass(frozen=True, eq=False)
class FilledLine:
    """CONFIDENTIAL. A row of a table with its numbers.

    Args:
        listed: name of the list that its areas are from; empty for the spine.
        units: how many areas; None where nothing was counted.
    """

    line: Line
    listed: str = ""
    units: int | None = None
    runs: tuple[Mapping[str, MetricInterval], ...] = field(default=(), repr=False)
    reason: str = ""

    def __reduce__(self) -> NoReturn:
        raise TypeError("comparisons with the truth are confidential and cannot be pickled")

    def value(self, metric: str) -> float | None:
        """A number, the mean over runs; None where there is none."""
        if metric == _UNITS:
            return None if self.units is None else float(self.units)
        values = [metrics.get(metric, (_NAN,))[0] for metrics in self.runs]
        known = [one for one in values if not math.isnan(one)]
        return sum(known) / len(known) if known else None


@dataclass(frozen=True, eq=False)
class FilledTable:
    """CONFIDENTIAL. A table with the numbers that the pair has."""

    table: SummaryTable
    lines: tuple[FilledLine, ...]

    @property
    def rows(self) -> tuple[FilledLine, ...]:
        """Lines that are not headings."""
        return tuple(one for one in self.lines if one.line.areas)

    @property
    def filled(self) -> int:
        """How many rows have a number."""
        return sum(bool(one.units) for one in self.rows)

    @property
    def note(self) -> str:
        """What is missing and why; empty where only classes of areas are empty, or nothing is."""
        needs = _joined(one.reason for one in self.rows if one.reason not in (NO_AREAS, NO_CLASS))
        empty = [one for one in self.rows if one.reason == NO_AREAS]
        notes = [f"{NO_AREAS[0].upper()}{NO_AREAS[1:]}."] if len(empty) == len(self.rows) else []
        if needs:
            notes.append(f"Not in this product{', where empty' if self.filled else ''}: {needs}.")
        return " ".join(notes)


def fill_book(book: SummaryBook, sources: SummarySources) -> tuple[FilledTable, ...]:
    """Every table of a book; rows that cannot be filled say why."""
    for table in book.tables:
        conditions = [name for line in table.lines if line.measure == "condition" for name in line.options]
        for name in conditions:
            if name not in CONDITIONS:
                raise ConfigError(
                    f"{table.number}: no condition {name!r}.{nearest(name, sorted(CONDITIONS))}"
                )
    places: dict[str, list[tuple[int, int]]] = {}
    for at, table in enumerate(book.tables):
        for row, line in enumerate(table.lines):
            if line.areas:
                places.setdefault(line.areas, []).append((at, row))

    def of_kind(name: str) -> list[FilledLine]:
        lines = [book.tables[at].lines[row] for at, row in places[name]]
        return list(_Filler(book, sources, book.areas[name]).filled(lines))

    filled: dict[tuple[int, int], FilledLine] = {}
    for name, lines in zip(places, in_threads(of_kind, list(places)), strict=True):
        filled |= dict(zip(places[name], lines, strict=True))
    return tuple(
        FilledTable(
            table, tuple(filled.get((at, row)) or FilledLine(line) for row, line in enumerate(table.lines))
        )
        for at, table in enumerate(book.tables)
    )


@dataclass(frozen=True, eq=False)
class _Filler:
    """Rows of one kind of areas."""

    book: SummaryBook
    sources: SummarySources
    kind: SummaryAreas

    def filled(self, lines: Sequence[Line]) -> Iterator[FilledLine]:
        areas = self.sources.areas(self.kind)
        if isinstance(areas, str):
            yield from (FilledLine(line, reason=areas) for line in lines)
            return
        if not areas.number:
            yield from (FilledLine(line, areas.area_class, 0, reason=NO_AREAS) for line in lines)
            return
        states = self.sources.of_state(areas)
        quarters = self.sources.without_quarters(areas)
        for some in self._batches(lines):
            counts = self.sources.count(areas, [request for _, own, _ in some for request in own])
            for line, requests, reason in some:
                if not requests:
                    yield FilledLine(line, areas.area_class, reason=reason)
                    continue
                yield self._measured(line, areas, counts, states, quarters, reason)

    def _batches(self, lines: Sequence[Line]) -> Iterator[list[tuple[Line, list[SummaryRequest], str]]]:
        """Rows with what is counted for them, and why something is not."""
        some: list[tuple[Line, list[SummaryRequest], str]] = []
        counted: set[SummaryRequest] = set()
        for line in lines:
            requests, reason = self._requests(line)
            if some and len(counted | set(requests)) > _AT_ONCE:
                yield some
                some, counted = [], set()
            some.append((line, requests, reason))
            counted |= set(requests)
        if some:
            yield some

    def _requests(self, line: Line) -> tuple[list[SummaryRequest], str]:
        size = size_request(line)
        needs = [*required(line, self.book.rates), *([] if size is None else [size])]
        reason = _joined(self.sources.why_unmeasured(request) for request in needs)
        if reason:
            return [], reason
        groups: Sequence[Sequence[SummaryRequest]] = ()  # every one has some of the numbers of the row
        if line.measure == "ages and sexes":
            groups = ([line.request.within([year]) for year in YEARS], (_MALE, _FEMALE))
        elif line.measure == "condition" and len(line.options) > 1:
            groups = [CONDITIONS[name].requests(line.request.terms) for name in line.options]
        measured = [group for group in groups if not any(self.sources.why_unmeasured(one) for one in group)]
        reason = _joined(
            self.sources.why_unmeasured(request)
            for group in groups
            if group not in measured
            for request in group
        )
        if groups and not measured:
            return [], reason
        return [*needs, *(one for group in measured for one in group)], reason

    def _measured(
        self,
        line: Line,
        areas: ComparedAreas,
        counts: Mapping[SummaryRequest, Counted],
        states: NDArray[np.int64],
        quarters: NDArray[np.bool_] | None,
        reason: str,
    ) -> FilledLine:
        included = np.ones(areas.number, np.bool_)
        size = size_request(line)
        if size is not None and line.size.low is not None:
            true = counts[size].true
            included = (true >= line.size.low) & (true < (line.size.high or np.iinfo(np.int64).max))
        if line.measure == "shares" and line.options:
            included = included & (states == int(line.options[0]))
        units = int(included.sum())
        if not units:
            why = NO_AREAS if line.measure == "shares" else NO_CLASS
            return FilledLine(line, areas.area_class, 0, reason=why)
        runs = []
        for run in range(len(self.sources.runs)):
            totals = self._totals(line, run) if line.measure == "shares" else (_NAN, _NAN)
            inputs = RowCounts(counts, included, run, self.book.rates, totals, quarters)
            runs.append(_MEASURES[line.measure](line, inputs))
        return FilledLine(line, areas.area_class, units, tuple(runs), reason)

    def _totals(self, line: Line, run: int) -> tuple[float, float]:
        """Both totals of a state, or of all states that count."""
        states = self.sources.state_areas()
        counted = self.sources.count(states, [line.request])[line.request]
        codes = states.names.astype(np.int64)
        inside = codes == int(line.options[0]) if line.options else ~np.isin(codes, self.kind.not_in)
        return float(counted.true[inside].sum()), float(counted.published[run][inside].sum())


def summary_long(tables: Sequence[FilledTable], runs: Sequence[str]) -> pa.Table:
    """The metrics of the columns as a long frame (``frames.LONG``), each once, suite ``summary``.

    Rates, ages and sexes have a row of areas left out, too. The kind of areas stands in ``level``, the list that they are from
    in ``area_class``. Rows are for each run and, where there are several, ``pooled``: mean and standard deviation over runs.
    """
    seen: set[tuple[Subject, str]] = set()
    values = []
    for table in tables:
        for filled in table.rows:
            left_out = (_LEFT_OUT,) if filled.line.measure in _MAY_LACK else ()
            for column in (*table.table.columns, *left_out):
                for value in _values(filled, column, runs):
                    key = (value.subject, value.metric)
                    if key not in seen:
                        seen.add(key)
                        values.append(value)
    return long_frame(values)


def _values(filled: FilledLine, column: SummaryColumn, runs: Sequence[str]) -> Iterator[Value]:
    metric, line, units = column.metric, filled.line, filled.units
    if metric == _UNITS or units is None or filled.reason == NO_AREAS:
        return
    none = (_NAN, _NAN, _NAN)
    intervals = [one.get(metric, none) for one in filled.runs] or [none] * len(runs)

    def subject(run: str) -> Subject:
        return Subject(run, SUITE, "corrected", line.areas, filled.listed, line.size.name, line.subject)

    reason = filled.reason or "undefined"
    for run, (value, low, high) in zip(runs, intervals, strict=True):
        yield Value(subject(run), metric, value, units, 1, low, high, reason if math.isnan(value) else "")
    if len(runs) > 1:
        values = np.array([value for value, _, _ in intervals])
        for name, value in (("run_mean", values.mean()), ("run_sd", values.std(ddof=1))):
            words = reason if math.isnan(value) else ""
            yield Value(subject(POOLED), f"{metric}_{name}", float(value), units, len(runs), reason=words)


def summary_frame(tables: Sequence[FilledTable]) -> pa.Table:
    """Every number of the tables with the words of its table, row and column; the mean over runs where there are several."""
    rows: list[dict[str, Any]] = []
    for filled in tables:
        table, heading = filled.table, ""
        for line in filled.lines:
            if not line.line.areas:
                heading = line.line.label
                continue
            for column in table.columns:
                value = line.value(column.metric)
                rows.append(
                    {
                        "sheet": table.sheet,
                        "number": table.number,
                        "heading": heading,
                        "row": line.line.label,
                        "column": column.label,
                        "metric": column.metric,
                        "n_units": line.units,
                        "value": value,
                        "reason": "" if value is not None else line.reason or "undefined",
                    }
                )
    return pa.Table.from_pylist(rows, schema=_FRAME)


def _joined(reasons: Iterable[str]) -> str:
    """Reasons as one, each thing that is needed once.

    Example:
        >>> _joined(["needs SEX", "", "needs AGE, SEX", "no such areas in these files"])
        'needs AGE, SEX; no such areas in these files'
    """
    needs: set[str] = set()
    others: dict[str, None] = {}
    for reason in reasons:
        head, _, rest = reason.partition("needs ")
        if reason and not head:
            needs |= {name.strip() for name in rest.split(",")}
        elif reason:
            others[reason] = None
    return "; ".join([*(["needs " + ", ".join(sorted(needs))] if needs else []), *others])
