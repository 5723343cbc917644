"""``censafe validate``: check a configuration and a data folder."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from censafe.cli.options import (
    config_argument,
    data_argument,
    engine_options,
    parse_settings,
    product_argument,
    require_totals_are_used,
    set_option,
    t1_option,
)
from censafe.cli.progress import TerminalObserver

if TYPE_CHECKING:
    from collections.abc import Sequence

    from censafe.population.findings import Finding

__all__ = ["command"]


@click.command(name="validate")
@product_argument
@config_argument
@data_argument
@set_option
@click.option("--strict", is_flag=True, help="Fail also where records disagree with each other.")
@t1_option
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")
@engine_options
def command(
    product: str,
    config: str,
    data: Path,
    settings: tuple[str, ...],
    strict: bool,
    t1: Path | None,
    as_json: bool,
    threads: int | None,
    memory: str | None,
    scratch: Path | None,
    examples: Path | None,
    quiet: bool,
) -> None:
    """Check CONFIG as for a run, then every rule on DATA, and report all failures together.

    \b
    Examples:
      censafe validate phsafe config.json data/
      censafe validate phsafe sdhc-us data/ --set reader=csv --strict --examples bad.txt
      censafe validate topdown e2e-1940 districts/
    """
    from censafe.products.registry import recipe_of
    from censafe.products.run.options import ReadOptions

    require_totals_are_used(product, t1)
    reading = ReadOptions(
        checks="strict" if strict else "full",
        examples=examples,
        threads=threads,
        memory=memory,
        scratch=scratch,
        t1=t1,
        observer=TerminalObserver(quiet=quiet),
    )
    findings = recipe_of(product).validate(config, data, parse_settings(settings), reading)
    click.echo(_as_json(findings) if as_json else _as_text(findings))
    if any(finding.severity == "stop" for finding in findings):
        raise click.exceptions.Exit(1)


def _as_json(findings: Sequence[Finding]) -> str:
    valid = not any(finding.severity == "stop" for finding in findings)
    return json.dumps({"valid": valid, "findings": [asdict(finding) for finding in findings]}, indent=2)


def _as_text(findings: Sequence[Finding]) -> str:
    stops = [finding for finding in findings if finding.severity == "stop"]
    warnings = [finding for finding in findings if finding.severity == "warn"]
    lines = [f"Error: {finding.text()}" for finding in stops]
    lines += [f"Warning: {finding.text()}" for finding in warnings]
    verdict = "NOT valid" if stops else "Valid"
    lines.append(f"{verdict}: {len(stops)} rules broken that stop a run, {len(warnings)} warnings.")
    return "\n".join(lines)
