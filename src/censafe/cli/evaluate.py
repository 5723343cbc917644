"""``censafe evaluate``: compare protected tables with the truth."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import click

from censafe.cli.options import (
    EXACT,
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

_TRIALS = {"phsafe": 50, "safetab-p": 10, "safetab-h": 10}


@click.command(name="evaluate")
@compared_product_argument
@config_argument
@data_argument
@out_argument
@set_option
@click.option(
    "--trials", type=click.IntRange(1), help="Number of noise draws [default: phsafe 50, others 10]."
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the test keys.")
@click.option(
    "--confidence", type=EXACT, help="Level of the margins of error [default: as in the product's papers]."
)
@t1_option
@engine_options
def command(
    product: str,
    config: str,
    data: Path,
    out: Path,
    settings: tuple[str, ...],
    trials: int | None,
    seed: int,
    confidence: Fraction | None,
    t1: Path | None,
    threads: int | None,
    memory: str | None,
    examples: Path | None,
    quiet: bool,
) -> None:
    """Compare protected tables with the truth. Everything it writes is CONFIDENTIAL.

    Experimental against expected margins of error; for phsafe truncation bias apart from noise, for safetab the tables
    that groups get and the empty groups that are published. The draws use test keys: nothing is spent or published.

    \b
    Examples:
      censafe evaluate phsafe sdhc-us data/ evaluation/ --set reader=csv --trials 100
      censafe evaluate safetab-p ddhca data/ evaluation-p/ --set reader=csv --set run_pr=false
      censafe evaluate safetab-h ddhcb data/ evaluation-h/ --set reader=csv --set run_pr=false --t1 detailed-a/
    """
    from censafe.evaluation.evaluations import evaluate
    from censafe.products.options import ReadOptions
    from censafe.products.registry import planner_of

    require_totals_are_used(product, t1)
    reading = ReadOptions(
        examples=examples, threads=threads, memory=memory, t1=t1, observer=TerminalObserver(quiet=quiet)
    )
    result = evaluate(
        product,
        config,
        data,
        out,
        parse_settings(settings),
        reading,
        trials=trials or _TRIALS[product],
        seed=seed,
        confidence=planner_of(product).CONFIDENCE if confidence is None else confidence,
    )
    click.echo(result.text())
