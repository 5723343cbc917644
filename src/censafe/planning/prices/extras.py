"""What a plan says besides its rows: expected seconds, memory and disk, how many statistics it publishes, targets, meaning for one record, expected errors."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from functools import cache
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from censafe.errors import UsageError
from censafe.model import CellQuery, Neighbors
from censafe.model.bounds import upper
from censafe.model.parsing import parse_stored
from censafe.planning.numbers import about_text, bytes_text, decimal_text, duration_text
from censafe.planning.prices.rows import PlanReport, PlanRow
from censafe.planning.prices.targets import (
    Goal,
    Outcome,
    TargetQuery,
    exact_goal_variance,
    factor_of,
    target_record,
    target_sentences,
)
from censafe.privacy.loss.conversions import Epsilons, epsilons

if TYPE_CHECKING:
    from censafe.planning.prices.meaning import Meaning


@dataclass(frozen=True)
class TableCounts:
    """Numbers of a release."""

    tables: int
    statistics: int
    independent: int

    def times(self, number: int) -> TableCounts:
        """Of so many geounits."""
        return TableCounts(self.tables * number, self.statistics * number, self.independent * number)

    def plus(self, other: TableCounts) -> TableCounts:
        """Of both."""
        return TableCounts(
            self.tables + other.tables,
            self.statistics + other.statistics,
            self.independent + other.independent,
        )

    def text(self, most: str = "") -> str:
        """In words.

        Example:
            >>> TableCounts(2, 5000, 4000).text()
            '2 tables with 5,000 statistics, of which 4,000 are independent'
        """
        return (
            f"{most}{self.tables:,} {'table' if self.tables == 1 else 'tables'} with {most}{self.statistics:,} statistics, of which {most}{self.independent:,} are "
            "independent"
        )


def counts_of_queries(queries: Sequence[CellQuery], allowed: NDArray[np.bool_]) -> TableCounts:
    """Tables, statistics and independent statistics of the queries at one geounit.

    Args:
        allowed: cells that may hold records, shape (cells,); answers without such cells are always 0 and not independent.
    """
    independent = _independent(queries, allowed)
    return TableCounts(len(queries), sum(query.answers for query in queries), independent)


def _independent(queries: Sequence[CellQuery], allowed: NDArray[np.bool_]) -> int:
    if any(query.answers == len(allowed) for query in queries):
        return int(allowed.sum())
    labels = np.unique(np.stack([query.label[allowed] for query in queries]), axis=1)
    answers = [len(np.unique(label)) for label in labels]
    if max(answers) == labels.shape[1]:
        return labels.shape[1]
    rows = [label == answer for label in labels for answer in np.unique(label)]
    return int(np.linalg.matrix_rank(np.array(rows, np.float64)))


def with_counts(report: PlanReport) -> PlanReport:
    """The report with a sentence on its numbers of tables and statistics; for plans of tables, not of histograms.

    Where regions are known, a statistic is independent when it has noise of its own. Otherwise all numbers are bounds: every group
    has its most detailed table, whose cells are independent, and whose totals are their sums.
    """
    if report.answers is not None:
        groups = {
            (row.facts.table, row.facts.level): (row.facts.regions or 0) * row.facts.iterations
            for row in report.rows
        }
        own = sum(row.answers or 0 for row in report.rows if not row.derived and row.terms == 1)
        sentence = f"Published: {TableCounts(sum(groups.values()), report.answers, own).text()} (have noise of their own)."
    elif report.answers_at_most is not None:
        counted = [row for row in report.rows if row.facts.at_most is not None]
        groups_at_most = sum(row.facts.groups_at_most or 0 for row in counted)
        cells = sum((row.facts.groups_at_most or 0) * _cells(report, row) for row in counted)
        sentence = (
            f"Published: {TableCounts(groups_at_most, report.answers_at_most, cells).text('at most ')} "
            "(cells of the most detailed table)."
        )
    else:
        return report
    return replace(report, notes=(*report.notes, sentence))


def _cells(report: PlanReport, row: PlanRow) -> int:
    """Cells of the most detailed table of a measured one: the terms of its largest sum."""
    key = (row.facts.source, row.facts.level)
    return max(other.terms for other in report.rows if (other.facts.source, other.facts.level) == key)


@dataclass(frozen=True)
class EstimatedTables:
    """Which tables a planned run would estimate.

    Args:
        areas: list of blocks with a column for each kind of further areas; None for none.
        data: folder whose blocks and facilities say how many answers are drawn; None where only numbers of geounits are known.
    """

    tables: tuple[str, ...] | None = None
    areas: Path | None = None
    data: Path | None = None


def refuse_tables(tables: EstimatedTables | None, product: str) -> None:
    """Refuse estimates of census tables of a product that measures its tables."""
    if tables is not None:
        raise UsageError(
            f"`tables`, `areas` and data: {product} publishes its tables as they are measured, and its plan opens no data; leave them out."
        )


@dataclass(frozen=True)
class LinearWork:
    """What a run draws for linear estimates of tables, how long that takes and what it fills.

    Args:
        scratch_bytes: of what a stopped run needs to resume with the same estimates; None where that is not known.
        stored: whether the run stores all answers, so that those of all geounits are used.
        known: whether geounits and answers are those of the data; otherwise the most that so many geounits need.
        below: answers of one geounit of the lower levels, which areas of a list need where they divide geounits; 0 where `known`.
        lower_geounits: of these, about as many as a list of areas needs; 0 without a list, and where `known`.
    """

    tables: tuple[str, ...]
    areas: str
    geounits: int
    answers: Mapping[str, int]
    seconds: float
    benchmark: str
    estimates: int
    file_bytes: int
    scratch_bytes: int | None
    stored: bool = False
    known: bool = False
    below: int = 0
    lower_geounits: int = 0
    left_out: Mapping[str, int] = field(default_factory=dict)
    size: int | None = None
    remarks: tuple[str, ...] = ()

    @property
    def drawn(self) -> int:
        """Answers of all parts."""
        return sum(self.answers.values())

    def sentences(self) -> tuple[str, ...]:
        """What is drawn, how long that takes, what is written, and what could not be known."""
        verb, most = ("read" if self.stored else "draw"), ("" if self.known else " at most")
        fate = "" if self.stored else f"; answers are drawn and not stored ({bytes_text(8 * self.drawn)})"
        scratch = (
            f"; scratch, with which a stopped run resumes: {bytes_text(self.scratch_bytes)}"
            if self.scratch_bytes
            else ""
        )
        lines = [
            f"Linear estimates of {', '.join(self.tables)} for {self.areas} {verb}{most} {self.drawn:,} answers of {self.geounits:,} geounits: "
            f"about {duration_text(self.seconds)} on two cores beside the rest ({self.benchmark}){fate}.",
            f"Their file: {self.estimates:,} estimates, about {bytes_text(self.file_bytes)}{scratch}.",
            *self.remarks,
        ]
        if self.left_out:
            words = ", ".join(f"{number:,} of {kind}" for kind, number in self.left_out.items())
            lines.append(
                f"Areas without a linear estimate, since they divide geounits whose parts are not drawn: {words}; name them in --areas for one."
            )
        if not self.known:
            lower = ""
            if not self.stored:
                needed = (
                    f"; the list needs about {self.lower_geounits:,} of them, which are in the figures above"
                    if self.lower_geounits
                    else ""
                )
                lower = f"Each geounit below these levels that an area of a list needs adds {self.below:,} answers{needed}. "
            lines.append(
                f"{lower}Name other tables and areas (--tables, --areas), and the data for their own numbers (DATA)."
            )
        return tuple(lines)

    def document(self) -> dict[str, Any]:
        """As plain values for JSON."""
        return {
            "tables": list(self.tables),
            "areas": self.areas,
            "from_data": self.known,
            "stored": self.stored,
            "geounits": self.geounits,
            "answers": dict(self.answers),
            "answers_drawn": self.drawn,
            "answers_of_a_lower_geounit": self.below,
            "lower_geounits_of_the_list": self.lower_geounits,
            "seconds": self.seconds,
            "estimates": self.estimates,
            "file_bytes": self.file_bytes,
            "scratch_bytes": self.scratch_bytes,
            "left_out": dict(self.left_out),
            "remarks": list(self.remarks),
            "benchmark": self.benchmark,
        }


_SECONDS_A_DRAW: Final = 4.2e-9  # on one core (benchmarks/noise.py)
_CORES: Final = 2


@dataclass(frozen=True)
class Run:
    """One measured run.

    Args:
        drawn: noisy answers that a run drew which draws them where the estimate reads them; None where that was not counted.
    """

    size: int
    seconds: float
    gib: float
    drawn: int | None = None


@dataclass(frozen=True)
class Rate:
    """What runs of a product took."""

    counted: str
    typical: int
    runs: tuple[Run, ...]
    benchmark: str
    conditions: str = ""


@cache
def rate_of(name: str) -> Rate:
    """What runs took, of the file that the benchmarks write with ``--record``.

    Example:
        >>> rate_of("safetab-h").counted
        'households'
    """
    text = files("censafe.planning.prices").joinpath("measured_runs.json").read_text(encoding="utf-8")
    stored = parse_stored(text)[name]
    return Rate(**{**stored, "runs": tuple(Run(**run) for run in stored["runs"])})


@dataclass(frozen=True)
class Effort:
    """What a run of one size is expected to take.

    Args:
        basis: ``measured`` at about this size, ``interpolated`` between measured sizes, ``extrapolated`` beyond the
            largest, or ``at most``, that of the smallest.
        answers: measured answers, by part of the run; empty where the data decide.
        stored_gib: of the noisy measurements at 8 bytes an answer; None where they are small or not counted.
        drawn: answers that a run draws which stores none; None where that was not counted.
        linear: what linear estimates of tables read of the answers; None where none are made.
    """

    size: int
    rate: Rate
    seconds: float
    gib: float
    basis: str = "measured"
    answers: Mapping[str, int] = field(default_factory=dict)
    stored_gib: float | None = None
    drawn: float | None = None
    linear: LinearWork | None = None

    @property
    def draw_seconds(self) -> float:
        """Time to draw all answers on two cores."""
        return sum(self.answers.values()) * _SECONDS_A_DRAW / _CORES


def effort_of(rate: Rate, size: int | None, answers: Mapping[str, int] | None = None) -> Effort:
    """Read a size off the measured runs: on a line between two of them, in proportion beyond the largest.

    Example:
        >>> rate = Rate("persons", 300_000_000, (Run(1_000_000, 4, 0.3), Run(11_000_000, 14, 0.7)), "x.py")
        >>> [(one.seconds, one.basis) for one in (effort_of(rate, 6_000_000), effort_of(rate, 22_000_000))]
        [(9.0, 'interpolated'), (28.0, 'extrapolated')]
    """
    number = rate.typical if size is None else size
    seconds, gib, basis = _read(rate.runs, number)
    stored = 8 * sum(answers.values()) / 2**30 if answers else None
    counted = [(abs(number - run.size), run.drawn / run.size) for run in rate.runs if run.drawn is not None]
    drawn = (
        number * min(counted)[1] if counted else None
    )  # in proportion to the nearest run that counted them
    return Effort(number, rate, seconds, gib, basis, answers or {}, stored, drawn)


def _read(runs: tuple[Run, ...], size: int) -> tuple[float, float, str]:
    """Sizes within a hundredth of a run count as measured; the smallest run's figures are a bound for smaller ones."""
    for run in runs:
        if abs(size - run.size) * 100 <= run.size:
            return run.seconds, run.gib, "measured"
    last = runs[-1]
    if size > last.size:
        return last.seconds * size / last.size, last.gib * size / last.size, "extrapolated"
    for below, above in pairwise(runs):
        if below.size <= size <= above.size:
            part = (size - below.size) / (above.size - below.size)
            seconds = below.seconds + part * (above.seconds - below.seconds)
            return seconds, below.gib + part * (above.gib - below.gib), "interpolated"
    return runs[0].seconds, runs[0].gib, "at most"


