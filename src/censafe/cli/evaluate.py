"""``censafe evaluate``: what the noise does to the numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import click

from censafe.cli.lazy import LazyGroup
from censafe.cli.options import (
    EXACT,
    RUNS,
    SEED,
    SIZE,
    WORKERS,
    FiniteRange,
    confidence_option,
    config_argument,
    data_argument,
    engine_options,
    names_option,
    out_argument,
    parse_settings,
    product_argument,
    published_data_option,
    quiet_option,
    set_option,
    t1_option,
    together,
)
from censafe.cli.summary import json_option, run_evaluation, show_evaluation, show_summary

_MODULES = {
    "phsafe": (
        "censafe.cli.evaluate:phsafe",
        "Error of PHSafe over noise draws, against the true tables.",
    ),
    "safetab-p": (
        "censafe.cli.evaluate:safetab_p",
        "Error of SafeTab-P over noise draws, against the true tables.",
    ),
    "safetab-h": (
        "censafe.cli.evaluate:safetab_h",
        "Error of SafeTab-H over noise draws, against the true tables.",
    ),
    "topdown": (
        "censafe.cli.evaluate:topdown",
        "Error of TopDown by level, beside block-by-block noise and raw noisy counts.",
    ),
    "sweep": (
        "censafe.cli.evaluate:sweep",
        "TopDown at several budgets: error, bias, empirical privacy loss.",
    ),
    "uncertainty": (
        "censafe.cli.evaluate:uncertainty",
        "Estimate the error of published counts from the published file alone.",
    ),
    "pair": ("censafe.cli.evaluate:pair", "Compare a true file with a published file by every measure."),
    "epl": ("censafe.cli.evaluate:epl", "Empirical privacy loss of a published file."),
    "reliability": (
        "censafe.cli.evaluate:reliability",
        "Find the population size above which shares of groups are reliable.",
    ),
    "semantics": (
        "censafe.cli.evaluate:semantics",
        "Show the power of the best attack under a budget; reads no data.",
    ),
    "report": ("censafe.cli.evaluate:report", "Rewrite the report of an evaluation from its files."),
}


@click.command(cls=LazyGroup, modules=_MODULES, name="evaluate")
def command() -> None:
    """Measure the error of protected counts, for which areas and groups it is largest, and privacy protection in practice.

    Noise is drawn from test keys, so no budget is spent and nothing is published. Comparisons with true counts are CONFIDENTIAL, and
    every file is stamped so.

    \b
    Examples:
      censafe evaluate phsafe sdhc-us data/ evaluation/ --set reader=csv
      censafe evaluate topdown pl94-us blocks/ evaluation/ --set root=State
      censafe evaluate sweep topdown e2e-1940 blocks/ sweep/ --epsilon 0.25,0.5,1,2,4,8 --runs 4
      censafe evaluate uncertainty release/ errors/
      censafe evaluate pair true.csv published.csv comparison/
      censafe evaluate semantics topdown pl94-us meaning/
    """


def _table_options(trials: int) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Arguments and options of every product, with its default number of draws."""
    return together(
        click.option("--trials", type=RUNS, default=trials, show_default=True, help="Number of noise draws."),
        config_argument,
        data_argument,
        out_argument,
        set_option,
        click.option("--seed", type=SEED, default=0, show_default=True, help="Seed of the test keys."),
        confidence_option,
        engine_options,
        json_option,
    )


@click.command(name="phsafe")
@_table_options(50)
def phsafe(**options: Any) -> None:
    """Compare observed with expected margins of error, and separate the bias of truncation from noise.

    All output is CONFIDENTIAL. The noise comes from test keys: no budget is spent.

    \b
    Example:
      censafe evaluate phsafe sdhc-us data/ evaluation/ --set reader=csv --trials 100
    """
    _evaluate_tables("phsafe", **options)


@click.command(name="safetab-p")
@_table_options(10)
def safetab_p(**options: Any) -> None:
    """Compare observed with expected margins of error, and show which tables groups receive and which empty groups are published.

    All output is CONFIDENTIAL. The noise comes from test keys: no budget is spent.

    \b
    Example:
      censafe evaluate safetab-p ddhca data/ evaluation-p/ --set reader=csv --set run_pr=false
    """
    _evaluate_tables("safetab-p", **options)


