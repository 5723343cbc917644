"""``censafe replicate``: further runs on the published counts of a finished run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from censafe.cli.options import MOST_RUNS, SEED, WORKERS, parse_results, published_option, quiet_option
from censafe.cli.progress import TerminalObserver
from censafe.cli.summary import json_option, show_summary


@click.command(name="replicate")
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("out", type=click.Path(path_type=Path), required=False)
@click.option(
    "--count",
    type=click.IntRange(2, MOST_RUNS),
    default=25,
    show_default=True,
    metavar="N",
    help="Number of replicates.",
)
@click.option("--seed", type=SEED, default=1, show_default=True, help="Seed of their noise.")
@published_option
@click.option("--workers", type=WORKERS, metavar="N", help="Number of threads [default: cores, at most 2].")
@quiet_option
@json_option
def command(run: Path, out: Path | None, *, quiet: bool, as_json: bool, **options: Any) -> None:
    """Rerun the configuration of RUN, a finished topdown run, N times on its published counts, in OUT [default: RUN-replicates].

    The error of replicates around the published counts approximates the error of the published counts around the true ones. Replicates use
    public counts only and spend no budget. If stopped, the same command resumes.

    \b
    Examples:
      censafe replicate dhc
      censafe replicate dhc --pl94 redistricting/ --count 50
      censafe tables dhc --table P12 --geography county --intervals replicates
    """
    import censafe

    observer = TerminalObserver(quiet=quiet)
    results = parse_results(options.pop("results"), options.pop("pl94")) or None
    folders = censafe.replicate(run, out, results=results, progress=observer, **options)
    folder = folders[0].parent
    show_summary(
        f"{len(folders)} replicates in {folder}", folder, folders, as_json=as_json, stages=observer.stages
    )
