"""``censafe evaluate``: what the noise does to the numbers."""

from __future__ import annotations

import click

from censafe.cli.lazy import LazyGroup

__all__ = ["command"]

_MODULES = {
    "phsafe": (
        "censafe.cli.evaluate.tables:phsafe",
        "Error of PHSafe over noise draws, against the true tables.",
    ),
    "safetab-p": (
        "censafe.cli.evaluate.tables:safetab_p",
        "Error of SafeTab-P over noise draws, against the true tables.",
    ),
    "safetab-h": (
        "censafe.cli.evaluate.tables:safetab_h",
        "Error of SafeTab-H over noise draws, against the true tables.",
    ),
    "topdown": (
        "censafe.cli.evaluate.topdown",
        "Error of TopDown by level, beside block-by-block noise and raw noisy counts.",
    ),
    "sweep": (
        "censafe.cli.evaluate.sweep",
        "TopDown at several budgets: error, bias, empirical privacy loss.",
    ),
    "uncertainty": (
        "censafe.cli.evaluate.uncertainty",
        "Estimate the error of published counts from the published file alone.",
    ),
    "pair": ("censafe.cli.evaluate.pair", "Compare a true file with a published file by every measure."),
    "epl": ("censafe.cli.evaluate.pair:epl", "Empirical privacy loss of a published file."),
    "reliability": (
        "censafe.cli.evaluate.pair:reliability",
        "Find the population size above which shares of groups are reliable.",
    ),
    "semantics": (
        "censafe.cli.evaluate.semantics",
        "Show the power of the best attack under a budget; reads no data.",
    ),
    "report": ("censafe.cli.evaluate.report", "Rewrite the report of an evaluation from its files."),
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
