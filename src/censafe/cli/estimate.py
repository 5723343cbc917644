"""``censafe estimate``: repeat all post-processing."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import click

from censafe.cli.options import (
    EXACT,
    MOST_RUNS,
    SEED,
    WORKERS,
    names_option,
    parse_names,
    parse_results,
    parse_settings,
    quiet_option,
)
from censafe.cli.progress import TerminalObserver
from censafe.cli.summary import json_option, show_run, show_summary
from censafe.errors import UsageError


@click.command(name="estimate")
@click.argument("words", nargs=-1, metavar="OUT | topdown CONFIG OUT | phsafe [CONFIG] OUT")
@click.option(
    "--measurements",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="topdown, phsafe: start from public noisy measurement files in this folder instead of a run.",
)
@click.option(
    "--totals",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="With --measurements: CSV with geocode, name and value of exact totals that the files do not contain.",
)
@click.option(
    "--confidence",
    "confidences",
    type=EXACT,
    multiple=True,
    help="Confidence level of the margins of error [default: as in the product's papers]. With --intervals, the level of the intervals; "
    "repeatable [default: 0.9 and 0.95].",
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
    help="With --intervals or --tables: CSV with a block column (geocode, GEOID20, GEOID or GISJOIN) and one column for each kind of "
    "area, such as places or districts.",
)
@click.option(
    "--tables",
    metavar="LIST",
    help="topdown: census tables to estimate, with standard deviations, from the stored noisy measurements of a run or from public files, "
    "such as P12,H4 (table_estimates.parquet); published counts do not change, and none are made from public files.",
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
    type=click.IntRange(0, MOST_RUNS),
    help="With --intervals: number of simulated runs for the intervals of the published counts [default: 10; 0 for none].",
)
@click.option("--seed", type=SEED, help="With --intervals: seed of the simulated runs [default: 0].")
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="Change a post-processing setting. PHSafe: alpha, trun, exclude_levels, interval, model, marginals, ph8, method, "
    "conventions or quoting; SafeTab: t1, negatives, coterminous, respect_granularity, mark_x, suppress or marked_negatives; TopDown: passes, information, infeasible, leaves, "
    "detailed_cost, joint, joint_first or joint_max_household_size.",
)
@click.option(
    "--data",
    type=click.Path(exists=True, path_type=Path),
    help="GRF-C file or its folder, needed when coterminous is turned on; no records are read.",
)
@click.option(
    "--config",
    metavar="CONFIG",
    help="Configuration with the parameter files of the run, if these did not come with censafe.",
)
@names_option
@click.option(
    "--result",
    "results",
    multiple=True,
    metavar="NAME=FOLDER",
    help="With --measurements or --tables: earlier published data with which the estimates must agree, by the name in the configuration "
    "([published]): its run folder, or a folder with its microdata. Repeatable.",
)
@click.option(
    "--state",
    metavar="CODE",
    help="With --measurements of topdown: read one state only, by FIPS code; needs --set root=State.",
)
@click.option(
    "--pl94",
    metavar="FOLDER",
    help="With --measurements of the DHC: short for --result redistricting=FOLDER, if the files do not contain these counts; with --tables "
    "the redistricting run, or its public measurement files, whose noisy answers are used as well.",
)
@click.option("--workers", type=WORKERS, help="topdown, phsafe: threads; results do not depend on them.")
@quiet_option
@json_option
def command(
    words: tuple[str, ...],
    measurements: Path | None,
    totals: Path | None,
    settings: tuple[str, ...],
    *,
    confidences: tuple[Fraction, ...],
    config: str | None,
    pl94: str | None,
    quiet: bool,
    as_json: bool,
    **changes: Any,
) -> None:
    """Repeat the post-processing of the finished run in OUT from its stored noisy measurements.

    For phsafe, writes OUT/estimates: nonnegative counts, ratios within bounds, and intervals, in the layout of the S-DHC.
    For topdown, --intervals adds unbiased estimates whose intervals cover the true count with the stated confidence, for any area and any
    union of blocks. With --measurements, estimates from public noisy measurement files in the Census Bureau's layout: those of the
    redistricting data, or of the DHC with its published redistricting counts (in the files, or named by --pl94).
    Reads no confidential data and spends no budget.

    \b
    Examples:
      censafe estimate release/ --confidence 0.95
      censafe estimate release/ --set alpha=0.025 --set interval=shortest
      censafe estimate phsafe estimates/ --measurements nm_inputs/
      censafe estimate detailed-a/ --set t1=pooled --set mark_x=true
      censafe estimate detailed-a/ --set coterminous=combined --data data/GRF-C.txt
      censafe estimate microdata/ --set passes=one
      censafe estimate dhc/ --tables P12,PCT12 --areas districts.csv
      censafe estimate microdata/ --intervals --areas places.csv --query P2
      censafe estimate topdown pl94-us estimates/ --measurements nmf/ --totals states.csv --set measure=persons
      censafe estimate topdown dhc-us tables/ --measurements nmf/ --tables P12,H9
      censafe estimate topdown dhc-us estimates/ --measurements nmf/ --state 44 --set root=State --pl94 redistricting/
    """
    import censafe

    product, source = _source(words, measurements, totals)
    out = Path(words[-1])
    observer = TerminalObserver(quiet=quiet)
    options: dict[str, Any] = {
        **changes,
        "results": parse_results(changes["results"], pl94),
        "settings": parse_settings(settings),
        "tables": parse_names(changes["tables"]),
        "confidence": confidences[0] if confidences else None,
        "confidences": confidences if changes["intervals"] or len(confidences) > 1 else (),
        "parameters": config,
        "progress": observer,
    }
    if measurements is None:
        show_run(censafe.estimate(out, **options), as_json=as_json)
    else:
        summary = censafe.estimate_public(product, measurements, out, source=source, totals=totals, **options)
        show_summary(summary, out, as_json=as_json, stages=observer.stages)


def _source(words: tuple[str, ...], measurements: Path | None, totals: Path | None) -> tuple[str, str | None]:
    """Product of public measurement files, and the configuration named for them; none where a run is re-estimated."""
    if measurements is None and len(words) == 1:
        if totals is not None:
            raise UsageError("--totals belongs to --measurements; a run keeps its own totals")
        return "", None
    if measurements is not None and words[:1] == ("phsafe",) and len(words) in (2, 3):
        if totals is not None:
            raise UsageError("--totals belongs to topdown; phsafe needs none")
        return "phsafe", words[1] if len(words) == 3 else None
    if measurements is None or len(words) != 3 or words[0] != "topdown":
        raise UsageError(
            "say 'censafe estimate OUT' for a finished run, or 'censafe estimate topdown CONFIG OUT --measurements DIR' or "
            "'censafe estimate phsafe [CONFIG] OUT --measurements DIR' for public measurement files"
        )
    return "topdown", words[1]
