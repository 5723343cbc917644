"""``censafe evaluate report``: the page of an evaluation again."""

from __future__ import annotations

from pathlib import Path

import click

__all__ = ["command"]


@click.command(name="report")
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path), metavar="EVALUATION")
def command(folder: Path) -> None:
    """Draw the figures and write report.html of a finished evaluation again, from the files in its folder.

    \b
    Example:
      censafe evaluate report evaluation/
    """
    from censafe.evaluation.reporting import write_report

    for name in write_report(folder):
        click.echo(folder / name)
