"""``censafe synth``: a synthetic population in the Bureau's input layouts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from censafe.cli.options import out_argument
from censafe.cli.progress import TerminalObserver
from censafe.errors import UsageError

if TYPE_CHECKING:
    from censafe.population.synthetic.blocks import HistogramLayoutName
    from censafe.population.synthetic.fixed_width import FixedLayout
    from censafe.population.synthetic.population import Layout, SynthReport

__all__ = ["command"]

_LAYOUTS: Mapping[str, Layout] = {"phsafe": "phsafe", "safetab": "safetab", "all": "all"}
_HISTOGRAMS: Mapping[str, HistogramLayoutName] = {"pl94": "pl94", "e2e-1940": "e2e"}
_FIXED: Mapping[str, FixedLayout] = {"ipums-1940": "ipums-1940", "cef": "cef"}


@click.command(name="synth")
@out_argument
@click.option("--persons", type=click.IntRange(1), required=True, help="Number of person records.")
@click.option(
    "--states",
    metavar="CODES",
    help="Two-digit state codes, separated by commas [default: 50 states and D.C.]; 72 for Puerto Rico.",
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Same seed, same records.")
@click.option(
    "--format",
    "file_format",
    type=click.Choice(["parquet", "csv"]),
    default="parquet",
    show_default=True,
    help="Layout of the files.",
)
@click.option(
    "--layout",
    type=click.Choice([*_LAYOUTS, *_HISTOGRAMS, *_FIXED]),
    default="phsafe",
    show_default=True,
    help="Whose input files to write: records (phsafe, safetab, all, cef, ipums-1940: of the same people) or block histograms "
    "(pl94, e2e-1940).",
)
@click.option(
    "--areas-of",
    type=click.IntRange(1),
    metavar="PERSONS",
    help="Tracts and places of a population of this size [default: that of --persons].",
)
@click.option("--quiet", is_flag=True, help="No progress.")
def command(
    out: Path,
    persons: int,
    states: str | None,
    seed: int,
    file_format: str,
    layout: str,
    areas_of: int | None,
    quiet: bool,
) -> None:
    """Write synthetic records: households, group quarters and a geography down to blocks.

    \b
    Examples:
      censafe synth data/ --persons 1000000
      censafe synth data/ --persons 50000 --states 44,50 --format csv --seed 7
      censafe synth data/ --persons 1000000 --layout all
      censafe synth data/ --persons 643077 --states 50 --layout pl94
      censafe synth data/ --persons 100000 --states 44 --layout cef
    """
    observer = TerminalObserver(quiet=quiet)
    codes = tuple(code.strip() for code in states.split(",")) if states else None
    if layout not in _LAYOUTS and areas_of is not None:
        raise UsageError(
            f"--areas-of: files of the layout {layout} have the areas of their own persons; leave it out"
        )
    if layout in _FIXED:
        _fixed_width(out, persons, codes, seed, _FIXED[layout], observer)
    elif layout in _HISTOGRAMS:
        _histograms(out, persons, codes, seed, file_format, _HISTOGRAMS[layout], observer)
    else:
        _records(out, persons, codes, seed, file_format, _LAYOUTS[layout], areas_of, observer)


def _records(
    out: Path,
    persons: int,
    codes: tuple[str, ...] | None,
    seed: int,
    file_format: str,
    layout: Layout,
    areas_of: int | None,
    observer: TerminalObserver,
) -> None:
    from censafe.population.synthetic.population import synthesize

    with observer.stage("synthetic population"):
        report = synthesize(
            out,
            persons=persons,
            states=codes,
            seed=seed,
            file_format="csv" if file_format == "csv" else "parquet",
            layout=layout,
            areas_of=areas_of,
            progress=observer.counter("persons", persons),
        )
    _show(report)


def _show(report: SynthReport) -> None:
    click.echo(
        f"{report.persons:,} persons in {report.housing_units:,} housing units ({report.vacant:,} vacant) and "
        f"{report.group_quarters:,} group quarters of {report.states} state{'' if report.states == 1 else 's'}, in {report.folder}"
    )


def _fixed_width(
    out: Path,
    persons: int,
    codes: tuple[str, ...] | None,
    seed: int,
    layout: FixedLayout,
    observer: TerminalObserver,
) -> None:
    from censafe.population.synthetic.fixed_width import synthesize_fixed

    with observer.stage("synthetic population"):
        report = synthesize_fixed(
            out,
            persons=persons,
            states=codes,
            seed=seed,
            layout=layout,
            progress=observer.counter("persons", persons),
        )
    _show(report)


def _histograms(
    out: Path,
    persons: int,
    codes: tuple[str, ...] | None,
    seed: int,
    file_format: str,
    layout: HistogramLayoutName,
    observer: TerminalObserver,
) -> None:
    from censafe.population.synthetic.blocks import synthesize_histograms

    if file_format != "parquet":
        raise UsageError("format: block histograms are written as Parquet only; leave --format out")
    with observer.stage("synthetic histograms"):
        report = synthesize_histograms(
            out,
            persons=persons,
            states=codes,
            seed=seed,
            layout=layout,
            progress=observer.counter("persons", persons),
        )
    click.echo(
        f"{report.persons:,} persons in {report.blocks:,} blocks with {report.housing_units:,} housing units and "
        f"{report.group_quarters:,} group quarters of {report.states} state{'' if report.states == 1 else 's'}, in {report.folder}"
    )
