"""``censafe evaluate report``: rewrite the page of an evaluation."""

from __future__ import annotations

from pathlib import Path

import click

from censafe.cli.summary import json_option, show_evaluation, show_summary


@click.command(name="report")
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path), metavar="EVALUATION")
@click.option(
    "--public",
    "public",
    type=click.Path(path_type=Path),
    metavar="OUT",
    help="Instead, write to the new folder OUT what follows from the noise distributions alone, for the same configuration and budgets.",
)
@json_option
def command(folder: Path, public: Path | None, *, as_json: bool) -> None:
    """Redraw the figures and rewrite report.html of a finished evaluation from the files in its folder.

    With --public, no comparison is read: no number in OUT depends on a record, and OUT may be shown to anyone.

    \b
    Examples:
      censafe evaluate report evaluation/
      censafe evaluate report evaluation/ --public for-everyone/
    """
    import censafe

    if public is not None:
        show_evaluation(censafe.public_report(folder, public), {}, as_json=as_json)
        return
    paths = censafe.redraw_report(folder)
    show_summary("\n".join(map(str, paths)), folder, paths, as_json=as_json)
