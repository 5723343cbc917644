"""``censafe attack compare``: defenses beside each other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from censafe.cli.attack.reconstruct import attack_options, keywords_of
from censafe.cli.options import out_argument

__all__ = ["command"]


@click.command(name="compare")
@click.argument("data", type=click.Path(exists=True, path_type=Path), metavar="DATA")
@out_argument
@click.option(
    "--defense",
    "defenses",
    multiple=True,
    required=True,
    metavar="NAME",
    help="As often as wanted; see below.",
)
@attack_options
def command(data: Path, out: Path, defenses: tuple[str, ...], **options: Any) -> None:
    """Apply each defense to DATA, attack what it publishes, and put its error beside what an attacker still finds beyond guessing.

    DATA as for ``attack reconstruct``; swaps need households, topdown a folder of DHC records.

    \b
    Defenses:
      swap:LO, swap:HI            the published household swapping experiments
      swap:targeted[:rate=R]      households at risk first, as in 2010
      swap:permutation:p=P        with an exact privacy loss [:within=LEVEL]
      round:BASE, random-round:BASE, ranges, cellkey, suppress:1980
      topcode:AGE, ages:YEARS, races:GROUPS, merge:PERSONS
      topdown:dhc-us              with its production budget, by a test key
      published:FOLDER            microdata of the DHC that are there

    \b
    Example:
      censafe attack compare data/ defenses/ --defense swap:LO --defense swap:HI --defense round:5 --defense topdown:dhc-us
    """
    import censafe

    click.echo(censafe.compare_defenses(data, out, defenses, **keywords_of(options)).summary)
