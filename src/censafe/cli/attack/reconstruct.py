"""``censafe attack reconstruct``: records from tables of blocks, and who is found in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from censafe.cli.options import SEED, WORKERS, FiniteRange, out_argument, parse_names, quiet_option, together
from censafe.cli.summary import json_option, run_evaluation

_PATH = click.Path(exists=True, path_type=Path)
tables_options = together(
    click.option(
        "--without",
        metavar="TABLES",
        help="Tables to leave out, separated by commas, such as P8,P10.",
    ),
    click.option(
        "--tables",
        type=_PATH,
        metavar="FILE",
        help="TOML file with tables to use instead of those of the 2010 Summary File.",
    ),
)
attack_options = together(
    tables_options,
    click.option(
        "--agreement",
        type=FiniteRange(0, 1, min_open=True),
        default=0.371,
        show_default=True,
        help="Share of correct records in the attacker's lower-quality data.",
    ),
    click.option(
        "--attacker",
        type=_PATH,
        metavar="FILE",
        help="CSV or Parquet file with the attacker's own data: person_id, block, sex, age.",
    ),
    click.option(
        "--seconds",
        type=FiniteRange(0, min_open=True),
        default=60.0,
        show_default=True,
        help="Time limit of one integer program, in seconds.",
    ),
    click.option(
        "--workers",
        type=WORKERS,
        default=2,
        show_default=True,
        help="Number of processes; results do not depend on it.",
    ),
    click.option(
        "--seed",
        type=SEED,
        default=0,
        show_default=True,
        help="Seed of record order, ages within age groups, and the attacker's lower-quality data.",
    ),
    quiet_option,
)


@click.command(name="reconstruct")
@click.argument("data", type=_PATH, metavar="DATA")
@out_argument
@click.option(
    "--mode",
    type=click.Choice(["b", "bt"]),
    default="b",
    show_default=True,
    help="Use tables of blocks (b), or of blocks and tracts (bt).",
)
@attack_options
@click.option(
    "--no-variability",
    "variability",
    flag_value=False,
    default=True,
    help="Do not compute solution variability, the number of records that other solutions can change.",
)
@click.option(
    "--claims",
    is_flag=True,
    help="Prove which records are in every data set consistent with the tables; takes longer.",
)
@click.option(
    "--nearest",
    is_flag=True,
    help="If no data set is consistent with the tables, as with noisy tables, take the one whose tables are closest.",
)
@json_option
def command(data: Path, out: Path, **options: Any) -> None:
    """Tabulate DATA, reconstruct its records from the tables alone, and match the reconstruction with an attacker's data.

    DATA is a CSV or Parquet file with the columns block (15 digits), sex (1 male, 2 female), age, race (1 to 63, or white, black, aian, asian,
    nhpi, sor) and hispanic, optionally also person_id and household_id; or a folder of DHC records, a DHC run or its microdata. DATA may
    also be published tables of blocks (DHC or redistricting data, from summary files, the Census API or NHGIS), or tables with the columns geounit
    (block or tract), table, line and value: records are reconstructed, and nothing is matched.

    \b
    Examples:
      censafe attack reconstruct data/ attack/
      censafe attack reconstruct data/ attack/ --mode bt
      censafe attack reconstruct persons.csv attack/ --without P8,P10 --claims
      censafe attack reconstruct tables.csv attack/ --nearest
      censafe attack reconstruct dhc/ attack/ --attacker names.csv
    """
    import censafe

    options["without"] = parse_names(options["without"]) or ()
    run_evaluation(censafe.reconstruct, data, out, **options)
