"""What a certificate states about estimates from measurements of every level, as JSON values."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from censafe.errors import CheckError
from censafe.model import NoiseLaw, ReleasePlan
from censafe.model.terms import NoiseSource
from censafe.publication.sums import accuracy_of_sum

__all__ = ["LevelEstimates", "LevelFacts", "check_level_costs", "estimates_document", "level_tables"]


@dataclass(frozen=True)
class LevelFacts:
    """One measured query of one level.

    Args:
        table: ``histogram.query``, as in the plan.
        level: name of the level.
        law: of the noise of one answer.
        cost: privacy loss.
        geounits: of the level.
        answers: of one geounit.
        source: ``system`` for a release, ``seeded`` for a test key.
    """

    table: str
    level: str
    law: NoiseLaw
    cost: Fraction
    geounits: int
    answers: int
    source: NoiseSource


@dataclass(frozen=True)
class LevelEstimates:
    """Estimates that were made from the measurements of every level.

    Args:
        facts: of every measured query.
        records: published records by kind, for example persons.
        exact: what is published exactly, as sentences.
        remarks: what else a reader must know, as sentences.
        solves: by histogram, reports of the levels as the manifest holds them.
        exact_records: kinds of published records whose numbers are exact.
        readings: losses that answer one question about a record whose other values are known: histogram, kind, name, which
            records change, exact loss, and ``epsilon`` (by the tight bound where the loss is rho).
    """

    facts: Sequence[LevelFacts]
    records: Mapping[str, int]
    exact: Sequence[str] = ()
    remarks: Sequence[str] = ()
    solves: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    readings: Sequence[Mapping[str, Any]] = ()
    exact_records: Sequence[str] = ()


def check_level_costs(estimates: LevelEstimates, plan: ReleasePlan) -> None:
    """Compare law and loss of every measured query with the plan's.

    Raises:
        CheckError: the measurements are not those of the plan.
    """
    planned = {(q.table, q.level, q.law, q.cost) for part in plan.parts for q in part.queries}
    if planned != {(fact.table, fact.level, fact.law, fact.cost) for fact in estimates.facts}:
        raise CheckError(
            "laws or budgets of the measurements differ from the plan; do not publish the estimates"
        )


def estimates_document(estimates: LevelEstimates) -> dict[str, Any]:
    """Records, exact figures and solves."""
    return {
        "records": dict(estimates.records),
        "exact": list(estimates.exact),
        "exact_records": list(estimates.exact_records),
        "remarks": list(estimates.remarks),
        "readings": [dict(reading) for reading in estimates.readings],
        "solves": {name: [dict(level) for level in levels] for name, levels in estimates.solves.items()},
    }


def level_tables(
    facts: Sequence[LevelFacts], total: Fraction, confidence: Fraction
) -> Iterator[dict[str, Any]]:
    """One entry for each query, with its levels.

    Args:
        facts: of every measured query.
        total: privacy loss of the release.
        confidence: of the margins of error.
    """
    for table in dict.fromkeys(fact.table for fact in facts):
        own = [fact for fact in facts if fact.table == table]
        cost = sum((fact.cost for fact in own), Fraction(0))
        yield {
            "table": table,
            "title": "",
            "universe": "",
            "derived": False,
            "budget": _text(cost),
            "budget_decimal": float(cost),
            "share": float(cost / total) if total else 0.0,
            "rows": sum(fact.geounits * fact.answers for fact in own),
            "levels": [_level(fact, confidence) for fact in own],
        }


def _level(fact: LevelFacts, confidence: Fraction) -> dict[str, Any]:
    accuracy = accuracy_of_sum(fact.law, 1, confidence)
    return {
        "level": fact.level,
        "words": fact.level,
        "regions": fact.geounits,
        "answers": fact.answers,
        "rows": fact.geounits * fact.answers,
        "law": fact.law.bureau_name,
        "parameter": _text(fact.law.parameter),
        "noise_draws": 1,
        "budget": _text(fact.cost),
        "budget_decimal": float(fact.cost),
        "variance": accuracy.variance,
        "variance_reference": accuracy.variance_reference,
        "standard_deviation": math.sqrt(accuracy.variance),
        "margin_of_error": accuracy.margin,
        "margin_of_error_exact": accuracy.margin_exact,
    }


def _text(number: Fraction) -> str:
    return f"{number.numerator}/{number.denominator}"
