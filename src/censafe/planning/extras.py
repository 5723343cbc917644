"""What a plan says besides its rows, where it was asked for: targets, meaning for one record, expected errors, effort."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from censafe.model import Neighbours
from censafe.planning.effort import Effort, effort_record, effort_sentences
from censafe.planning.numbers import decimal_text
from censafe.planning.programme import Goal, Solution, exact_goal_variance
from censafe.planning.rows import PlanReport
from censafe.planning.targets import Achieved, Asked, factor_of, target_record, target_sentences
from censafe.privacy.conversions import Epsilons, epsilons

if TYPE_CHECKING:
    from censafe.planning.meaning import Meaning

__all__ = [
    "Conversion",
    "Expected",
    "Extras",
    "Outcome",
    "conversions_of",
    "expected_of",
    "extras_record",
    "extras_sentences",
]


@dataclass(frozen=True)
class Outcome:
    """Budgets that follow from targets: by name, what they do, and the least that would have met them."""

    budgets: Mapping[str, Fraction]
    achieved: tuple[Achieved, ...]
    solution: Solution


@dataclass(frozen=True)
class Expected:
    """Expected error of the answers of one query, before anything is made to fit.

    Args:
        name: of the answers.
        kind: ``own`` for the query's own measurement, ``combined`` for the best unbiased combination.
        variance: exact in the parameters of the laws.
        margin: at ``confidence``.
        confidence: in (0, 1).
    """

    name: str
    kind: str
    variance: Fraction
    margin: float
    confidence: Fraction


@dataclass(frozen=True)
class Conversion:
    """The total under one relation as epsilon at one further delta."""

    relation: Neighbours
    delta: Fraction
    epsilons: Epsilons


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


def conversions_of(report: PlanReport, deltas: Sequence[Fraction]) -> tuple[Conversion, ...]:
    """The totals at further deltas; none under pure DP."""
    return tuple(
        Conversion(relation, delta, epsilons(report.totals[relation], delta))
        for delta in deltas
        for relation in report.epsilons
    )


def expected_of(
    asked: Asked, kind: str, budgets: Mapping[str, Fraction], confidence: Fraction
) -> Expected | None:
    """Error at these budgets; None where nothing that the answers follow from is measured."""
    if not asked.terms or not all(term.weights for term in asked.terms):
        return None
    variance = exact_goal_variance(Goal(asked.name, Fraction(1), asked.terms), budgets)
    if variance is None:
        return None
    return Expected(
        asked.name, kind, variance, float(factor_of(confidence)) * math.sqrt(variance), confidence
    )


def extras_sentences(extras: Extras) -> tuple[str, ...]:
    """One line or a few for every part."""
    lines = [
        f"Epsilon at delta {float(one.delta):.3g}, {one.relation.value.replace('_', ' or ')}: {one.epsilons.tight:.4f} (tight bound), "
        f"{one.epsilons.slide:.4f} (as the Bureau states it)."
        for one in extras.conversions
    ]
    if extras.outcome:
        lines += target_sentences(extras.outcome.achieved, extras.outcome.solution, extras.symbol)
        lines += [f"  --set '{key}={value}'" for key, value in extras.overrides.items()]
    for one in extras.expected:
        kind = "own measurement" if one.kind == "own" else "best unbiased combination of its level"
        lines.append(
            f"Expected error of {one.name}, {kind}: sd {math.sqrt(one.variance):.2f}, "
            f"margin {one.margin:.2f} at {float(100 * one.confidence):g}%."
        )
    if extras.meanings:
        from censafe.planning.meaning import meaning_sentences

        lines += [line for meaning in extras.meanings for line in meaning_sentences(meaning)]
    if extras.effort:
        lines += effort_sentences(extras.effort)
    return tuple(lines)


def extras_record(extras: Extras) -> dict[str, Any]:
    """As plain values for JSON; parts that were not asked for are absent."""
    record: dict[str, Any] = {}
    if extras.conversions:
        record["epsilons_at_other_deltas"] = [
            {"neighbours": one.relation.value, "delta": decimal_text(one.delta), **asdict(one.epsilons)}
            for one in extras.conversions
        ]
    if extras.outcome:
        outcome = extras.outcome
        record["targets"] = {
            **target_record(outcome.achieved, outcome.budgets, outcome.solution),
            "settings": dict(extras.overrides),
        }
    if extras.expected:
        record["expected"] = [_expected_record(one) for one in extras.expected]
    if extras.meanings:
        from censafe.planning.meaning import meaning_record

        record["meaning"] = [meaning_record(meaning) for meaning in extras.meanings]
    if extras.effort:
        record["effort"] = effort_record(extras.effort)
    return record


def _expected_record(one: Expected) -> dict[str, Any]:
    return {
        "name": one.name,
        "kind": one.kind,
        "variance": str(one.variance),
        "sd": math.sqrt(one.variance),
        "margin": one.margin,
        "confidence": str(one.confidence),
    }
