"""What is read as TOML, JSON, GeoJSON or a number passes one check of size, depth and magnitude first, so that no text exhausts time or memory."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

from censafe.errors import CensafeError, ConfigError, InputError, StorageError

MOST_BYTES: Final = 64 * 1024**2
"""Most bytes of a configuration, a definition or a manifest."""
MOST_POLYGON_BYTES: Final = 1024**3
"""Most bytes of a file of polygons."""
DEEPEST: Final = 64
"""Most brackets within one another, and most parts of a dotted key."""
LARGEST: Final = 10**150
"""Largest number, and the inverse of the smallest: their squares are floating-point numbers."""
TRUST_VARIABLE: Final = "CENSAFE_TRUST_SIZE"
"""Variable of the environment that lifts the limits of what compressed files unpack to, as ``censafe --trust-size`` does."""
TRUST_SIZE: Final = f"fix: check that it is the right file; to read it all the same, write 'censafe --trust-size VERB ...', or set {TRUST_VARIABLE}=1"
"""The end of a message about a size that is not plausible."""
_OUT_OF_RANGE: Final = "{}: the number is out of range; allowed: 0, and magnitudes from 1e-150 to 1e150"
_LONGEST_NUMBER: Final = 400  # characters
_LARGEST_EXPONENT: Final = 400
_MOST_DIGITS: Final = 9  # of a whole number, so that products of it and of counts fit 64 bits

_NUMBER = re.compile(
    r"[+-]?(\d+(_\d+)*)?(\.(\d+(_\d+)*)?)?([eE][+-]?\d{1,4})?|[+-]?\d+(_\d+)*/\d+(_\d+)*", re.ASCII
)
_QUOTED = re.compile(
    r'"""(?:[^"\\]|\\.|"(?!""))*"""|' + r"'''(?:[^']|'(?!''))*'''|" + r'"(?:[^"\\\n]|\\.)*"|' + r"'[^'\n]*'",
    re.DOTALL,
)
_TEXT_OF_JSON = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_BRACKETS = re.compile(r"[\[\]{}]")
_FRACTION = re.compile(r"-?\d{1,4000}(/\d{0,3999}[1-9]\d{0,3999})?", re.ASCII)
_DOTTED = re.compile(rf"(?<![\w.-])[\w-]*(?:\s*\.\s*[\w-]*){{{DEEPEST},}}", re.ASCII)


def sizes_are_trusted() -> bool:
    """Whether the limits of what compressed files unpack to are lifted."""
    return os.environ.get(TRUST_VARIABLE, "") not in ("", "0")


def parse_number(text: str, where: str, error: type[InputError] = ConfigError) -> Fraction:
    """An exact number from its text, within the magnitudes that can be counted with.

    Example:
        >>> parse_number("1e-10", "delta")
        Fraction(1, 10000000000)
        >>> parse_number("1e-400", "rho")
        Traceback (most recent call last):
        censafe.errors.ConfigError: rho: the number is out of range; allowed: 0, and magnitudes from 1e-150 to 1e150
    """
    text = text.strip()
    excerpt = text if len(text) <= 40 else f"{text[:40]}..."
    if len(text) > _LONGEST_NUMBER or not _NUMBER.fullmatch(text) or not re.search(r"\d", text):
        raise error(f"{where}: {excerpt!r} is not a number; write 3, 0.25, 1e-10 or 1440/4099")
    exponent = re.search(r"[eE]([+-]?\d+)$", text)
    if exponent and abs(int(exponent[1])) > _LARGEST_EXPONENT:
        raise error(_OUT_OF_RANGE.format(where))
    try:
        number = Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise error(f"{where}: {excerpt!r} is not a finite number; write 3, 0.25 or 1440/4099") from None
    return require_magnitude(number, where, error)


def require_magnitude(number: Fraction, where: str, error: type[CensafeError] = ConfigError) -> Fraction:
    """The number, if it is 0 or of a magnitude that can be counted with."""
    if number and not 1 <= abs(number) * LARGEST <= LARGEST**2:
        raise error(_OUT_OF_RANGE.format(where))
    return number


def parse_integer(text: str) -> int:
    """A whole number of at most 9 digits.

    Example:
        >>> parse_integer("-5")
        -5
        >>> parse_integer("9999999999")
        Traceback (most recent call last):
        ValueError: '9999999999' is not a whole number of at most 9 digits
    """
    if not re.fullmatch(rf"[+-]?\d{{1,{_MOST_DIGITS}}}", text, re.ASCII):
        raise ValueError(f"{text[:40]!r} is not a whole number of at most {_MOST_DIGITS} digits")
    return int(text)


def parse_toml(text: str, where: str, number: Callable[[str], Any] = float) -> dict[str, Any]:
    """The document of a TOML text.

    Example:
        >>> parse_toml("a.b = 1", "mine.toml")
        {'a': {'b': 1}}
        >>> parse_toml("a = " + "[" * 5000, "mine.toml")
        Traceback (most recent call last):
        censafe.errors.ConfigError: mine.toml: brackets are nested more than 64 deep; ...
    """
    _require_length(len(text), where, MOST_BYTES, ConfigError)
    plain = re.sub(r"#.*", "", _QUOTED.sub("s", text))
    _require_depth(plain, where, ConfigError)
    if _DOTTED.search(plain):
        raise ConfigError(
            f"{where}: a key has more than {DEEPEST} parts; fix: write keys as the shipped configurations have them"
        )
    try:
        return tomllib.loads(text, parse_float=number)
    except ValueError as wrong:
        raise ConfigError(
            f"{where}: not valid TOML: {wrong}; fix: correct that place, or copy the whole file again"
        ) from None


def parse_json(
    text: str, where: str, error: type[InputError] = ConfigError, most: int = MOST_BYTES, **hooks: Any
) -> Any:
    """The document of a JSON text.

    Example:
        >>> parse_json("[" * 5000, "areas.geojson")
        Traceback (most recent call last):
        censafe.errors.ConfigError: areas.geojson: brackets are nested more than 64 deep; ...
    """
    _require_length(len(text), where, most, error)
    _require_depth(_TEXT_OF_JSON.sub("s", text) if _is_deep(text) else "", where, error)
    try:
        return json.loads(text, **hooks)
    except json.JSONDecodeError as wrong:
        raise error(
            f"{where}: not valid JSON, line {wrong.lineno} column {wrong.colno}: {wrong.msg}; fix: correct that place, or copy the whole file again"
        ) from None
    except ValueError as wrong:
        if type(wrong) is not ValueError:  # of a hook
            raise
        raise error(f"{where}: a number of the JSON has too many digits; fix: correct it") from None


def parse_stored(text: str | bytes, most: int = MOST_BYTES, **hooks: Any) -> Any:
    """The document of a JSON text that this program wrote, or that somebody changed since.

    Example:
        >>> parse_stored(b"[" * 5000)
        Traceback (most recent call last):
        ValueError: document: brackets are nested more than 64 deep; ...
    """
    try:
        return parse_json(text if isinstance(text, str) else text.decode(), "document", most=most, **hooks)
    except ConfigError as wrong:
        raise ValueError(str(wrong)) from None


def read_stored(path: Path, most: int = MOST_BYTES) -> Any:
    """The document of a JSON file that this program wrote, or that somebody changed since; see :func:`parse_stored`."""
    if path.stat().st_size > most:
        raise ValueError(f"{path.name}: too long")
    return parse_stored(path.read_bytes(), most)


def parse_fraction(text: object) -> Fraction:
    """A fraction of a file that this program wrote, such as ``5/2``, without a point or exponent.

    Example:
        >>> parse_fraction("1440/4099"), parse_fraction("3")
        (Fraction(1440, 4099), Fraction(3, 1))
    """
    if not isinstance(text, str) or not _FRACTION.fullmatch(text):
        raise ValueError("not a fraction of whole numbers")
    return Fraction(text)


def exact_text(number: Fraction) -> str:
    """A fraction as ``num/den``, whole numbers too, which :func:`parse_fraction` reads."""
    return f"{number.numerator}/{number.denominator}"


def read_text(path: Path, error: type[InputError] = ConfigError, most: int = MOST_BYTES) -> str:
    """A file of UTF-8 text; a byte order mark is skipped."""
    try:
        _require_length(path.stat().st_size, str(path), most, error)
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as wrong:
        raise error(
            f"{path}: not UTF-8 text (byte {wrong.start}); fix: save it as UTF-8, or copy the file again"
        ) from None
    except OSError as wrong:
        raise StorageError(
            f"{path}: the file cannot be read: {wrong.strerror}; fix: name a file that you may read"
        ) from None


def read_toml(path: Path) -> dict[str, Any]:
    """The document of a TOML file that a user wrote; see :func:`parse_toml` and :func:`read_text`."""
    return parse_toml(read_text(path), str(path))


def _require_length(length: int, where: str, most: int, error: type[InputError]) -> None:
    if length > most:
        raise error(
            f"{where}: {length:,} bytes; allowed: at most {most // 1024**2:,} MiB; fix: check that it is the right file"
        )


def _is_deep(text: str) -> bool:
    """Whether brackets may be nested too deeply, those within quotes counted too."""
    if text.count("[") + text.count("{") <= DEEPEST:
        return False
    import numpy as np

    letters = np.frombuffer(text.encode("utf-8", "replace"), np.uint8)
    change = np.zeros(256, np.int8)
    change[[ord("["), ord("{")]], change[[ord("]"), ord("}")]] = 1, -1
    return bool(np.cumsum(change[letters], dtype=np.int32).max(initial=0) > DEEPEST)


def _require_depth(plain: str, where: str, error: type[InputError]) -> None:
    """Refuse brackets that are nested too deeply; what is quoted has been taken out."""
    depth = 0
    for bracket in _BRACKETS.findall(plain):
        depth = depth + 1 if bracket in "[{" else depth - 1
        if depth > DEEPEST:
            raise error(
                f"{where}: brackets are nested more than {DEEPEST} deep; fix: write keys and values as the documentation has them"
            )
