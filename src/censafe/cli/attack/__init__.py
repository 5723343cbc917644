"""``censafe attack``: what published tables give away."""

from __future__ import annotations

import click

from censafe.cli.lazy import LazyGroup

__all__ = ["command"]

_MODULES = {
    "compare": (
        "censafe.cli.attack.compare",
        "Compare disclosure avoidance methods: their errors, and what an attacker still finds.",
    ),
    "rank": (
        "censafe.cli.attack.rank",
        "Rank candidate records without an integer program.",
    ),
    "reconstruct": (
        "censafe.cli.attack.reconstruct",
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
