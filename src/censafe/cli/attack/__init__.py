"""``censafe attack``: what published tables give away."""

from __future__ import annotations

import click

from censafe.cli.lazy import LazyGroup

__all__ = ["command"]

_MODULES = {
    "compare": (
        "censafe.cli.attack.compare",
        "Defenses beside each other: their errors, and what an attacker still finds.",
    ),
    "rank": (
        "censafe.cli.attack.rank",
        "Candidate records ranked without a solver.",
    ),
    "reconstruct": (
        "censafe.cli.attack.reconstruct",
        "Records from tables of blocks, and who is found in them.",
    ),
}


@click.command(cls=LazyGroup, modules=_MODULES, name="attack")
def command() -> None:
    """Attack tables of your own records, as the Bureau attacked those of the 2010 Census. Everything written is CONFIDENTIAL.

    \b
    Examples:
      censafe synth data/ --persons 50000 --states 50 --layout dhc
      censafe attack reconstruct data/ attack/ --mode bt
      censafe attack rank data/ ranked/
      censafe attack compare data/ defenses/ --defense swap:LO --defense round:5 --defense topdown:dhc-us
    """
