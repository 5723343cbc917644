"""The keys of a PHSafe configuration, the Bureau's and ours, and what ``--set`` changes."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from censafe.errors import ConfigError
from censafe.products.config_rules import nearest
from censafe.products.config_source import Document, load_raw, locate, number_of, words_of
from censafe.products.phsafe.config_checks import MEASURED_TABLES, TAU_TABLES, levels_of

__all__ = ["read_document"]

# Our noun -> the Bureau's key, where they differ.
_BUREAU: Final = {
    "states": "state_filter",
    "privacy_definition": "privacy_defn",
    "budget": "privacy_budget",
}
_OURS: Final = {theirs: ours for ours, theirs in _BUREAU.items()}
_NOUNS: Final = (*_BUREAU, "reader", "tau", "sensitivity")
_TOML_ONLY: Final = ("title", "moe_target", "printed_decimals")
_NUMBERS: Final = ("tau", "budget", "moe_target", "printed_decimals")


def read_document(source: str | Path, overrides: Mapping[str, str]) -> Document:
    """Find and read a configuration and apply overrides; its rules are not checked here.

    Raises:
        ConfigError: nothing is there, it is neither JSON nor TOML, or an override names no key.
    """
    path, origin = locate("phsafe", source)
    bureau = path.suffix.lower() == ".json"
    raw = load_raw(path, origin)
    known = (
        {_BUREAU.get(noun, noun): noun for noun in _NOUNS}
        if bureau
        else {n: n for n in (*_NOUNS, *_TOML_ONLY)}
    )
    values = {known[key]: copy.deepcopy(value) for key, value in raw.items() if key in known}
    for key, text in overrides.items():
        _override(values, key, text)
    unknown = tuple(key for key in raw if key not in known)
    nouns = _NOUNS if bureau else (*_NOUNS, *_TOML_ONLY)
    return Document(origin, bureau, values, dict(overrides), unknown, _BUREAU, nouns)


def _override(values: dict[str, Any], key: str, text: str) -> None:
    """Put the value of one ``--set key=text`` into the raw values."""
    head, *inner = key.split(".")
    noun = _OURS.get(head, head)
    if noun not in (*_NOUNS, "moe_target", "printed_decimals"):
        raise ConfigError(f"--set {key}: there is no key {head!r}.{nearest(head, (*_NOUNS, *_OURS))}")
    if noun not in _NUMBERS:
        if inner:
            raise ConfigError(f"--set {key}: {head} has no keys below it; say --set {head}=VALUE")
        values[noun] = words_of(text) if noun == "states" else text.strip()
        return
    number = number_of(text)
    for path in _leaves(noun, inner, key):
        holder = values
        for name in (noun, *path[:-1]):
            if not isinstance(holder.get(name), dict):
                holder[name] = {}
            holder = holder[name]
        holder[path[-1]] = number


def _leaves(noun: str, inner: list[str], key: str) -> list[tuple[str, ...]]:
    """Paths below a group of numbers that an override means: one, or every one of a table or of the group."""
    if noun == "tau":
        if len(inner) > 1:
            raise ConfigError(f"--set {key}: tau has one number a table; say --set tau.{inner[0]}=10")
        return [(name,) for name in (inner or TAU_TABLES)]
    if len(inner) == 2:
        return [(inner[0], inner[1])]
    if len(inner) > 2:
        raise ConfigError(f"--set {key}: {noun} has one number a table and level, such as {noun}.PH3.usa_*")
    return [(table, level) for table in (inner or MEASURED_TABLES) for level in levels_of(table)]
