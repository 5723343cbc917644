"""Exact budgets: numbers read from their literal text, fractions from the configuration file to the ledger."""

from __future__ import annotations

import json
import re
import tomllib
from enum import Enum
from fractions import Fraction
from pathlib import Path
from typing import Any

from censafe.errors import ConfigError

__all__ = [
    "NotFinite",
    "exact",
    "load_json_exact",
    "load_toml_exact",
    "parse_fraction",
    "parse_json_exact",
    "parse_toml_exact",
]

_NUMBER = re.compile(
    r"[+-]?(\d+(_\d+)*)?(\.(\d+(_\d+)*)?)?([eE][+-]?\d{1,4})?|[+-]?\d+(_\d+)*/\d+(_\d+)*", re.ASCII
)
_LONGEST_TOKEN = 400
_LARGEST_EXPONENT = 400
_LARGEST = (
    10**150
)  # its square is a floating-point number, as sums of losses and of variances are for reports


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

    Args:
        value: a Fraction or an int.
        key: name of the argument or configuration key, for the message.

    Raises:
        TypeError: for a float, a bool or anything else.

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

    Args:
        value: text such as ``1440/4099``, ``2.134`` or ``1e-10``; a Fraction; an int.
        where: file and key, for the message.

    Raises:
        ConfigError: the text is no number, or the value is no finite number (true, null, Infinity, a list).
        TypeError: a float, which has lost its literal text already.

    Example:
        >>> parse_fraction("2.134", "rho")
        Fraction(1067, 500)
    """
    if isinstance(value, float):
        raise TypeError(f"{where} must be an exact number (Fraction or text), not float")
    if isinstance(value, bool) or not isinstance(value, str | int | Fraction):
        shown = value.value if isinstance(value, NotFinite) else _kind(value)
        raise ConfigError(
            f"{where}: {shown} is not allowed here; give a finite number such as 0.25 or 1440/4099"
        )
    if not isinstance(value, str):
        return Fraction(value)
    text = value.strip()
    if text.lower().lstrip("+") in _NOT_FINITE:
        raise ConfigError(f"{where}: {text} is not allowed here; give a finite number")
    return _fraction_of(text, where)


def parse_json_exact(text: str, where: str) -> Any:
    """Parse JSON text with every number as a Fraction.

    Args:
        text: the document.
        where: its name, for messages.

    Returns:
        dicts, lists, str, bool, None, Fraction, and :class:`NotFinite` for ``Infinity``, ``-Infinity`` and ``NaN``.

    Raises:
        ConfigError: not JSON, or an object that repeats a key.
    """

    def number(token: str) -> Fraction:
        return _fraction_of(token, where)

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        keys = [key for key, _ in pairs]
        repeated = sorted({key for key in keys if keys.count(key) > 1})
        if repeated:
            raise ConfigError(f"{where}: repeated key {', '.join(map(repr, repeated))}; keep one of each")
        return dict(pairs)

    try:
        return json.loads(
            text, parse_float=number, parse_int=number, parse_constant=NotFinite, object_pairs_hook=unique
        )
    except json.JSONDecodeError as error:
        raise ConfigError(
            f"{where}: not valid JSON, line {error.lineno} column {error.colno}: {error.msg}; fix: correct that place, or copy the whole file again"
        ) from error
    except RecursionError as error:
        raise ConfigError(
            f"{where}: the JSON is nested too deeply; fix: write keys and values as the shipped configurations have them"
        ) from error


def parse_toml_exact(text: str, where: str) -> dict[str, Any]:
    """Parse TOML text with every number as a Fraction, ``inf`` and ``nan`` as :class:`NotFinite`.

    Raises:
        ConfigError: not TOML (a repeated key is not TOML either).
    """

    def number(token: str) -> Fraction | NotFinite:
        special = _NOT_FINITE.get(token.lower().lstrip("+"))
        return special or _fraction_of(token, where)

    try:
        document = tomllib.loads(text, parse_float=number)
    except (ValueError, RecursionError) as error:
        raise ConfigError(
            f"{where}: not valid TOML: {error}; fix: correct that place, or copy the whole file again"
        ) from error
    exact_document: dict[str, Any] = _integers_to_fractions(document)
    return exact_document


def load_json_exact(path: Path) -> Any:
    """Read a JSON file by :func:`parse_json_exact`; a byte order mark is skipped."""
    return parse_json_exact(_read(path), str(path))


def load_toml_exact(path: Path) -> dict[str, Any]:
    """Read a TOML file by :func:`parse_toml_exact`; a byte order mark is skipped."""
    return parse_toml_exact(_read(path), str(path))


def _read(path: Path) -> str:
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"{path}: not UTF-8 text (byte {error.start}); fix: save it as UTF-8, or copy the file again"
        ) from error
    except OSError as error:
        raise ConfigError(
            f"{path}: cannot be read: {error.strerror}; fix: name a file that you may read"
        ) from error


def _fraction_of(token: str, where: str) -> Fraction:
    if len(token) > _LONGEST_TOKEN or not _NUMBER.fullmatch(token) or not re.search(r"\d", token):
        shown = token if len(token) <= 40 else f"{token[:40]}..."
        raise ConfigError(f"{where}: {shown!r} is not a number; write 3, 0.25, 1e-10 or 1440/4099")
    exponent = re.search(r"[eE]([+-]?\d+)$", token)
    if exponent and abs(int(exponent[1])) > _LARGEST_EXPONENT:
        raise ConfigError(f"{where}: {token} is out of range; exponents go to {_LARGEST_EXPONENT}")
    try:
        found = Fraction(token)
    except (ValueError, ZeroDivisionError) as error:
        raise ConfigError(f"{where}: {token!r} is not a finite number; write 3, 0.25 or 1440/4099") from error
    if abs(found) > _LARGEST:
        raise ConfigError(f"{where}: the number is out of range; numbers go to 1e150")
    return found


def _integers_to_fractions(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _integers_to_fractions(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_integers_to_fractions(inner) for inner in value]
    if isinstance(value, int) and not isinstance(value, bool):
        return Fraction(value)
    return value


def _kind(value: object) -> str:
    names: dict[type, str] = {bool: "true or false", type(None): "null", list: "a list", dict: "a table"}
    return names.get(type(value), f"a {type(value).__name__}")
