"""``censafe estimate``: all post-processing again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import click

from censafe.cli.options import EXACT, names_option, parse_settings, require_names_are_used
from censafe.cli.progress import TerminalObserver
from censafe.errors import UsageError
from censafe.products.run.options import EstimateOptions, IntervalOptions
from censafe.publication.sums import require_confidence

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
    "--confidence",
    "confidences",
    type=EXACT,
    multiple=True,
    help="Level of the margins of error [default: as in the product's papers]; with --intervals of the intervals, as often as "
    "levels are wanted [default: 0.9 and 0.95].",
)
@click.option(
    "--intervals",
    is_flag=True,
    help="topdown: write unbiased estimates with intervals beside the published counts (intervals.parquet, intervals.csv and "
    "intervals/).",
)
@click.option(
    "--areas",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="With --intervals: CSV with a column geocode, GEOID20, GEOID or GISJOIN of the block and one for each kind of further "
    "areas, such as places or districts.",
)
@click.option(
    "--query",
    "queries",
    multiple=True,
    metavar="NAME",
    help="With --intervals: a table (P1 to P5, H1), or attributes joined by *, such as 'hispanic * races' [default: the margins].",
)
@click.option(
    "--simulations",
    type=click.IntRange(0),
    help="With --intervals: further runs on the published counts, for the intervals of these [default: 10; 0 for none].",
)
@click.option(
    "--seed", type=click.IntRange(0), help="With --intervals: of the noise of further runs [default: 0]."
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="Change what is done to the measurements: of PHSafe alpha, trun, exclude_levels, interval, model, marginals, ph8, method, "
    "conventions or quoting, of SafeTab t1, negatives, coterminous or mark_x, of TopDown passes, information, infeasible, leaves, "
    "detailed_cost, joint, joint_first or joint_max_household_size.",
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
@names_option
@click.option(
    "--workers", type=click.IntRange(1), help="topdown, phsafe: threads; results do not depend on them."
)
@click.option("--quiet", is_flag=True, help="No progress.")
def command(
    words: tuple[str, ...],
    measurements: Path | None,
    totals: Path | None,
    confidences: tuple[Fraction, ...],
    intervals: bool,
    areas: Path | None,
    queries: tuple[str, ...],
    simulations: int | None,
    seed: int | None,
    settings: tuple[str, ...],
    data: Path | None,
    config: str | None,
    names: Path | None,
    workers: int | None,
    quiet: bool,
) -> None:
    """Repeat the post-processing of the finished run in OUT from its stored measurements.

    A run of phsafe gains OUT/estimates: non-negative counts, ratios within bounds, and intervals, in the layout of the S-DHC.
    A run of topdown gains unbiased estimates with intervals by --intervals: they hold the truth with the stated confidence, for any
    area and any union of blocks. With --measurements, estimate from public noisy measurement files in the Census Bureau's layout, whoever made them.
    Opens no confidential data and spends nothing.

    \b
    Examples:
      censafe estimate release/ --confidence 0.95
      censafe estimate release/ --set alpha=0.025 --set interval=shortest
      censafe estimate phsafe estimates/ --measurements nm_inputs/
      censafe estimate detailed-a/ --set t1=pooled --set mark_x=true
      censafe estimate detailed-a/ --set coterminous=combined --data data/GRF-C.txt
      censafe estimate microdata/ --set passes=one
      censafe estimate microdata/ --intervals --areas places.csv --query P2
      censafe estimate topdown pl94-us estimates/ --measurements nmf/ --totals states.csv --set measure=persons
    """
    from censafe.products.phsafe.estimate_files import estimate_noisy_files
    from censafe.products.registry import planner_of, recipe_of
    from censafe.products.run.folder import finished_run
    from censafe.products.topdown.public.estimate import estimate_files

    source = _source(words, measurements, totals)
    out = Path(words[-1])
    if source is None:
        with finished_run(out) as (_, manifest):
            product = manifest.plan.product
    else:
        product = source.product
    require_names_are_used(product, names)
    asked = {"areas": areas, "query": queries, "simulations": simulations, "seed": seed}
    options = EstimateOptions(
        confidence=confidences[0] if confidences else planner_of(product).CONFIDENCE,
        intervals=_intervals(product, intervals, confidences, asked),
        settings=parse_settings(settings),
        data=data,
        config=config,
        names=names,
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


def _intervals(
    product: str, wanted: bool, confidences: tuple[Fraction, ...], asked: Mapping[str, Any]
) -> IntervalOptions | None:
    """Which intervals are asked for; None where none are."""
    if not wanted:
        alone = [name for name, value in asked.items() if value not in (None, ())]
        if alone or len(confidences) > 1:
            given = alone[0] if alone else "confidence given more than once"
            raise UsageError(f"--{given} belongs to --intervals")
        return None
    if product != "topdown":
        raise UsageError(
            f"--intervals belongs to topdown; counts of {product} have margins of error in their tables, and estimates of phsafe "
            "their intervals in OUT/estimates"
        )
    found = IntervalOptions(queries=asked["query"], areas=asked["areas"])
    numbers = {"simulations": asked["simulations"], "seed": asked["seed"]}
    found = replace(found, **{name: value for name, value in numbers.items() if value is not None})
    if confidences:
        found = replace(found, confidences=tuple(sorted(set(confidences))))
    for one in found.confidences:
        require_confidence(one)
    return found


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
