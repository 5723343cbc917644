"""``censafe synth``: a synthetic population in the Bureau's input layouts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from censafe.cli.options import MOST_RECORDS, SEED, SIZE, out_argument, quiet_option
from censafe.cli.progress import TerminalObserver
from censafe.cli.summary import json_option, show_summary

_LAYOUTS = ("phsafe", "safetab", "all", "pl94", "e2e-1940", "ipums-1940", "cef", "dhc", "dhc-cef")


@click.command(name="synth")
@out_argument
@click.option(
    "--persons", type=click.IntRange(1, MOST_RECORDS), required=True, help="Number of person records."
)
@click.option(
    "--states",
    metavar="CODES",
    help="Two-digit state codes, separated by commas [default: 50 states and D.C.]; 72 for Puerto Rico.",
)
@click.option(
    "--seed",
    type=SEED,
    default=0,
    show_default=True,
    help="Seed; the same seed gives the same records.",
)
@click.option(
    "--format",
    "file_format",
    type=click.Choice(["parquet", "csv"]),
    default="parquet",
    show_default=True,
    help="File format.",
)
@click.option(
    "--layout",
    type=click.Choice(_LAYOUTS),
    default="phsafe",
    show_default=True,
    help="Input layout: records (phsafe, safetab, all, cef and ipums-1940 describe the same people; dhc and dhc-cef draw persons and "
    "households together) or block histograms (pl94, e2e-1940).",
)
@click.option(
    "--areas-of",
    type=SIZE,
    metavar="PERSONS",
    help="Draw tracts and places as for a population of this size [default: that of --persons].",
)
@quiet_option
@json_option
def command(
    out: Path, persons: int, states: str | None, *, quiet: bool, as_json: bool, **options: Any
) -> None:
    """Write synthetic records: households, group quarters and a geography down to blocks.

    \b
    Examples:
      censafe synth data/ --persons 1000000
      censafe synth data/ --persons 50000 --states 44,50 --format csv --seed 7
      censafe synth data/ --persons 1000000 --layout all
      censafe synth data/ --persons 643077 --states 50 --layout pl94
      censafe synth data/ --persons 100000 --states 44 --layout cef
      censafe synth data/ --persons 643077 --states 50 --layout dhc
    """
    import censafe

    codes = tuple(code.strip() for code in states.split(",")) if states else None
    observer = TerminalObserver(quiet=quiet)
    records = censafe.synthesize(out, persons=persons, states=codes, progress=observer, **options)
    show_summary(records.summary, out, as_json=as_json, stages=observer.stages)
