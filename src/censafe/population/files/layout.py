"""Record layouts as data: columns, allowed values and the compact types they are loaded into."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal

TableName = Literal["persons", "units", "geo"]
TABLES: tuple[TableName, ...] = ("persons", "units", "geo")
MAFID_LOW = 100_000_001
MAFID_HIGH = 899_999_999
_LISTED = 1000  # domains up to this size are compared value by value


@dataclass(frozen=True)
class Column:
    """One column of a record layout.

    Args:
        typed: column name in the loaded table, or None when the column is checked and not stored.
    """

    name: str
    kind: Literal["code", "integer", "digits"]
    width: int
    ranges: tuple[tuple[int, int], ...]
    typed: str | None
    dtype: str | None
    meaning: str

    @property
    def allowed(self) -> str:
        """The allowed values in words, for messages."""
        if self.kind == "digits":
            return f"exactly {self.width} digits"
        parts = ", ".join(
            f"{low:0{self.width}d}" if low == high else f"{low:0{self.width}d} to {high:0{self.width}d}"
            for low, high in self.ranges
        )
        return parts if self.kind == "code" else f"{parts}, digits only, without leading zeros"

    def values(self) -> tuple[str, ...] | None:
        """All allowed texts, or None when they are too many to list."""
        if self.kind == "digits" or sum(high - low + 1 for low, high in self.ranges) > _LISTED:
            return None
        return tuple(f"{value:0{self.width}d}" for low, high in self.ranges for value in range(low, high + 1))


@dataclass(frozen=True)
class TableSchema:
    """The columns of one input table in file order."""

    name: TableName
    columns: tuple[Column, ...]

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
def layout(table: TableName) -> TableSchema:
    """Layout of one table of the PHSafe input.

    Source: specification of the PHSafe input files, section 3.1.

    Example:
        >>> layout("persons").header
        ('RTYPE', 'MAFID', 'QAGE', 'CENHISP', 'CENRACE', 'RELSHIP')
        >>> layout("units").columns[3].allowed
        '0, 2 to 97, digits only, without leading zeros'
    """
    document = tomllib.loads(layout_text())
    return TableSchema(table, tuple(_column(entry) for entry in document[table]))


def layout_text() -> str:
    """The record layouts as they are shipped, TOML."""
    return files("censafe.population").joinpath("schema.toml").read_text(encoding="utf-8")


def _column(entry: dict[str, str | int]) -> Column:
    kind = str(entry["kind"])
    tokens = [token.strip() for token in str(entry.get("allowed", "")).split(",") if token.strip()]
    bounds = [token.split("-") for token in tokens]
    width = int(entry.get("width", 0)) or (len(bounds[0][0]) if kind == "code" else 0)
    typed, _, dtype = str(entry.get("typed", "")).partition(" ")
    return Column(
        name=str(entry["name"]),
        kind=kind,  # type: ignore[arg-type]
        width=width,
        ranges=tuple((int(pair[0]), int(pair[-1])) for pair in bounds),
        typed=typed or None,
        dtype=dtype or None,
        meaning=str(entry["meaning"]),
    )
