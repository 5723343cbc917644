"""``censafe evaluate sweep``: TopDown at several budgets."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import click

from censafe.cli.options import (
    EXACT,
    config_argument,
    data_argument,
    out_argument,
    parse_settings,
    set_option,
)
from censafe.cli.progress import TerminalObserver

__all__ = ["command"]


class _Exacts(click.ParamType[tuple[Fraction, ...]]):
    """Exact numbers above zero, separated by commas."""

    name = "list"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[Fraction, ...]:
        """Parse the literal texts."""
        if isinstance(value, tuple):
            return value
        found = tuple(EXACT.convert(part.strip(), param, ctx) for part in str(value).split(","))
        if any(one <= 0 for one in found):
            self.fail(f"{value!r}: every budget must be above 0.", param, ctx)
        return found


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
    help="Budgets of the whole run, for example 0.25,0.5,1,2,4,8; under zCDP by the tight conversion at delta 1e-10.",
)
@click.option(
    "--rho",
    "losses",
    type=_Exacts(),
    default=(),
    metavar="LIST",
    help="Budgets of the whole run as rho, for configurations under zCDP.",
)
@click.option(
    "--runs", type=click.IntRange(1), default=4, show_default=True, help="Independent runs of every budget."
)
@click.option(
    "--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of test keys and samples."
)
@click.option(
    "--workers", type=click.IntRange(1), default=2, show_default=True, help="Runs at the same time."
)
@click.option(
    "--public",
    is_flag=True,
    help="Write only what the noise laws of every budget imply; run nothing, compare with no true count.",
)
@click.option("--quiet", is_flag=True, help="No progress.")
def command(
    product: str,
    config: str,
    data: Path,
    out: Path,
    settings: tuple[str, ...],
    epsilons: tuple[Fraction, ...],
    losses: tuple[Fraction, ...],
    runs: int,
    seed: int,
    workers: int,
    public: bool,
    quiet: bool,
) -> None:
    """Run TopDown at several budgets beside simple random samples: errors, bias, empirical privacy loss.

    Makes the tables and figures of Petti & Flaxman's study of the 1940 census for any population, and says which of its
    findings hold. Everything it writes is CONFIDENTIAL, except with --public. The same command again goes on where it stopped; more budgets or
    runs are added to what is there.

    \b
    Examples:
      censafe evaluate sweep topdown e2e-1940 blocks/ sweep/ --epsilon 0.25,0.5,0.75,1,2,4,6,8 --runs 4
      censafe evaluate sweep topdown pl94-us blocks/ sweep/ --set root=State --epsilon 1,2,4,8,16
      censafe evaluate sweep topdown pl94-us blocks/ sweep/ --set root=State --rho 1/2,2.56
    """
    from censafe.evaluation.sweep_evaluation import evaluate_sweep
    from censafe.evaluation.topdown_runs import SourceOf
    from censafe.products.options import ReadOptions

    if not epsilons and not losses:
        raise click.UsageError("give budgets: --epsilon 0.25,0.5,1,2,4,8 (or --rho under zCDP).")
    reading = ReadOptions(observer=TerminalObserver(quiet=quiet))
    result = evaluate_sweep(
        SourceOf.of(config, data, parse_settings(settings)),
        out,
        reading,
        epsilons=epsilons,
        losses=losses,
        runs=runs,
        seed=seed,
        workers=workers,
        public=public,
    )
    click.echo(result.text())
