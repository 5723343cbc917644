"""``censafe estimate``: everything right of the door again."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import click

from censafe.cli.options import EXACT, parse_settings
from censafe.cli.progress import TerminalObserver

__all__ = ["command"]


@click.command(name="estimate")
@click.argument("out", type=click.Path(exists=True, file_okay=False, path_type=Path), metavar="OUT")
@click.option(
    "--confidence", type=EXACT, help="Level of the margins of error [default: as in the product's papers]."
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="Change what is done to the measurements of a SafeTab run: t1, negatives, coterminous or mark_x.",
)
@click.option(
    "--data",
    type=click.Path(exists=True, path_type=Path),
    help="GRF-C or its folder, when coterminous is new; no records are opened.",
)
@click.option(
    "--config",
    metavar="CONFIG",
    help="Configuration with the parameter files of the run, when not the shipped ones.",
)
@click.option("--quiet", is_flag=True, help="No progress.")
def command(
    out: Path,
    confidence: Fraction | None,
    settings: tuple[str, ...],
    data: Path | None,
    config: str | None,
    quiet: bool,
) -> None:
    """Rewrite the tables and the certificate of the finished run in OUT from its stored measurements.

    Opens no confidential data and spends nothing.

    \b
    Examples:
      censafe estimate release/ --confidence 0.95
      censafe estimate detailed-a/ --set t1=pooled --set mark_x=true
      censafe estimate detailed-a/ --set coterminous=combined --data data/GRF-C.txt
    """
    from censafe.products.options import EstimateOptions
    from censafe.products.registry import planner_of, recipe_of
    from censafe.publication.manifest import read_manifest

    product = read_manifest(out / "manifest.json").plan.product
    options = EstimateOptions(
        confidence=planner_of(product).CONFIDENCE if confidence is None else confidence,
        settings=parse_settings(settings),
        data=data,
        config=config,
        observer=TerminalObserver(quiet=quiet),
    )
    result = recipe_of(product).estimate(out, options)
    click.echo(result.summary())
