"""SafeTab configurations: the Bureau's parameter folder unchanged, our TOML, the shipped names, and what ``--set`` changes.

Keys are flat here: ``budget.usa_1``, or ``budget.t3.usa_1`` for SafeTab-H; the Bureau's thresholds are
``thresholds_p.(USA, 1)``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache, partial
from pathlib import Path
from typing import Any, Final, Literal, cast

from censafe.errors import ConfigError
from censafe.model import Definition
from censafe.model.entries import Problems
from censafe.privacy.loss.budget import NotFinite, parse_fraction
from censafe.products.configuration.document import ConfigField, ConfigFields, Document, open_document
from censafe.products.configuration.source import (
    INFINITE,
    PUERTO_RICO,
    STATES,
    Budget,
    Settled,
    check_budget,
    check_state_codes,
    locate,
    value_text,
)
from censafe.products.detailed.codes.parameters import (
    CODES_FILE,
    ETHNICITY_FILE,
    MAP_FILE,
    RACE_FILE,
    SHIPPED_UNIVERSE,
)
from censafe.products.detailed.codes.universe import (
    STABILITY_RULES,
    PopulationGroupLevel,
    StabilityRule,
    group_levels,
)

Product = Literal["safetab-p", "safetab-h"]
CLASSES: Final[Mapping[Product, tuple[str, ...]]] = {"safetab-p": ("p",), "safetab-h": ("t3", "t4")}
"""Classes of tables with a budget and thresholds of their own."""

_COMMON: Final = (
    ConfigField("max_race_codes", "whole", default=1, least=1, most=8),
    ConfigField("run_us", "flag", default=False),
    ConfigField("run_pr", "flag", default=False),
    ConfigField("reader", "word", default="csv", allowed=("csv", "cef")),
    ConfigField("states", "list", bureau="state_filter_us"),
    ConfigField(
        "privacy_definition", "word", default="zcdp", allowed=("zcdp", "puredp"), bureau="privacy_defn"
    ),
    ConfigField("negatives", "flag", bureau="allow_negative_counts"),
    ConfigField("universe", "text"),
    ConfigField("stability", "word", default="bureau", allowed=STABILITY_RULES),
    ConfigField("coterminous", "word", default="off", allowed=("off", "donor", "combined")),
    ConfigField("respect_granularity", "flag", default=True),
    ConfigField("mark_x", "flag", default=False),
    ConfigField("suppress", "word", default="both", allowed=("both", "alone", "larger-variance")),
    ConfigField("marked_negatives", "word", default="zero", allowed=("zero", "X", "keep")),
    ConfigField("missing_blocks", "word", default="stop", allowed=("stop", "drop")),
)
_P_ONLY: Final = (
    ConfigField("stage_1_fraction", "number", bureau="privacy_budget_p_stage_1_fraction"),
    ConfigField("zero_suppression_chance", "number"),
    ConfigField("t1", "word", default="stage2", allowed=("stage2", "pooled")),
)
RULES: Final = ("coterminous", "respect_granularity", "mark_x", "suppress", "marked_negatives")
AFTERWARDS: Final[Mapping[str, tuple[str, ...]]] = {
    "safetab-p": ("t1", "negatives", *RULES),
    "safetab-h": ("negatives", *RULES),
}
"""Keys that say what is done to the measurements, by product; they may change after a run."""
_NEGATIVES: Final = "allow_negative_counts"
_WORDS: Final[Mapping[bool, str]] = {True: "keep", False: "zero"}


def budget_noun(product: Product, table_class: str, level: PopulationGroupLevel) -> str:
    """Our key of a budget.

    Example:
        >>> budget_noun("safetab-h", "t3", PopulationGroupLevel("USA", 1)), budget_noun("safetab-p", "p", PopulationGroupLevel("USA", 1))
        ('budget.t3.usa_1', 'budget.usa_1')
    """
    return f"budget.{_prefix(product, table_class)}{level.key}"


def bureau_name(product: str, noun: str) -> str:
    """The Bureau's key for one of ours; the same where they do not differ.

    Example:
        >>> bureau_name("safetab-h", "negatives"), bureau_name("safetab-h", "mark_x")
        ('allow_negative_counts', 'mark_x')
    """
    names = detailed_fields("safetab-p" if product == "safetab-p" else "safetab-h").bureau_names
    return names.get(noun, noun)


def threshold_noun(product: Product, table_class: str, level: PopulationGroupLevel) -> str:
    """Our key of the thresholds of a level."""
    return f"thresholds.{_prefix(product, table_class)}{level.key}"


def read_detailed_document(product: Product, source: str | Path, overrides: Mapping[str, str]) -> Document:
    """Find and read a configuration and apply overrides; its rules are not checked here."""
    path, origin = locate(product, source)
    return open_document(
        path,
        origin,
        detailed_fields(product),
        overrides,
        partial(_override, product),
        partial(_prepared, path),
    )


def _prefix(product: Product, table_class: str) -> str:
    return "" if len(CLASSES[product]) == 1 else f"{table_class}."


@cache
def detailed_fields(product: Product) -> ConfigFields:
    """The keys of a product, budgets and thresholds of every level among them."""
    levels = group_levels()
    fields = [*_COMMON, *(_P_ONLY if product == "safetab-p" else ()), ConfigField("title", "fixed")]
    for table_class in CLASSES[product]:
        prefix = _prefix(product, table_class)
        kind = f"{product[-1]}_{table_class}" if prefix else table_class
        if prefix:
            fields.append(ConfigField(f"budget.{table_class}", "group"))
        fields.append(ConfigField(f"thresholds.{prefix}".rstrip("."), "group", bureau=f"thresholds_{kind}"))
        for level in levels:
            budget = budget_noun(product, table_class, level)
            fields.append(ConfigField(budget, "number", bureau=f"privacy_budget_{kind}_{level.bureau_key}"))
            thresholds = threshold_noun(product, table_class, level)
            fields.append(ConfigField(thresholds, "numbers", bureau=f"thresholds_{kind}.({level.name})"))
    targets = ("moe_target", "printed_decimals")
    named = {field.noun for field in fields}
    fields += [
        ConfigField(group, "group") for group in ("budget", "thresholds", *targets) if group not in named
    ]
    fields += [ConfigField(f"{group}.{level.key}", "number") for group in targets for level in levels]
    return ConfigFields(tuple(fields))


def _prepared(path: Path, raw: Mapping[str, Any]) -> dict[str, Any]:
    """Flat keys; the Bureau's configuration lies in its parameter folder, and a path in ours is relative to its file."""
    flat, bureau = dict(_flattened(raw)), path.suffix.lower() == ".json"
    if bureau and isinstance(flat.get(_NEGATIVES), bool):
        flat[_NEGATIVES] = _WORDS[flat[_NEGATIVES]]
    named = flat.get("universe")
    if named is None:
        flat["universe"] = str(path.parent) if bureau else SHIPPED_UNIVERSE
    elif isinstance(named, str) and named != SHIPPED_UNIVERSE:
        flat["universe"] = str(path.parent / named)
    return flat


