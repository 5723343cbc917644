"""Layouts of microdata: what a file of persons or units says in each of its columns, read from data.

A file has a row for every record of the histogram, or for every published unit. The text of a row depends on its geounit, on its
cell and on numbers that count; a layout says which column shows what.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from censafe.errors import ConfigError
from censafe.model.histograms import HistogramSchema

__all__ = ["UNIT", "MicrodataColumn", "MicrodataLayout", "microdata_layout"]

UNIT: Final = "unit"
"""What a column is made of in a file of units: the kind of the unit."""

Number = Literal["record", "unit", "held"]
_SOURCES: Final = ("constant", "geocode", "number", "of")


@dataclass(frozen=True)
class MicrodataColumn:
    """One column; one of `constant`, `geocode`, `number` and `of` says what it shows.

    Args:
        name: in the header.
        constant: text of every row.
        geocode: number of characters of the geocode, after those of the columns before.
        number: ``record`` counts the records of a geounit from 1, or those of a unit where they are dealt to units; ``unit``
            counts the units of a geounit from 1; ``held`` is the number of records of a unit.
        of: a query of the schema: an attribute, a recode, or several joined by ``*``; ``unit`` in a file of units.
        codes: text for each answer of that query, all of one length; those of added units last.
    """

    name: str
    constant: str | None = None
    geocode: int = 0
    number: Number | None = None
    of: str = ""
    codes: tuple[str, ...] = ()


@dataclass(frozen=True)
class MicrodataLayout:
    """One file of microdata.

    Args:
        name: of the layout.
        schema: of the histogram that the records come from.
        file: its name.
        records: kind of its records, for example persons.
        columns: in their order.
        kinds: kinds of published units, each a row, in a file of units; 0 in a file of the records of the histogram.
        dealt: attribute whose levels are the kinds of unit that records are dealt to in turn; empty without.
        total: kinds of unit whose published number the records of a geounit add up to; empty without.
        added: kinds of unit that have a row each beside the records.
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

    @property
    def header(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(column.name for column in self.columns)

    @property
    def digits(self) -> int:
        """Characters of the geocodes."""
        return sum(column.geocode for column in self.columns)

    @property
    def cells(self) -> int:
        """Number of cells of a row: those of the histogram and one for added units, or the kinds of unit."""
        return self.kinds or self.schema.schema.cells + bool(self.added)

    def answers(self, column: MicrodataColumn) -> NDArray[np.int32]:
        """Which code a column shows for every cell of a row, shape (cells,)."""
        if self.kinds:
            return np.arange(self.kinds, dtype=np.int32)
        query = self.schema.query(column.of)
        return np.append(query.label, np.int32(query.answers)) if self.added else query.label


def microdata_layout(
    name: str, entry: Mapping[str, Any], schemas: Mapping[str, HistogramSchema]
) -> MicrodataLayout:
    """A layout from an entry of a TOML file.

    Args:
        name: of the entry.
        entry: the arguments of :class:`MicrodataLayout` with the name of the schema, and those of :class:`MicrodataColumn` for
            each column. Codes of a column are a list by answer, or a table of the answers by code, ``{ 3 = "0", 5 = "1-7" }``;
            or ``first`` and ``width`` stand for rising numbers. ``added`` of a column is the code of added units.
        schemas: by name.

    Raises:
        ConfigError: an unknown key or schema, a column without or with two sources, or codes that are not one for each answer.
    """
    known = {one.name for one in fields(MicrodataLayout)} - {"name"}
    if unknown := sorted(set(entry) - known):
        raise ConfigError(f"{name}: unknown keys {', '.join(unknown)}; allowed: {', '.join(sorted(known))}")
    if entry.get("schema") not in schemas:
        raise ConfigError(f"{name}, schema: allowed is one of {', '.join(schemas)}")
    values: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()
    }
    schema = schemas[values.pop("schema")]
    kinds, added = values.get("kinds", 0), "added" in entry
    columns = tuple(_column(name, one, schema, kinds, added=added) for one in values.pop("columns"))
    layout = MicrodataLayout(name, schema, columns=columns, **values)
    allowed = (("unit", "held") if kinds else ("record", "unit")) if layout.dealt else ("record",)
    for column in columns:
        if column.number is not None and column.number not in allowed:
            raise ConfigError(f"{name}, {column.name}, number: allowed here is {' or '.join(allowed)}")
    return layout


def _column(
    layout: str, entry: Mapping[str, Any], schema: HistogramSchema, kinds: int, *, added: bool
) -> MicrodataColumn:
    place = f"{layout}, {entry.get('name')}"
    found = [source for source in _SOURCES if source in entry]
    if len(found) != 1:
        raise ConfigError(f"{place}: allowed is exactly one of {', '.join(_SOURCES)}")
    (source,) = found
    extra = {"codes", "first", "width", "added"} if source == "of" else set()
    if unknown := sorted(set(entry) - {"name", source, *extra}):
        raise ConfigError(f"{place}: unknown keys {', '.join(unknown)}")
    if source != "of":
        return MicrodataColumn(**entry)
    answers = kinds if entry["of"] == UNIT and kinds else _answers(place, entry["of"], schema)
    codes = (*_codes(place, entry, answers), *([entry["added"]] if added else []))
    if len(codes) != answers + added or len({len(code) for code in codes}) != 1:
        raise ConfigError(f"{place}, codes: {answers + added} texts of one length are needed")
    return MicrodataColumn(entry["name"], of=entry["of"], codes=codes)


def _answers(place: str, query: str, schema: HistogramSchema) -> int:
    try:
        return schema.query(query).answers
    except ValueError as error:
        raise ConfigError(f"{place}, of: {error}") from None


def _codes(place: str, entry: Mapping[str, Any], answers: int) -> Sequence[str]:
    """The code of every answer."""
    if "first" in entry:
        first, width = entry["first"], entry.get("width", 1)
        return [f"{number:0{width}d}" for number in range(first, first + answers)]
    given = entry.get("codes", ())
    if not isinstance(given, Mapping):
        return list(given)
    codes: list[str] = [""] * answers
    for code, text in given.items():
        for part in text.split(","):
            low, _, high = part.strip().partition("-")
            for answer in range(int(low), int(high or low) + 1):
                if answer >= answers or codes[answer]:
                    raise ConfigError(
                        f"{place}, codes: {answer} stands twice or is no answer of {entry['of']}"
                    )
                codes[answer] = code
    return codes
