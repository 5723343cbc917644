"""A plan as CSV, as JSON and for the terminal, from the one list of rows."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any, Literal

from rich.box import SIMPLE
from rich.table import Table

from censafe.model import Definition, Neighbors
from censafe.model.bounds import upper
from censafe.model.safe_text import csv_text
from censafe.planning.numbers import decimal_text, loss_text, short_text
from censafe.planning.prices.rows import LossReading, PlanReport, PlanRow


def row_record(report: PlanReport, row: PlanRow) -> dict[str, Any]:
    """One row under the names that CSV and JSON share; exact numbers are text, the others floats.

    A loss that has no finite decimal form is written as numerator/denominator.
    """
    facts, share = row.facts, row.facts.share
    if share is not None:  # of one total
        return {
            "histogram": share.histogram,
            "level": facts.level,
            "query": share.query,
            "cells": facts.iterations,
            "level_share": str(share.level_share),
            "query_share": str(share.query_share),
            **_noise_record(report, row),
            "sd": math.sqrt(row.exact_variance),
        }
    record = {
        "table": facts.table,
        "level": facts.level,
        "population_group_level": facts.label,
        "source": facts.source,
        "tau": facts.tau,
        "moe_target": None if facts.target is None else decimal_text(facts.target),
        **_noise_record(report, row),
        "regions": facts.regions,
        "iterations": facts.iterations,
        "cells": list(row.cells),
        "answers": row.answers,
    }
    if facts.stability is not None:
        record |= {
            "stability": facts.stability,
            "published_from": facts.published_from,
            "groups_at_most": facts.groups_at_most,
            "answers_at_most": facts.at_most,
        }
    return record


def relations(report: PlanReport) -> tuple[Neighbors, ...]:
    """The neighbor relations for which the plan states a loss, in a fixed order."""
    return tuple(relation for relation in Neighbors if relation in report.totals)


def _noise_record(report: PlanReport, row: PlanRow) -> dict[str, Any]:
    """Every loss as text, as numerator/denominator and as the nearest float, then the noise."""
    symbol, exact = report.plan.definition.symbol, dict[str, Any]()
    for relation in relations(report):
        exact[f"{symbol}_{relation.value}_fraction"] = str(row.losses[relation])
        exact[f"{symbol}_{relation.value}_float"] = float(row.losses[relation])
    return {
        **{f"{symbol}_{relation.value}": row.loss_text(relation) for relation in relations(report)},
        **exact,
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


def to_record(report: PlanReport) -> dict[str, Any]:
    """The whole report as plain values."""
    plan = report.plan
    notes: dict[str, Any] = {"notes": list(report.notes)} if report.notes else {}
    if report.readings:
        notes["readings"] = [
            {
                "histogram": reading.histogram,
                "kind": reading.kind,
                "name": reading.name,
                **({"change": reading.change} if reading.change else {}),
                plan.definition.symbol: decimal_text(reading.loss),
                **({"epsilons": asdict(reading.epsilons)} if reading.epsilons else {}),
            }
            for reading in report.readings
        ]
    return {
        "product": plan.product,
        "configuration": report.origin,
        "plan": plan.digest(),
        "privacy_definition": plan.definition.value,
        "unit": plan.unit.value,
        "neighbors": plan.neighbors.value,
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


_RELATION = {
    Neighbors.ADD_REMOVE: "added or removed (unbounded)",
    Neighbors.REPLACE: "replaced (bounded)",
}
_SHORT = {Neighbors.ADD_REMOVE: "unbounded", Neighbors.REPLACE: "bounded"}


@dataclass(frozen=True)
class _Column:
    """A header, what stands under the last row, and the text of a row."""

    header: str
    footer: str
    text: Callable[[PlanRow], str]
    left: bool = False


def plan_table(report: PlanReport) -> Table:
    """Every table and level with its cost, noise and margin of error, in the order of the paper's table."""
    table = Table(
        title=f"{report.plan.product}, {report.origin}", header_style="bold", show_footer=True, box=SIMPLE
    )
    columns = _columns(report)
    for column in columns:
        justify: Literal["left", "right"] = "left" if column.left else "right"
        table.add_column(column.header, column.footer, justify=justify, no_wrap=True)
    previous = ""
    for row in report.rows:
        if row.facts.detail:
            continue
        section = _section(row)
        if previous and section != previous:
            table.add_section()
        table.add_row(*(column.text(row) for column in columns))
        previous = section
    return table


def plan_sentences(report: PlanReport) -> tuple[str, ...]:
    """Totals, what they protect, and what they mean as epsilon at delta."""
    plan = report.plan
    lines = [
        f"Total {plan.definition.symbol} {loss_text(report.totals[relation])} "
        f"when one {' and one '.join(f'{name} record' for name in plan.records)} "
        f"{'is' if len(plan.records) == 1 else 'are'} {_RELATION[relation]}"
        f"{', as the budgets are set' if relation is plan.neighbors else ''}."
        for relation in relations(report)
    ]
    for relation, values in report.epsilons.items():
        lines.append(
            f"Epsilon at delta {float(report.delta):.3g}, {_RELATION[relation]}: {upper(values.tight, 4):.4f} (tight bound), "
            f"{upper(values.slide, 4):.4f} (as the Bureau states it), {upper(values.prefactor, 4):.4f} (with prefactor), "
            f"{upper(values.gaussian, 4):.4f} (one continuous Gaussian, for information)."
        )
    for relation in relations(report):
        text = plan.settings.get(f"neighbors.{relation.value}")
        if text:
            lines.append(f"{_RELATION[relation].capitalize()} means: {text}.")
    lines += report.notes
    lines += reading_sentences(report.readings)
    lines.append(
        "MOE is the papers' rule; exact MOE is the smallest whole margin that covers the confidence."
    )
    return tuple(lines)


