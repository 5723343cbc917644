"""``censafe evaluate semantics``: what a budget means to an attacker."""

from __future__ import annotations

from pathlib import Path

import click

from censafe.cli.options import (
    config_argument,
    out_argument,
    parse_settings,
    product_argument,
    quiet_option,
    set_option,
)
from censafe.cli.summary import json_option, run_evaluation


@click.command(name="semantics")
@product_argument
@config_argument
@out_argument
@set_option
@quiet_option
@json_option
def command(
    product: str, config: str, out: Path, settings: tuple[str, ...], *, quiet: bool, as_json: bool
) -> None:
    """Plot the power of the best possible attack on one record against its false positive rate.

    Exact for the discrete Gaussian, over all noisy measurements that the record affects, beside the continuous Gaussian and the bound for
    every mechanism with that privacy loss. Reads no data: the output is public.

    \b
    Example:
      censafe evaluate semantics topdown pl94-us meaning/
    """
    import censafe

    chosen = censafe.configuration(product, config, parse_settings(settings))
    run_evaluation(censafe.attack_power, chosen, out, quiet=quiet, as_json=as_json)
