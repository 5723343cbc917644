"""A plan for the eyes: one table and a few sentences."""

from __future__ import annotations

from fractions import Fraction

from rich.box import SIMPLE
from rich.table import Table

from censafe.model import Definition, Neighbours
from censafe.planning.numbers import decimal_text, short_text
from censafe.planning.rows import PlanReport, PlanRow

__all__ = ["plan_sentences", "plan_table"]

_RELATION = {
    Neighbours.ADD_REMOVE: "added or removed (unbounded)",
    Neighbours.REPLACE: "replaced (bounded)",
}


def plan_table(report: PlanReport) -> Table:
    """Every table and level with its cost, noise and margin of error, in the order of the paper's table."""
    symbol = report.plan.definition.symbol
    unbounded, bounded = (short_text(report.totals[relation]) for relation in Neighbours)
    table = Table(
        title=f"{report.plan.product}, {report.origin}", header_style="bold", show_footer=True, box=SIMPLE
    )
    for header, footer in (
        ("table", "total"),
        ("tau", ""),
        ("population group level", ""),
        ("MOE\ntarget", ""),
        (f"{symbol}\nunbounded", unbounded),
        (f"{symbol}\nbounded", bounded),
        ("sigma2" if report.plan.definition is Definition.ZCDP else "scale", ""),
        (f"{decimal_text(100 * report.confidence)}%\nMOE", ""),
        ("exact\nMOE", ""),
        ("answers", f"{report.answers:,}"),
    ):
        right = header not in ("table", "population group level")
        table.add_column(header, footer, justify="right" if right else "left", no_wrap=True)
    previous = ""
    for row in report.rows:
        if previous and row.facts.table != previous:
            table.add_section()
        table.add_row(*_cells(row))
        previous = row.facts.table
    return table


def plan_sentences(report: PlanReport) -> tuple[str, ...]:
    """Totals, what they protect, and what they mean as epsilon at delta."""
    plan = report.plan
    lines = [
        f"Total {plan.definition.symbol} {decimal_text(report.totals[relation])} "
        f"when one {plan.unit.value} record is {_RELATION[relation]}"
        f"{', as the budgets are set' if relation is plan.neighbours else ''}."
        for relation in Neighbours
    ]
    for relation, values in report.epsilons.items():
        lines.append(
            f"Epsilon at delta {_power(report.delta)}, {_RELATION[relation]}: {values.tight:.4f} (tight bound), "
            f"{values.slide:.4f} (as the Bureau states it), {values.prefactor:.4f} (with prefactor), "
            f"{values.gaussian:.4f} (one continuous Gaussian, for information)."
        )
    for relation in Neighbours:
        text = plan.settings.get(f"neighbours.{relation.value}")
        if text:
            lines.append(f"{_RELATION[relation].capitalize()} means: {text}.")
    lines.append(
        "MOE is the papers' rule; exact MOE is the smallest whole margin that covers the confidence."
    )
    return tuple(lines)


def _cells(row: PlanRow) -> tuple[str, ...]:
    facts, target = row.facts, row.facts.target
    summed = row.terms * row.law.parameter if row.law.kind == "gaussian" else row.law.parameter
    split = len(row.cells) < len(facts.terms)
    return (
        f"{facts.table} ({facts.source})" if row.derived else facts.table,
        "NA" if facts.tau is None else str(facts.tau),
        f"{facts.label}; cell {', '.join(row.cells)}" if split else facts.label,
        "" if target is None else decimal_text(target),
        row.loss_text(Neighbours.ADD_REMOVE),
        row.loss_text(Neighbours.REPLACE),
        short_text(summed),
        "" if row.moe is None else f"{row.moe:.1f}",
        "" if row.exact_moe is None else str(row.exact_moe),
        f"{row.answers:,}",
    )


def _power(delta: Fraction) -> str:
    return f"{float(delta):.3g}"