@click.command(name="safetab-h")
@_table_options(10)
@t1_option
def safetab_h(**options: Any) -> None:
    """Compare observed with expected margins of error, and show which tables groups receive.

    All output is CONFIDENTIAL. The noise comes from test keys: no budget is spent.

    \b
    Example:
      censafe evaluate safetab-h ddhcb data/ evaluation-h/ --set reader=csv --set run_pr=false --t1 detailed-a/
    """
    _evaluate_tables("safetab-h", **options)


def _evaluate_tables(
    product: str,
    *,
    config: str,
    data: Path,
    out: Path,
    settings: tuple[str, ...],
    **options: Any,
) -> None:
    import censafe

    chosen = censafe.configuration(product, config, parse_settings(settings))
    run_evaluation(censafe.evaluate, chosen, data, out, **options)


@click.command(name="topdown")
@config_argument
@data_argument
@out_argument
@set_option
@click.option("--runs", type=RUNS, default=4, show_default=True, help="Number of independent runs.")
@click.option("--seed", type=SEED, default=0, show_default=True, help="Seed of the test keys.")
@click.option("--workers", type=WORKERS, default=2, show_default=True, help="Number of runs in parallel.")
@click.option(
    "--public", is_flag=True, help="Write only what follows from the noise distributions; use no true counts."
)
@click.option(
    "--areas",
    type=click.Path(exists=True, path_type=Path),
    multiple=True,
    help="CSV or Parquet with a block column (geocode, GEOID20, GEOID or GISJOIN) and one column of codes for each kind of area, such as place; or GRF-C.",
)
@names_option
@published_data_option
@quiet_option
@json_option
def topdown(
    config: str,
    data: Path,
    out: Path,
    settings: tuple[str, ...],
    **options: Any,
) -> None:
    """Compare TopDown, noise added block by block, and raw noisy counts with the true counts, at every level.

    All output is CONFIDENTIAL, except with --public or --published-data. The noise comes from test keys: no budget is spent. An
    evaluation that was stopped resumes when the same command is given again.

    \b
    Examples:
      censafe evaluate topdown pl94-us blocks/ evaluation/ --set root=State --runs 10
      censafe evaluate topdown e2e-1940 blocks/ evaluation/ --set epsilon=2
      censafe evaluate topdown pl94-us blocks/ noise/ --set root=State --public
      censafe evaluate topdown pl94-us blocks/ places/ --set root=State --areas GRF-C_ri2020.txt
    """
    import censafe

    chosen = censafe.configuration("topdown", config, parse_settings(settings))
    run_evaluation(censafe.evaluate, chosen, data, out, **options)


class _Exacts(click.ParamType[tuple[Fraction, ...]]):
    """Exact numbers above zero, separated by commas."""

    name = "list"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[Fraction, ...]:
        """Parse the literal texts."""
        if isinstance(value, tuple):
            return value
        budgets = tuple(EXACT.convert(part.strip(), param, ctx) for part in str(value).split(","))
        if any(budget <= 0 for budget in budgets):
            self.fail(f"{value!r}: every budget must be above 0.", param, ctx)
        return budgets


class _Published(click.ParamType[tuple[Fraction, Path]]):
    """An epsilon and the files that were published at it."""

    name = "published"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[Fraction, Path]:
        """Parse ``EPS=FOLDER``."""
        if isinstance(value, tuple):
            return value
        text, separator, place = str(value).partition("=")
        path = Path(place)
        if not separator or not place:
            self.fail(f"{value!r}: write EPS=FOLDER, for example 0.25=release-1/.", param, ctx)
        epsilon = EXACT.convert(text.strip(), param, ctx)
        if epsilon <= 0:
            self.fail(f"{value!r}: every budget must be above 0.", param, ctx)
        if not path.exists():
            self.fail(f"{place}: there is no such file or folder.", param, ctx)
        return epsilon, path


