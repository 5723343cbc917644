"""``censafe plan``: what a budget buys, before any data is opened."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import click

from censafe.cli.options import EXACT, config_argument, parse_settings, product_argument, set_option

if TYPE_CHECKING:
    from censafe.planning.rows import PlanReport

__all__ = ["command"]

_UNLIMITED = 10_000  # the table is as wide as its numbers; none is cut off


@click.command(name="plan")
@product_argument
@config_argument
@set_option
@click.option(
    "--confidence",
    type=EXACT,
    help="Level of the margins of error [default: as in the product's papers, 0.9 for phsafe and topdown, 0.95 for safetab].",
)
@click.option(
    "--delta", type=EXACT, default="1e-10", show_default=True, help="Delta of the conversions to epsilon."
)
@click.option(
    "--moe",
    "margins",
    multiple=True,
    metavar="KEY=MOE",
    help="Give a table or level (PH3, PH3.state_A-G; county_2, t3.county_2) the budget that reaches this margin of error.",
)
@click.option("--json", "form", flag_value="json", help="One JSON object with rows, totals and epsilons.")
@click.option("--csv", "form", flag_value="csv", help="The rows as CSV.")
@click.option(
    "--paper",
    "form",
    flag_value="paper",
    help="The product paper's own budget table as CSV (PHSafe: Table 10, SafeTab-H: Table 9, both recomputed from the stored targets; TopDown: shares as in the certificates of 2020).",
)
def command(
    product: str,
    config: str,
    settings: tuple[str, ...],
    margins: tuple[str, ...],
    confidence: Fraction | None,
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
      censafe plan safetab-p ddhca --set run_pr=false
      censafe plan safetab-h ddhcb --moe t3.county_2=15 --csv
      censafe plan topdown pl94-us --json
      censafe plan topdown e2e-1940 --set epsilon=1/2
    """
    from censafe.products.registry import planner_of

    planner = planner_of(product)
    level = planner.CONFIDENCE if confidence is None else confidence
    for name, value in (("--confidence", level), ("--delta", delta)):
        if not 0 < value < 1:
            raise click.UsageError(f"{name} {value} must be above 0 and below 1.")
    loaded = planner.load(config, parse_settings(settings), _parse_margins(margins), level)
    for warning in loaded.warnings:
        click.echo(f"Warning: {warning}", err=True)
    if form == "paper":
        click.echo(planner.paper(loaded), nl=False)
        return
    _print(planner.report(loaded, confidence=level, delta=delta), form)


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