def _flattened(raw: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in raw.items():
        if isinstance(value, Mapping):
            yield from _flattened(value, f"{path}{key}.")
        else:
            yield f"{path}{key}", value


def _override(product: Product, values: dict[str, Any], key: str, text: str) -> None:
    """Put the value of one ``--set key=text`` into the raw values; a group of keys sets every key below it."""
    fields = detailed_fields(product)
    noun = fields.ours(key)
    targets = [name for name in fields.nouns if name == noun or name.startswith(f"{noun}.")]
    if not targets or fields.by_noun[targets[0]].kind == "fixed":
        raise ConfigError(f"--set {key}: there is no key {key!r}.{fields.hint(key)}")
    value = fields.by_noun[targets[0]].parse(text)
    if key == _NEGATIVES and isinstance(value, bool):
        value = _WORDS[value]
    values.update(dict.fromkeys(targets, value))


_US_WORDS: Final = "01 to 56 without 03, 07, 14, 43, 52; Puerto Rico is run with run_pr"
_USED_THRESHOLDS: Final = 3
_SHARE: Final = "is not allowed; give a share above 0 and below 1, such as 1/10"
_CHANCE: Final = "is not allowed; give 0 or more and below 1"
_POSITIVE: Final = "is too small; give a number above 0"


def check_missing(document: Document, needed: Iterable[str]) -> None:
    """Every needed key that is not there, in one line."""
    missing = [document.key(noun) for noun in needed if noun not in document.values]
    if missing:
        document.add("missing keys", f"{', '.join(missing)}; all of them are needed")


def check_groups(document: Document) -> None:
    """Keys that must have keys below them and hold a value instead."""
    for noun in ("budget", "thresholds", "moe_target", "printed_decimals"):
        for key in [key for key in document.values if key == noun or key in (f"{noun}.t3", f"{noun}.t4")]:
            document.add(
                document.key(key),
                f"{value_text(document.values[key])} is not a mapping; give one entry for every level",
            )


def check_negatives(document: Document) -> Literal["keep", "zero"]:
    """What becomes of negative counts."""
    value = document.values.get("negatives")
    if value == "zero":
        return "zero"
    if value != "keep" and "negatives" in document.values:
        allowed = "true or false" if document.bureau else "keep or zero"
        document.add(document.key("negatives"), f"{value_text(value)} is not allowed; give {allowed}")
    return "keep"


def check_universe(document: Document) -> Path | None:
    """The folder of the parameter files, or None for the shipped ones."""
    value = document.values["universe"]
    if value == SHIPPED_UNIVERSE:
        return None
    if not isinstance(value, str):
        document.add(
            "universe", f"{value_text(value)} is not allowed; give {SHIPPED_UNIVERSE!r} or a folder in quotes"
        )
        return None
    files = (CODES_FILE, RACE_FILE, ETHNICITY_FILE, MAP_FILE)
    missing = [name for name in files if not (Path(value) / name).is_file()]
    if missing:
        document.add(
            "universe",
            f"the parameter folder {value} has no {', '.join(missing)}; put the files there, or say "
            f"--set universe={SHIPPED_UNIVERSE} for the shipped ones",
        )
    return Path(value)


def check_thresholds(
    document: Document, product: Product
) -> tuple[dict[tuple[str, str], tuple[int, ...]], list[str]]:
    """Thresholds that are there, by class of tables and key of the level, and warnings about unused ones."""
    thresholds: dict[tuple[str, str], tuple[int, ...]] = {}
    longer: list[str] = []
    for table_class, level, noun in _levels(product, threshold_noun):
        if noun not in document.values:
            continue
        key = document.key(noun)
        numbers = _integers(document.values[noun], key, document)
        if numbers is None:
            continue
        if table_class == "t4" and len(numbers) != 1:
            document.add(key, f"{len(numbers)} thresholds; T04001 and T04002 are told apart by exactly one")
        elif table_class != "t4" and len(numbers) < _USED_THRESHOLDS:
            document.add(key, f"{len(numbers)} thresholds are too few; give three in ascending order")
        elif list(numbers) != sorted(numbers):
            document.add(key, f"{list(numbers)} goes down; give thresholds in ascending order")
        else:
            thresholds[table_class, level.key] = numbers[:_USED_THRESHOLDS]
            longer += [key] if len(numbers) > _USED_THRESHOLDS else []
    if not longer:
        return thresholds, []
    return thresholds, [f"{document.origin}: only the first three thresholds are used: {', '.join(longer)}"]


def check_targets(document: Document, group: str) -> dict[str, Fraction]:
    """Stored margins of error, or decimals, by key of the level; all optional, all above 0."""
    targets: dict[str, Fraction] = {}
    for level in group_levels():
        noun = f"{group}.{level.key}"
        value = _fraction(document, noun, lambda number: number > 0, _POSITIVE)
        if value is not None:
            targets[level.key] = value
    return targets


def _levels(
    product: Product, noun_of: Callable[[Product, str, PopulationGroupLevel], str]
) -> Iterator[tuple[str, PopulationGroupLevel, str]]:
    for table_class in CLASSES[product]:
        for level in group_levels():
            yield table_class, level, noun_of(product, table_class, level)


def _fraction(document: Document, noun: str, fits: Callable[[Fraction], bool], words: str) -> Fraction | None:
    """An exact number, or None where there is none that fits; ``words`` say what is wrong with another one."""
    if noun not in document.values:
        return None
    try:
        value = parse_fraction(document.values[noun], document.key(noun))
    except ConfigError as error:
        document.messages.append(str(error))
        return None
    if fits(value):
        return value
    document.add(document.key(noun), f"{value_text(value)} {words}")
    return None


def _integers(value: object, key: str, problems: Problems) -> tuple[int, ...] | None:
    if not isinstance(value, list):
        problems.add(key, f"{value_text(value)} is not a list; give thresholds such as [471, 971, 6971]")
        return None
    wrong = [item for item in value if not isinstance(item, Fraction) or item.denominator != 1]
    if wrong:
        problems.add(
            key, f"{', '.join(map(value_text, wrong))} not a whole number; thresholds are whole numbers"
        )
        return None
    return tuple(int(item) for item in value)


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
    reader: Literal["csv", "cef"]
    max_race_codes: int
    universe: Path | None
    missing_blocks: Literal["stop", "drop"] = "stop"
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
class SafetabConfig(Settled, SafetabScope):
    """A checked configuration of either product.

    Args:
        stability: by which rule the number of groups of a record is bounded.
        budgets: by class of tables (``p``; ``t3``, ``t4``) and key of the level; 0 means not measured, INFINITE no noise.
        thresholds: by the same keys; three in ascending order, or one for ``t4``.
        respect_granularity: whether areas of the same blocks get only the iterations that their level tabulates.
        mark_x: whether an alone count above its count alone or in any combination is published as X.
        suppress: which of the two counts.
        marked_negatives: what negative counts are in the tables with X.
        moe_targets: 95% margins of error that the budgets were chosen for, by key of the level, where they are stored.
        printed_decimals: decimals of rho in the paper's table, by key of the level, where they are not 6.
    """

    definition: Definition
    stability: StabilityRule
    budgets: Mapping[tuple[str, str], Budget]
    thresholds: Mapping[tuple[str, str], tuple[int, ...]]
    negatives: Literal["keep", "zero"]
    coterminous: Literal["off", "donor", "combined"]
    respect_granularity: bool
    mark_x: bool
    suppress: Literal["both", "alone", "larger-variance"]
    marked_negatives: Literal["zero", "X", "keep"]
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
            "respect_granularity": str(self.respect_granularity).lower(),
            "mark_x": str(self.mark_x).lower(),
            "suppress": self.suppress,
            "marked_negatives": self.marked_negatives,
        }
        for table_class in self.classes:
            for level in self.levels:
                budget = self.budgets[table_class, level.key]
                text = budget.value if isinstance(budget, NotFinite) else str(budget)
                flat[budget_noun(self.product, table_class, level)] = text
                thresholds = ",".join(map(str, self.thresholds[table_class, level.key]))
                flat[threshold_noun(self.product, table_class, level)] = thresholds
        return flat


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
    t1: Literal["stage2", "pooled"]

    @property
    def settings(self) -> dict[str, str]:
        """Everything that decides what is released, apart from the parameter files, as text under dotted keys."""
        return {
            **super().settings,
            "stage_1_fraction": str(self.stage_1_fraction),
            "zero_suppression_chance": str(self.zero_suppression_chance),
            "t1": self.t1,
        }


