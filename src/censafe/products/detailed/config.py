"""SafeTab configurations: the Bureau's parameter folder unchanged, our TOML, and the shipped names."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Final, Literal, cast

from censafe.model import Definition
from censafe.privacy.loss.budget import NotFinite
from censafe.products.configuration.document import Document
from censafe.products.configuration.source import INFINITE, PUERTO_RICO, Budget, Problems, titled
from censafe.products.detailed.codes.stability import StabilityRule
from censafe.products.detailed.codes.universe import PopulationGroupLevel, group_levels
from censafe.products.detailed.config_checks import (
    check_chance,
    check_group_states,
    check_groups,
    check_level_budgets,
    check_missing,
    check_negatives,
    check_stage_1_fraction,
    check_targets,
    check_thresholds,
    check_universe,
)
from censafe.products.detailed.keys import (
    CLASSES,
    Product,
    budget_noun,
    read_detailed_document,
    threshold_noun,
)

Reader = Literal["csv", "cef"]
Negatives = Literal["keep", "zero"]
T1Rule = Literal["stage2", "pooled"]
Coterminous = Literal["off", "donor", "combined"]
MissingBlocks = Literal["stop", "drop"]
_SCOPE: Final = ("max_race_codes", "run_us", "run_pr", "reader")
_USUAL_DECIMALS: Final = 6
_REACHED: Final = Fraction(-(10**9))  # a threshold that every count reaches


@dataclass(frozen=True, kw_only=True)
class SafetabScope:
    """Whose records a verb reads and which groups it counts; all that a truth run needs.

    Args:
        states: of the US run, two-digit codes in ascending order; empty without one.
        missing_blocks: ``stop`` for records whose block is not in the geography file, or ``drop``.
    """

    product: Product
    states: tuple[str, ...]
    run_us: bool
    run_pr: bool
    reader: Reader
    max_race_codes: int
    universe: Path | None
    missing_blocks: MissingBlocks = "stop"
    origin: str
    overrides: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    @property
    def levels(self) -> tuple[PopulationGroupLevel, ...]:
        """Population group levels of the run, whatever their budgets."""
        return group_levels(us=self.run_us, pr=self.run_pr)

    @property
    def all_states(self) -> tuple[str, ...]:
        """States whose records are read, Puerto Rico last."""
        return (*self.states, PUERTO_RICO) if self.run_pr else self.states


@dataclass(frozen=True, kw_only=True)
class SafetabConfig(SafetabScope):
    """A checked configuration of either product.

    Args:
        stability: by which rule the number of groups of a record is bounded.
        budgets: by class of tables (``p``; ``t3``, ``t4``) and key of the level; 0 means not measured, INFINITE no noise.
        thresholds: by the same keys; three in ascending order, or one for ``t4``.
        mark_x: whether an alone count above its count alone or in any combination is published as X.
        moe_targets: 95% margins of error that the budgets were chosen for, by key of the level, where they are stored.
        printed_decimals: decimals of rho in the paper's table, by key of the level, where they are not 6.
    """

    definition: Definition
    stability: StabilityRule
    budgets: Mapping[tuple[str, str], Budget]
    thresholds: Mapping[tuple[str, str], tuple[int, ...]]
    negatives: Negatives
    coterminous: Coterminous
    mark_x: bool
    moe_targets: Mapping[str, Fraction] = field(default_factory=dict)
    printed_decimals: Mapping[str, int] = field(default_factory=dict)
    title: str = ""

    @property
    def classes(self) -> tuple[str, ...]:
        """Classes of tables with a budget of their own."""
        return CLASSES[self.product]

    def measured(self, table_class: str) -> tuple[PopulationGroupLevel, ...]:
        """Levels of the run whose budget is above 0."""
        return tuple(level for level in self.levels if self.budgets[table_class, level.key] != 0)

    def places(self, level: PopulationGroupLevel) -> int:
        """Decimals of rho in the paper's table."""
        return self.printed_decimals.get(level.key, _USUAL_DECIMALS)

    @property
    def settings(self) -> dict[str, str]:
        """Everything that decides what is released, apart from the parameter files, as text under dotted keys."""
        flat = {
            "states": ",".join(self.states),
            "run_us": str(self.run_us).lower(),
            "run_pr": str(self.run_pr).lower(),
            "reader": self.reader,
            "max_race_codes": str(self.max_race_codes),
            "missing_blocks": self.missing_blocks,
            "privacy_definition": self.definition.value,
            "stability": self.stability,
            "negatives": self.negatives,
            "coterminous": self.coterminous,
            "mark_x": str(self.mark_x).lower(),
        }
        for table_class in self.classes:
            for level in self.levels:
                budget = self.budgets[table_class, level.key]
                text = budget.value if isinstance(budget, NotFinite) else str(budget)
                flat[budget_noun(self.product, table_class, level)] = text
                thresholds = ",".join(map(str, self.thresholds[table_class, level.key]))
                flat[threshold_noun(self.product, table_class, level)] = thresholds
        return flat

    @property
    def record(self) -> dict[str, str]:
        """The title, where there is one, and the settings: what a manifest says of a configuration."""
        return titled(self.title, self.settings)

    @property
    def digest(self) -> str:
        """SHA-256 of the settings as canonical JSON, hexadecimal; equal for JSON and TOML of one content."""
        text = json.dumps(self.settings, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, kw_only=True)
