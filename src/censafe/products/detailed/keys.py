"""The keys of SafeTab configurations, the Bureau's and ours, and what ``--set`` changes.

Keys are flat here: ``budget.usa_1``, or ``budget.t3.usa_1`` for SafeTab-H; the Bureau's thresholds are
``thresholds_p.(USA, 1)``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Literal, get_args

from censafe.errors import ConfigError
from censafe.products.configuration.source import Document, load_raw, locate, nearest, number_of, words_of
from censafe.products.detailed.codes.parameters import SHIPPED_UNIVERSE
from censafe.products.detailed.codes.universe import PopulationGroupLevel, group_levels

__all__ = [
    "CLASSES",
    "PRODUCTS",
    "Product",
    "budget_noun",
    "bureau_name",
    "read_detailed_document",
    "target_noun",
    "threshold_noun",
]

Product = Literal["safetab-p", "safetab-h"]
PRODUCTS: Final[tuple[Product, ...]] = get_args(Product)
CLASSES: Final[Mapping[Product, tuple[str, ...]]] = {"safetab-p": ("p",), "safetab-h": ("t3", "t4")}
"""Classes of tables with a budget and thresholds of their own."""

# Our noun -> the Bureau's key, where they differ.
_BUREAU: Final = {
    "states": "state_filter_us",
    "privacy_definition": "privacy_defn",
    "negatives": "allow_negative_counts",
}
_BUREAU_P: Final = {**_BUREAU, "stage_1_fraction": "privacy_budget_p_stage_1_fraction"}
_COMMON: Final = (
    "max_race_codes",
    "run_us",
    "run_pr",
    "reader",
    *_BUREAU,
    "universe",
    "stability",
    "coterminous",
    "mark_x",
    "missing_blocks",
)
_P_ONLY: Final = ("stage_1_fraction", "zero_suppression_chance", "t1")
_TOML_ONLY: Final = ("title",)
_FLAGS: Final = ("run_us", "run_pr", "mark_x")
_NUMBERS: Final = ("max_race_codes", "stage_1_fraction", "zero_suppression_chance")
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
    return _bureau_names("safetab-p" if product == "safetab-p" else "safetab-h").get(noun, noun)


def threshold_noun(product: Product, table_class: str, level: PopulationGroupLevel) -> str:
    """Our key of the thresholds of a level."""
    return f"thresholds.{_prefix(product, table_class)}{level.key}"


def target_noun(group: str, level: PopulationGroupLevel) -> str:
    """Our key of a stored target (``moe_target``) or of the decimals it is printed with (``printed_decimals``)."""
    return f"{group}.{level.key}"


def read_detailed_document(product: Product, source: str | Path, overrides: Mapping[str, str]) -> Document:
    """Find and read a configuration and apply overrides; its rules are not checked here.

    Raises:
        ConfigError: nothing is there, it is neither JSON nor TOML, or an override names no key.
    """
    path, origin = locate(product, source)
    bureau = path.suffix.lower() == ".json"
    names, nouns = _bureau_names(product), _nouns(product)
    known = {names.get(noun, noun): noun for noun in nouns} if bureau else {noun: noun for noun in nouns}
    known.update({names.get(group, group) if bureau else group: group for group in _groups(product)})
    flat = dict(_flattened(load_raw(path, origin)))
    values = {known[key]: value for key, value in flat.items() if key in known}
    if bureau and isinstance(values.get("negatives"), bool):
        values["negatives"] = _WORDS[values["negatives"]]
    _place_universe(values, path, bureau=bureau)
    for key, text in overrides.items():
        _override(values, key, text, product)
    unknown = tuple(key for key in flat if key not in known)
    return Document(origin, bureau, values, dict(overrides), unknown, names, nouns)


def _prefix(product: Product, table_class: str) -> str:
    return "" if len(CLASSES[product]) == 1 else f"{table_class}."


def _nouns(product: Product) -> tuple[str, ...]:
    levels = group_levels()
    numbers = [
        noun(product, table_class, level)
        for noun in (budget_noun, threshold_noun)
        for table_class in CLASSES[product]
        for level in levels
    ]
    targets = [target_noun(group, level) for group in ("moe_target", "printed_decimals") for level in levels]
    own = _P_ONLY if product == "safetab-p" else ()
    return (*_COMMON, *own, *_TOML_ONLY, *numbers, *targets)


def _groups(product: Product) -> tuple[str, ...]:
    """Keys that have keys below them."""
    inner = [
        f"{group}.{table_class}"
        for group in ("budget", "thresholds")
        for table_class in CLASSES[product]
        if _prefix(product, table_class)
    ]
    return ("budget", "thresholds", "moe_target", "printed_decimals", *inner)


def _bureau_names(product: Product) -> dict[str, str]:
    letter = product[-1]
    names = dict(_BUREAU_P if product == "safetab-p" else _BUREAU)
    for table_class in CLASSES[product]:
        kind = letter if table_class == letter else f"{letter}_{table_class}"
        names[f"thresholds.{_prefix(product, table_class)}".rstrip(".")] = f"thresholds_{kind}"
        for level in group_levels():
            names[budget_noun(product, table_class, level)] = f"privacy_budget_{kind}_{level.bureau_key}"
            names[threshold_noun(product, table_class, level)] = f"thresholds_{kind}.({level.name})"
    return names


def _flattened(raw: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in raw.items():
        if isinstance(value, Mapping):
            yield from _flattened(value, f"{path}{key}.")
        else:
            yield f"{path}{key}", value


def _place_universe(values: dict[str, Any], path: Path, *, bureau: bool) -> None:
    """The Bureau's configuration lies in its parameter folder; a path in ours is relative to its file."""
    named = values.get("universe")
    if named is None:
        values["universe"] = str(path.parent) if bureau else SHIPPED_UNIVERSE
    elif isinstance(named, str) and named != SHIPPED_UNIVERSE:
        values["universe"] = str(path.parent / named)


def _override(values: dict[str, Any], key: str, text: str, product: Product) -> None:
    """Put the value of one ``--set key=text`` into the raw values; a group of keys sets every key below it."""
    names, nouns = _bureau_names(product), _nouns(product)
    noun = {theirs: ours for ours, theirs in names.items()}.get(key, key)
    targets = [name for name in nouns if name == noun or name.startswith(f"{noun}.")]
    if not targets or noun in _TOML_ONLY:
        hint = nearest(key, [*nouns, *names.values()])
        raise ConfigError(f"--set {key}: there is no key {key!r}.{hint}")
    value = _parsed(noun, text)
    if key == names["negatives"] and isinstance(value, bool):
        value = _WORDS[value]
    values.update(dict.fromkeys(targets, value))


def _parsed(noun: str, text: str) -> Any:
    group = noun.partition(".")[0]
    if noun in _FLAGS or noun == "negatives":
        return {"true": True, "false": False}.get(text.strip().lower(), text.strip())
    if group == "thresholds":
        return [number_of(word) for word in words_of(text)]
    if group in ("budget", "moe_target", "printed_decimals") or noun in _NUMBERS:
        return number_of(text)
    return words_of(text) if noun == "states" else text.strip()
