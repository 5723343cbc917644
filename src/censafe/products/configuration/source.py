"""The configurations that ship, where another one comes from, and the rules that all products share."""

from __future__ import annotations

import difflib
import hashlib
import json
import tomllib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path, PurePath
from typing import Any, Final, Literal

from censafe.errors import ConfigError
from censafe.model.entries import Problems, nearest
from censafe.planning.numbers import decimal_text
from censafe.privacy.loss.budget import NotFinite, load_json_exact, load_toml_exact, parse_fraction

# Name on the command line -> folder of the product.
PRODUCTS = {
    "phsafe": "phsafe",
    "safetab-p": "detailed/persons",
    "safetab-h": "detailed/households",
    "topdown": "topdown",
}


@dataclass(frozen=True)
class ShippedConfig:
    """One shipped configuration.

    Args:
        states: ``us`` or ``pr`` for the states that its budgets are those of; empty where the configuration names its states, or for any.
    """

    name: str
    product: str
    title: str
    path: Path
    production: bool
    meaning: str
    states: str = ""

    @property
    def text(self) -> str:
        """The file as it is."""
        return self.path.read_text(encoding="utf-8")


@cache
def shipped_configs(product: str | None = None) -> tuple[ShippedConfig, ...]:
    """Every shipped configuration, of one product or of all, in the order of their names.

    Example:
        >>> [config.name for config in shipped_configs("phsafe")]
        ['sdhc-pr', 'sdhc-us']
    """
    home = Path(__file__).parents[1]
    facts = _read_toml(Path(__file__).with_name("shipped.toml"))
    return tuple(
        ShippedConfig(path.stem, name, _read_toml(path).get("title", ""), path, **facts[path.stem])
        for name, folder in PRODUCTS.items()
        if product in (None, name)
        for path in sorted((home / folder / "configs").glob("*.toml"))
    )


def _read_toml(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text(encoding="utf-8"))


def find_shipped(product: str | None, name: str) -> ShippedConfig | None:
    """The shipped configuration called ``name``, or None."""
    return next((config for config in shipped_configs(product) if config.name == name), None)


def get_shipped(name: str) -> ShippedConfig:
    """The shipped configuration called ``name`` of any product."""
    config = find_shipped(None, name)
    if config is None:
        raise ConfigError(unknown_name(None, name))
    return config