class SafetabPConfig(SafetabConfig):
    """A checked SafeTab-P configuration.

    Args:
        stage_1_fraction: f, the share of the budget of a level that chooses the tables.
        zero_suppression_chance: chance that a total of zero is suppressed below state; 0 for no suppression.
        t1: whether T01001 is the sum of stage 2, or pooled with the total of stage 1.
    """

    stage_1_fraction: Fraction
    zero_suppression_chance: Fraction
    t1: T1Rule

    @property
    def settings(self) -> dict[str, str]:
        """Everything that decides what is released, apart from the parameter files, as text under dotted keys."""
        return {
            **super().settings,
            "stage_1_fraction": str(self.stage_1_fraction),
            "zero_suppression_chance": str(self.zero_suppression_chance),
            "t1": self.t1,
        }


@dataclass(frozen=True, kw_only=True)
class SafetabHConfig(SafetabConfig):
    """A checked SafeTab-H configuration."""


def load_scope(
    product: Product, source: str | Path, overrides: Mapping[str, str] | None = None
) -> SafetabScope:
    """Read what a truth run needs; budgets and thresholds may be absent and are not looked at.

    Example:
        >>> load_scope("safetab-p", "ddhca", {"run_us": "false"}).all_states
        ('72',)
    """
    document = read_detailed_document(product, source, overrides or {})
    problems = Problems()
    warnings = document.check_unknown(problems)
    scope = _scope(document, product, problems)
    check_missing(document, _needed_scope(document), problems)
    problems.raise_if_any(document.origin)
    return SafetabScope(**scope, warnings=tuple(warnings))


def load_p_config(
    source: str | Path, overrides: Mapping[str, str] | None = None, *, allow_infinite: bool = False
) -> SafetabPConfig:
    """Read and check a SafeTab-P configuration for a release, or for the private path of a truth run.

    Example:
        >>> config = load_p_config("ddhca")
        >>> config.budgets["p", "usa_2"], config.thresholds["p", "county_1"], config.stage_1_fraction
        (Fraction(1067, 500), (4971, 19971, 149971), Fraction(1, 10))
    """
    document = _document("safetab-p", source, overrides, allow_infinite=allow_infinite)
    problems = Problems()
    common = _common(document, "safetab-p", problems, infinite=allow_infinite)
    own = {
        "stage_1_fraction": check_stage_1_fraction(document, problems),
        "zero_suppression_chance": check_chance(document, problems),
        "t1": document.read("t1", problems),
    }
    problems.raise_if_any(document.origin)
    return SafetabPConfig(**common, **cast(Any, own))


