"""``censafe truth``: true tables without noise."""

from __future__ import annotations

from pathlib import Path

import click

from censafe.cli.options import (
    compared_product_argument,
    config_argument,
    data_argument,
    engine_options,
    out_argument,
    parse_settings,
    require_totals_are_used,
    set_option,
    t1_option,
)
from censafe.cli.progress import TerminalObserver

__all__ = ["command"]


@click.command(name="truth")
@compared_product_argument
@config_argument
@data_argument
@out_argument
@set_option
@click.option("--confidential", is_flag=True, help="Required: says that you know the output is confidential.")
@click.option(
    "--private-path",
    is_flag=True,
    help="What run adds noise to. phsafe: basis cells after truncation over the full key domain. safetab: what infinite "
    "budgets give.",
)
@click.option(
    "--checks",
    type=click.Choice(["full", "strict", "off"]),
    default="full",
    show_default=True,
    help="Checks of the input; off for reference cases that are inconsistent on purpose.",
)
@t1_option
@engine_options
def command(
    product: str,
    config: str,
    data: Path,
    out: Path,
    settings: tuple[str, ...],
    confidential: bool,
    private_path: bool,
    checks: str,
    t1: Path | None,
    threads: int | None,
    memory: str | None,
    scratch: Path | None,
    examples: Path | None,
    quiet: bool,
) -> None:
    """Write the true tables of DATA to OUT. They are CONFIDENTIAL and every file says so.

    \b
    Examples:
      censafe truth phsafe config.json data/ truth/ --confidential
      censafe truth phsafe config.json data/ exact/ --confidential --private-path
      censafe truth safetab-p parameters/ data/ truth-p/ --confidential
      censafe truth safetab-h parameters/ data/ truth-h/ --confidential --t1 detailed-a/
    """
    from censafe.evaluation.registry import write_true_tables
    from censafe.products.run.options import ReadOptions

    if not confidential:
        raise click.UsageError(
            "The output of truth is confidential. Add --confidential if that is what you want."
        )
    require_totals_are_used(product, t1)
    reading = ReadOptions(
        checks=checks,  # type: ignore[arg-type]  # click.Choice allows exactly these
        examples=examples,
        threads=threads,
        memory=memory,
        scratch=scratch,
        t1=t1,
        observer=TerminalObserver(quiet=quiet),
    )
    files = write_true_tables(
        product, config, data, out, parse_settings(settings), reading, private_path=private_path
    )
    click.echo(f"CONFIDENTIAL: {len(files)} true tables in {out}")
