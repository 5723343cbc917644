"""``censafe validate``: check a configuration and a data folder."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from censafe.cli.options import (
    config_argument,
    data_argument,
    engine_options,
    parse_settings,
    product_argument,
    set_option,
    t1_option,
)
from censafe.cli.progress import TerminalObserver

if TYPE_CHECKING:
    from censafe.api.options import Checks


@click.command(name="validate")
@product_argument
@config_argument
@data_argument
@set_option
@click.option("--strict", is_flag=True, help="Also fail when records are inconsistent with each other.")
@t1_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on standard output.")
@engine_options
def command(
    product: str,
    config: str,
    data: Path,
    settings: tuple[str, ...],
    *,
    as_json: bool,
    strict: bool,
    quiet: bool,
    **reading: Any,
) -> None:
    """Check CONFIG as a run does, then every rule on DATA, and report all failures at once.

    \b
    Examples:
      censafe validate phsafe config.json data/
      censafe validate phsafe sdhc-us data/ --set reader=csv --strict --examples bad.txt
      censafe validate topdown e2e-1940 districts/
    """
    import censafe

    chosen = censafe.configuration(product, config, parse_settings(settings))
    checks: Checks = "strict" if strict else "full"
    findings = censafe.validate(
        chosen, data, checks=checks, progress=TerminalObserver(quiet=quiet), **reading
    )
    if as_json:
        document = {"valid": findings.valid, "findings": [asdict(finding) for finding in findings]}
        click.echo(json.dumps(document, indent=2))
    else:
        click.echo(findings.text())
    if not findings.valid:
        raise click.exceptions.Exit(1)