def load_h_config(
    source: str | Path, overrides: Mapping[str, str] | None = None, *, allow_infinite: bool = False
) -> SafetabHConfig:
    """Read and check a SafeTab-H configuration for a release, or for the private path of a truth run.

    Example:
        >>> config = load_h_config("ddhcb", {"budget.t4": "0"})
        >>> config.measured("t4"), config.thresholds["t4", "usa_2"]
        ((), (471,))
    """
    document = _document("safetab-h", source, overrides, allow_infinite=allow_infinite)
    problems = Problems()
    common = _common(document, "safetab-h", problems, infinite=allow_infinite)
    problems.raise_if_any(document.origin)
    return SafetabHConfig(**common)


def _document(
    product: Product, source: str | Path, overrides: Mapping[str, str] | None, *, allow_infinite: bool
) -> Document:
    document = read_detailed_document(product, source, overrides or {})
    if not allow_infinite:
        return document
    quiet: dict[str, Any] = {
        "privacy_definition": "zcdp",
        "stage_1_fraction": Fraction(1, 10),
        "negatives": "keep",
    }
    for table_class in CLASSES[product]:
        for level in group_levels():
            quiet[budget_noun(product, table_class, level)] = INFINITE
            quiet[threshold_noun(product, table_class, level)] = [_REACHED] * (
                1 if table_class == "t4" else 3
            )
    return replace(document, values={**quiet, **document.values})


def _scope(document: Document, product: Product, problems: Problems) -> dict[str, Any]:
    run_us = document.read("run_us", problems)
    run_pr = document.read("run_pr", problems)
    both = [document.values.get("run_us"), document.values.get("run_pr")]
    if both == [False, False]:
        problems.add("run_us, run_pr", "both are false, so nothing would be made; set at least one to true")
    return {
        "product": product,
        "states": check_group_states(document, problems, run_us=run_us),
        "run_us": run_us,
        "run_pr": run_pr,
        "reader": document.read("reader", problems) or "csv",
        "max_race_codes": document.read("max_race_codes", problems),
        "universe": check_universe(document, problems),
        "missing_blocks": document.read("missing_blocks", problems),
        "origin": document.origin,
        "overrides": document.overrides,
    }


def _common(document: Document, product: Product, problems: Problems, *, infinite: bool) -> dict[str, Any]:
    warnings = document.check_unknown(problems)
    scope = _scope(document, product, problems)
    levels = group_levels(us=scope["run_us"], pr=scope["run_pr"])
    check_missing(document, _needed(document, product, levels), problems)
    check_groups(document, problems)
    budgets = check_level_budgets(document, product, problems, infinite=infinite)
    own = [budgets.get((table_class, level.key)) for table_class in CLASSES[product] for level in levels]
    if own and all(budget == 0 for budget in own):
        problems.add("budget", "all budgets of the run are 0, so nothing would be released; give one above 0")
    thresholds, unused = check_thresholds(document, product, problems)
    definition = document.read("privacy_definition", problems)
    decimals = check_targets(document, "printed_decimals", problems)
    return {
        **scope,
        "definition": Definition(definition or "zcdp"),
        "stability": document.read("stability", problems),
        "budgets": {
            (c, lv.key): budgets.get((c, lv.key), Fraction(0)) for c in CLASSES[product] for lv in levels
        },
        "thresholds": thresholds,
        "negatives": check_negatives(document, problems),
        "coterminous": document.read("coterminous", problems),
        "mark_x": document.read("mark_x", problems),
        "moe_targets": check_targets(document, "moe_target", problems),
        "printed_decimals": {key: int(places) for key, places in decimals.items()},
        "warnings": (*warnings, *unused),
        "title": document.title(problems),
    }


def _needed_scope(document: Document) -> tuple[str, ...]:
    return (*_SCOPE, "states") if document.values.get("run_us") is True else _SCOPE


def _needed(
    document: Document, product: Product, levels: tuple[PopulationGroupLevel, ...]
) -> tuple[str, ...]:
    """Keys without a default; the Bureau's files name every budget, also of levels that are not run."""
    budgeted = group_levels() if document.bureau else levels
    own = ("stage_1_fraction",) if product == "safetab-p" else ()
    return (
        *_needed_scope(document),
        "privacy_definition",
        "negatives",
        *own,
        *(budget_noun(product, c, level) for c in CLASSES[product] for level in budgeted),
        *(threshold_noun(product, c, level) for c in CLASSES[product] for level in levels),
    )
