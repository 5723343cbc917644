"""``censafe estimate``: everything right of the door again."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import click

from censafe.cli.options import EXACT
from censafe.cli.progress import TerminalObserver

__all__ = ["command"]


@click.command(name="estimate")
@click.argument("out", type=click.Path(exists=True, file_okay=False, path_type=Path), metavar="OUT")
@click.option(
    "--confidence", type=EXACT, default="0.9", show_default=True, help="Level of the margins of error."
)
@click.option("--quiet", is_flag=True, help="No progress.")
def command(out: Path, confidence: Fraction, quiet: bool) -> None:
    """Rewrite the tables and the certificate of the finished run in OUT from its stored measurements.

    Opens no confidential data and spends nothing.

    \b
    Example:
      censafe estimate release/ --confidence 0.95
    """
    from censafe.products.phsafe.recipe import estimate

    result = estimate(out, confidence=confidence, observer=TerminalObserver(quiet=quiet))
    click.echo(result.summary())
