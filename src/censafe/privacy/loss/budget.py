"""Exact budgets: numbers read from their literal text, fractions from the configuration file to the ledger."""

from __future__ import annotations

from collections import Counter
from enum import Enum
from fractions import Fraction
from pathlib import Path
from typing import Any

from censafe.errors import ConfigError, StorageError
from censafe.model.parsing import parse_json, parse_number, parse_toml, read_text, require_magnitude


class NotFinite(Enum):
    """A number token that is not a number: the caller decides whether it may stand there."""

    INFINITY = "Infinity"
    MINUS_INFINITY = "-Infinity"
    NAN = "NaN"


_NOT_FINITE = {
    "infinity": NotFinite.INFINITY,
    "inf": NotFinite.INFINITY,
    "-infinity": NotFinite.MINUS_INFINITY,
    "-inf": NotFinite.MINUS_INFINITY,
    "nan": NotFinite.NAN,
    "-nan": NotFinite.NAN,
}


def exact(value: Fraction | int, key: str) -> Fraction:
    """Return ``value`` as a Fraction, or refuse what is not exact.

    Example:
        >>> exact(3, "rho")
        Fraction(3, 1)
    """
    if isinstance(value, Fraction):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return Fraction(value)
    raise TypeError(f"{key} must be an exact number (Fraction or int), not {type(value).__name__}")


def parse_fraction(value: object, where: str) -> Fraction:
    """Turn a configuration value or its literal text into a Fraction.

    Example:
        >>> parse_fraction("2.134", "rho")
        Fraction(1067, 500)
    """
    if isinstance(value, float):
        raise TypeError(f"{where} must be an exact number (Fraction or text), not float")
    if isinstance(value, bool) or not isinstance(value, str | int | Fraction):
        description = value.value if isinstance(value, NotFinite) else _kind(value)
        raise ConfigError(
            f"{where}: {description} is not allowed here; give a finite number such as 0.25 or 1440/4099"
        )
    if not isinstance(value, str):
        return require_magnitude(Fraction(value), where)
    text = value.strip()
    if text.lower().lstrip("+") in _NOT_FINITE:
        raise ConfigError(f"{where}: {text} is not allowed here; give a finite number")
    return parse_number(text, where)


def parse_json_exact(text: str, where: str) -> Any:
    """Parse JSON text with every number as a Fraction."""

    def number(token: str) -> Fraction:
        return parse_number(token, where)

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        repeated = sorted(key for key, times in Counter(key for key, _ in pairs).items() if times > 1)
        if repeated:
            raise ConfigError(f"{where}: repeated key {', '.join(map(repr, repeated))}; keep one of each")
        return dict(pairs)

    return parse_json(
        text, where, parse_float=number, parse_int=number, parse_constant=NotFinite, object_pairs_hook=unique
    )


def parse_toml_exact(text: str, where: str) -> dict[str, Any]:
    """Parse TOML text with every number as a Fraction, ``inf`` and ``nan`` as :class:`NotFinite`."""

    def number(token: str) -> Fraction | NotFinite:
        special = _NOT_FINITE.get(token.lower().lstrip("+"))
        return special or parse_number(token, where)

    document = parse_toml(text, where, number)
    exact_document: dict[str, Any] = _integers_to_fractions(document, where)
    return exact_document


def load_json_exact(path: Path) -> Any:
    """Read a JSON file by :func:`parse_json_exact`; a byte order mark is skipped."""
    return parse_json_exact(_text(path), str(path))


def load_toml_exact(path: Path) -> dict[str, Any]:
    """Read a TOML file by :func:`parse_toml_exact`; a byte order mark is skipped."""
    return parse_toml_exact(_text(path), str(path))


def _text(path: Path) -> str:
    try:
        return read_text(path)
    except StorageError as error:
        raise ConfigError(str(error)) from None


def _integers_to_fractions(value: Any, where: str) -> Any:
    if isinstance(value, dict):
        return {key: _integers_to_fractions(inner, where) for key, inner in value.items()}
    if isinstance(value, list):
        return [_integers_to_fractions(inner, where) for inner in value]
    if isinstance(value, int) and not isinstance(value, bool):
        return require_magnitude(Fraction(value), where)
    return value


def _kind(value: object) -> str:
    names: dict[type, str] = {bool: "true or false", type(None): "null", list: "a list", dict: "a table"}
    return names.get(type(value), f"a {type(value).__name__}")
