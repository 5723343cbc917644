"""``censafe evaluate phsafe | safetab-p | safetab-h``: noise draws of a table product against the truth."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from censafe.cli.options import (
    RUNS,
    SEED,
    confidence_option,
    config_argument,
    data_argument,
    engine_options,
    out_argument,
    parse_settings,
    set_option,
    t1_option,
    together,
)
from censafe.cli.summary import json_option, run_evaluation


def _shared(trials: int) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Arguments and options of every product, with its default number of draws."""
    return together(
        click.option("--trials", type=RUNS, default=trials, show_default=True, help="Number of noise draws."),
        config_argument,
        data_argument,
        out_argument,
        set_option,
        click.option("--seed", type=SEED, default=0, show_default=True, help="Seed of the test keys."),
        confidence_option,
        engine_options,
        json_option,
    )


@click.command(name="phsafe")
@_shared(50)
def phsafe(**options: Any) -> None:
    """Compare observed with expected margins of error, and separate the bias of truncation from noise.

    All output is CONFIDENTIAL. The noise comes from test keys: no budget is spent.

    \b
    Example:
      censafe evaluate phsafe sdhc-us data/ evaluation/ --set reader=csv --trials 100
    """
    _evaluate("phsafe", **options)


@click.command(name="safetab-p")
@_shared(10)
def safetab_p(**options: Any) -> None:
    """Compare observed with expected margins of error, and show which tables groups receive and which empty groups are published.

    All output is CONFIDENTIAL. The noise comes from test keys: no budget is spent.

    \b
    Example:
      censafe evaluate safetab-p ddhca data/ evaluation-p/ --set reader=csv --set run_pr=false
    """
    _evaluate("safetab-p", **options)


@click.command(name="safetab-h")
@_shared(10)
@t1_option
def safetab_h(**options: Any) -> None:
    """Compare observed with expected margins of error, and show which tables groups receive.

    All output is CONFIDENTIAL. The noise comes from test keys: no budget is spent.

    \b
    Example:
      censafe evaluate safetab-h ddhcb data/ evaluation-h/ --set reader=csv --set run_pr=false --t1 detailed-a/
    """
    _evaluate("safetab-h", **options)


def _evaluate(
    product: str,
    *,
    config: str,
    data: Path,
    out: Path,
    settings: tuple[str, ...],
    **options: Any,
) -> None:
    import censafe

    chosen = censafe.configuration(product, config, parse_settings(settings))
    run_evaluation(censafe.evaluate, chosen, data, out, **options)
