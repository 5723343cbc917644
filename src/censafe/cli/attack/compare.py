"""``censafe attack compare``: defenses beside each other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from censafe.cli.attack.reconstruct import attack_options
from censafe.cli.options import out_argument, parse_names, parse_settings, set_option
from censafe.cli.progress import TerminalObserver
from censafe.cli.summary import json_option, show_evaluation


@click.command(name="compare")
@click.argument("data", type=click.Path(exists=True, path_type=Path), metavar="DATA")
@out_argument
@click.option(
    "--defense",
    "defenses",
    multiple=True,
    required=True,
    metavar="NAME",
    help="Disclosure avoidance method from the list above; repeatable.",
)
@click.option(
    "--config",
    metavar="CONFIG",
    help="Configuration of topdown with a table [read]: DATA are records of your own schema.",
)
@set_option
@click.option(
    "--quasi",
    metavar="NAMES",
    help="With --config: attributes or recodes that the attacker knows of everybody, separated by commas.",
)
@click.option(
    "--target", metavar="NAME", help="With --config: attribute or recode that the attacker looks for."
)
@click.option(
    "--area",
    metavar="LEVEL",
    help="With --config: level of the areas that the attacker knows, or the column of their codes.",
)
@attack_options
@json_option
def command(
    data: Path,
    out: Path,
    defenses: tuple[str, ...],
    config: str | None,
    settings: tuple[str, ...],
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

    options["without"] = parse_names(options["without"]) or ()
    options["quasi"] = parse_names(options["quasi"]) or ()
    if config is not None:
        options["configuration"] = censafe.configuration("topdown", config, parse_settings(settings))
    elif settings:
        raise click.UsageError(
            "--set changes keys of a configuration; fix: give --config too, or leave it out"
        )
    observer = TerminalObserver(quiet=quiet)
    comparison = censafe.compare_defenses(data, out, defenses, progress=observer, **options)
    rows = comparison.frames()["defenses"].arrow.to_pylist()
    show_evaluation(
        comparison, observer.stages, as_json=as_json, report=str(comparison.report), defenses=rows
    )