def load_scope(
    product: Product, source: str | Path, overrides: Mapping[str, str] | None = None
) -> SafetabScope:
    """Read what a truth run needs; budgets and thresholds may be absent and are not looked at.

    Example:
        >>> load_scope("safetab-p", "ddhca", {"run_us": "false"}).all_states
        ('72',)
    """
    document = read_detailed_document(product, source, overrides or {})
    warnings = document.check_unknown()
    scope = _scope(document, product)
    check_missing(document, _needed_scope(document))
    document.raise_if_any(document.origin)
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
    document, common = _common("safetab-p", source, overrides, infinite=allow_infinite)
    own = {
        "stage_1_fraction": _fraction(document, "stage_1_fraction", lambda share: 0 < share < 1, _SHARE)
        or Fraction(0),
        "zero_suppression_chance": _fraction(
            document, "zero_suppression_chance", lambda chance: 0 <= chance < 1, _CHANCE
        )
        or Fraction(0),
        "t1": document.read("t1"),
    }
    document.raise_if_any(document.origin)
    return SafetabPConfig(**common, **cast(Any, own))


def load_h_config(
    source: str | Path, overrides: Mapping[str, str] | None = None, *, allow_infinite: bool = False
) -> SafetabConfig:
    """Read and check a SafeTab-H configuration for a release, or for the private path of a truth run.

    Example:
        >>> config = load_h_config("ddhcb", {"budget.t4": "0"})
        >>> config.measured("t4"), config.thresholds["t4", "usa_2"]
        ((), (471,))
    """
    document, common = _common("safetab-h", source, overrides, infinite=allow_infinite)
    document.raise_if_any(document.origin)
    return SafetabConfig(**common)


