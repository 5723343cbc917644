"""``censafe attack``: what published tables give away."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from censafe.cli.lazy import LazyGroup
from censafe.cli.options import (
    MOST_RUNS,
    SEED,
    WORKERS,
    FiniteRange,
    out_argument,
    parse_names,
    parse_settings,
    quiet_option,
    set_option,
    together,
)
from censafe.cli.progress import TerminalObserver
from censafe.cli.summary import json_option, run_evaluation, show_evaluation

_MODULES = {
    "compare": (
        "censafe.cli.attack:compare",
        "Compare disclosure avoidance methods: their errors, and what an attacker still finds.",
    ),
    "rank": (
        "censafe.cli.attack:rank",
        "Rank candidate records without an integer program.",
    ),
    "reconstruct": (
        "censafe.cli.attack:reconstruct",
        "Reconstruct records from tables and re-identify persons.",
    ),
}


@click.command(cls=LazyGroup, modules=_MODULES, name="attack")
def command() -> None:
    """Attack tables of your own records, as the Bureau attacked those of the 2010 Census. All output is CONFIDENTIAL.

    \b
    Examples:
      censafe synth data/ --persons 50000 --states 50 --layout dhc
      censafe attack reconstruct data/ attack/ --mode bt
      censafe attack rank data/ ranked/
      censafe attack compare data/ defenses/ --defense swap:LO --defense round:5 --defense topdown:dhc-us
      censafe attack compare data/ defenses/ --config own.toml --quasi sex,age --target citizenship --area grid --defense round:3 --defense swap:LO
    """


_PATH = click.Path(exists=True, path_type=Path)
tables_options = together(
    click.option(
        "--without",
        metavar="TABLES",
        help="Tables to leave out, separated by commas, such as P8,P10.",
    ),
    click.option(
        "--tables",
        "--tables-file",
        "tables",
        type=_PATH,
        metavar="FILE",
        help="TOML file with tables to use instead of those of the 2010 Summary File, or with --config beside --query.",
    ),
)
own_options = together(
    click.option(
        "--config",
        metavar="CONFIG",
        help="Configuration of topdown with a table [read]: DATA are records of your own schema.",
    ),
    set_option,
    click.option(
        "--quasi",
        metavar="NAMES",
        help="With --config: attributes or recodes that the attacker knows of everybody, separated by commas.",
    ),
    click.option(
        "--target", metavar="NAME", help="With --config: attribute or recode that the attacker looks for."
    ),
    click.option(
        "--area",
        metavar="LEVEL",
        help="With --config: level of the areas that the attacker knows, or the column of their codes.",
    ),
)
query_option = click.option(
    "--query",
    multiple=True,
    metavar="QUERY",
    help='With --config: table to attack, such as "age * sex"; repeatable. Default: --quasi by --target.',
)


def _take_configuration(options: dict[str, Any]) -> None:
    """Put the configuration and lists of names in the place of their texts."""
    import censafe

    config, settings = options.pop("config"), options.pop("settings")
    for name in ("without", "quasi"):
        options[name] = parse_names(options[name]) or ()
    if config is not None:
        options["configuration"] = censafe.configuration("topdown", config, parse_settings(settings))
    elif settings:
        raise click.UsageError(
            "--set changes keys of a configuration; fix: give --config too, or leave it out"
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
@own_options
@query_option
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
def reconstruct(data: Path, out: Path, **options: Any) -> None:
    """Tabulate DATA, reconstruct its records from the tables alone, and match the reconstruction with an attacker's data.

    DATA is a CSV or Parquet file with the columns block (15 digits), sex (1 male, 2 female), age, race (1 to 63, or white, black, aian, asian,
    nhpi, sor) and hispanic, optionally also person_id and household_id; or a folder of DHC records, a DHC run or its microdata. DATA may
    also be published tables of blocks (DHC or redistricting data, from summary files, the Census API or NHGIS), or tables with the columns geounit
    (block or tract), table, line and value: records are reconstructed, and nothing is matched. With --config, DATA is a folder of records of
    any country, a finished run of the same schema, or tables: a folder that 'censafe attack compare' wrote, or a file of 'censafe tables' or with
    the columns geounit, table, line and value.

    \b
    Examples:
      censafe attack reconstruct data/ attack/
      censafe attack reconstruct data/ attack/ --mode bt
      censafe attack reconstruct persons.csv attack/ --without P8,P10 --claims
      censafe attack reconstruct tables.csv attack/ --nearest
      censafe attack reconstruct dhc/ attack/ --attacker names.csv
      censafe attack reconstruct data/ attack/ --config own.toml --quasi sex,age --target citizenship --area grid --query "age * sex" --query citizenship
    """
    import censafe

    _take_configuration(options)
    run_evaluation(censafe.reconstruct, data, out, **options)


_COUNT = click.IntRange(1, MOST_RUNS)


@click.command(name="rank")
@click.argument("data", type=_PATH, metavar="DATA")
@out_argument
@click.option(
    "--level",
    type=click.Choice(["block", "tract"]),
    default="block",
    show_default=True,
    help="Level of the areas to attack; with --config, see --area.",
)
@click.option(
    "--areas",
    type=_COUNT,
    default=10,
    show_default=True,
    help="Number of areas, from the smallest with ten persons to the largest.",
)
@own_options
@query_option
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
def rank(data: Path, out: Path, **options: Any) -> None:
    """Rank candidate records of some areas from tables of half of their records, without an integer program.

    Relaxed data sets are fitted to the tables by gradient descent; the person types that occur in most of them rank first. For
    comparison, candidates are also ranked by the other half of the area, and by tract, county, state and all records.

    \b
    Examples:
      censafe attack rank data/ ranked/
      censafe attack rank data/ ranked/ --areas 20 --generators 100 --rows 1000 --steps 1000
      censafe attack rank data/ ranked/ --config own.toml --quasi sex,age --target citizenship --area municipality
    """
    import censafe

    _take_configuration(options)
    run_evaluation(censafe.rank_records, data, out, **options)


@click.command(name="compare")
@click.argument("data", type=_PATH, metavar="DATA")
@out_argument
@click.option(
    "--defense",
    "defenses",
    multiple=True,
    required=True,
    metavar="NAME",
    help="Disclosure avoidance method from the list above; repeatable.",
)
@own_options
@attack_options
@json_option
def compare(
    data: Path,
    out: Path,
    defenses: tuple[str, ...],
    *,
    quiet: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Apply each defense (disclosure avoidance method) to DATA, attack its published tables, and compare its error with its attack success.

    DATA as for 'censafe attack reconstruct'; swapping needs households, topdown needs a folder of DHC records. With --config, DATA is a folder
    of records of any country, which [read] of the configuration describes: one table is published and attacked, --quasi by --target of every
    --area; swapping needs the key of households in [read].

    \b
    Defenses:
      swap:LO, swap:HI            the published household swapping experiments [:rate=R][:sizes=A,B,C][:areas=A,B,C]
      swap:targeted               targeted at households at risk, as in 2010 [:rate=R][:candidates=N][:points=FILE]
      swap:permutation:p=P        with an exact privacy loss [:within=LEVEL]
      round:BASE[:zero=apart], random-round:BASE, ranges[:0,A,B], cellkey[:bound=B][:variance=V]
      suppress:1980, suppress:threshold=COUNT, threshold:PERSONS[:tract=N][:county=N][:by=table]
      topcode:AGE, ages:YEARS, races:GROUPS, merge:PERSONS
      topdown:pl94-us, topdown:dhc-us   with the production budget, under a test key
      published:FOLDER            a TopDown run, person records, or tables that this command wrote

    \b
    Defenses with --config:
      swap:LO, swap:HI, swap:permutation:p=P, round, random-round, ranges, cellkey, suppress:threshold=COUNT, threshold:PERSONS as above
      topdown                     the configuration, under a test key
      topdown:RUN                 a finished run of the same schema
      published:FOLDER            such a run, or tables that this command wrote

    The same command resumes a comparison that was stopped; further defenses are added to it.

    \b
    Examples:
      censafe attack compare data/ defenses/ --defense topdown:pl94-us --defense swap:LO --defense swap:HI --defense round:3 --defense round:5
      censafe attack compare data/ defenses/ --config own.toml --quasi sex,age --target citizenship --area grid --defense round:3 --defense topdown:release
    """
    import censafe

    _take_configuration(options)
    observer = TerminalObserver(quiet=quiet)
    comparison = censafe.compare_defenses(data, out, defenses, progress=observer, **options)
    rows = comparison.frames()["defenses"].arrow.to_pylist()
    show_evaluation(
        comparison, observer.stages, as_json=as_json, report=str(comparison.report), defenses=rows
    )