def effort_sentences(effort: Effort) -> tuple[str, ...]:
    """One sentence on time and memory, one on the answers where they are known.

    Example:
        >>> rate = Rate("persons", 1_000_000, (Run(100_000, 1.5, 0.3),), "benchmarks/x.py")
        >>> effort_sentences(effort_of(rate, None))[0]
        'Expected for 1,000,000 persons: about 15 s and 3.0 GiB on two cores, extrapolated from 100,000 (benchmarks/x.py).'
    """
    sizes = [f"{run.size:,}" for run in effort.rate.runs]
    basis = {
        "measured": "measured at about this size",
        "at most": f"at most: a run of {sizes[0]} took that",
        "extrapolated": f"extrapolated from {sizes[-1]}",
        "interpolated": f"interpolated between runs of {sizes[0]} to {sizes[-1]}",
    }[effort.basis]
    lines = [
        f"Expected for {effort.size:,} {effort.rate.counted}: about {duration_text(effort.seconds)} and "
        f"{effort.gib:.1f} GiB on two cores, {basis} ({effort.rate.benchmark}"
        f"{'; ' + effort.rate.conditions if effort.rate.conditions else ''})."
    ]
    if effort.stored_gib is not None:
        drawn = "" if effort.drawn is None else f"draws about {about_text(effort.drawn)} of them and "
        lines.append(
            f"Measured answers: {sum(effort.answers.values()):,}, stored {bytes_text(effort.stored_gib * 2**30)} at 8 bytes each "
            f"before compression, and {duration_text(effort.draw_seconds)} for their draws alone; "
            f"noisy_measurements=lazy {drawn}stores none."
        )
    if effort.linear is not None:
        lines += effort.linear.sentences()
    return tuple(lines)


