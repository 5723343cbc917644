"""``censafe evaluate uncertainty``: error of what is already published."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from censafe.cli.options import RUNS, SEED, WORKERS, FiniteRange, out_argument, quiet_option
from censafe.cli.summary import json_option, run_evaluation


@click.command(name="uncertainty")
@click.argument("run", type=click.Path(exists=True, file_okay=False, path_type=Path), metavar="RUN")
@out_argument
@click.option(
    "--runs",
    type=RUNS,
    default=10,
    show_default=True,
    help="Number of simulated runs on the published counts.",
)
@click.option("--seed", type=SEED, default=0, show_default=True, help="Seed of the simulated noise.")
@click.option("--workers", type=WORKERS, default=2, show_default=True, help="Number of runs in parallel.")
@click.option(
    "--confidence",
    type=FiniteRange(0.5, 0.999),
    default=0.9,
    show_default=True,
    help="Confidence level of the intervals.",
)
@quiet_option
@json_option
def command(run: Path, out: Path, **options: Any) -> None:
    """Estimate the error of the published counts of RUN, a finished topdown run.

    Reruns the same configuration on the published counts (approximate Monte Carlo) and writes a root mean square error, a bias and an
    interval for every count. Reads no records and spends no budget: the output is as public as RUN itself.

    \b
    Example:
      censafe evaluate uncertainty redistricting/ errors/ --runs 20
    """
    import censafe

    run_evaluation(censafe.uncertainty, run, out, **options)
