"""``censafe evaluate pair``, ``epl`` and ``reliability``: measures on a true and a published file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from censafe.cli.options import (
    SIZE,
    FiniteRange,
    names_option,
    out_argument,
    parse_settings,
    published_data_option,
    quiet_option,
    set_option,
    together,
)
from censafe.cli.summary import json_option, run_evaluation

_PATH = click.Path(exists=True, path_type=Path)


class _Also(click.ParamType[tuple[str, Path]]):
    """A further published run, and the name of its vintage; empty without."""

    name = "also"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, Path]:
        """Parse ``NAME=PATH`` or ``PATH``; what exists as it stands is a path."""
        if isinstance(value, tuple):
            return value
        if Path(value).exists():
            return "", Path(value)
        name, separator, place = str(value).partition("=")
        if not separator or not name.strip() or not place:
            self.fail(f"{value!r}: there is no such file or folder; write NAME=PATH or PATH.", param, ctx)
        if not Path(place).exists():
            self.fail(f"{place}: there is no such file or folder.", param, ctx)
        return name.strip(), Path(place)


_shared = together(
    click.argument("truth", type=_PATH, metavar="TRUTH"),
    click.argument("published", type=_PATH, metavar="PUBLISHED"),
    out_argument,
    names_option,
    published_data_option,
    click.option("--config", metavar="CONFIG", help="Both sides are block histograms of this configuration."),
    set_option,
    click.option("--histogram", metavar="NAME", help="Histogram of the configuration [default: the first]."),
    click.option("--residuals", is_flag=True, help="Also write every residual to residuals.parquet."),
    click.option(
        "--side-by-side",
        metavar="KINDS",
        help="Levels and kinds of areas whose true and published counts are written side by side, or none [default: those with at most 10,000 areas].",
    ),
    click.option(
        "--bins",
        type=SIZE,
        help="Width of population bins, in persons, to use instead of size classes.",
    ),
    click.option(
        "--tables",
        type=_PATH,
        help="Histograms: TOML file of further tables for the workbook, in the form of the Bureau's.",
    ),
    click.option(
        "--characteristics",
        type=_PATH,
        help="Histograms: TOML file of further characteristics, queries and areas to measure.",
    ),
    click.option(
        "--published-units",
        type=_PATH,
        multiple=True,
        help="Histograms: published housing units, one file for each run in the given order, PUBLISHED first "
        "[default: those in PUBLISHED].",
    ),
    click.option(
        "--true-units", type=_PATH, help="Histograms: true housing units [default: those in TRUTH]."
    ),
    click.option(
        "--area-kinds",
        metavar="KINDS",
        help="Kinds of areas to include, such as place,cousub [default: all].",
    ),
    click.option(
        "--areas",
        type=_PATH,
        multiple=True,
        help="Histograms: CSV or Parquet with a block column (geocode, GEOID20, GEOID or GISJOIN) and one column of codes for each kind of area, such "
        "as place; or GRF-C. Areas in the data folder are used without it.",
    ),
    click.option(
        "--also",
        type=_Also(),
        multiple=True,
        metavar="[NAME=]PATH",
        help="Histograms: a further published run. With a name it is a vintage, measured separately, with its own bars in the figures.",
    ),
    click.option("--domain", type=_PATH, help="Histograms: file with a column geocode of every block."),
    click.option(
        "--unmatched-as-zero",
        is_flag=True,
        help="Tables: rows on one side only count as 0 on the other, also where they are more than 5%.",
    ),
    click.option("--count", metavar="COLUMN", help="Tables: column of the counts [default: COUNT]."),
    click.option(
        "--by",
        metavar="COLUMNS",
        help="Tables: columns whose values define the levels; 'file' for the names of the files in folders.",
    ),
    click.option(
        "--groups",
        metavar="QUERY",
        help="Query of mutually exclusive groups, for schemas without race and origin.",
    ),
    click.option(
        "--mode",
        type=click.Choice(["corrected", "as_published"]),
        default="corrected",
        show_default=True,
        help="Corrected formulas, or the arithmetic as published by Petti and Flaxman.",
    ),
    quiet_option,
    json_option,
)


@click.command(name="pair")
@_shared
def command(**options: Any) -> None:
    """Compare a true file with a published one: errors, empirical privacy loss, bias, reliability, impossible areas.

    With --config, both are block histograms: a file of geocode, cell and count, microdata of the redistricting data or of
    1940 (persons.txt), or the folder of a run; TRUTH may also be an input folder for the configuration.
    Without --config, both are tables of any product, whose rows are matched by the codes and attributes that both have. All output is CONFIDENTIAL, except with
    --published-data.

    \b
    Examples:
      censafe evaluate pair blocks/ redistricting/ comparison/ --config pl94-us --set root=State
      censafe evaluate pair extract/ release/ comparison/ --config e2e-1940 --set reader=ipums-1940
      censafe evaluate pair blocks/ august/ comparison/ --config pl94-us --set root=State --also june=june/ --also april=april/
      censafe evaluate pair truth/tables/PH3/PH3.csv release/tables/PH3/PH3.csv comparison/ --by REGION_TYPE
    """
    _compare(None, **options)


@click.command(name="epl")
@_shared
def epl(**options: Any) -> None:
    """Empirical privacy loss of a published file: by every estimator, with intervals. It is not a bound on privacy loss.

    TRUTH and PUBLISHED as for ``evaluate pair``.

    \b
    Example:
      censafe evaluate epl blocks/ redistricting/ loss/ --config pl94-us --set root=State
    """
    _compare(("epl",), **options)


@click.command(name="reliability")
@click.option(
    "--alpha",
    type=FiniteRange(0, 1, max_open=True),
    default=0.05,
    show_default=True,
    help="Largest difference of the shares that counts as close.",
)
@click.option(
    "--beta",
    type=FiniteRange(0, 1, max_open=True),
    default=0.05,
    show_default=True,
    help="Share of areas that may differ by more.",
)
@_shared
def reliability(**options: Any) -> None:
    """From which population on the share of the largest group is within 5 points in 95% of areas.

    --alpha and --beta put other numbers in place of the 5 points and of the 5% of areas that may be off. TRUTH and PUBLISHED are
    block histograms; see ``evaluate pair``.

    \b
    Examples:
      censafe evaluate reliability blocks/ redistricting/ shares/ --config pl94-us --set root=State
      censafe evaluate reliability blocks/ redistricting/ shares/ --config pl94-us --alpha 0.03 --beta 0.1
    """
    if options["config"] is None:
        raise click.UsageError("reliability needs block histograms: give --config.")
    _compare(("reliability",), **options)


def _compare(
    suites: Sequence[str] | None,
    *,
    config: str | None,
    settings: tuple[str, ...],
    **options: Any,
) -> None:
    import censafe

    if config is None and settings:
        raise click.UsageError("--set changes keys of a configuration: give --config, or leave it out.")
    chosen = None if config is None else censafe.configuration("topdown", config, parse_settings(settings))
    for name in ("by", "area_kinds", "side_by_side"):
        options[name] = tuple(one.strip() for one in options[name].split(",")) if options[name] else ()
    run_evaluation(censafe.compare, configuration=chosen, suites=suites, **options)
