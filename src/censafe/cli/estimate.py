"""``censafe estimate``: everything right of the door again."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import click

from censafe.cli.options import EXACT, parse_settings
from censafe.cli.progress import TerminalObserver
from censafe.errors import UsageError

__all__ = ["command"]


@click.command(name="estimate")
@click.argument("words", nargs=-1, required=True, metavar="OUT | topdown CONFIG OUT | phsafe [CONFIG] OUT")
@click.option(
    "--measurements",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="topdown, phsafe: start from the public noisy measurement files in this folder instead of a run.",
)
@click.option(
    "--totals",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="With --measurements: CSV with geocode, name and value of the exact totals that the files do not hold.",
)
@click.option(
    "--confidence", type=EXACT, help="Level of the margins of error [default: as in the product's papers]."
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="Change what is done to the measurements: of PHSafe alpha, trun, exclude_levels, interval, model, marginals, method, "
    "conventions or quoting, of SafeTab t1, negatives, coterminous or mark_x, of TopDown passes, information, infeasible, leaves "
    "or detailed_cost.",
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
@click.option(
    "--workers", type=click.IntRange(1), help="topdown, phsafe: threads; results do not depend on them."
)
@click.option("--quiet", is_flag=True, help="No progress.")
def command(
    words: tuple[str, ...],
    measurements: Path | None,
    totals: Path | None,
    confidence: Fraction | None,
    settings: tuple[str, ...],
    data: Path | None,
    config: str | None,
    workers: int | None,
    quiet: bool,
) -> None:
    """Rewrite everything right of the door of the finished run in OUT from its stored measurements.

    A run of phsafe gains OUT/estimates: non-negative counts, ratios within bounds, and intervals, in the layout of the S-DHC.
    With --measurements, estimate from public noisy measurement files in the Census Bureau's layout, whoever made them.
    Opens no confidential data and spends nothing.

    \b
    Examples:
      censafe estimate release/ --confidence 0.95
      censafe estimate release/ --set alpha=0.025 --set interval=shortest
      censafe estimate phsafe estimates/ --measurements nm_inputs/
      censafe estimate detailed-a/ --set t1=pooled --set mark_x=true
      censafe estimate detailed-a/ --set coterminous=combined --data data/GRF-C.txt
      censafe estimate microdata/ --set passes=one
      censafe estimate topdown pl94-us estimates/ --measurements nmf/ --totals states.csv --set measure=persons
    """
    from censafe.products.options import EstimateOptions
    from censafe.products.phsafe.estimate_files import estimate_noisy_files
    from censafe.products.registry import planner_of, recipe_of
    from censafe.products.topdown.from_files import estimate_files
    from censafe.publication.manifest import read_manifest

    source = _source(words, measurements, totals)
    out = Path(words[-1])
    product = read_manifest(out / "manifest.json").plan.product if source is None else source.product
    options = EstimateOptions(
        confidence=planner_of(product).CONFIDENCE if confidence is None else confidence,
        settings=parse_settings(settings),
        data=data,
        config=config,
        observer=TerminalObserver(quiet=quiet),
    )
    if workers is not None:
        options = replace(options, workers=workers)
    if source is None or measurements is None:
        click.echo(recipe_of(product).estimate(out, options).summary())
    elif product == "phsafe":
        own = None if source.config is None else Path(source.config)
        click.echo(estimate_noisy_files(own, measurements, out, options).summary())
    else:
        click.echo(estimate_files(source.config or "", measurements, out, totals, options).summary())


@dataclass(frozen=True)
class _Source:
    """Public measurement files: of which product, and the configuration named for them."""

    product: str
    config: str | None


def _source(words: tuple[str, ...], measurements: Path | None, totals: Path | None) -> _Source | None:
    """What is said of public measurement files; None where a run is estimated again."""
    if measurements is None and len(words) == 1:
        if totals is not None:
            raise UsageError("--totals belongs to --measurements; a run keeps its own totals")
        return None
    if measurements is not None and words[0] == "phsafe" and len(words) in (2, 3):
        if totals is not None:
            raise UsageError("--totals belongs to topdown; phsafe needs none")
        return _Source("phsafe", words[1] if len(words) == 3 else None)
    if measurements is None or len(words) != 3 or words[0] != "topdown":
        raise UsageError(
            "say 'censafe estimate OUT' for a finished run, or 'censafe estimate topdown CONFIG OUT --measurements DIR' or "
            "'censafe estimate phsafe [CONFIG] OUT --measurements DIR' for public measurement files"
        )
    return _Source("topdown", words[1])
