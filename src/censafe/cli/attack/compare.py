"""``censafe attack compare``: defenses beside each other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from censafe.cli.attack.reconstruct import attack_options
from censafe.cli.options import out_argument, parse_names
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
@attack_options
@json_option
def command(
    data: Path, out: Path, defenses: tuple[str, ...], *, quiet: bool, as_json: bool, **options: Any
) -> None:
    """Apply each defense (disclosure avoidance method) to DATA, attack its published tables, and compare its error with its attack success.

    DATA as for 'censafe attack reconstruct'; swapping needs households, topdown needs a folder of DHC records.

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

    The same command resumes a comparison that was stopped; further defenses are added to it.

    \b
    Example:
      censafe attack compare data/ defenses/ --defense topdown:pl94-us --defense swap:LO --defense swap:HI --defense round:3 --defense round:5
    """
    import censafe

    options["without"] = parse_names(options["without"]) or ()
    observer = TerminalObserver(quiet=quiet)
    comparison = censafe.compare_defenses(data, out, defenses, progress=observer, **options)
    rows = comparison.frames()["defenses"].arrow.to_pylist()
    show_evaluation(
        comparison, observer.stages, as_json=as_json, report=str(comparison.report), defenses=rows
    )
