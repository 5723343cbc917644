"""Record layouts of the SafeTab inputs as data: columns, allowed values and their numbers.

Source: specification of SafeTab, section 3.2.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from censafe.geography.regions import REGION_TYPES

RecordName = Literal["persons", "households", "totals"]
NULL = "Null"
RACES = 8
_DIGITS = frozenset("0123456789")
_LONGEST = 19  # digits of a number with leading zeros


@dataclass(frozen=True)
class Field:
    """One column of a record layout.

    Args:
        use: what the loaded record keeps of it; empty when it is checked only.
        width: digits of a column of digits.
    """

    name: str
    kind: str
    use: str
    meaning: str
    low: int = 0
    high: int = 0
    width: int = 0
    choices: tuple[str, ...] = ()

    @property
    def allowed(self) -> str:
        """The allowed values in words, for messages."""
        return {
            "number": f"{self.low} to {self.high}, digits only",
            "digits": f"exactly {self.width} digits",
            "choice": " or ".join(self.choices),
            "code": "four digits, the first not 0",
            "code_or_null": f"four digits, the first not 0, or {NULL}",
            "race": f"01 to 63, or {NULL}",
            "region": "1, or 2, 4, 5, 7 or 11 digits as its REGION_TYPE has",
            "region_type": ", ".join(kind.name for kind in REGION_TYPES),
            "integer": "a whole number",
        }[self.kind]

    def number(self, text: str) -> int:
        """The number that stands for an allowed text, or -1.

        Null is 0, a choice its position, other texts their number.

        Example:
            >>> age, *_ = record_layout("persons")
            >>> age.number("028"), age.number("116"), age.number(" 28")
            (28, -1, -1)
        """
        if self.kind == "choice":
            return self.choices.index(text) if text in self.choices else -1
        if text == NULL:
            return 0 if self.kind in ("code_or_null", "race") else -1
        if not text or not _DIGITS.issuperset(text) or len(text) > _LONGEST:
            return -1
        value = int(text)
        if self.kind == "number":
            return value if self.low <= value <= self.high else -1
        if self.kind == "race":
            return value if len(text) == 2 and 1 <= value <= 63 else -1
        if self.kind == "digits":
            return value if len(text) == self.width else -1
        return value if len(text) == 4 and text[0] != "0" else -1


@cache
def record_layout(name: RecordName) -> tuple[Field, ...]:
    """The columns of one input table in file order.

    Example:
        >>> [field.name for field in record_layout("totals")]
        ['REGION_ID', 'REGION_TYPE', 'ITERATION_CODE', 'COUNT']
    """
    text = files("censafe.population.detailed").joinpath("layout.toml").read_text(encoding="utf-8")
    document = tomllib.loads(text)
    return tuple(field for entry in document[name] for field in _fields(entry, document))


def header(name: RecordName) -> tuple[str, ...]:
    """Column names of one input table in file order."""
    return tuple(field.name for field in record_layout(name))


def _fields(entry: dict[str, Any], document: dict[str, Any]) -> list[Field]:
    if "group" in entry:
        return [field for inner in document[entry["group"]] for field in _fields(inner, document)]
    low, high = entry.get("range", (0, 0))
    return [
        Field(
            name=name,
            kind=entry["kind"],
            use=entry.get("use", "") + (name[5:] if "repeat" in entry else ""),
            meaning=entry["meaning"],
            low=low,
            high=high,
            width=entry.get("width", 0),
            choices=tuple(entry.get("choices", ())),
        )
        for name in entry.get("repeat", [entry.get("name")])
    ]
