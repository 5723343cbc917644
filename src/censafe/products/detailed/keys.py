"""The keys of SafeTab configurations, the Bureau's and ours, and what ``--set`` changes.

Keys are flat here: ``budget.usa_1``, or ``budget.t3.usa_1`` for SafeTab-H; the Bureau's thresholds are
``thresholds_p.(USA, 1)``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any, Final, Literal

from censafe.errors import ConfigError
from censafe.products.configuration.document import ConfigField, ConfigFields, Document, open_document
from censafe.products.configuration.source import locate
from censafe.products.detailed.codes.parameters import SHIPPED_UNIVERSE
from censafe.products.detailed.codes.stability import STABILITY_RULES
from censafe.products.detailed.codes.universe import PopulationGroupLevel, group_levels

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
