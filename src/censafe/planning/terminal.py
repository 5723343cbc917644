"""A plan for the eyes: one table and a few sentences."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from rich.box import SIMPLE
from rich.table import Table

from censafe.model import Definition, Neighbours
from censafe.planning.numbers import decimal_text, short_text
from censafe.planning.readings import QueryShare, reading_sentences
from censafe.planning.render import relations
from censafe.planning.rows import PlanReport, PlanRow

__all__ = ["plan_sentences", "plan_table"]

_RELATION = {
    Neighbours.ADD_REMOVE: "added or removed (unbounded)",
    Neighbours.REPLACE: "replaced (bounded)",
}
_SHORT = {Neighbours.ADD_REMOVE: "unbounded", Neighbours.REPLACE: "bounded"}


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
        f"Total {plan.definition.symbol} {decimal_text(report.totals[relation])} "
        f"when one {' and one '.join(f'{name} record' for name in plan.records)} "
        f"{'is' if len(plan.records) == 1 else 'are'} {_RELATION[relation]}"
        f"{', as the budgets are set' if relation is plan.neighbours else ''}."
        for relation in relations(report)
    ]
    for relation, values in report.epsilons.items():
        lines.append(
            f"Epsilon at delta {_power(report.delta)}, {_RELATION[relation]}: {values.tight:.4f} (tight bound), "
            f"{values.slide:.4f} (as the Bureau states it), {values.prefactor:.4f} (with prefactor), "
            f"{values.gaussian:.4f} (one continuous Gaussian, for information)."
        )
    for relation in relations(report):
        text = plan.settings.get(f"neighbours.{relation.value}")
        if text:
            lines.append(f"{_RELATION[relation].capitalize()} means: {text}.")
    lines += report.notes
    lines += reading_sentences(report.readings)
    lines.append(
        "MOE is the papers' rule; exact MOE is the smallest whole margin that covers the confidence."
    )
    return tuple(lines)


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
        _Column("table", "total", _table_text, left=True),
        *own,
        _Column("population group level", "", _level_text, left=True),
        _Column("MOE\ntarget", "", lambda row: _exact_or_empty(row.facts.target)),
        *(_loss_column(report, relation, symbol) for relation in relations(report)),
        *_noise_columns(report),
        *size,
    )


def _share_columns(report: PlanReport) -> tuple[_Column, ...]:
    """The columns of a report whose budgets are shares of one total."""
    relation = report.plan.neighbours
    return (
        _Column("level", "total", lambda row: row.facts.label, left=True),
        _Column("query", "", lambda row: row.facts.table, left=True),
        _Column("cells", "", lambda row: _count(row.facts.iterations)),
        _Column(
            "share of\nlevel", "", lambda row: "" if row.facts.share is None else _percent(row.facts.share)
        ),
        _Column(
            f"{report.plan.definition.symbol}\n{_SHORT[relation]}",
            short_text(report.totals[relation]),
            lambda row: short_text(row.losses[relation]),
        ),
        *_noise_columns(report),
        _Column("sd", "", lambda row: f"{math.sqrt(row.exact_variance):.2f}"),
    )


def _loss_column(report: PlanReport, relation: Neighbours, symbol: str) -> _Column:
    return _Column(
        f"{symbol}\n{_SHORT[relation]}",
        short_text(report.totals[relation]),
        lambda row: row.loss_text(relation),
    )


def _noise_columns(report: PlanReport) -> tuple[_Column, ...]:
    return (
        _Column("sigma2" if report.plan.definition is Definition.ZCDP else "scale", "", _noise_text),
        _Column(
            f"{decimal_text(100 * report.confidence)}%\nMOE",
            "",
            lambda row: "" if row.moe is None else f"{row.moe:.1f}",
        ),
        _Column("exact\nMOE", "", lambda row: "" if row.exact_moe is None else str(row.exact_moe)),
    )


def _section(row: PlanRow) -> str:
    if row.facts.share is not None:
        return f"{row.facts.share.histogram} {row.facts.level}"
    return row.facts.table if row.facts.stability is None else row.facts.label.partition(",")[0]


def _percent(share: QueryShare) -> str:
    return f"{float(100 * share.query_share):.3f}%"


def _table_text(row: PlanRow) -> str:
    return f"{row.facts.table} ({row.facts.source})" if row.derived else row.facts.table


def _level_text(row: PlanRow) -> str:
    split = len(row.cells) < len(row.facts.terms)
    return f"{row.facts.label}; cell {', '.join(row.cells)}" if split else row.facts.label


def _noise_text(row: PlanRow) -> str:
    return short_text(row.terms * row.law.parameter if row.law.kind == "gaussian" else row.law.parameter)


def _exact_or_empty(value: Fraction | None) -> str:
    return "" if value is None else decimal_text(value)


def _count(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


def _power(delta: Fraction) -> str:
    return f"{float(delta):.3g}"
