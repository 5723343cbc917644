"""CONFIDENTIAL. Tables of summary metrics filled from a pair, as far as its schemas, levels and lists of areas go."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from censafe.errors import ConfigError
from censafe.evaluation.areas.areas import ComparedAreas, in_threads
from censafe.evaluation.counts.accuracy import POOLED
from censafe.evaluation.counts.error_metrics import MetricInterval
from censafe.evaluation.counts.frames import Subject, Value, long_frame
from censafe.evaluation.summary.conditions import CONDITIONS
from censafe.evaluation.summary.counts import Counted, SummarySources
from censafe.evaluation.summary.measures import Given, measure_summary, required, size_request, welcome
from censafe.evaluation.summary.tables import (
    Line,
    SummaryAreas,
    SummaryBook,
    SummaryColumn,
    SummaryRequest,
    SummaryTable,
)
from censafe.model.entries import nearest

SUITE: Final = "summary"
NO_AREAS: Final = "no such areas in these files"
NO_CLASS: Final = "no areas of this class"
_UNITS: Final = "n_units"
_AT_ONCE: Final = 400  # counts of so many sets of records are held at a time
_LEFT_OUT: Final = SummaryColumn("Areas left out", "n_undefined")
_MAY_LACK: Final = ("rate", "ages and sexes")
_NAN: Final = float("nan")
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
        values = [found.get(metric, (_NAN,))[0] for found in self.runs]
        known = [one for one in values if not math.isnan(one)]
        return sum(known) / len(known) if known else None


@dataclass(frozen=True, eq=False)
class FilledTable:
    """CONFIDENTIAL. A table with the numbers that the pair can give."""

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

    found: dict[tuple[int, int], FilledLine] = {}
    for name, lines in zip(places, in_threads(of_kind, list(places)), strict=True):
        found |= dict(zip(places[name], lines, strict=True))
    return tuple(
        FilledTable(
            table, tuple(found.get((at, row)) or FilledLine(line) for row, line in enumerate(table.lines))
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
        groups = welcome(line)
        measured = [group for group in groups if not any(self.sources.why_unmeasured(one) for one in group)]
        reason = _joined(
            self.sources.why_unmeasured(one) for group in groups if group not in measured for one in group
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
            given = Given(counts, included, run, self.book.rates, totals, quarters)
            runs.append(measure_summary(line, given))
        return FilledLine(line, areas.area_class, units, tuple(runs), reason)

    def _totals(self, line: Line, run: int) -> tuple[float, float]:
        """Both totals of a state, or of all states that count."""
        whole = self.sources.whole_states()
        counted = self.sources.count(whole, [line.request])[line.request]
        codes = whole.names.astype(np.int64)
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
    found = [one.get(metric, none) for one in filled.runs] or [none] * len(runs)

    def subject(run: str) -> Subject:
        return Subject(run, SUITE, "corrected", line.areas, filled.listed, line.size.name, line.subject)

    reason = filled.reason or "undefined"
    for run, (value, low, high) in zip(runs, found, strict=True):
        yield Value(subject(run), metric, value, units, 1, low, high, reason if math.isnan(value) else "")
    if len(runs) > 1:
        values = np.array([value for value, _, _ in found])
        for name, value in (("run_mean", values.mean()), ("run_sd", values.std(ddof=1))):
            words = reason if math.isnan(value) else ""
            yield Value(subject(POOLED), f"{metric}_{name}", float(value), units, len(runs), reason=words)


def summary_frame(tables: Sequence[FilledTable]) -> pa.Table:
    """Every number of the tables with the words of its table, row and column; the mean over runs where there are several."""
    rows: list[dict[str, Any]] = []
    for filled in tables:
        table, heading = filled.table, ""
        for one in filled.lines:
            if not one.line.areas:
                heading = one.line.label
                continue
            for column in table.columns:
                value = one.value(column.metric)
                rows.append(
                    {
                        "sheet": table.sheet,
                        "number": table.number,
                        "heading": heading,
                        "row": one.line.label,
                        "column": column.label,
                        "metric": column.metric,
                        "n_units": one.units,
                        "value": value,
                        "reason": "" if value is not None else one.reason or "undefined",
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
