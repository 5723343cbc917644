"""``censafe plan``: what a budget buys, before any data is opened."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import click

from censafe.cli.options import EXACT, config_argument, parse_settings, product_argument, set_option

if TYPE_CHECKING:
    from censafe.planning.rows import PlanReport
    from censafe.products.phsafe.config import PhsafeConfig

__all__ = ["command"]

_UNLIMITED = 10_000  # the table is as wide as its numbers; none is cut off


@click.command(name="plan")
@product_argument
@config_argument
@set_option
@click.option(
    "--confidence", type=EXACT, default="0.9", show_default=True, help="Level of the margins of error."
)
@click.option(
    "--delta", type=EXACT, default="1e-10", show_default=True, help="Delta of the conversions to epsilon."
)
@click.option(
    "--moe",
    "margins",
    multiple=True,
    metavar="TABLE[.LEVEL]=MOE",
    help="Give a table (or one level of it) the budget that reaches this margin of error.",
)
@click.option("--json", "form", flag_value="json", help="One JSON object with rows, totals and epsilons.")
@click.option("--csv", "form", flag_value="csv", help="The rows as CSV.")
@click.option(
    "--paper",
    "form",
    flag_value="paper",
    help="The product paper's own budget table (PHSafe: Table 10) as CSV, recomputed from the stored targets.",
)
def command(
    product: str,
    config: str,
    settings: tuple[str, ...],
    margins: tuple[str, ...],
    confidence: Fraction,
    delta: Fraction,
    form: str | None,
) -> None:
    """Cost, variance and margin of error of every table of CONFIG; opens no data.

    CONFIG is the Bureau's config.json (or its folder), our TOML file, or a name from 'censafe configs'.

    \b
    Examples:
      censafe plan phsafe sdhc-us
      censafe plan phsafe config.json --confidence 0.95 --json
      censafe plan phsafe sdhc-us --set budget.PH3.state_A-G=0.5 --set tau.PH3=8
      censafe plan phsafe sdhc-us --set sensitivity=household-local --csv
      censafe plan phsafe sdhc-us --moe PH3.state_A-G=30 --moe PH6=150
      censafe plan phsafe sdhc-us --paper
    """
    from censafe.products.phsafe.paper_table import paper_csv, paper_rows

    for name, value in (("--confidence", confidence), ("--delta", delta)):
        if not 0 < value < 1:
            raise click.UsageError(f"{name} {value} must be above 0 and below 1.")
    loaded = _load(config, parse_settings(settings), _parse_margins(margins), confidence)
    for warning in loaded.warnings:
        click.echo(f"Warning: {warning}", err=True)
    if form == "paper":
        click.echo(paper_csv(paper_rows(loaded)), nl=False)
        return
    _print(_report(loaded, confidence, delta), form)


def _load(
    config: str, overrides: dict[str, str], margins: dict[str, Fraction], confidence: Fraction
) -> PhsafeConfig:
    from censafe.products.phsafe.config import load_config
    from censafe.products.phsafe.targets import budgets_for_margins

    loaded = load_config(config, overrides)
    if not margins:
        return loaded
    return load_config(config, {**overrides, **budgets_for_margins(loaded, margins, confidence)})


def _report(loaded: PhsafeConfig, confidence: Fraction, delta: Fraction) -> PlanReport:
    from censafe.planning.rows import plan_report
    from censafe.products.phsafe.plan import plan_release, query_facts

    return plan_report(
        plan_release(loaded),
        query_facts(loaded),
        origin=loaded.origin,
        confidence=confidence,
        delta=delta,
        warnings=loaded.warnings,
    )


def _print(report: PlanReport, form: str | None) -> None:
    from censafe.planning.render import to_csv, to_json

    if form == "json":
        click.echo(to_json(report))
    elif form == "csv":
        click.echo(to_csv(report), nl=False)
    else:
        _show(report)


def _parse_margins(margins: tuple[str, ...]) -> dict[str, Fraction]:
    parsed = {}
    for text in margins:
        key, separator, value = text.partition("=")
        if not separator:
            raise click.UsageError(f"--moe {text}: write TABLE=MOE or TABLE.LEVEL=MOE.")
        parsed[key] = EXACT.convert(value, None, None)
    return parsed


def _show(report: PlanReport) -> None:
    from rich.console import Console
    from rich.measure import Measurement

    from censafe.planning.terminal import plan_sentences, plan_table

    table = plan_table(report)
    console = Console(highlight=False, markup=False)
    unlimited = console.options.update(width=_UNLIMITED)
    console.width = max(console.width, Measurement.get(console, unlimited, table).maximum)
    console.print(table)
    for sentence in plan_sentences(report):
        click.echo(sentence)
