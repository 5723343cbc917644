"""Layouts of microdata: what a file of persons or units says in each of its columns.

A file has a row for every record of the histogram, or for every published unit; records of a second histogram may have rows
beside. The text of a row depends on its geounit, on its cell and on numbers that count; a layout says which column shows what.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from censafe.model import Attribute, Schema
from censafe.model.topdown.histograms import CellGroups, HistogramSchema

UNIT: Final = "unit"
"""What a column is made of in a file of units: the kind of the unit."""

Number = Literal["record", "unit", "held"]
_Labels = NDArray[np.int32]


@dataclass(frozen=True)
class MicrodataColumn:
    """One column; one of `constant`, `geocode`, `number`, `of` and `cases` says what it shows.

    Args:
        geocode: number of characters of the geocode, after those of the columns before.
        number: ``record`` counts the records of a geounit from 1, or those of a unit where they are dealt to units; ``unit``
            counts the units of a geounit from 1; ``held`` is the number of records of a unit.
        of: a query of the schema: an attribute, a recode, or several joined by ``*``; ``unit`` in a file of units.
        cases: levels by attribute; a cell is in the first case whose levels it has. The last case has every other cell.
        codes: text for each answer of that query or each case, all of one length; then those of added units, or of the
            companion rows.
        companion: what the column shows of the companion rows; None without such rows.
    """

    name: str
    constant: str | None = None
    geocode: int = 0
    number: Number | None = None
    of: str = ""
    cases: tuple[Mapping[str, tuple[int, ...]], ...] = ()
    codes: tuple[str, ...] = ()
    companion: MicrodataColumn | None = None


@dataclass(frozen=True)
class CompanionRows:
    """A second histogram with rows in the same file, in every geounit after those of the first."""

    schema: HistogramSchema
    rows: Mapping[str, tuple[int, ...]]

    @cached_property
    def cells(self) -> NDArray[np.int64]:
        """Cells whose records have rows."""
        return np.flatnonzero(self.schema.grouped(CellGroups("total", self.rows)).label == 0)


@dataclass(frozen=True)
class SplitLevel:
    """A level of an attribute that the rows tell apart, by counts of the histogram beside.

    In every geounit the rows of this level, in their order, are as many of the first answer as the histogram beside has, then of
    the next; the first keeps the level, and the others are levels after the last.
    """

    attribute: str
    level: int
    by: str
    answers: tuple[int, ...]


@dataclass(frozen=True)
class MicrodataLayout:
    """One file of microdata.

    Args:
        kinds: kinds of published units, each a row, in a file of units; 0 in a file of the records of the histogram.
        dealt: attribute whose levels are the kinds of unit that records are dealt to in turn; empty without.
        total: kinds of unit whose published number the records of a geounit, with those beside, add up to; empty without.
        companion: a second histogram with rows in the file; None without.
        split: a level that is told apart by another histogram; None without.
    """

    name: str
    schema: HistogramSchema
    file: str
    records: str
    columns: tuple[MicrodataColumn, ...]
    kinds: int = 0
    dealt: str = ""
    total: tuple[int, ...] = ()
    added: tuple[int, ...] = ()
    companion: CompanionRows | None = None
    split: SplitLevel | None = None

    @property
    def header(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(column.name for column in self.columns)

    @property
    def digits(self) -> int:
        """Characters of the geocodes."""
        return sum(column.geocode for column in self.columns)

    @cached_property
    def row_schema(self) -> HistogramSchema:
        """The schema of the records as rows show them, with the levels that are told apart."""
        if self.split is None:
            return self.schema
        schema, name, more = self.schema, self.split.attribute, len(self.split.answers) - 1
        attributes = tuple(
            Attribute(part.name, part.levels + more) if part.name == name else part
            for part in schema.schema.attributes
        )
        # recodes and table of that attribute no longer hold
        return HistogramSchema(
            Schema(schema.name, attributes),
            schema.record,
            {key: recode for key, recode in schema.recodes.items() if recode.attribute != name},
            tables={key: table for key, table in schema.tables.items() if key != name},
        )

    @property
    def cells(self) -> int:
        """Number of cells of a row: those of the records, then one for added units or those of companion rows; or the kinds of unit."""
        more = bool(self.added) if self.companion is None else len(self.companion.cells)
        return self.kinds or self.row_schema.schema.cells + more

    def answers(self, column: MicrodataColumn) -> _Labels:
        """Which code a column shows for every cell of a row, shape (cells,)."""
        if self.kinds:
            return np.arange(self.kinds, dtype=np.int32)
        own = _labels(self.row_schema, column)
        if self.companion is not None and column.companion is not None:
            first = np.int32(len(column.codes) - len(column.companion.codes))
            return np.append(
                own, first + _labels(self.companion.schema, column.companion)[self.companion.cells]
            )
        return np.append(own, np.int32(len(column.codes) - 1)) if self.added else own


def _labels(schema: HistogramSchema, column: MicrodataColumn) -> _Labels:
    """The answer or case of every cell; they are not kept, for large schemas have many columns."""
    if not column.cases:
        return replace(schema.query(column.of)).label
    named = {name for case in column.cases for name in case}
    parts = schema.schema.attributes
    labels = np.zeros([part.levels if part.name in named else 1 for part in parts], np.int32)
    for number, case in reversed(list(enumerate(column.cases))):
        labels[
            np.ix_(
                *(case.get(part.name, range(size)) for part, size in zip(parts, labels.shape, strict=True))
            )
        ] = number
    return np.broadcast_to(labels, schema.schema.shape).reshape(-1)
