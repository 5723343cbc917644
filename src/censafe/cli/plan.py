"""``censafe plan``: what a budget buys, before any data is opened."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from censafe.cli.options import (
    EXACT,
    SIZE,
    config_argument,
    parse_names,
    parse_settings,
    product_argument,
    set_option,
    together,
)

if TYPE_CHECKING:
    from censafe.api.plans import Plan


_UNLIMITED = 10_000  # the table is as wide as its numbers; none is cut off


_request_options = together(
    click.option(
        "--target",
        "targets",
        multiple=True,
        metavar="NAME=MARGIN[@CONFIDENCE]",
        help="Find the budget that reaches this margin of error for a table and level (PH3/state_A-G=20@90%), a level "
        "(t3/county_2=11@95%) or a query (persons.votingage/County=40@90%); repeatable.",
    ),
    click.option(
        "--minimize",
        "--minimise",
        "minimize",
        type=click.Choice(["rho"]),
        help="Find the smallest total that meets the targets; in topdown all queries of a level contribute.",
    ),
    click.option(
        "--maximize",
        "--maximise",
        "maximize",
        type=click.Choice(["accuracy"]),
        help="Allocate --total so that all margins are the same, smallest possible multiple of their targets "
        "(without targets, of the current margins).",
    ),
    click.option("--total", type=EXACT, help="Total budget, for --maximize accuracy."),
    click.option(
        "--expected",
        multiple=True,
        metavar="NAME",
        help="Show the expected error of a query before post-processing, whether it is measured or not "
        "(persons.votingage * hhgq/Tract); repeatable.",
    ),
    click.option(
        "--meaning",
        is_flag=True,
        help="Show what the budget means for one record: epsilon of the actual noise distribution, variance that a tighter "
        "accounting would save, and the power of the best attack; takes some seconds.",
    ),
    click.option(
        "--size",
        type=SIZE,
        help="Number of persons, households (safetab-h) or blocks (topdown) for expected time and memory [default: those of DATA, else the nation].",
    ),
    click.option(
        "--tables",
        metavar="LIST",
        help="topdown: census tables that the run estimates from its noisy measurements, such as P12,H4, or none, for how many answers are drawn, how "
        "long that takes and what it fills [default: those of censafe run].",
    ),
    click.option(
        "--areas",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="topdown: list of blocks with a column for each further kind of area of these estimates.",
    ),
)


@click.command(name="plan")
@product_argument
@config_argument
@click.argument("data", type=click.Path(exists=True, path_type=Path), required=False, metavar="[DATA]")
@set_option
@click.option(
    "--confidence",
    type=EXACT,
    help="Confidence level of the margins of error [default: as in the product's papers, 0.9 for phsafe and topdown, 0.95 for safetab].",
)
@click.option(
    "--delta",
    "deltas",
    type=EXACT,
    multiple=True,
    default=("1e-10", "1e-8", "1e-6"),
    show_default=True,
    help="Delta of the conversion to epsilon; repeatable, the first is shown first.",
)
@click.option(
    "--moe",
    "margins",
    multiple=True,
    metavar="KEY=MOE",
    help="Set the budget of a table or level (PH3, PH3.state_A-G; county_2, t3.county_2) to reach this margin of error.",
)
@_request_options
@click.option(
    "--json", "form", flag_value="json", help="Print one JSON object with rows, totals and epsilons."
)
@click.option("--csv", "form", flag_value="csv", help="Print the rows as CSV.")
@click.option(
    "--xlsx",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Also write an Excel workbook with live formulas: this plan, then the 2020 plans of the other products.",
)
@click.option(
    "--paper",
    "form",
    flag_value="paper",
    help="Print the budget table of the product's paper as CSV (PHSafe: Table 10, SafeTab-H: Table 9, both recomputed from the stored targets; TopDown: shares as in the 2020 certificates).",
)
def command(
    product: str,
    config: str,
    data: Path | None,
    settings: tuple[str, ...],
    margins: tuple[str, ...],
    form: str | None,
    xlsx: Path | None,
    **options: Any,
) -> None:
    """Show the cost, variance and margin of error of every table of CONFIG; reads no data but DATA.

    CONFIG is the Bureau's config.json (or its folder), a TOML file, or a name from 'censafe configs'. topdown: DATA, the folder that the run would
    read or that of a finished run, says how many answers estimates of tables draw; of records, only what the run publishes exactly counts.

    \b
    Examples:
      censafe plan phsafe sdhc-us
      censafe plan phsafe config.json --confidence 0.95 --json
      censafe plan phsafe sdhc-us --set budget.PH3.state_A-G=0.5 --set tau.PH3=8
      censafe plan phsafe sdhc-us --set sensitivity=household-local --csv
      censafe plan phsafe sdhc-us --target PH3/state_A-G=30@90% --target PH6=150
      censafe plan phsafe sdhc-us --maximize accuracy --total 2
      censafe plan phsafe sdhc-us --meaning --delta 1e-10
      censafe plan phsafe sdhc-us --xlsx budgets.xlsx
      censafe plan phsafe sdhc-us --paper
      censafe plan safetab-p ddhca --set run_pr=false
      censafe plan safetab-h ddhcb --moe t3.county_2=15 --csv
      censafe plan topdown pl94-us --expected "persons.votingage * hhgq/Tract"
      censafe plan topdown pl94-us --minimize rho --target persons.votingage/County=20@95%
      censafe plan topdown dhc-us state/ --set root=State --tables P12,H4 --areas districts.csv
      censafe plan topdown e2e-1940 --set epsilon=1/2
    """
    import censafe

    changes = parse_settings(settings)
    chosen = censafe.configuration(product, config, changes)
    options["tables"] = parse_names(options["tables"])
    plan = censafe.plan(chosen, margins=_parse_margins(margins), data=data, **options)
    for warning in plan.warnings:
        click.echo(f"Warning: {warning}", err=True)
    if xlsx is not None:
        sheets = plan.write_workbook(xlsx)
        click.echo(f"Wrote {xlsx}: {sheets} sheets; white cells are inputs.", err=True)
    if form == "paper":
        click.echo(plan.paper_table(), nl=False)
    elif form == "json":
        click.echo(plan.to_json())
    elif form == "csv":
        click.echo(plan.to_csv(), nl=False)
    else:
        _show(plan)


def _parse_margins(margins: tuple[str, ...]) -> dict[str, Fraction]:
    parsed = {}
    for text in margins:
        key, separator, value = text.partition("=")
        if not separator:
            raise click.UsageError(f"--moe {text}: write TABLE=MOE or TABLE.LEVEL=MOE.")
        try:
            parsed[key] = EXACT.convert(value, None, None)
        except click.BadParameter as problem:
            raise click.UsageError(f"--moe {text}: {problem.message}") from None
    return parsed


def _show(plan: Plan) -> None:
    from rich.console import Console
    from rich.measure import Measurement

    table = plan.rich_table()
    console = Console(highlight=False, markup=False)
    unlimited = console.options.update(width=_UNLIMITED)
    console.width = max(console.width, Measurement.get(console, unlimited, table).maximum)
    console.print(table)
    click.echo(plan.text())
