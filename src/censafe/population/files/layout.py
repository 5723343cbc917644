"""Record layouts as data: files, columns, allowed values and the compact types they are loaded into."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

TableName = Literal["persons", "units", "geo"]
TABLES: tuple[TableName, ...] = ("persons", "units", "geo")
"""Of PHSafe."""
MAFID_LOW = 100_000_001
MAFID_HIGH = 899_999_999
NULL = "Null"
"""No code, in files of SafeTab."""
_LISTED = 1000  # domains up to this size are compared value by value
_DIGITS = frozenset("0123456789")
_LONGEST = 19  # digits of a number with leading zeros


@dataclass(frozen=True)
class Column:
    """One column of a record layout (layouts.toml).

    Args:
        typed: column name in the loaded table, or None when the column is checked and not stored.
        words: the allowed values in words, where they are not ranges.
    """

    name: str
    kind: Literal["code", "integer", "number", "digits", "choice", "text"]
    width: int
    ranges: tuple[tuple[int, int], ...]
    typed: str | None
    dtype: str | None
    meaning: str
    choices: tuple[str, ...] = ()
    null: bool = False
    words: str = ""

    @property
    def allowed(self) -> str:
        """The allowed values in words, for messages."""
        if self.kind == "digits":
            return f"exactly {self.width} digits"
        parts = self.words or ", ".join(
            f"{low:0{self.width}d}" if low == high else f"{low:0{self.width}d} to {high:0{self.width}d}"
            for low, high in self.ranges
        )
        ends = {"number": ", digits only", "integer": ", digits only, without leading zeros"}
        return (
            (" or ".join(self.choices) or parts)
            + ends.get(self.kind, "")
            + (f", or {NULL}" if self.null else "")
        )

    def values(self) -> tuple[str, ...] | None:
        """All allowed texts, or None when they are too many to list."""
        if self.kind == "digits" or sum(high - low + 1 for low, high in self.ranges) > _LISTED:
            return None
        return tuple(f"{value:0{self.width}d}" for low, high in self.ranges for value in range(low, high + 1))

    def number(self, text: str) -> int:
        """The number that stands for an allowed text, or -1: 0 for Null, its position for a choice.

        Example:
            >>> age, *_ = layout("safetab-persons").columns
            >>> age.number("028"), age.number("116"), age.number(" 28")
            (28, -1, -1)
        """
        if self.choices:
            return self.choices.index(text) if text in self.choices else -1
        if text == NULL:
            return 0 if self.null else -1
        if not text or not _DIGITS.issuperset(text) or len(text) > _LONGEST:
            return -1
        value = int(text)
        inside = not self.ranges or any(low <= value <= high for low, high in self.ranges)
        return value if inside and self.width in (0, len(text)) else -1


@dataclass(frozen=True)
class TableSchema:
    """The files and columns of one input table, columns in file order.

    Args:
        stem: beginning of the names of its files.
        endings: of their names.
        delimiters: what separates values of text: the first one, or others with a warning.
    """

    name: str
    columns: tuple[Column, ...]
    stem: str
    endings: tuple[str, ...]
    delimiters: str

    @property
    def header(self) -> tuple[str, ...]:
        """Column names in file order."""
        return tuple(column.name for column in self.columns)

    @property
    def stored(self) -> tuple[Column, ...]:
        """Columns that the loaded table holds."""
        return tuple(column for column in self.columns if column.typed)

    @property
    def checked(self) -> tuple[Column, ...]:
        """Columns that are checked while loading and not stored."""
        return tuple(column for column in self.columns if not column.typed)


@cache
def layout(table: str) -> TableSchema:
    """Layout of one table of the input of PHSafe, or of SafeTab.

    Source: specifications of the PHSafe input files, section 3.1, and of SafeTab, section 3.2.

    Example:
        >>> layout("persons").header
        ('RTYPE', 'MAFID', 'QAGE', 'CENHISP', 'CENRACE', 'RELSHIP')
        >>> layout("units").columns[3].allowed
        '0, 2 to 97, digits only, without leading zeros'
        >>> layout("safetab-totals").header
        ('REGION_ID', 'REGION_TYPE', 'ITERATION_CODE', 'COUNT')
    """
    document = tomllib.loads(layout_text())
    named = document["safetab-columns"]
    columns = (
        entry if isinstance(entry, dict) else {"name": entry, **named[entry]} for entry in document[table]
    )
    own = document["files"][table]
    return TableSchema(
        table, tuple(map(_column, columns)), own["stem"], tuple(own["endings"]), own["delimiters"]
    )


def layout_text() -> str:
    """The record layouts as they are shipped, TOML."""
    return files("censafe.population.files").joinpath("layouts.toml").read_text(encoding="utf-8")


def _column(entry: Mapping[str, Any]) -> Column:
    kind = entry["kind"]
    tokens = [token.strip() for token in entry.get("allowed", "").split(",") if token.strip()]
    bounds = [token.split("-") for token in tokens]
    typed, _, dtype = entry.get("typed", "").partition(" ")
    return Column(
        name=entry["name"],
        kind=kind,
        width=entry.get("width", 0) or (len(bounds[0][0]) if kind == "code" else 0),
        ranges=tuple((int(pair[0]), int(pair[-1])) for pair in bounds),
        typed=typed or None,
        dtype=dtype or None,
        meaning=entry["meaning"],
        choices=tuple(entry.get("choices", ())),
        null=entry.get("null", False),
        words=entry.get("words", ""),
    )
