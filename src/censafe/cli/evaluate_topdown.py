"""``censafe evaluate topdown``: accuracy of TopDown level by level."""

from __future__ import annotations

from pathlib import Path

import click

from censafe.cli.options import config_argument, data_argument, out_argument, parse_settings, set_option
from censafe.cli.progress import TerminalObserver

__all__ = ["command"]


@click.command(name="topdown")
@config_argument
@data_argument
@out_argument
@set_option
@click.option(
    "--runs", type=click.IntRange(1), default=4, show_default=True, help="Independent runs with new noise."
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of the test keys.")
@click.option(
    "--workers", type=click.IntRange(1), default=2, show_default=True, help="Runs at the same time."
)
@click.option(
    "--public", is_flag=True, help="Write only what the noise laws imply; compare with no true count."
)
@click.option("--quiet", is_flag=True, help="No progress.")
def command(
    config: str,
    data: Path,
    out: Path,
    settings: tuple[str, ...],
    runs: int,
    seed: int,
    workers: int,
    public: bool,
    quiet: bool,
) -> None:
    """Compare TopDown, blocks protected one by one, and raw noisy counts with the truth, level by level.

    Everything it writes is CONFIDENTIAL, except with --public. The noise comes from test keys: nothing is spent or
    published. The same command again goes on where it stopped.

    \b
    Examples:
      censafe evaluate topdown pl94-us blocks/ evaluation/ --set root=State --runs 10
      censafe evaluate topdown e2e-1940 blocks/ evaluation/ --set epsilon=2
      censafe evaluate topdown pl94-us blocks/ noise/ --set root=State --public
    """
    from censafe.evaluation.topdown_evaluation import evaluate_topdown
    from censafe.evaluation.topdown_runs import SourceOf
    from censafe.products.options import ReadOptions

    reading = ReadOptions(observer=TerminalObserver(quiet=quiet))
    source = SourceOf.of(config, data, parse_settings(settings))
    result = evaluate_topdown(source, out, reading, runs=runs, seed=seed, workers=workers, public=public)
    click.echo(result.text())
