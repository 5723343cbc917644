"""``censafe evaluate topdown``: accuracy of TopDown level by level."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from censafe.cli.options import (
    RUNS,
    SEED,
    WORKERS,
    config_argument,
    data_argument,
    names_option,
    out_argument,
    parse_settings,
    published_data_option,
    quiet_option,
    set_option,
)
from censafe.cli.summary import json_option, run_evaluation


@click.command(name="topdown")
@config_argument
@data_argument
@out_argument
@set_option
@click.option("--runs", type=RUNS, default=4, show_default=True, help="Number of independent runs.")
@click.option("--seed", type=SEED, default=0, show_default=True, help="Seed of the test keys.")
@click.option("--workers", type=WORKERS, default=2, show_default=True, help="Number of runs in parallel.")
@click.option(
    "--public", is_flag=True, help="Write only what follows from the noise distributions; use no true counts."
)
@click.option(
    "--areas",
    type=click.Path(exists=True, path_type=Path),
    multiple=True,
    help="CSV or Parquet with a block column (geocode, GEOID20, GEOID or GISJOIN) and one column of codes for each kind of area, such as place; or GRF-C.",
)
@names_option
@published_data_option
@quiet_option
@json_option
def command(
    config: str,
    data: Path,
    out: Path,
    settings: tuple[str, ...],
    **options: Any,
) -> None:
    """Compare TopDown, noise added block by block, and raw noisy counts with the true counts, at every level.

    All output is CONFIDENTIAL, except with --public or --published-data. The noise comes from test keys: no budget is spent. An
    evaluation that was stopped resumes when the same command is given again.

    \b
    Examples:
      censafe evaluate topdown pl94-us blocks/ evaluation/ --set root=State --runs 10
      censafe evaluate topdown e2e-1940 blocks/ evaluation/ --set epsilon=2
      censafe evaluate topdown pl94-us blocks/ noise/ --set root=State --public
      censafe evaluate topdown pl94-us blocks/ places/ --set root=State --areas GRF-C_ri2020.txt
    """
    import censafe

    chosen = censafe.configuration("topdown", config, parse_settings(settings))
    run_evaluation(censafe.evaluate, chosen, data, out, **options)
