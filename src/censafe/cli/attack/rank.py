"""``censafe attack rank``: the attacker without a solver."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from censafe.cli.attack.reconstruct import tables_options
from censafe.cli.options import MOST_RUNS, SEED, out_argument, parse_names, quiet_option
from censafe.cli.summary import json_option, run_evaluation

_COUNT = click.IntRange(1, MOST_RUNS)


@click.command(name="rank")
@click.argument("data", type=click.Path(exists=True, path_type=Path), metavar="DATA")
@out_argument
@click.option(
    "--level",
    type=click.Choice(["block", "tract"]),
    default="block",
    show_default=True,
    help="Level of the areas to attack.",
)
@click.option(
    "--areas",
    type=_COUNT,
    default=10,
    show_default=True,
    help="Number of areas, from the smallest with ten persons to the largest.",
)
@tables_options
@click.option(
    "--generators",
    type=_COUNT,
    default=10,
    show_default=True,
    help="Number of relaxed data sets; the paper used 100.",
)
@click.option(
    "--rows",
    type=_COUNT,
    default=100,
    show_default=True,
    help="Rows of each relaxed data set; the paper used 1000.",
)
@click.option(
    "--steps", type=_COUNT, default=300, show_default=True, help="Gradient steps; the paper used 1000."
)
@click.option(
    "--seed",
    type=SEED,
    default=0,
    show_default=True,
    help="Seed of the split into halves, the starting rows and ties.",
)
@quiet_option
@json_option
def command(data: Path, out: Path, **options: Any) -> None:
    """Rank candidate records of some areas from tables of half of their records, without an integer program.

    Relaxed data sets are fitted to the tables by gradient descent; the person types that occur in most of them rank first. For
    comparison, candidates are also ranked by the other half of the area, and by tract, county, state and all records.

    \b
    Examples:
      censafe attack rank data/ ranked/
      censafe attack rank data/ ranked/ --areas 20 --generators 100 --rows 1000 --steps 1000
    """
    import censafe

    options["without"] = parse_names(options["without"]) or ()
    run_evaluation(censafe.rank_records, data, out, **options)
