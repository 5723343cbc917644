"""``censafe validate``: check a configuration and a data folder."""

from __future__ import annotations

from pathlib import Path

import click

from censafe.cli.options import (
    config_argument,
    data_argument,
    engine_options,
    parse_settings,
    product_argument,
    set_option,
)
from censafe.cli.progress import TerminalObserver

__all__ = ["command"]


@click.command(name="validate")
@product_argument
@config_argument
@data_argument
@set_option
@click.option("--strict", is_flag=True, help="Fail also where records disagree with each other.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")
@engine_options
def command(
    product: str,
    config: str,
    data: Path,
    settings: tuple[str, ...],
    strict: bool,
    as_json: bool,
    threads: int | None,
    memory: str | None,
    examples: Path | None,
    quiet: bool,
) -> None:
    """Check CONFIG as for a run, then every rule on DATA, and report all failures together.

    \b
    Examples:
      censafe validate phsafe config.json data/
      censafe validate phsafe sdhc-us data/ --set reader=csv --strict --examples bad.txt
    """
    from censafe.products.options import ReadOptions
    from censafe.products.phsafe.recipe import validate

    reading = ReadOptions(
        checks="strict" if strict else "full",
        examples=examples,
        threads=threads,
        memory=memory,
        observer=TerminalObserver(quiet=quiet),
    )
    report = validate(config, data, parse_settings(settings), reading)
    click.echo(report.to_json() if as_json else report.text())
    if report.fatal:
        raise click.exceptions.Exit(1)
