"""What files of records look like, as a configuration says it: files, columns of areas, and how columns become levels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from fractions import Fraction
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from censafe.geography.spines.tree import LevelRule
from censafe.model.schema import Schema

ENCODINGS: Final = ("utf-8", "latin-1", "utf-16")
DELIMITERS: Final = (",", ";", "|", "\t")
LONGEST_CODE: Final = 64
RECORDS: Final = "records"
"""In the place of a list of areas: the areas that have records are the list."""

Table = Literal["persons", "households"]
TABLES: Final[tuple[Table, ...]] = ("persons", "households")


@dataclass(frozen=True)
class TextForm:
    """How text files are written.

    Args:
        delimiter: None where it is found from the beginning of each file.
        missing: texts that stand for no value.
        decimal: mark of decimals in numbers.
    """

    delimiter: str | None = None
    encoding: str = "utf-8"
    missing: tuple[str, ...] = ("",)
    decimal: str = "."


@dataclass(frozen=True)
class Expression:
    """A checked expression over the columns of a row, in the language of the embedded engine."""

    text: str
    columns: tuple[str, ...]


@dataclass(frozen=True)
class AttributeRule:
    """How the value of a row becomes a level.

    Args:
        source: name of a column, or an expression.
        levels: of the attribute.
        values: level of each text, labels and numbers of levels included.
        born: day on which completed years are counted; None where the value is no date.
        dates: form of the dates, as strptime has it; empty for the usual ones.
        bands: least number of each level; empty where the value is not cut.
        other: level of everything else; None where that is a finding.
        where: condition of the rows that the histogram counts; None for all.
    """

    name: str
    source: str | Expression
    levels: int
    values: tuple[tuple[str, int], ...] = ()
    born: date | None = None
    dates: str = ""
    bands: tuple[Fraction, ...] = ()
    other: int | None = None
    where: Expression | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it reads."""
        own = (self.source,) if isinstance(self.source, str) else self.source.columns
        return own if self.where is None else (*own, *self.where.columns)


@dataclass(frozen=True)
class AreaRule:
    """Where the codes of areas stand, and how they are numbered.

    Args:
        levels: names of the levels below the root, the widest first.
        columns: one for each level, or one for all.
        lengths: characters of the code that are the area of each level, where one column holds all; empty otherwise.
        digits: of the number of an area among those of one area above it.
        areas: file with the list of the lowest areas, or :data:`RECORDS`; or a list for each of two trees, whose lowest areas are combined.
        other_tree: columns of a tree that the levels do not nest with, from coarse to fine; the areas of the lowest level are those parts of the
            lowest areas of the spine that lie in one area of its finest column.
    """

    levels: tuple[str, ...]
    columns: tuple[str, ...]
    digits: tuple[int, ...]
    areas: tuple[str, ...]
    lengths: tuple[int, ...] = ()
    other_tree: tuple[str, ...] = ()

    @property
    def listed(self) -> bool:
        """Whether files list the areas, and not the records."""
        return self.areas != (RECORDS,)

    @property
    def record_columns(self) -> tuple[str, ...]:
        """The columns that records have."""
        return self.columns if self.listed else self.all_columns

    @property
    def all_columns(self) -> tuple[str, ...]:
        """The columns that one list of the areas has."""
        return tuple(dict.fromkeys([*self.columns, *self.other_tree]))

    @property
    def columns_of_lists(self) -> tuple[tuple[str, ...], ...]:
        """The columns of each list, one for all or one a tree."""
        return (self.all_columns,) if len(self.areas) == 1 else (self.columns[:-1], self.other_tree)


@dataclass(frozen=True, eq=False)
class RecordHistogram:
    """A histogram and the rules of its attributes.

    Args:
        kind: attribute whose levels are kinds of units, which follow the unit of a person; empty for none.
        empty: bool, shape (cells,), cells that must be empty.
    """

    name: str
    table: Table
    schema: Schema
    rules: tuple[AttributeRule, ...]
    kind: str
    empty: NDArray[np.bool_] = field(repr=False)


@dataclass(frozen=True)
class UnitRule:
    """Counts of units by kind, which are published as they are.

    Args:
        table: ``households``: every row is a unit; ``persons``: every key is a unit.
        kinds: number of kinds.
    """

    table: Table
    rule: AttributeRule
    kinds: int


@dataclass(frozen=True, eq=False)
class RecordLayout:
    """Files of records and what is counted of them.

    Args:
        files: name, pattern or ``FILE.duckdb:TABLE`` of each table.
        key: column that joins persons to their household; empty for none.
        rules: the levels of the tree, the root first.
    """

    files: Mapping[Table, str]
    key: str
    form: TextForm
    geography: AreaRule
    histograms: tuple[RecordHistogram, ...]
    units: UnitRule | None
    rules: tuple[LevelRule, ...]
