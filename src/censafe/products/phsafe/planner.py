"""What ``plan`` asks of PHSafe."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Final

from censafe.planning.render import paper_csv
from censafe.planning.rows import PlanReport, plan_report
from censafe.products.phsafe.config import PhsafeConfig, load_config
from censafe.products.phsafe.paper_table import paper_rows
from censafe.products.phsafe.plan import plan_release, query_facts
from censafe.products.phsafe.targets import budgets_for_margins

__all__ = ["CONFIDENCE", "load", "paper", "report"]

CONFIDENCE: Final = Fraction(9, 10)


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
    return plan_report(
        plan_release(config),
        query_facts(config),
        origin=config.origin,
        confidence=confidence,
        delta=delta,
        warnings=config.warnings,
    )


def paper(config: PhsafeConfig) -> str:
    """Table 10 of the PHSafe paper."""
    return paper_csv(paper_rows(config))