def reading_sentences(readings: Sequence[LossReading]) -> tuple[str, ...]:
    """One sentence for every histogram and kind of question: epsilons, those of rho by the tight bound.

    Example:
        >>> reading = LossReading("persons", "attribute", "race", Fraction(1, 4), None)
        >>> reading_sentences([reading])
        ('Epsilon, persons, of one attribute of one row, the others being known: race 0.25.',)
    """
    kinds: dict[tuple[str, str, str], list[str]] = {}
    for reading in readings:
        value = (
            loss_text(reading.loss) if reading.epsilons is None else f"{upper(reading.epsilons.tight, 2):.2f}"
        )
        kinds.setdefault((reading.histogram, reading.kind, reading.change), []).append(
            f"{reading.name} {value}"
        )
    known = {
        "attribute": "of one attribute of one row, the others being known",
        "answer": "of one answer of a person",
    }
    return tuple(
        f"Epsilon, {'all histograms' if histogram == 'all' else histogram}, {known.get(kind, f'of the {kind}')}"
        f"{f' ({change})' if change else ''}: "
        f"{', '.join(values)}."
        for (histogram, kind, change), values in kinds.items()
    )


def _columns(report: PlanReport) -> tuple[_Column, ...]:
    """The columns of the report: those of tables with a truncation, or those of population groups."""
    symbol = report.plan.definition.symbol
    if any(row.facts.share is not None for row in report.rows):
        return _share_columns(report)
    groups = any(row.facts.stability is not None for row in report.rows)
    own = (
        (_Column("groups of\na record", "", lambda row: _count(row.facts.stability)),)
        if groups
        else (_Column("tau", "", lambda row: "NA" if row.facts.tau is None else str(row.facts.tau)),)
    )
    size = (
        (
            _Column("published\nfrom", "", lambda row: _count(row.facts.published_from)),
            _Column("iterations", "", lambda row: _count(row.facts.iterations)),
            _Column("groups\nat most", "", lambda row: _count(row.facts.groups_at_most)),
            _Column(
                "answers\nat most", _count(report.answers_at_most), lambda row: _count(row.facts.at_most)
            ),
        )
        if groups
        else (_Column("answers", _count(report.answers), lambda row: _count(row.answers)),)
    )
    return (
        _Column(
            "table",
            "total",
            lambda row: f"{row.facts.table} ({row.facts.source})" if row.derived else row.facts.table,
            left=True,
        ),
        *own,
        _Column("population group level", "", _level_text, left=True),
        _Column(
            "MOE\ntarget",
            "",
            lambda row: "" if row.facts.target is None else decimal_text(row.facts.target),
        ),
        *(_loss_column(report, relation, symbol) for relation in relations(report)),
        *_noise_columns(report),
        *size,
    )


def _share_columns(report: PlanReport) -> tuple[_Column, ...]:
    """The columns of a report whose budgets are shares of one total."""
    relation = report.plan.neighbors
    return (
        _Column("level", "total", lambda row: row.facts.label, left=True),
        _Column("query", "", lambda row: row.facts.table, left=True),
        _Column("cells", "", lambda row: _count(row.facts.iterations)),
        _Column(
            "share of\nlevel",
            "",
            lambda row: "" if row.facts.share is None else f"{float(100 * row.facts.share.query_share):.3f}%",
        ),
        _Column(
            f"{report.plan.definition.symbol}\nby rows",
            loss_text(sum((row.losses[relation] for row in report.rows), Fraction(0))),
            lambda row: loss_text(row.losses[relation]),
        ),
        *_noise_columns(report),
        _Column("sd", "", lambda row: f"{upper(math.sqrt(row.exact_variance), 2):.2f}"),
    )


def _loss_column(report: PlanReport, relation: Neighbors, symbol: str) -> _Column:
    return _Column(
        f"{symbol}\n{_SHORT[relation]}",
        loss_text(report.totals[relation]),
        lambda row: row.loss_text(relation),
    )


def _noise_columns(report: PlanReport) -> tuple[_Column, ...]:
    return (
        _Column("sigma2" if report.plan.definition is Definition.ZCDP else "scale", "", _noise_text),
        _Column(
            f"{decimal_text(100 * report.confidence)}%\nMOE",
            "",
            lambda row: "" if row.moe is None else f"{upper(row.moe, 1):.1f}",
        ),
        _Column("exact\nMOE", "", lambda row: "" if row.exact_moe is None else str(row.exact_moe)),
    )


def _section(row: PlanRow) -> str:
    if row.facts.share is not None:
        return f"{row.facts.share.histogram} {row.facts.level}"
    return row.facts.table if row.facts.stability is None else row.facts.label.partition(",")[0]


def _level_text(row: PlanRow) -> str:
    split = len(row.cells) < len(row.facts.terms)
    return f"{row.facts.label}; cell {', '.join(row.cells)}" if split else row.facts.label


def _noise_text(row: PlanRow) -> str:
    return short_text(row.terms * row.law.parameter if row.law.kind == "gaussian" else row.law.parameter)


def _count(value: int | None) -> str:
    return "" if value is None else f"{value:,}"
