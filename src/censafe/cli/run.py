"""``censafe run``: the protected release."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import click

from censafe.cli.options import (
    EXACT,
    config_argument,
    data_argument,
    engine_options,
    names_option,
    out_argument,
    parse_settings,
    product_argument,
    published_data_option,
    require_names_are_used,
    require_published_data_is_used,
    require_totals_are_used,
    set_option,
    t1_option,
)
from censafe.cli.progress import TerminalObserver

__all__ = ["command"]


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
    "--dataset",
    metavar="NAME",
    help="Account that all files ever charged under NAME share, also edited copies of them.",
)
@click.option(
    "--cap",
    type=EXACT,
    metavar="FRACTION",
    help="Most that the record files, and all that were read with them, may spend in all, now and later.",
)
@click.option("--raise-cap", is_flag=True, help="Let --cap replace the caps that were named before.")
@click.option(
    "--spend-more", is_flag=True, help="Go on although some of the record files were charged before."
)
@click.option("--strict", is_flag=True, help="Stop also where records disagree with each other.")
@click.option("--strict-ledger", is_flag=True, help="Count reservations of killed runs as spent.")
@click.option(
    "--key-dir",
    type=click.Path(file_okay=False, path_type=Path),
    help="Keep the noise key here until the run is complete. Keep it as secret as the records.",
)
@click.option(
    "--test-key", type=int, metavar="SEED", help="Seeded noise: NOT PRIVATE, spends nothing, stamped."
)
@published_data_option
@click.option(
    "--confidence", type=EXACT, help="Level of the margins of error [default: as in the product's papers]."
)
@t1_option
@click.option(
    "--water-blocks",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="safetab with coterminous on: public list of blocks without land (header block, 15 digits a line).",
)
@names_option
@click.option(
    "--workers",
    type=click.IntRange(1),
    metavar="N",
    help="Threads of the estimation [default: cores, at most 2].",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")
@engine_options
def command(
    product: str,
    config: str,
    data: Path,
    out: Path,
    settings: tuple[str, ...],
    ledger: Path | None,
    dataset: str | None,
    cap: Fraction | None,
    raise_cap: bool,
    spend_more: bool,
    strict: bool,
    strict_ledger: bool,
    key_dir: Path | None,
    test_key: int | None,
    published_data: bool,
    confidence: Fraction | None,
    t1: Path | None,
    water_blocks: Path | None,
    names: Path | None,
    workers: int | None,
    as_json: bool,
    threads: int | None,
    memory: str | None,
    scratch: Path | None,
    examples: Path | None,
    quiet: bool,
) -> None:
    """Measure DATA with exact noise, pay from the ledger, and publish the tables in OUT.

    The same command again continues a run that was stopped; nothing is ever measured twice.

    \b
    Examples:
      censafe run phsafe config.json data/ release/
      censafe run phsafe sdhc-us data/ release/ --set reader=csv --set state_filter=44,50
      censafe run phsafe sdhc-us data/ rehearsal/ --set reader=csv --test-key 1
      censafe run safetab-p ddhca data/ detailed-a/ --set reader=csv --set run_pr=false
      censafe run safetab-h ddhcb data/ detailed-b/ --set reader=csv --set run_pr=false --t1 detailed-a/
      censafe run topdown pl94-us state/ microdata/ --set root=State
      censafe run topdown pl94-us published/ demonstration/ --set root=State --set reader=pl94 --published-data
    """
    from censafe.products.registry import planner_of, recipe_of
    from censafe.products.run.options import ReadOptions, RunOptions

    observer = TerminalObserver(quiet=quiet)
    require_totals_are_used(product, t1)
    require_published_data_is_used(product, published_data)
    require_names_are_used(product, names)
    reading = ReadOptions(
        checks="strict" if strict else "full",
        examples=examples,
        threads=threads,
        memory=memory,
        scratch=scratch,
        t1=t1,
        water_blocks=water_blocks,
        observer=observer,
    )
    options = RunOptions(
        ledger=ledger,
        dataset=dataset,
        cap=cap,
        raise_cap=raise_cap,
        spend_more=spend_more,
        strict_ledger=strict_ledger,
        key_dir=key_dir,
        test_key=test_key,
        published_data=published_data,
        names=names,
        confidence=planner_of(product).CONFIDENCE if confidence is None else confidence,
        **({} if workers is None else {"workers": workers}),
    )
    result = recipe_of(product).run(config, data, out, parse_settings(settings), reading, options)
    click.echo(result.to_json() if as_json else result.summary())
