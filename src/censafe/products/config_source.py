"""Where a configuration comes from: a file, a folder or a shipped name; what it holds before any rule is checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from censafe.errors import ConfigError
from censafe.privacy.budget import NotFinite, load_json_exact, load_toml_exact, parse_fraction
from censafe.products.config_rules import Problems, check_choice, nearest
from censafe.products.configs import find_shipped, unknown_name

__all__ = ["Document", "load_raw", "locate", "number_of", "words_of"]


@dataclass(frozen=True)
class Document:
    """A configuration as it was written, before any rule is checked.

    Args:
        origin: where it came from, for messages and the manifest.
        bureau: whether it is the Bureau's JSON.
        values: the raw values by our nouns; numbers are Fractions.
        overrides: what ``--set`` changed, as it was typed.
        unknown: keys that mean nothing, as they were written.
        bureau_names: our noun -> the Bureau's key, where they differ.
        nouns: every key that means something in this document, by our nouns.
    """

    origin: str
    bureau: bool
    values: Mapping[str, Any]
    overrides: Mapping[str, str] = field(default_factory=dict)
    unknown: tuple[str, ...] = ()
    bureau_names: Mapping[str, str] = field(default_factory=dict)
    nouns: tuple[str, ...] = ()

    def key(self, noun: str) -> str:
        """The key as this document writes it."""
        return self.bureau_names.get(noun, noun) if self.bureau else noun

    def suggestion(self, key: str) -> str:
        """What an unknown key may have been meant to be."""
        if not self.bureau:
            for ours, theirs in self.bureau_names.items():
                if key == theirs:
                    return f" Here it is called {ours!r}."
        return nearest(key, [self.key(noun) for noun in self.nouns])

    def check_unknown(self, problems: Problems) -> list[str]:
        """Unknown keys: problems in our TOML, warnings (returned) in the Bureau's JSON."""
        if not self.bureau:
            for key in self.unknown:
                problems.add(key, f"unknown key.{self.suggestion(key)} Remove it or correct its name")
            return []
        return [
            f"{self.origin}: unknown key {key!r} is ignored.{self.suggestion(key)}" for key in self.unknown
        ]

    def has(self, noun: str, problems: Problems) -> bool:
        """Whether a needed key is there; a missing one is a problem."""
        if noun in self.values:
            return True
        problems.add(self.key(noun), "this key is missing")
        return False

    def choice(
        self, noun: str, allowed: tuple[str, ...], problems: Problems, default: str | None = None
    ) -> str | None:
        """One of a few words under a key."""
        if noun not in self.values and default is not None:
            return default
        if not self.has(noun, problems):
            return None
        return check_choice(self.values[noun], self.key(noun), allowed, problems)


def locate(product: str, source: str | Path) -> tuple[Path, str]:
    """The file of a configuration, and how messages name it.

    Args:
        product: name on the command line.
        source: a shipped name, a file, or a folder with ``config.json``.

    Raises:
        ConfigError: there is nothing of that name, or it ends in neither ``.json`` nor ``.toml``.
    """
    shipped = find_shipped(product, str(source))
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
        raise ConfigError(unknown_name(product, str(source)))
    if path.suffix.lower() not in (".json", ".toml"):
        raise ConfigError(f"{path}: a configuration ends in .json (the Bureau's) or .toml (ours)")
    return path, str(path)


def load_raw(path: Path, origin: str) -> dict[str, Any]:
    """The top-level keys of a JSON or TOML file, numbers as Fractions.

    Raises:
        ConfigError: it is neither, or it does not hold keys.
    """
    raw = load_json_exact(path) if path.suffix.lower() == ".json" else load_toml_exact(path)
    if not isinstance(raw, dict):
        raise ConfigError(f"{origin}: the file must hold one JSON object with the keys of a configuration")
    return raw


def words_of(text: str) -> list[str]:
    """The words of an override that spells a list, such as ``44,50``."""
    return [word.strip() for word in text.split(",") if word.strip()]


def number_of(text: str) -> Fraction | NotFinite | str:
    """The number that an override spells, or its text, which the rules then refuse with the key's name."""
    if text.strip().lower() in ("infinity", "inf"):
        return NotFinite.INFINITY
    try:
        return parse_fraction(text, "--set")
    except ConfigError:
        return text
