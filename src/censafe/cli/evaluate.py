"""``censafe evaluate``: compare protected tables with the truth."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import click

from censafe.cli.options import (
    EXACT,
    config_argument,
    data_argument,
    engine_options,
    out_argument,
    parse_settings,
    set_option,
)
from censafe.cli.progress import TerminalObserver

__all__ = ["command"]


@click.group(name="evaluate")
def command() -> None:
    """Compare protected tables with the truth. Everything it writes is CONFIDENTIAL."""


@command.command(name="phsafe")
@config_argument
@data_argument
@out_argument
@set_option
@click.option(
    "--trials", type=click.IntRange(1), default=50, show_default=True, help="Number of noise draws."
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the test keys.")
@click.option("--confidence", type=EXACT, default="0.9", show_default=True, help="Level of the margins.")
@engine_options
def phsafe(
    config: str,
    data: Path,
    out: Path,
    settings: tuple[str, ...],
    trials: int,
    seed: int,
    confidence: Fraction,
    threads: int | None,
    memory: str | None,
    examples: Path | None,
    quiet: bool,
) -> None:
    """Experimental against expected margins of error, and truncation bias apart from noise.

    The trials use test keys: nothing is spent and nothing is published.

    \b
    Examples:
      censafe evaluate phsafe sdhc-us data/ evaluation/ --set reader=csv --trials 100
    """
    from censafe.evaluation.phsafe_trials import evaluate_phsafe
    from censafe.products.options import ReadOptions

    reading = ReadOptions(
        examples=examples, threads=threads, memory=memory, observer=TerminalObserver(quiet=quiet)
    )
    result = evaluate_phsafe(
        config,
        data,
        out,
        parse_settings(settings),
        reading,
        trials=trials,
        seed=seed,
        confidence=confidence,
    )
    click.echo(result.text())
