"""Where a PHSafe configuration comes from: a file, a folder or a shipped name, and what ``--set`` changes."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

from censafe.errors import ConfigError
from censafe.privacy.budget import NotFinite, load_json_exact, load_toml_exact, parse_fraction
from censafe.products.configs import find_shipped, unknown_name
from censafe.products.phsafe.config_checks import MEASURED_TABLES, TAU_TABLES, levels_of, nearest

__all__ = ["Document", "read_document"]

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


@dataclass(frozen=True)
class Document:
    """A configuration as it was written, before any rule is checked.

    Args:
        origin: where it came from, for messages and the manifest.
        bureau: whether it is the Bureau's JSON.
        values: the raw values by our nouns; numbers are Fractions.
        overrides: what ``--set`` changed, as it was typed.
        unknown: keys that mean nothing, as they were written.
    """

    origin: str
    bureau: bool
    values: Mapping[str, Any]
    overrides: Mapping[str, str] = field(default_factory=dict)
    unknown: tuple[str, ...] = ()

    def key(self, noun: str) -> str:
        """The key as this document writes it."""
        return _BUREAU.get(noun, noun) if self.bureau else noun

    def suggestion(self, key: str) -> str:
        """What an unknown key may have been meant to be."""
        if not self.bureau and key in _OURS:
            return f" Here it is called {_OURS[key]!r}."
        names = [self.key(noun) for noun in _NOUNS] + ([] if self.bureau else list(_TOML_ONLY))
        return nearest(key, names)


def read_document(source: str | Path, overrides: Mapping[str, str]) -> Document:
    """Find and read a configuration and apply overrides; its rules are not checked here.

    Raises:
        ConfigError: nothing is there, it is neither JSON nor TOML, or an override names no key.
    """
    path, origin = _locate(source)
    bureau = path.suffix.lower() == ".json"
    raw = load_json_exact(path) if bureau else load_toml_exact(path)
    if not isinstance(raw, dict):
        raise ConfigError(f"{origin}: the file must hold one JSON object with keys such as state_filter")
    known = (
        {_BUREAU.get(noun, noun): noun for noun in _NOUNS}
        if bureau
        else {n: n for n in (*_NOUNS, *_TOML_ONLY)}
    )
    values = {known[key]: copy.deepcopy(value) for key, value in raw.items() if key in known}
    for key, text in overrides.items():
        _override(values, key, text)
    unknown = tuple(key for key in raw if key not in known)
    return Document(origin, bureau, values, dict(overrides), unknown)


def _locate(source: str | Path) -> tuple[Path, str]:
    shipped = find_shipped("phsafe", str(source))
    if shipped is not None:
        return shipped.path, f"shipped configuration {shipped.name}"
    path = Path(source)
    if path.is_dir():
        if not (path / "config.json").is_file():
            others = sorted(item.name for item in path.glob("*.json"))
            hint = f"; it holds {', '.join(others)}: name the file" if others else ""
            raise ConfigError(f"{path}: the folder has no config.json{hint}")
        path = path / "config.json"
    if not path.exists():
        raise ConfigError(unknown_name("phsafe", str(source)))
    if path.suffix.lower() not in (".json", ".toml"):
        raise ConfigError(f"{path}: a configuration ends in .json (the Bureau's) or .toml (ours)")
    return path, str(path)


def _override(values: dict[str, Any], key: str, text: str) -> None:
    """Put the value of one ``--set key=text`` into the raw values."""
    head, *inner = key.split(".")
    noun = _OURS.get(head, head)
    if noun not in (*_NOUNS, "moe_target", "printed_decimals"):
        raise ConfigError(f"--set {key}: there is no key {head!r}.{nearest(head, (*_NOUNS, *_OURS))}")
    if noun not in _NUMBERS:
        if inner:
            raise ConfigError(f"--set {key}: {head} has no keys below it; say --set {head}=VALUE")
        values[noun] = _words(text) if noun == "states" else text.strip()
        return
    number = _number(text)
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


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _number(text: str) -> Fraction | NotFinite | str:
    """The number that an override spells, or its text, which the rules then refuse with the key's name."""
    if text.strip().lower() in ("infinity", "inf"):
        return NotFinite.INFINITY
    try:
        return parse_fraction(text, "--set")
    except ConfigError:
        return text
