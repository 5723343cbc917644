"""``censafe read``: what a configuration reads of files of one's own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from censafe.cli.options import data_argument, engine_options, parse_settings, set_option
from censafe.cli.progress import TerminalObserver


@click.command(name="read")
@data_argument
@click.option(
    "--config", required=True, metavar="CONFIG", help="Configuration of topdown with a table [read]."
)
@set_option
@click.option("--confidential", is_flag=True, help="Also print the number of records of every level.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on standard output.")
@engine_options
def command(
    data: Path,
    config: str,
    settings: tuple[str, ...],
    *,
    confidential: bool,
    as_json: bool,
    quiet: bool,
    **reading: Any,
) -> None:
    """Read the files in DATA as a run does, and print rows, columns, levels, areas and what does not match.

    Nothing is measured or spent. Of every level it is printed whether it occurs; output is CONFIDENTIAL, as the records are.

    \b
    Examples:
      censafe read data/ --config own.toml
      censafe read data/ --config own.toml --examples rows.csv
    """
    import censafe

    chosen = censafe.configuration("topdown", config, parse_settings(settings))
    records = censafe.read(chosen, data, progress=TerminalObserver(quiet=quiet), **reading)
    if as_json:
        click.echo(json.dumps(records.document(confidential=confidential), indent=2, ensure_ascii=False))
    else:
        click.echo(records.text(confidential=confidential))
    if not records.valid:
        raise click.exceptions.Exit(1)