def effort_record(effort: Effort) -> dict[str, Any]:
    """As plain values for JSON."""
    return {
        "counted": effort.rate.counted,
        "size": effort.size,
        "seconds": effort.seconds,
        "memory_gib": effort.gib,
        "basis": effort.basis,
        "measured_sizes": [run.size for run in effort.rate.runs],
        "conditions": effort.rate.conditions,
        "benchmark": effort.rate.benchmark,
        "answers": dict(effort.answers),
        "stored_gib": effort.stored_gib,
        "draw_seconds": effort.draw_seconds if effort.answers else None,
        "answers_drawn_lazily": effort.drawn,
        "linear_estimates": None if effort.linear is None else effort.linear.document(),
    }


@dataclass(frozen=True)
class Expected:
    """Expected error of the answers of one query, before anything is made to fit.

    Args:
        kind: ``own`` for the query's own measurement, ``combined`` for the best unbiased combination.
    """

    name: str
    kind: str
    variance: Fraction
    margin: float
    confidence: Fraction


@dataclass(frozen=True)
class Conversion:
    """The total under one relation as epsilon at one further delta."""

    relation: Neighbors
    delta: Fraction
    epsilons: Epsilons


@dataclass(frozen=True)
class AreaErrors:
    """How far unbiased estimates of one kind of areas are off, by the tree that is the spine.

    Args:
        areas: number of areas.
        errors: by the columns of the spine, that of the configuration first: the root of the mean variance over areas and answers of the query.
    """

    histogram: str
    kind: str
    query: str
    areas: int
    errors: Mapping[str, float]


