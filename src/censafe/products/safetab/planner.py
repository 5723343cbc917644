"""What ``plan`` asks of both SafeTab products, given the product's own way to read a configuration."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from censafe.planning.render import paper_csv
from censafe.planning.rows import PlanReport, plan_report
from censafe.products.safetab.config import SafetabConfig
from censafe.products.safetab.facts import plan_notes, query_facts
from censafe.products.safetab.paper_table import paper_rows
from censafe.products.safetab.parameters import read_universe
from censafe.products.safetab.plan import plan_release
from censafe.products.safetab.targets import budgets_for_margins
from censafe.products.safetab.universe import Universe

__all__ = ["CONFIDENCE", "Loaded", "load_planned", "paper", "report"]

CONFIDENCE: Final = Fraction(19, 20)


@dataclass(frozen=True)
class Loaded:
    """A checked configuration and its universe."""

    config: SafetabConfig
    universe: Universe

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the user should know."""
        return self.config.warnings


def load_planned(
    load_config: Callable[[str, Mapping[str, str]], SafetabConfig],
    source: str,
    overrides: Mapping[str, str],
    margins: Mapping[str, Fraction],
    confidence: Fraction,
) -> Loaded:
    """Read and check a configuration and its parameter files, with budgets that reach the wanted margins."""
    config = load_config(source, overrides)
    universe = read_universe(config.universe)
    if margins:
        wanted = budgets_for_margins(config, universe, margins, confidence)
        config = load_config(source, {**overrides, **wanted})
    return Loaded(config, universe)


def report(config: Loaded, *, confidence: Fraction, delta: Fraction) -> PlanReport:
    """Cost, noise and margins of every level."""
    plan = plan_release(config.config, config.universe)
    return plan_report(
        plan,
        query_facts(config.config, config.universe, plan),
        origin=config.config.origin,
        confidence=confidence,
        delta=delta,
        warnings=config.warnings,
        notes=plan_notes(config.config, plan),
    )


def paper(config: Loaded) -> str:
    """Table 9 of the SafeTab-H paper."""
    return paper_csv(paper_rows(config.config, config.universe))
