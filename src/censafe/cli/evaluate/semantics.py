"""``censafe evaluate semantics``: what a budget means to an attacker."""

from __future__ import annotations

from pathlib import Path

import click

from censafe.cli.options import (
    config_argument,
    out_argument,
    parse_settings,
    product_argument,
    set_option,
)
from censafe.cli.progress import TerminalObserver

__all__ = ["command"]


@click.command(name="semantics")
@product_argument
@config_argument
@out_argument
@set_option
@click.option("--quiet", is_flag=True, help="No progress.")
def command(product: str, config: str, out: Path, settings: tuple[str, ...], quiet: bool) -> None:
    """Draw how often the best possible attack finds a fact about one record, against its false alarms.

    Exact for the discrete Gaussian, over all answers that the record moves; beside it the Gaussian and the bound that holds
    for every mechanism of that loss. Opens no data: what it writes is public.

    \b
    Example:
      censafe evaluate semantics topdown pl94-us meaning/
    """
    import censafe

    chosen = censafe.configuration(product, config, parse_settings(settings))
    found = censafe.attack_power(chosen, out, progress=TerminalObserver(quiet=quiet))
    click.echo(found.summary)
