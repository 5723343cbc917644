"""What a plan says besides its rows: expected seconds, memory and disk, targets, meaning for one record, expected errors."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from functools import cache
from importlib.resources import files
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from censafe.model import Neighbors
from censafe.model.bounds import upper
from censafe.model.parsing import parse_stored
from censafe.planning.numbers import about_text, bytes_text, decimal_text, duration_text
from censafe.planning.prices.program import Goal, exact_goal_variance
from censafe.planning.prices.rows import PlanReport
from censafe.planning.prices.table_work import LinearWork
from censafe.planning.prices.targets import Outcome, TargetQuery, factor_of, target_record, target_sentences
from censafe.privacy.loss.conversions import Epsilons, epsilons

if TYPE_CHECKING:
    from censafe.planning.prices.meaning import Meaning


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
    lines += _area_sentences(extras.areas)
    return tuple(lines)


def _area_sentences(areas: Sequence[AreaErrors]) -> Iterator[str]:
    """A line for every kind of areas and query, under one that says what the numbers are."""
    if areas:
        spines = " | ".join(areas[0].errors)
        yield f"Standard deviation of unbiased estimates of areas, by the tree that is the spine ({spines}; the first is the configuration's):"
    for one in areas:
        errors = " | ".join(f"{upper(error, 2):.2f}" for error in one.errors.values())
        yield f"  {one.histogram}.{one.query}, {one.areas:,} {one.kind}: {errors}"


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