@click.command(name="sweep")
@click.argument("product", type=click.Choice(["topdown"]), metavar="PRODUCT")
@config_argument
@data_argument
@out_argument
@set_option
@click.option(
    "--epsilon",
    "epsilons",
    type=_Exacts(),
    default=(),
    metavar="LIST",
    help="Total budgets of the runs, for example 0.25,0.5,1,2,4,8; under zCDP, by the tight conversion at delta 1e-10.",
)
@click.option(
    "--rho",
    "losses",
    type=_Exacts(),
    default=(),
    metavar="LIST",
    help="Total budgets of the runs as rho, for configurations under zCDP.",
)
@click.option(
    "--published",
    type=_Published(),
    multiple=True,
    metavar="EPS=FOLDER",
    help="Instead of running: a file or folder published at this epsilon, in a form that 'evaluate pair' reads; repeatable.",
)
@click.option(
    "--runs",
    type=RUNS,
    default=4,
    show_default=True,
    help="Number of independent runs at each budget.",
)
@click.option("--seed", type=SEED, default=0, show_default=True, help="Seed of the test keys and samples.")
@click.option("--workers", type=WORKERS, default=2, show_default=True, help="Number of runs in parallel.")
@click.option(
    "--public",
    is_flag=True,
    help="Write only what follows from the noise distributions at each budget; run nothing, use no true counts.",
)
@published_data_option
@quiet_option
@json_option
def sweep(
    product: str,
    config: str,
    data: Path,
    out: Path,
    settings: tuple[str, ...],
    *,
    published: tuple[tuple[Fraction, Path], ...],
    **options: Any,
) -> None:
    """Run TopDown at several budgets and compare with simple random samples: error, bias, empirical privacy loss.

    Makes the tables and figures of Petti and Flaxman's study of the 1940 census for any population, and reports which of its
    findings hold. With --published, the runs are published files, one or more at each budget. All output is CONFIDENTIAL, except
    with --public or --published-data. If stopped, the same command resumes; further budgets and runs are added.

    \b
    Examples:
      censafe evaluate sweep topdown e2e-1940 blocks/ sweep/ --epsilon 0.25,0.5,0.75,1,2,4,6,8 --runs 4
      censafe evaluate sweep topdown pl94-us blocks/ sweep/ --set root=State --epsilon 1,2,4,8,16
      censafe evaluate sweep topdown pl94-us blocks/ sweep/ --set root=State --rho 1/2,2.56
      censafe evaluate sweep topdown e2e-1940 extract/ study/ --set reader=ipums-1940 --published 0.25=a/ --published 1=b/
    """
    import censafe

    groups: dict[Fraction, list[Path]] = {}
    for epsilon, path in published:
        groups.setdefault(epsilon, []).append(path)
    chosen = censafe.configuration(product, config, parse_settings(settings))
    run_evaluation(censafe.sweep, chosen, data, out, published=groups, **options)


@click.command(name="uncertainty")
@click.argument("run", type=click.Path(exists=True, file_okay=False, path_type=Path), metavar="RUN")
@out_argument
@click.option(
    "--runs",
    type=RUNS,
    default=10,
    show_default=True,
    help="Number of simulated runs on the published counts.",
)
@click.option("--seed", type=SEED, default=0, show_default=True, help="Seed of the simulated noise.")
@click.option("--workers", type=WORKERS, default=2, show_default=True, help="Number of runs in parallel.")
@click.option(
    "--confidence",
    type=FiniteRange(0.5, 0.999),
    default=0.9,
    show_default=True,
    help="Confidence level of the intervals.",
)
@quiet_option
@json_option
def uncertainty(run: Path, out: Path, **options: Any) -> None:
    """Estimate the error of the published counts of RUN, a finished topdown run.

    Reruns the same configuration on the published counts (approximate Monte Carlo) and writes a root mean square error, a bias and an
    interval for every count. Reads no records and spends no budget: the output is as public as RUN itself.

    \b
    Example:
      censafe evaluate uncertainty redistricting/ errors/ --runs 20
    """
    import censafe

    run_evaluation(censafe.uncertainty, run, out, **options)


_PATH = click.Path(exists=True, path_type=Path)


