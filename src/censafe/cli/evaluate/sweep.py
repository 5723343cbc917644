"""``censafe evaluate sweep``: TopDown at several budgets."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import click

from censafe.cli.options import (
    EXACT,
    RUNS,
    SEED,
    WORKERS,
    config_argument,
    data_argument,
    out_argument,
    parse_settings,
    published_data_option,
    quiet_option,
    set_option,
)
from censafe.cli.summary import json_option, run_evaluation


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
def command(
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
