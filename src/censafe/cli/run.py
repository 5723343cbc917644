"""``censafe run``: the protected release."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from censafe.cli.options import (
    EXACT,
    SEED,
    WORKERS,
    confidence_option,
    config_argument,
    data_argument,
    engine_options,
    names_option,
    out_argument,
    parse_names,
    parse_results,
    parse_settings,
    product_argument,
    published_data_option,
    published_option,
    set_option,
    t1_option,
)
from censafe.cli.progress import TerminalObserver
from censafe.cli.summary import json_option, show_run

if TYPE_CHECKING:
    from censafe.api.options import Checks


@click.command(name="run")
@product_argument
@config_argument
@data_argument
@out_argument
@set_option
@click.option(
    "--ledger",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Ledger file [default: $CENSAFE_LEDGER, else censafe-ledger.jsonl in the folder that holds DATA].",
)
@click.option(
    "--new-ledger",
    is_flag=True,
    help="Begin the default ledger if there is none yet; needed once, if nothing was ever released from these records. Records of 'censafe synth' "
    "need no such flag.",
)
@click.option(
    "--ledger-of",
    multiple=True,
    metavar="RESULT[=LEDGER]",
    help="topdown: the published result RESULT (of --result, --pl94) was paid for from another ledger: carry its cost into this one, as LEDGER, or "
    "else its manifest, states it.",
)
@click.option(
    "--dataset",
    metavar="NAME",
    help="Ledger account NAME, shared by all files ever charged to it, such as edited copies.",
)
@click.option(
    "--cap",
    type=EXACT,
    metavar="FRACTION",
    help="Maximum total budget that these record files, and all files read with them, may ever spend.",
)
@click.option("--raise-cap", is_flag=True, help="Let --cap replace earlier caps.")
@click.option(
    "--spend-more",
    is_flag=True,
    help="Proceed although budget was already spent on some of these record files.",
)
@click.option("--strict", is_flag=True, help="Also stop when records are inconsistent with each other.")
@click.option("--strict-ledger", is_flag=True, help="Count the reservations of killed runs as spent.")
@click.option(
    "--key-dir",
    type=click.Path(file_okay=False, path_type=Path),
    help="Store the noise key here until the run is complete, so that a killed run can resume. Protect this folder like the records.",
)
@click.option(
    "--test-key",
    type=SEED,
    metavar="SEED",
    help="Draw reproducible noise from SEED, for tests: NOT PRIVATE, spends no budget, every file is stamped.",
)
@published_data_option
@confidence_option
@t1_option
@published_option
@click.option(
    "--water-blocks",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="safetab with coterminous on: public list of blocks without land (header block, then one 15-digit code per line).",
)
@names_option
@click.option(
    "--workers",
    type=WORKERS,
    metavar="N",
    help="Number of threads for estimation [default: cores, at most 2].",
)
@click.option(
    "--tables",
    metavar="LIST",
    help="topdown: census tables to estimate, with standard deviations, from the noisy measurements, such as P12,H4, or none [default: for a "
    "DHC that stores no measurements, the tables of 'censafe card'].",
)
@click.option(
    "--areas",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="topdown: with --tables, a list of blocks with a column for each further kind of area; estimates are made for these areas as well as "
    "for states, counties, tracts and places.",
)
@json_option
@engine_options
def command(
    product: str,
    config: str,
    data: Path,
    out: Path,
    settings: tuple[str, ...],
    *,
    as_json: bool,
    strict: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Measure the records in DATA with noise, charge the ledger, and publish the tables in OUT.

    A run that was stopped resumes when the same command is given again; nothing is measured twice.

    \b
    Examples:
      censafe run phsafe config.json data/ release/ --new-ledger
      censafe run phsafe sdhc-us data/ release/ --set reader=csv --set state_filter=44,50
      censafe run phsafe sdhc-us data/ rehearsal/ --set reader=csv --test-key 1
      censafe run safetab-p ddhca data/ detailed-a/ --set reader=csv --set run_pr=false
      censafe run safetab-h ddhcb data/ detailed-b/ --set reader=csv --set run_pr=false --t1 detailed-a/
      censafe run topdown pl94-us state/ microdata/ --set root=State
      censafe run topdown dhc-us state/ dhc/ --set root=State --pl94 redistricting/
      censafe run topdown dhc-us state/ dhc/ --set root=State --pl94 redistricting/ --ledger-of redistricting=earlier.jsonl
      censafe run topdown dhc-us state/ dhc/ --set root=State --tables P12,PCT12 --areas districts.csv
      censafe run topdown pl94-us published/ demonstration/ --set root=State --set reader=pl94 --published-data --new-ledger
    """
    import censafe

    chosen = censafe.configuration(product, config, parse_settings(settings))
    ledgers = (text.partition("=") for text in options["ledger_of"])
    options["ledger_of"] = {name: ledger or None for name, _, ledger in ledgers}
    options["tables"] = parse_names(options["tables"])
    options["results"] = parse_results(options["results"], options.pop("pl94")) or None
    checks: Checks = "strict" if strict else "full"
    observer = TerminalObserver(quiet=quiet)
    released = censafe.release(chosen, data, out, checks=checks, progress=observer, **options)
    show_run(released, as_json=as_json)
