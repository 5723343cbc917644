"""The data products by name, and what each offers to verbs that are the same for all."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from censafe.planning.effort import Effort
from censafe.planning.rows import PlanReport
from censafe.planning.targets import Asked

if TYPE_CHECKING:
    from censafe.planning.meaning import Reach
    from censafe.population.findings import Finding
    from censafe.products.options import EstimateOptions, ReadOptions, RunOptions
    from censafe.products.runner import RunResult

__all__ = ["PLANNERS", "RECIPES", "SHEETS", "Planner", "Recipe", "planner_of", "recipe_of"]


class Planner(Protocol):
    """A module that plans one product; configurations are the product's own and only handed through."""

    CONFIDENCE: Fraction
    """Level of the margins of error in the papers of the product."""

    def load(
        self, source: str, overrides: Mapping[str, str], margins: Mapping[str, Fraction], confidence: Fraction
    ) -> Any:
        """Read and check a configuration; ``margins`` are wanted margins of error that replace budgets."""

    def report(self, config: Any, *, confidence: Fraction, delta: Fraction) -> PlanReport:
        """Cost, noise and margins of everything that would be measured."""

    def paper(self, config: Any) -> str:
        """The product paper's own table as CSV."""

    def budgets(self, config: Any) -> dict[str, Fraction]:
        """Budgets above 0 by the names that targets use."""

    def asked(self, config: Any, name: str, *, combined: bool) -> tuple[Asked, ...]:
        """Answers that a target names, and their variance as a function of the budgets."""

    def overrides(self, config: Any, budgets: Mapping[str, Fraction]) -> dict[str, str]:
        """``--set`` keys and values that give these budgets."""

    def questions(self, config: Any) -> tuple[Reach, ...]:
        """Questions about one record, and the measured cells that they move."""

    def effort(self, config: Any, size: int | None) -> Effort | None:
        """Expected time and memory of a run over so many records or blocks, None for the nation; None where no rate is known."""


PLANNERS: Final[Mapping[str, str]] = {
    "phsafe": "censafe.products.phsafe.planner",
    "safetab-p": "censafe.products.safetab_p.planner",
    "safetab-h": "censafe.products.safetab_h.planner",
    "topdown": "censafe.products.topdown.planner",
}
"""Name on the command line -> module, imported when it is asked for."""

SHEETS: Final[Mapping[str, str]] = {
    "phsafe": "sdhc-us",
    "safetab-p": "ddhca",
    "safetab-h": "ddhcb",
    "topdown": "pl94-us",
}
"""Shipped configuration that stands for a product in a workbook."""


class Recipe(Protocol):
    """A module that validates and releases one product, and publishes it again."""

    def validate(
        self, config: str, data: Path, settings: Mapping[str, str], reading: ReadOptions
    ) -> tuple[Finding, ...]:
        """Check configuration and records and return all findings."""

    def run(
        self,
        config: str,
        data: Path,
        out: Path,
        settings: Mapping[str, str],
        reading: ReadOptions,
        options: RunOptions,
    ) -> RunResult:
        """The protected release."""

    def estimate(self, out: Path, options: EstimateOptions) -> RunResult:
        """Everything right of the door again, for a finished run."""


RECIPES: Final[Mapping[str, str]] = {
    "phsafe": "censafe.products.phsafe.recipe",
    "safetab-p": "censafe.products.safetab_p.recipe",
    "safetab-h": "censafe.products.safetab_h.recipe",
    "topdown": "censafe.products.topdown.recipe",
}
"""Name on the command line -> module, imported when it is asked for."""


def recipe_of(product: str) -> Recipe:
    """The recipe of a product."""
    return cast(Recipe, import_module(RECIPES[product]))


def planner_of(product: str) -> Planner:
    """The planner of a product.

    Example:
        >>> planner_of("safetab-p").CONFIDENCE
        Fraction(19, 20)
    """
    return cast(Planner, import_module(PLANNERS[product]))