class _Also(click.ParamType[tuple[str, Path]]):
    """A further published run, and the name of its vintage; empty without."""

    name = "also"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, Path]:
        """Parse ``NAME=PATH`` or ``PATH``; what exists as it stands is a path."""
        if isinstance(value, tuple):
            return value
        if Path(value).exists():
            return "", Path(value)
        name, separator, place = str(value).partition("=")
        if not separator or not name.strip() or not place:
            self.fail(f"{value!r}: there is no such file or folder; write NAME=PATH or PATH.", param, ctx)
        if not Path(place).exists():
            self.fail(f"{place}: there is no such file or folder.", param, ctx)
        return name.strip(), Path(place)


_pair_options = together(
    click.argument("truth", type=_PATH, metavar="TRUTH"),
    click.argument("published", type=_PATH, metavar="PUBLISHED"),
    out_argument,
    names_option,
    published_data_option,
    click.option("--config", metavar="CONFIG", help="Both sides are block histograms of this configuration."),
    set_option,
    click.option("--histogram", metavar="NAME", help="Histogram of the configuration [default: the first]."),
    click.option("--residuals", is_flag=True, help="Also write every residual to residuals.parquet."),
    click.option(
        "--side-by-side",
        metavar="KINDS",
        help="Levels and kinds of areas whose true and published counts are written side by side, or none [default: those with at most 10,000 areas].",
    ),
    click.option(
        "--bins",
        type=SIZE,
        help="Width of population bins, in persons, to use instead of size classes.",
    ),
    click.option(
        "--tables",
        type=_PATH,
        help="Histograms: TOML file of further tables for the workbook, in the form of the Bureau's.",
    ),
    click.option(
        "--characteristics",
        type=_PATH,
        help="Histograms: TOML file of further characteristics, queries and areas to measure.",
    ),
    click.option(
        "--published-units",
        type=_PATH,
        multiple=True,
        help="Histograms: published housing units, one file for each run in the given order, PUBLISHED first "
        "[default: those in PUBLISHED].",
    ),
    click.option(
        "--true-units", type=_PATH, help="Histograms: true housing units [default: those in TRUTH]."
    ),
    click.option(
        "--area-kinds",
        metavar="KINDS",
        help="Kinds of areas to include, such as place,cousub [default: all].",
    ),
    click.option(
        "--areas",
        type=_PATH,
        multiple=True,
        help="Histograms: CSV or Parquet with a block column (geocode, GEOID20, GEOID or GISJOIN) and one column of codes for each kind of area, such "
        "as place; or GRF-C. Areas in the data folder are used without it.",
    ),
    click.option(
        "--also",
        type=_Also(),
        multiple=True,
        metavar="[NAME=]PATH",
        help="Histograms: a further published run. With a name it is a vintage, measured separately, with its own bars in the figures.",
    ),
    click.option("--domain", type=_PATH, help="Histograms: file with a column geocode of every block."),
    click.option(
        "--unmatched-as-zero",
        is_flag=True,
        help="Tables: rows on one side only count as 0 on the other, also where they are more than 5%.",
    ),
    click.option("--count", metavar="COLUMN", help="Tables: column of the counts [default: COUNT]."),
    click.option(
        "--by",
        metavar="COLUMNS",
        help="Tables: columns whose values define the levels; 'file' for the names of the files in folders.",
    ),
    click.option(
        "--groups",
        metavar="QUERY",
        help="Query of mutually exclusive groups, for schemas without race and origin.",
    ),
    click.option(
        "--mode",
        type=click.Choice(["corrected", "as_published"]),
        default="corrected",
        show_default=True,
        help="Corrected formulas, or the arithmetic as published by Petti and Flaxman.",
    ),
    quiet_option,
    json_option,
)


@click.command(name="pair")
@_pair_options
def pair(**options: Any) -> None:
    """Compare a true file with a published one: errors, empirical privacy loss, bias, reliability, impossible areas.

    With --config, both are block histograms: a file of geocode, cell and count, microdata of the redistricting data or of
    1940 (persons.txt), or the folder of a run; TRUTH may also be an input folder for the configuration.
    Without --config, both are tables of any product, whose rows are matched by the codes and attributes that both have. All output is CONFIDENTIAL, except with
    --published-data.

    \b
    Examples:
      censafe evaluate pair blocks/ redistricting/ comparison/ --config pl94-us --set root=State
      censafe evaluate pair extract/ release/ comparison/ --config e2e-1940 --set reader=ipums-1940
      censafe evaluate pair blocks/ august/ comparison/ --config pl94-us --set root=State --also june=june/ --also april=april/
      censafe evaluate pair truth/tables/PH3/PH3.csv release/tables/PH3/PH3.csv comparison/ --by REGION_TYPE
    """
    _compare(None, **options)