def _scope(document: Document, product: Product) -> dict[str, Any]:
    run_us = document.read("run_us")
    run_pr = document.read("run_pr")
    both = [document.values.get("run_us"), document.values.get("run_pr")]
    if both == [False, False]:
        document.add("run_us, run_pr", "both are false, so nothing would be made; set at least one to true")
    states: tuple[str, ...] | None = ()
    if run_us and "states" in document.values:
        key = document.key("states")
        states = check_state_codes(document.values["states"], key, document, STATES, _US_WORDS)
    return {
        "product": product,
        "states": states or (),
        "run_us": run_us,
        "run_pr": run_pr,
        "reader": document.read("reader") or "csv",
        "max_race_codes": document.read("max_race_codes"),
        "universe": check_universe(document),
        "missing_blocks": document.read("missing_blocks"),
        "origin": document.origin,
        "overrides": document.overrides,
    }


def _common(
    product: Product, source: str | Path, overrides: Mapping[str, str] | None, *, infinite: bool
) -> tuple[Document, dict[str, Any]]:
    """A document with its problems so far, and the checked values that both products have."""
    document = read_detailed_document(product, source, overrides or {})
    if infinite:  # what a run without noise need not say
        quiet: dict[str, Any] = {
            "privacy_definition": "zcdp",
            "stage_1_fraction": Fraction(1, 10),
            "negatives": "keep",
        }
        for table_class in CLASSES[product]:
            for level in group_levels():
                quiet[budget_noun(product, table_class, level)] = INFINITE
                reached = [_REACHED] * (1 if table_class == "t4" else 3)
                quiet[threshold_noun(product, table_class, level)] = reached
        document = replace(document, values={**quiet, **document.values})
    warnings = document.check_unknown()
    scope = _scope(document, product)
    levels = group_levels(us=scope["run_us"], pr=scope["run_pr"])
    check_missing(document, _needed(document, product, levels))
    check_groups(document)
    budgets: dict[tuple[str, str], Budget] = {}
    for table_class, level, noun in _levels(product, budget_noun):
        if noun in document.values:
            key, text = document.key(noun), not document.bureau
            budget = check_budget(document.values[noun], key, document, infinite=infinite, text=text)
            if budget is not None:
                budgets[table_class, level.key] = budget
    own = [budgets.get((table_class, level.key)) for table_class in CLASSES[product] for level in levels]
    if own and all(budget == 0 for budget in own):
        document.add("budget", "all budgets of the run are 0, so nothing would be released; give one above 0")
    thresholds, unused = check_thresholds(document, product)
    definition = document.read("privacy_definition")
    decimals = check_targets(document, "printed_decimals")
    return (
        document,
        {
            **scope,
            "definition": Definition(definition or "zcdp"),
            "stability": document.read("stability"),
            "budgets": {
                (table_class, level.key): budgets.get((table_class, level.key), Fraction(0))
                for table_class in CLASSES[product]
                for level in levels
            },
            "thresholds": thresholds,
            "negatives": check_negatives(document),
            **{rule: document.read(rule) for rule in RULES},
            "moe_targets": check_targets(document, "moe_target"),
            "printed_decimals": {key: int(places) for key, places in decimals.items()},
            "warnings": (*warnings, *unused),
            "title": document.title(),
        },
    )


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
