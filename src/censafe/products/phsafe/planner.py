"""What ``plan`` asks of PHSafe."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Final

from censafe.planning.counts import with_counts
from censafe.planning.effort import Effort, Rate, Run, effort_of
from censafe.planning.render import paper_csv
from censafe.planning.rows import PlanReport, plan_report
from censafe.planning.targets import Asked
from censafe.products.phsafe import knobs
from censafe.products.phsafe.config import PhsafeConfig, load_config
from censafe.products.phsafe.paper_table import paper_rows
from censafe.products.phsafe.plan import plan_release, query_facts
from censafe.products.phsafe.reaches import reaches
from censafe.products.phsafe.targets import budgets_for_margins

__all__ = ["CONFIDENCE", "asked", "budgets", "effort", "load", "overrides", "paper", "questions", "report"]

CONFIDENCE: Final = Fraction(9, 10)
_RUNS: Final = (
    Run(1_000_000, 3.8, 0.32),
    Run(10_000_000, 10.7, 0.62),
    Run(33_000_000, 41.2, 0.83),
    Run(100_000_000, 161.8, 1.13),
    Run(331_449_281, 302.0, 1.93),
)
_RATE: Final = Rate("persons", 331_449_281, _RUNS, "benchmarks/phsafe_scale.py", "Parquet")

budgets = knobs.budgets_of
overrides = knobs.overrides
questions = reaches


def load(
    source: str, overrides: Mapping[str, str], margins: Mapping[str, Fraction], confidence: Fraction
) -> PhsafeConfig:
    """Read and check a configuration, with budgets that reach the wanted margins."""
    config = load_config(source, overrides)
    if not margins:
        return config
    return load_config(source, {**overrides, **budgets_for_margins(config, margins, confidence)})


def report(config: PhsafeConfig, *, confidence: Fraction, delta: Fraction) -> PlanReport:
    """Cost, noise and margins of every table and level."""
    found = plan_report(
        plan_release(config),
        query_facts(config),
        origin=config.origin,
        confidence=confidence,
        delta=delta,
        warnings=config.warnings,
    )
    return with_counts(found)


def paper(config: PhsafeConfig) -> str:
    """Table 10 of the PHSafe paper."""
    return paper_csv(paper_rows(config))


def asked(config: PhsafeConfig, name: str, *, combined: bool) -> tuple[Asked, ...]:
    """What a target names; every answer has one measurement, so there is nothing to combine."""
    return knobs.asked(config, name)


def effort(config: PhsafeConfig, size: int | None) -> Effort:
    """Time and memory for a number of persons."""
    return effort_of(_RATE, size)