@dataclass(frozen=True)
class Extras:
    """Parts of a report that are computed on request."""

    symbol: str = "rho"
    conversions: tuple[Conversion, ...] = ()
    outcome: Outcome | None = None
    meanings: tuple[Meaning, ...] = ()
    expected: tuple[Expected, ...] = ()
    effort: Effort | None = None
    overrides: Mapping[str, str] = field(default_factory=dict)
    areas: tuple[AreaErrors, ...] = ()


def conversions_of(report: PlanReport, deltas: Sequence[Fraction]) -> tuple[Conversion, ...]:
    """The totals at further deltas; none under pure DP."""
    return tuple(
        Conversion(relation, delta, epsilons(report.totals[relation], delta))
        for delta in deltas
        for relation in report.epsilons
    )


def expected_of(
    query: TargetQuery, kind: str, budgets: Mapping[str, Fraction], confidence: Fraction
) -> Expected | None:
    """Error at these budgets; None where nothing that the answers follow from is measured."""
    if not query.terms or not all(term.weights for term in query.terms):
        return None
    variance = exact_goal_variance(Goal(query.name, Fraction(1), query.terms), budgets)
    if variance is None:
        return None
    return Expected(
        query.name, kind, variance, float(factor_of(confidence)) * math.sqrt(variance), confidence
    )


