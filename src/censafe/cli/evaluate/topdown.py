"""``censafe evaluate topdown``: accuracy of TopDown level by level."""

from __future__ import annotations

from pathlib import Path

import click

from censafe.cli.options import (
    config_argument,
    data_argument,
    out_argument,
    parse_settings,
    published_data_option,
    set_option,
)
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
@click.option(
    "--areas",
    type=click.Path(exists=True, path_type=Path),
    multiple=True,
    help="CSV or Parquet with a column geocode, GEOID20, GEOID or GISJOIN and one of area codes for each kind of area, such as place; or GRF-C.",
)
@published_data_option
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
    published_data: bool,
    areas: tuple[Path, ...],
    quiet: bool,
) -> None:
    """Compare TopDown, blocks protected one by one, and raw noisy counts with the truth, level by level.

    Everything it writes is CONFIDENTIAL, except with --public or --published-data. The noise comes from test keys: nothing is spent or
    published. The same command again resumes where it stopped.

    \b
    Examples:
      censafe evaluate topdown pl94-us blocks/ evaluation/ --set root=State --runs 10
      censafe evaluate topdown e2e-1940 blocks/ evaluation/ --set epsilon=2
      censafe evaluate topdown pl94-us blocks/ noise/ --set root=State --public
      censafe evaluate topdown pl94-us blocks/ places/ --set root=State --areas GRF-C_ri2020.txt
    """
    from censafe.evaluation.confidential import Standing
    from censafe.evaluation.topdown.evaluation import evaluate_topdown
    from censafe.evaluation.topdown.runs import SourceOf
    from censafe.products.run.options import ReadOptions

    reading = ReadOptions(observer=TerminalObserver(quiet=quiet))
    source = SourceOf.of(config, data, parse_settings(settings))
    standing = Standing.PUBLIC if public else Standing.of(published_data=published_data)
    result = evaluate_topdown(
        source, out, reading, runs=runs, seed=seed, workers=workers, standing=standing, areas=areas
    )
    click.echo(result.text())