def unknown_name(product: str | None, source: str) -> str:
    """Message for a source that is neither a path (where one may stand) nor a shipped name, with the nearest name."""
    names = [config.name for config in shipped_configs(product)]
    near = difflib.get_close_matches(source, names, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    where = "no such file, and no" if product else "no"
    return f"{source}: {where} shipped configuration of that name ({', '.join(names)}).{hint}"


STATES: Final = tuple(f"{code:02d}" for code in range(1, 57) if code not in (3, 7, 14, 43, 52))
PUERTO_RICO: Final = "72"

Infinite = Literal[NotFinite.INFINITY]
INFINITE: Final[Infinite] = NotFinite.INFINITY
Budget = Fraction | Infinite


def check_choice(value: object, key: str, allowed: Sequence[str], problems: Problems) -> str | None:
    """One of a few words."""
    if isinstance(value, str) and value in allowed:
        return value
    hint = nearest(value, allowed) if isinstance(value, str) else ""
    problems.add(key, f"{value_text(value)} is not allowed; give one of {listed(allowed)}.{hint}")
    return None


def check_state_codes(
    value: object, key: str, problems: Problems, allowed: Sequence[str], words: str
) -> tuple[str, ...] | None:
    """A list of distinct two-digit state codes in quotes."""
    if not isinstance(value, list):
        problems.add(
            key, f'{value_text(value)} is not a list; give state codes as text, such as ["44", "50"]'
        )
        return None
    before = len(problems.messages)
    if not value:
        problems.add(key, "the list is empty; name at least one state")
    strangers = [item for item in value if not isinstance(item, str)]
    if strangers:
        problems.add(key, f'{listed(strangers)} must be text in quotes, such as "01"')
    codes = [item for item in value if isinstance(item, str)]
    repeated = [code for code, count in Counter(codes).items() if count > 1]
    if repeated:
        problems.add(key, f"{listed(repeated)} named more than once; name every state once")
    invalid = [code for code in dict.fromkeys(codes) if code not in allowed]
    if invalid:
        problems.add(key, f"{listed(invalid)} not a state code; allowed are {words}")
    return tuple(sorted(codes)) if len(problems.messages) == before else None


def check_budget(item: object, key: str, problems: Problems, *, infinite: bool, text: bool) -> Budget | None:
    """One budget of 0 or more."""
    if item is NotFinite.INFINITY:
        if infinite:
            return INFINITE
        problems.add(
            key,
            "Infinity means no noise and protects no one; only 'truth --private-path' takes it. "
            "Give a number of 0 or more",
        )
        return None
    if isinstance(item, str) and text:
        try:
            item = parse_fraction(item, key)
        except ConfigError as error:
            problems.messages.append(str(error))
            return None
    if not isinstance(item, Fraction):
        form = 'a number or text such as "1/200"' if text else "a number without quotes"
        problems.add(key, f"{value_text(item)} is not a number; give {form}, 0 or more")
        return None
    if item < 0:
        problems.add(key, f"{value_text(item)} is negative; give 0 (level not measured) or more")
        return None
    return item


def listed(values: Iterable[object]) -> str:
    """Values in a row, as they would be written."""
    return ", ".join(item if isinstance(item, str) else value_text(item) for item in values)


def value_text(value: Any) -> str:
    """A raw configuration value in a few words."""
    if isinstance(value, NotFinite):
        return value.value
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "null"
    if isinstance(value, Fraction):
        return decimal_text(value)
    if isinstance(value, str):
        return repr(value if len(value) <= 60 else f"{value[:57]}...")
    if isinstance(value, PurePath):
        return str(value)
    return "a list" if isinstance(value, list) else "a mapping" if isinstance(value, Mapping) else "a value"


def locate(product: str, source: str | Path) -> tuple[Path, str]:
    """The file of a configuration, and how messages name it."""
    shipped = find_shipped(product, str(source))
    if shipped is not None:
        return shipped.path, f"shipped configuration {shipped.name}"
    path = Path(source)
    if path.is_dir():
        if not (path / "config.json").is_file():
            others = sorted(item.name for item in path.glob("*.json"))
            hint = (
                f"; it holds {', '.join(others)}: name the file"
                if others
                else f"; fix: name a .json or .toml file, or a shipped configuration ({', '.join(config.name for config in shipped_configs(product))})"
            )
            raise ConfigError(f"{path}: the folder has no config.json{hint}")
        path = path / "config.json"
    if not path.exists():
        raise ConfigError(unknown_name(product, str(source)))
    if path.suffix.lower() not in (".json", ".toml"):
        raise ConfigError(f"{path}: a configuration ends in .json (the Bureau's) or .toml (ours)")
    return path, str(path)


def load_raw(path: Path, origin: str) -> dict[str, Any]:
    """The top-level keys of a JSON or TOML file, numbers as Fractions."""
    raw = load_json_exact(path) if path.suffix.lower() == ".json" else load_toml_exact(path)
    if not isinstance(raw, dict):
        raise ConfigError(f"{origin}: the file must hold one JSON object with the keys of a configuration")
    return raw


def number_of(text: str) -> Fraction | NotFinite | str:
    """The number that an override spells, or its text, which the rules then refuse with the key's name."""
    if text.strip().lower() in ("infinity", "inf"):
        return NotFinite.INFINITY
    try:
        return parse_fraction(text, "--set")
    except ConfigError:
        return text


class Settled(ABC):
    """Base of a product's checked configuration: a title, and settings as text under dotted keys in a fixed order."""

    title: str

    @property
    @abstractmethod
    def settings(self) -> dict[str, str]:
        """Everything that decides what is released, apart from files that the plan names."""

    @property
    def record(self) -> dict[str, str]:
        """The title, where there is one, and the settings: what a manifest says of a configuration."""
        return {**({"title": self.title} if self.title else {}), **self.settings}

    @property
    def digest(self) -> str:
        """SHA-256 of the settings as canonical JSON, hexadecimal; equal for JSON and TOML of one content."""
        text = json.dumps(self.settings, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()
