"""What ``plan`` asks of both SafeTab products, given the product's own way to read a configuration."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from censafe.planning.counts import with_counts
from censafe.planning.effort import Effort, Rate, Run, effort_of
from censafe.planning.meaning import Reach
from censafe.planning.render import paper_csv
from censafe.planning.rows import PlanReport, plan_report
from censafe.planning.targets import Asked
from censafe.products.safetab import knobs
from censafe.products.safetab.config import SafetabConfig
from censafe.products.safetab.facts import plan_notes, query_facts
from censafe.products.safetab.paper_table import paper_rows
from censafe.products.safetab.parameters import read_universe
from censafe.products.safetab.plan import plan_release
from censafe.products.safetab.reaches import reaches
from censafe.products.safetab.targets import budgets_for_margins
from censafe.products.safetab.universe import Universe

__all__ = [
    "CONFIDENCE",
    "Loaded",
    "asked",
    "budgets",
    "effort",
    "load_planned",
    "overrides",
    "paper",
    "questions",
    "report",
]

CONFIDENCE: Final = Fraction(19, 20)
_BENCHMARK: Final = "benchmarks/safetab_scale.py"
_AREAS: Final = "a tenth of the records in a tenth of the areas"
_RATES: Final = {
    "safetab-p": Rate("persons", 331_449_281, (Run(33_000_000, 31.0, 1.0),), _BENCHMARK, _AREAS),
    "safetab-h": Rate("households", 126_817_580, (Run(12_955_622, 26.1, 0.91),), _BENCHMARK, _AREAS),
}


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
    found = plan_report(
        plan,
        query_facts(config.config, config.universe, plan),
        origin=config.config.origin,
        confidence=confidence,
        delta=delta,
        warnings=config.warnings,
        notes=plan_notes(config.config, plan),
    )
    return with_counts(found)


def paper(config: Loaded) -> str:
    """Table 9 of the SafeTab-H paper."""
    return paper_csv(paper_rows(config.config, config.universe))


def budgets(config: Loaded) -> dict[str, Fraction]:
    """Budgets above 0 by level, for SafeTab-H by class and level."""
    return knobs.budgets_of(config.config)


def asked(config: Loaded, name: str, *, combined: bool) -> tuple[Asked, ...]:
    """What a target names; every cell has one measurement, so there is nothing to combine."""
    return knobs.asked(config.config, config.universe, name)


def overrides(config: Loaded, budgets: Mapping[str, Fraction]) -> dict[str, str]:
    """``--set`` keys and values of budgets."""
    return knobs.overrides(config.config, budgets)


def questions(config: Loaded) -> tuple[Reach, ...]:
    """One for every area."""
    return reaches(plan_release(config.config, config.universe))


def effort(config: Loaded, size: int | None) -> Effort:
    """Time and memory for a number of records."""
    return effort_of(_RATES[config.config.product], size)
