"""``censafe truth``: true tables without noise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from censafe.cli.options import (
    compared_product_argument,
    config_argument,
    data_argument,
    engine_options,
    out_argument,
    parse_settings,
    set_option,
    t1_option,
)
from censafe.cli.progress import TerminalObserver
from censafe.cli.summary import json_option, show_summary


@click.command(name="truth")
@compared_product_argument
@config_argument
@data_argument
@out_argument
@set_option
@click.option(
    "--confidential", is_flag=True, help="Required: confirms that you know the output is confidential."
)
@click.option(
    "--private-path",
    is_flag=True,
    help="Write the counts to which 'run' adds noise. phsafe: basis cells after truncation, over all cells. safetab: the tables under infinite "
    "budgets.",
)
@click.option(
    "--checks",
    type=click.Choice(["full", "strict", "off"]),
    default="full",
    show_default=True,
    help="Checks of the input; off for test data that are inconsistent on purpose.",
)
@t1_option
@json_option
@engine_options
def command(
    product: str,
    config: str,
    data: Path,
    out: Path,
    settings: tuple[str, ...],
    *,
    confidential: bool,
    quiet: bool,
    as_json: bool,
    **reading: Any,
) -> None:
    """Write the true tables of DATA to OUT. They are CONFIDENTIAL, and every file is stamped so.

    \b
    Examples:
      censafe truth phsafe config.json data/ truth/ --confidential
      censafe truth phsafe config.json data/ exact/ --confidential --private-path
      censafe truth safetab-p parameters/ data/ truth-p/ --confidential
      censafe truth safetab-h parameters/ data/ truth-h/ --confidential --t1 detailed-a/
    """
    import censafe
    from censafe.api.plans import unchecked

    if not confidential:
        raise click.UsageError(
            "The output of truth is confidential. Add --confidential if that is what you want."
        )
    chosen = unchecked(product, config, parse_settings(settings))
    observer = TerminalObserver(quiet=quiet)
    files = censafe.true_tables(chosen, data, out, progress=observer, **reading)
    summary = f"CONFIDENTIAL: {len(files)} true tables in {out}"
    show_summary(summary, out, files, as_json=as_json, stages=observer.stages, confidential=True)
