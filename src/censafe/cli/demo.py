"""``censafe demo``: everything once, on synthetic records."""

from __future__ import annotations

from pathlib import Path

import click

from censafe.cli.options import MOST_RECORDS, SEED, out_argument, quiet_option
from censafe.cli.progress import TerminalObserver
from censafe.cli.summary import json_option, show_summary


@click.command(name="demo")
@out_argument
@click.option(
    "--persons",
    type=click.IntRange(1000, MOST_RECORDS),
    default=650_000,
    show_default=True,
    help="Population of the state.",
)
@click.option("--state", default="50", show_default=True, help="Two-digit FIPS code of the state.")
@click.option("--seed", type=SEED, default=1, show_default=True, help="Seed of records and test keys.")
@quiet_option
@json_option
def command(out: Path, *, persons: int, state: str, seed: int, quiet: bool, as_json: bool) -> None:
    """Run PHSafe, SafeTab-P, SafeTab-H and TopDown, their evaluations, and an attack on several defenses, on a synthetic state.

    Takes a few minutes. The noise comes from test keys: no budget is spent, and every file is stamped as not private.

    \b
    Example:
      censafe demo demo-output
    """
    import censafe

    observer = TerminalObserver(quiet=quiet)
    text = censafe.demonstrate(out, persons=persons, state=state, seed=seed, progress=observer)
    show_summary(text, out, as_json=as_json, stages=observer.stages)