@click.command(name="epl")
@_pair_options
def epl(**options: Any) -> None:
    """Empirical privacy loss of a published file: by every estimator, with intervals. It is not a bound on privacy loss.

    TRUTH and PUBLISHED as for ``evaluate pair``.

    \b
    Example:
      censafe evaluate epl blocks/ redistricting/ loss/ --config pl94-us --set root=State
    """
    _compare(("epl",), **options)


@click.command(name="reliability")
@click.option(
    "--alpha",
    type=FiniteRange(0, 1, max_open=True),
    default=0.05,
    show_default=True,
    help="Largest difference of the shares that counts as close.",
)
@click.option(
    "--beta",
    type=FiniteRange(0, 1, max_open=True),
    default=0.05,
    show_default=True,
    help="Share of areas that may differ by more.",
)
@_pair_options
def reliability(**options: Any) -> None:
    """From which population on the share of the largest group is within 5 points in 95% of areas.

    --alpha and --beta put other numbers in place of the 5 points and of the 5% of areas that may be off. TRUTH and PUBLISHED are
    block histograms; see ``evaluate pair``.

    \b
    Examples:
      censafe evaluate reliability blocks/ redistricting/ shares/ --config pl94-us --set root=State
      censafe evaluate reliability blocks/ redistricting/ shares/ --config pl94-us --alpha 0.03 --beta 0.1
    """
    if options["config"] is None:
        raise click.UsageError("reliability needs block histograms: give --config.")
    _compare(("reliability",), **options)


def _compare(
    suites: Sequence[str] | None,
    *,
    config: str | None,
    settings: tuple[str, ...],
    **options: Any,
) -> None:
    import censafe

    if config is None and settings:
        raise click.UsageError("--set changes keys of a configuration: give --config, or leave it out.")
    chosen = None if config is None else censafe.configuration("topdown", config, parse_settings(settings))
    for name in ("by", "area_kinds", "side_by_side"):
        options[name] = tuple(one.strip() for one in options[name].split(",")) if options[name] else ()
    run_evaluation(censafe.compare, configuration=chosen, suites=suites, **options)


@click.command(name="semantics")
@product_argument
@config_argument
@out_argument
@set_option
@quiet_option
@json_option
def semantics(
    product: str, config: str, out: Path, settings: tuple[str, ...], *, quiet: bool, as_json: bool
) -> None:
    """Plot the power of the best possible attack on one record against its false positive rate.

    Exact for the discrete Gaussian, over all noisy measurements that the record affects, beside the continuous Gaussian and the bound for
    every mechanism with that privacy loss. Reads no data: the output is public.

    \b
    Example:
      censafe evaluate semantics topdown pl94-us meaning/
    """
    import censafe

    chosen = censafe.configuration(product, config, parse_settings(settings))
    run_evaluation(censafe.attack_power, chosen, out, quiet=quiet, as_json=as_json)


@click.command(name="report")
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path), metavar="EVALUATION")
@click.option(
    "--public",
    "public",
    type=click.Path(path_type=Path),
    metavar="OUT",
    help="Instead, write to the new folder OUT what follows from the noise distributions alone, for the same configuration and budgets.",
)
@json_option
def report(folder: Path, public: Path | None, *, as_json: bool) -> None:
    """Redraw the figures and rewrite report.html of a finished evaluation from the files in its folder.

    With --public, no comparison is read: no number in OUT depends on a record, and OUT may be shown to anyone.

    \b
    Examples:
      censafe evaluate report evaluation/
      censafe evaluate report evaluation/ --public for-everyone/
    """
    import censafe

    if public is not None:
        show_evaluation(censafe.public_report(folder, public), {}, as_json=as_json)
        return
    paths = censafe.redraw_report(folder)
    show_summary("\n".join(map(str, paths)), folder, paths, as_json=as_json)