def extras_sentences(extras: Extras) -> tuple[str, ...]:
    """One line or a few for every part."""
    lines = [
        f"Epsilon at delta {float(conversion.delta):.3g}, {conversion.relation.value.replace('_', ' or ')}: {upper(conversion.epsilons.tight, 4):.4f} (tight bound), "
        f"{upper(conversion.epsilons.slide, 4):.4f} (as the Bureau states it)."
        for conversion in extras.conversions
    ]
    if extras.outcome:
        lines += target_sentences(extras.outcome, extras.symbol)
        lines += [f"  --set '{key}={value}'" for key, value in extras.overrides.items()]
    for expected in extras.expected:
        kind = "own measurement" if expected.kind == "own" else "best unbiased combination of its level"
        lines.append(
            f"Expected error of {expected.name}, {kind}: sd {upper(math.sqrt(expected.variance), 2):.2f}, "
            f"margin {upper(expected.margin, 2):.2f} at {float(100 * expected.confidence):g}%."
        )
    if extras.meanings:
        from censafe.planning.prices.meaning import meaning_sentences

        lines += [line for meaning in extras.meanings for line in meaning_sentences(meaning)]
    if extras.effort:
        lines += effort_sentences(extras.effort)
    if extras.areas:
        spines = " | ".join(extras.areas[0].errors)
        lines.append(
            f"Standard deviation of unbiased estimates of areas, by the tree that is the spine ({spines}; the first is the configuration's):"
        )
    for one in extras.areas:
        errors = " | ".join(f"{upper(error, 2):.2f}" for error in one.errors.values())
        lines.append(f"  {one.histogram}.{one.query}, {one.areas:,} {one.kind}: {errors}")
    return tuple(lines)


def extras_record(extras: Extras) -> dict[str, Any]:
    """As plain values for JSON; parts that were not requested are absent."""
    record: dict[str, Any] = {}
    if extras.conversions:
        record["epsilons_at_other_deltas"] = [
            {
                "neighbors": conversion.relation.value,
                "delta": decimal_text(conversion.delta),
                **asdict(conversion.epsilons),
            }
            for conversion in extras.conversions
        ]
    if extras.outcome:
        record["targets"] = {**target_record(extras.outcome), "settings": dict(extras.overrides)}
    if extras.expected:
        record["expected"] = [
            {
                "name": expected.name,
                "kind": expected.kind,
                "variance": str(expected.variance),
                "sd": math.sqrt(expected.variance),
                "margin": expected.margin,
                "confidence": str(expected.confidence),
            }
            for expected in extras.expected
        ]
    if extras.meanings:
        from censafe.planning.prices.meaning import meaning_record

        record["meaning"] = [meaning_record(meaning) for meaning in extras.meanings]
    if extras.effort:
        record["effort"] = effort_record(extras.effort)
    if extras.areas:
        record["areas"] = [asdict(one) for one in extras.areas]
    return record
