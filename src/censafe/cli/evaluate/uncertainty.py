"""``censafe evaluate uncertainty``: error of what is already published."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from censafe.cli.options import out_argument
from censafe.cli.progress import TerminalObserver

__all__ = ["command"]


@click.command(name="uncertainty")
@click.argument("run", type=click.Path(exists=True, file_okay=False, path_type=Path), metavar="RUN")
@out_argument
@click.option(
    "--runs",
    type=click.IntRange(1),
    default=10,
    show_default=True,
    help="Further runs on the published file.",
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of their noise.")
@click.option(
    "--workers", type=click.IntRange(1), default=2, show_default=True, help="Runs at the same time."
)
@click.option(
    "--confidence",
    type=click.FloatRange(0.5, 0.999),
    default=0.9,
    show_default=True,
    help="Level of the intervals.",
)
@click.option("--quiet", is_flag=True, help="No progress.")
def command(run: Path, out: Path, *, quiet: bool, **options: Any) -> None:
    """Say how far the published counts of the finished topdown run in RUN may be from the truth.

    Repeats the same configuration on what was published (approximate Monte Carlo): root mean square error, bias and an
    interval for every count. Opens no record and costs nothing: what it writes is as public as RUN itself.

    \b
    Example:
      censafe evaluate uncertainty redistricting/ errors/ --runs 20
    """
    import censafe

    found = censafe.uncertainty(run, out, progress=TerminalObserver(quiet=quiet), **options)
    click.echo(found.summary)
