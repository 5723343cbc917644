"""The data products by name, and what each offers to verbs and to the explorer page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from censafe.planning.explorer.sheets import ExplorerSheet
from censafe.planning.prices.extras import Effort
from censafe.planning.prices.rows import PlanReport
from censafe.planning.prices.table_work import AskedTables
from censafe.planning.prices.targets import Asked
from censafe.products.configuration.document import ConfigFields
from censafe.products.configuration.source import PRODUCTS, ShippedConfig, shipped_configs

if TYPE_CHECKING:
    from censafe.planning.prices.meaning import RecordQuestion
    from censafe.population.findings import Finding
    from censafe.products.run.options import EstimateOptions, ReadOptions, RunOptions
    from censafe.products.run.runner import RunResult

__all__ = [
    "EXPLORERS",
    "PLANNERS",
    "RECIPES",
    "SHEETS",
    "Planner",
    "Recipe",
    "fields_of",
    "outline_of",
    "planner_of",
    "recipe_of",
    "shipped_sheets",
]


class _Explorer(Protocol):
    """A module that describes a configuration of one product."""

    def sheet(self, shipped: ShippedConfig) -> ExplorerSheet:
        """One shipped configuration."""


def shipped_sheets(products: Sequence[str] = tuple(PRODUCTS)) -> tuple[ExplorerSheet, ...]:
    """A sheet for every shipped configuration of some products, those of the national tables first.

    Example:
        >>> [sheet.key for sheet in shipped_sheets(["phsafe"])]
        ['sdhc-us', 'sdhc-pr']
    """
    found = [config for product in products for config in shipped_configs(product)]
    found.sort(key=lambda config: (list(PRODUCTS).index(config.product), not config.name.endswith("-us")))
    return tuple(_explorer(config.product).sheet(config) for config in found)


def _explorer(product: str) -> _Explorer:
    return cast(_Explorer, import_module(EXPLORERS[product]))


class Planner(Protocol):
    """A module or an object that plans one product; configurations are the product's own and only handed through."""

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

    def budgets_of(self, config: Any) -> dict[str, Fraction]:
        """Budgets above 0 by the names that targets use."""

    def asked(self, config: Any, name: str, *, combined: bool) -> tuple[Asked, ...]:
        """Answers that a target names, and their variance as a function of the budgets."""

    def overrides(self, config: Any, budgets: Mapping[str, Fraction]) -> dict[str, str]:
        """``--set`` keys and values that give these budgets."""

    def questions(self, config: Any) -> tuple[RecordQuestion, ...]:
        """Questions about one record, and the measured cells that they move."""

    def effort(self, config: Any, size: int | None, asked: AskedTables | None = None) -> Effort | None:
        """Expected time and memory of a run over so many records or blocks, None for the nation, with estimates of some tables; None where no rate is known."""


PLANNERS: Final[Mapping[str, str]] = {
    "phsafe": "censafe.products.phsafe.planner",
    "safetab-p": "censafe.products.detailed.planner:PERSONS",
    "safetab-h": "censafe.products.detailed.planner:HOUSEHOLDS",
    "topdown": "censafe.products.topdown.planner",
}
"""Name on the command line -> module, or an object of it, imported when it is asked for."""

SHEETS: Final[Mapping[str, str]] = {
    "phsafe": "sdhc-us",
    "safetab-p": "ddhca",
    "safetab-h": "ddhcb",
    "topdown": "pl94-us",
}
"""Shipped configuration that stands for a product in a workbook."""


class Recipe(Protocol):
    """A module that validates and releases one product, and repeats its publication."""

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
        """Repeat all post-processing of a finished run."""


EXPLORERS: Final[Mapping[str, str]] = {
    "phsafe": "censafe.products.phsafe.explorer",
    "safetab-p": "censafe.products.detailed.explorer",
    "safetab-h": "censafe.products.detailed.explorer",
    "topdown": "censafe.products.topdown.explorer",
}
"""Name on the command line -> module, imported when it is asked for."""

RECIPES: Final[Mapping[str, str]] = {
    "phsafe": "censafe.products.phsafe.recipe",
    "safetab-p": "censafe.products.detailed.persons.recipe",
    "safetab-h": "censafe.products.detailed.households.recipe",
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
    module, _, name = PLANNERS[product].partition(":")
    found = import_module(module)
    return cast(Planner, getattr(found, name) if name else found)


_OUTLINES: Final[Mapping[str, str]] = {
    "phsafe": "censafe.products.phsafe.outline",
    "safetab-p": "censafe.products.detailed.outline",
    "safetab-h": "censafe.products.detailed.outline",
    "topdown": "censafe.products.topdown.configuration.outline",
}
"""Name on the command line -> module with ``outline(name)``: what a shipped configuration takes from other files of censafe."""


def outline_of(shipped: ShippedConfig) -> tuple[str, ...]:
    """Tables, schemas, queries, passes and constraints of a shipped configuration in lines of text.

    Example:
        >>> from censafe.products.configuration.source import get_shipped
        >>> outline_of(get_shipped("ddhcb"))[0]
        'Tables t3: Household type. Universe: Households of detailed groups'
    """
    found: tuple[str, ...] = import_module(_OUTLINES[shipped.product]).outline(shipped)
    return found


_FIELDS: Final[Mapping[str, str]] = {
    "phsafe": "censafe.products.phsafe.config:FIELDS",
    "safetab-p": "censafe.products.detailed.keys:detailed_fields",
    "safetab-h": "censafe.products.detailed.keys:detailed_fields",
    "topdown": "censafe.products.topdown.configuration.keys:FIELDS",
}
"""Name on the command line -> the keys of its configurations, or a function that gives them."""


def fields_of(product: str) -> ConfigFields:
    """The keys of a product's configurations.

    Example:
        >>> fields_of("topdown").by_noun["spine"].allowed
        ('standard', 'aian', 'optimised', 'prim', 'production')
    """
    module, _, name = _FIELDS[product].partition(":")
    found = getattr(import_module(module), name)
    return cast(ConfigFields, found(product) if callable(found) else found)
