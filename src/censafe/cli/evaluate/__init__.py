"""``censafe evaluate``: what the noise does to the numbers."""

from __future__ import annotations

import click

from censafe.cli.lazy import LazyGroup

__all__ = ["command"]

_MODULES = {
    "phsafe": ("censafe.cli.evaluate.tables:phsafe", "Noise draws of PHSafe against the truth."),
    "safetab-p": ("censafe.cli.evaluate.tables:safetab_p", "The same of SafeTab-P."),
    "safetab-h": ("censafe.cli.evaluate.tables:safetab_h", "The same of SafeTab-H."),
    "topdown": (
        "censafe.cli.evaluate.topdown",
        "TopDown against block-by-block noise and raw noisy counts, level by level.",
    ),
    "sweep": ("censafe.cli.evaluate.sweep", "TopDown at several budgets: errors, bias, empirical loss."),
    "uncertainty": (
        "censafe.cli.evaluate.uncertainty",
        "Error of what is already published, from the published file alone.",
    ),
    "pair": ("censafe.cli.evaluate.pair", "Every measure on two files, the true and the published one."),
    "epl": ("censafe.cli.evaluate.pair:epl", "Empirical privacy loss of a published file."),
    "reliability": (
        "censafe.cli.evaluate.pair:reliability",
        "From which size on shares of groups can be trusted.",
    ),
    "semantics": (
        "censafe.cli.evaluate.semantics",
        "What a budget means to an attacker: power of the best attack; opens no data.",
    ),
    "report": ("censafe.cli.evaluate.report", "Rewrite the page of an evaluation from its files."),
}


@click.command(cls=LazyGroup, modules=_MODULES, name="evaluate")
def command() -> None:
    """Say how wrong protected numbers are, for whom, and what the noise really hid.

    Draws use test keys, so nothing is spent or published. What compares with the truth is CONFIDENTIAL, and every file
    says so.

    \b
    Examples:
      censafe evaluate phsafe sdhc-us data/ evaluation/ --set reader=csv
      censafe evaluate topdown pl94-us blocks/ evaluation/ --set root=State
      censafe evaluate sweep topdown e2e-1940 blocks/ sweep/ --epsilon 0.25,0.5,1,2,4,8 --runs 4
      censafe evaluate uncertainty release/ errors/
      censafe evaluate pair true.csv published.csv comparison/
      censafe evaluate semantics topdown pl94-us meaning/
    """
