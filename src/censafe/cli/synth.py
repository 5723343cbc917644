"""``censafe synth``: a synthetic population in the Bureau's input layouts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from censafe.cli.options import out_argument
from censafe.cli.progress import TerminalObserver

if TYPE_CHECKING:
    from censafe.population.synthetic.population import Layout

__all__ = ["command"]

_LAYOUTS: Mapping[str, Layout] = {"phsafe": "phsafe", "safetab": "safetab", "all": "all"}


@click.command(name="synth")
@out_argument
@click.option("--persons", type=click.IntRange(1), required=True, help="Number of person records.")
@click.option(
    "--states",
    metavar="CODES",
    help="Two-digit state codes, separated by commas [default: 50 states and D.C.]; 72 for Puerto Rico.",
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Same seed, same records.")
@click.option(
    "--format",
    "file_format",
    type=click.Choice(["parquet", "csv"]),
    default="parquet",
    show_default=True,
    help="Layout of the files.",
)
@click.option(
    "--layout",
    type=click.Choice(["phsafe", "safetab", "all"]),
    default="phsafe",
    show_default=True,
    help="Whose input files to write; the people are the same.",
)
@click.option(
    "--areas-of",
    type=click.IntRange(1),
    metavar="PERSONS",
    help="Tracts and places of a population of this size [default: that of --persons].",
)
@click.option("--quiet", is_flag=True, help="No progress.")
def command(
    out: Path,
    persons: int,
    states: str | None,
    seed: int,
    file_format: str,
    layout: str,
    areas_of: int | None,
    quiet: bool,
) -> None:
    """Write records of nobody: households, group quarters and a geography down to blocks.

    \b
    Examples:
      censafe synth data/ --persons 1000000
      censafe synth data/ --persons 50000 --states 44,50 --format csv --seed 7
      censafe synth data/ --persons 1000000 --layout all
    """
    from censafe.population.synthetic.population import synthesize

    observer = TerminalObserver(quiet=quiet)
    codes = tuple(code.strip() for code in states.split(",")) if states else None
    with observer.stage("synthetic population"):
        report = synthesize(
            out,
            persons=persons,
            states=codes,
            seed=seed,
            file_format="csv" if file_format == "csv" else "parquet",
            layout=_LAYOUTS[layout],
            areas_of=areas_of,
            progress=observer.counter("persons", persons),
        )
    click.echo(
        f"{report.persons:,} persons in {report.housing_units:,} housing units ({report.vacant:,} vacant) and "
        f"{report.group_quarters:,} group quarters of {report.states} state{'' if report.states == 1 else 's'}, in {report.folder}"
    )
