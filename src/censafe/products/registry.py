"""The data products by name, and what each offers to verbs and to the explorer page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, cast, runtime_checkable

from censafe.errors import UsageError
from censafe.planning.explorer.sheets import ExplorerSheet
from censafe.planning.prices.extras import AreaErrors, Effort, EstimatedTables
from censafe.planning.prices.rows import PlanReport
from censafe.planning.prices.targets import TargetQuery
from censafe.products.configuration.document import ConfigFields
from censafe.products.configuration.source import PRODUCTS, ShippedConfig, shipped_configs

if TYPE_CHECKING:
    from censafe.planning.prices.meaning import RecordQuestion
    from censafe.population.findings import Finding
    from censafe.products.run.options import EstimateOptions, ReadOptions, RunOptions
    from censafe.products.run.runner import RunResult


class Planner(Protocol):
    """A module or an object that plans one product; configurations are the product's own and only handed through."""

    CONFIDENCE: Fraction
    """Level of the margins of error in the papers of the product."""

    def load(
        self, source: str, overrides: Mapping[str, str], margins: Mapping[str, Fraction], confidence: Fraction
    ) -> Any:
        """Read and check a configuration; ``margins`` are target margins of error that replace budgets."""

    def report(self, config: Any, *, confidence: Fraction, delta: Fraction) -> PlanReport:
        """Cost, noise and margins of everything that would be measured."""

    def paper(self, config: Any) -> str:
        """The product paper's own table as CSV."""

    def budgets_of(self, config: Any) -> dict[str, Fraction]:
        """Budgets above 0 by the names that targets use."""

    def named_answers(self, config: Any, name: str, *, combined: bool) -> tuple[TargetQuery, ...]:
        """Answers that a target names, and their variance as a function of the budgets."""

    def overrides(self, config: Any, budgets: Mapping[str, Fraction]) -> dict[str, str]:
        """``--set`` keys and values that give these budgets."""

    def questions(self, config: Any) -> tuple[RecordQuestion, ...]:
        """Questions about one record, and the measured cells that they move."""

    def effort(
        self, config: Any, size: int | None, estimated: EstimatedTables | None = None
    ) -> Effort | None:
        """Expected time and memory of a run over so many records or blocks, None for the nation, with estimates of some tables; None where no rate is known."""


@runtime_checkable
class SpinePlanner(Planner, Protocol):
    """A planner of a product whose areas need not nest."""

    def area_errors(self, config: Any, data: Path) -> tuple[AreaErrors, ...]:
        """Errors of areas off the spine beside those on it, where the data list both."""


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


@dataclass(frozen=True)
class Product:
    """One product: what it offers is imported when it is used.

    Args:
        modules: by what they offer, a module, or an object of one behind a colon.
    """

    name: str
    workbook: str
    modules: Mapping[str, str] = field(repr=False)

    def _load(self, what: str) -> Any:
        module, _, name = self.modules[what].partition(":")
        loaded = import_module(module)
        return getattr(loaded, name) if name else loaded

    @property
    def recipe(self) -> Recipe:
        """Validates, releases, and repeats publication."""
        return cast(Recipe, self._load("recipe"))

    @property
    def planner(self) -> Planner:
        """Plans a configuration."""
        return cast(Planner, self._load("planner"))

    def sheet(self, shipped: ShippedConfig) -> ExplorerSheet:
        """A shipped configuration for the explorer page."""
        return cast(ExplorerSheet, self._load("explorer").sheet(shipped))

    @property
    def fields(self) -> ConfigFields:
        """The keys of its configurations."""
        fields = self._load("fields")
        return cast(ConfigFields, fields(self.name) if callable(fields) else fields)

    def outline(self, shipped: ShippedConfig) -> tuple[str, ...]:
        """Tables, schemas, queries, passes and constraints of a shipped configuration in lines of text."""
        return cast(tuple[str, ...], self._load("outline").outline(shipped))


def _product(name: str, workbook: str, package: str, **others: str) -> Product:
    places = {"recipe": "recipe", "planner": "planner", "explorer": "explorer"} | others
    modules = {what: f"censafe.products.{package}.{place}" for what, place in places.items()}
    return Product(name, workbook, modules)


_SAFETAB: Final = {"explorer": "planner", "fields": "config:detailed_fields", "outline": "tables"}
_PRODUCTS: Final = {
    product.name: product
    for product in (
        _product("phsafe", "sdhc-us", "phsafe", explorer="planner", fields="config:FIELDS", outline="plan"),
        _product(
            "safetab-p",
            "ddhca",
            "detailed",
            recipe="recipe:PERSONS",
            planner="planner:PERSONS",
            **_SAFETAB,
        ),
        _product(
            "safetab-h",
            "ddhcb",
            "detailed",
            recipe="recipe:HOUSEHOLDS",
            planner="planner:HOUSEHOLDS",
            **_SAFETAB,
        ),
        _product(
            "topdown",
            "pl94-us",
            "topdown",
            outline="configuration.outline",
            fields="configuration.keys:FIELDS",
        ),
    )
}


def product_of(name: str) -> Product:
    """A product by its name on the command line.

    Example:
        >>> product_of("safetab-p").planner.CONFIDENCE
        Fraction(19, 20)
        >>> from censafe.products.configuration.source import get_shipped
        >>> product_of("safetab-h").outline(get_shipped("ddhcb"))[0]
        'Tables t3: Household type. Universe: Households of detailed groups'
        >>> product_of("topdown").fields.by_noun["spine"].allowed
        ('standard', 'aian', 'optimized', 'prim', 'production')
    """
    if name not in _PRODUCTS:
        raise UsageError(f"there is no product {name!r}; products are {', '.join(PRODUCTS)}")
    return _PRODUCTS[name]


def shipped_sheets(products: Sequence[str] = tuple(PRODUCTS)) -> tuple[ExplorerSheet, ...]:
    """A sheet for every shipped configuration of some products, those of the national tables first.

    Example:
        >>> [sheet.key for sheet in shipped_sheets(["phsafe"])]
        ['sdhc-us', 'sdhc-pr']
    """
    configs = [config for product in products for config in shipped_configs(product)]
    configs.sort(key=lambda config: (list(PRODUCTS).index(config.product), not config.name.endswith("-us")))
    return tuple(product_of(config.product).sheet(config) for config in configs)
