"""A plan as CSV and JSON, from the one list of rows."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple, fields
from typing import Any

from censafe.model import Neighbours
from censafe.model.spreadsheets import csv_text
from censafe.planning.numbers import decimal_text
from censafe.planning.readings import LossReading, QueryShare
from censafe.planning.rows import PlanReport, PlanRow

__all__ = ["paper_csv", "relations", "row_record", "to_csv", "to_json", "to_record"]


def row_record(report: PlanReport, row: PlanRow) -> dict[str, Any]:
    """One row under the names that CSV and JSON share; exact numbers are text, the others floats.

    A loss that has no finite decimal form is written as numerator/denominator.
    """
    if row.facts.share is not None:
        return _share_record(report, row, row.facts.share)
    symbol = report.plan.definition.symbol
    record: dict[str, Any] = {
        "table": row.facts.table,
        "level": row.facts.level,
        "population_group_level": row.facts.label,
        "source": row.facts.source,
        "tau": row.facts.tau,
        "moe_target": None if row.facts.target is None else decimal_text(row.facts.target),
    }
    record.update({f"{symbol}_{relation.value}": row.loss_text(relation) for relation in relations(report)})
    record.update(_exact_losses(report, row))
    record.update(
        {
            **_noise_record(report, row),
            "regions": row.facts.regions,
            "iterations": row.facts.iterations,
            "cells": list(row.cells),
            "answers": row.answers,
        }
    )
    if row.facts.stability is not None:
        record.update(
            {
                "stability": row.facts.stability,
                "published_from": row.facts.published_from,
                "groups_at_most": row.facts.groups_at_most,
                "answers_at_most": row.facts.at_most,
            }
        )
    return record


def relations(report: PlanReport) -> tuple[Neighbours, ...]:
    """The neighbour relations for which the plan states a loss, in a fixed order."""
    return tuple(relation for relation in Neighbours if relation in report.totals)


def _share_record(report: PlanReport, row: PlanRow, share: QueryShare) -> dict[str, Any]:
    """A row whose budget is a share of one total."""
    symbol = report.plan.definition.symbol
    return {
        "histogram": share.histogram,
        "level": row.facts.level,
        "query": share.query,
        "cells": row.facts.iterations,
        "level_share": str(share.level_share),
        "query_share": str(share.query_share),
        **{f"{symbol}_{relation.value}": row.loss_text(relation) for relation in relations(report)},
        **_exact_losses(report, row),
        **_noise_record(report, row),
        "sd": math.sqrt(row.exact_variance),
    }


def _exact_losses(report: PlanReport, row: PlanRow) -> dict[str, Any]:
    """Every loss as numerator/denominator, and as the nearest float."""
    symbol = report.plan.definition.symbol
    found: dict[str, Any] = {}
    for relation in relations(report):
        found[f"{symbol}_{relation.value}_fraction"] = str(row.losses[relation])
        found[f"{symbol}_{relation.value}_float"] = float(row.losses[relation])
    return found


def _noise_record(report: PlanReport, row: PlanRow) -> dict[str, Any]:
    return {
        "law": row.law.bureau_name,
        "parameter": "sigma2" if row.law.kind == "gaussian" else "scale",
        "parameter_exact": str(row.law.parameter),
        "draws": row.terms,
        "variance": row.variance,
        "variance_exact": row.exact_variance,
        "confidence": decimal_text(report.confidence),
        "moe": row.moe,
        "moe_exact": row.exact_moe,
        "coverage_exact": row.coverage,
    }


def _reading_record(report: PlanReport, reading: LossReading) -> dict[str, Any]:
    return {
        "histogram": reading.histogram,
        "kind": reading.kind,
        "name": reading.name,
        **({"change": reading.change} if reading.change else {}),
        report.plan.definition.symbol: decimal_text(reading.loss),
        **({"epsilons": asdict(reading.epsilons)} if reading.epsilons else {}),
    }


def to_record(report: PlanReport) -> dict[str, Any]:
    """The whole report as plain values."""
    plan = report.plan
    notes: dict[str, Any] = {"notes": list(report.notes)} if report.notes else {}
    if report.readings:
        notes["readings"] = [_reading_record(report, reading) for reading in report.readings]
    return {
        "product": plan.product,
        "configuration": report.origin,
        "plan": plan.digest(),
        "privacy_definition": plan.definition.value,
        "unit": plan.unit.value,
        "neighbours": plan.neighbours.value,
        "settings": dict(plan.settings),
        "confidence": decimal_text(report.confidence),
        "totals": {
            relation.value: {plan.definition.symbol: decimal_text(report.totals[relation])}
            for relation in relations(report)
        },
        "delta": decimal_text(report.delta),
        "epsilons": {relation.value: asdict(values) for relation, values in report.epsilons.items()},
        "answers": report.answers,
        "answers_at_most": report.answers_at_most,
        "warnings": list(report.warnings),
        **notes,
        "rows": [row_record(report, row) for row in report.rows],
    }


def to_json(report: PlanReport, extras: Mapping[str, Any] | None = None) -> str:
    """One JSON object, with further parts under their own names."""
    return json.dumps({**to_record(report), **(extras or {})}, indent=2)


def to_csv(report: PlanReport) -> str:
    """One line a row, comma-separated, with a header; absent numbers are empty."""
    records = [row_record(report, row) for row in report.rows]
    for record in records:
        cells = record["cells"]
        record["cells"] = " ".join(cells) if isinstance(cells, list) else cells
    header = list(records[0]) if records else []
    return csv_text([header, *([record[name] for name in header] for record in records)])


def paper_csv(rows: Sequence[Any]) -> str:
    """Rows of a paper's table as comma-separated text with a header and CRLF line ends (RFC 4180).

    Args:
        rows: dataclass objects of one class, at least one, every field with the digits that are printed.
    """
    header = [field.name for field in fields(rows[0])]
    return csv_text([header, *(astuple(row) for row in rows)], line_end="\r\n")
