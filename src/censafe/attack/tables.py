"""Lines of tables over types of persons: which persons each line counts, by definitions of tables, and how often as a sparse matrix."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from string import ascii_uppercase
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.sparse import csr_array

from censafe.attack.people import AGE_BINS, OLDEST, RACES, AttackedRecords, People
from censafe.errors import ConfigError
from censafe.model.cells.lines import CensusTable, TableLine, parse_table
from censafe.model.entries import nearest
from censafe.model.parsing import read_toml
from censafe.model.topdown.histograms import HistogramSchema
from censafe.products.topdown.census_tables.definitions import SCHEMAS, census_tables
from censafe.products.topdown.census_tables.writing import full_labels
from censafe.products.topdown.configuration.shipped import shipped_schemas

SINGLE_YEARS: Final = (*range(101), 105, 110)
"""Lower ends of the classes of age of PCT12: single years, 100 to 104, 105 to 109, 110 and over."""
_SHIPPED: Final = (
    "P1", "P6", "P7", "P8", "P9", "P10", "P11", "P12", *(f"P12{letter}" for letter in ascii_uppercase[:9]), "P14",
    "PCT12", *(f"PCT12{letter}" for letter in ascii_uppercase[:15]),
)  # fmt: skip
"""Tables of the 2010 Summary File 1 that the reconstruction of the 2010 Census used; those of the DHC have the same names and lines."""
_Ints = NDArray[np.int64]


@dataclass(frozen=True)
class TypeSpace:
    """Types of persons that tables of a level can distinguish: sex, class of age, set of races, origin; the last changes fastest."""

    edges: tuple[int, ...] = tuple(AGE_BINS.tolist())

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Sexes, classes of age, sets of races, origins."""
        return 2, len(self.edges), RACES, 2

    @property
    def size(self) -> int:
        """Number of types."""
        return int(np.prod(self.shape))

    def types(self, people: People) -> _Ints:
        """Type of every person, shape (n,)."""
        age = np.searchsorted(self.edges, people.age, side="right") - 1
        return np.ravel_multi_index((people.sex, age, people.race, people.hispanic), self.shape)

    def parts(self, types: NDArray[np.integer]) -> tuple[_Ints, ...]:
        """Sex, lowest age, set of races and origin of some types, each of shape (len(types),)."""
        sex, age, race, hispanic = np.unravel_index(types, self.shape)
        return sex, np.asarray(self.edges)[age], race, hispanic


@dataclass(frozen=True, eq=False)
class CountedLines(ABC):
    """Lines of tables of one level, over types of persons: combinations of classes of the levels of attributes.

    Args:
        area: what the areas of the lines are called in files.
        classes: class of every level by attribute; the last attribute changes fastest in the number of a type.
    """

    area: str
    classes: Mapping[str, _Ints] = field(repr=False)
    tables: tuple[CensusTable, ...] = field(repr=False)

    def __post_init__(self) -> None:
        if not self.weights:  # computing them refuses lines that the types do not tell apart
            raise ConfigError("there is no line of a table; fix: name a table")

    @property
    def shape(self) -> tuple[int, ...]:
        """Classes of the attributes."""
        return tuple(int(one.max()) + 1 for one in self.classes.values())

    @cached_property
    def lines(self) -> tuple[TableLine, ...]:
        """The lines of all tables, one after another."""
        return tuple(line for table in self.tables for line in table.lines)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Table of every line."""
        return tuple(table.name for table in self.tables for _ in table.lines)

    @cached_property
    def labels(self) -> list[str]:
        """Whom every line counts, after the lines above it."""
        return [label.replace("!!", ": ") for table in self.tables for label in full_labels(table)]

    @cached_property
    def numbers(self) -> tuple[int, ...]:
        """Number of every line in its table, from 1."""
        return tuple(number for table in self.tables for number in range(1, len(table.lines) + 1))

    @cached_property
    def weights(self) -> tuple[tuple[NDArray[np.float64], ...], ...]:
        """Of every line a weight for every class of each attribute; a person of a type counts as often as the product of its weights."""
        return tuple(weights for table in self.tables for weights in self._weights(table))

    def _weights(self, table: CensusTable) -> list[tuple[NDArray[np.float64], ...]]:
        every: list[tuple[NDArray[np.float64], ...]] = [()] * len(table.lines)
        first = {name: np.unique(one, return_index=True)[1] for name, one in self.classes.items()}
        for number, line in reversed(list(enumerate(table.lines))):
            if line.summed:
                parts = [np.stack(one) for one in zip(*(every[one] for one in line.summed), strict=True)]
                differ = [place for place, part in enumerate(parts) if (part != part[0]).any()]
                if len(differ) > 1:
                    raise ConfigError(
                        f"table {table.name}: line {number + 1} sums lines that differ in more than one attribute; allowed: lines that differ in one; fix: "
                        "give the line a condition in place of sum"
                    )
                summed = differ or [0]
                every[number] = tuple(
                    part.sum(axis=0) if place in summed else part[0] for place, part in enumerate(parts)
                )
                continue
            own = []
            for name, class_of in self.classes.items():
                levels = np.ones(len(class_of))
                if name in line.when:
                    levels[:] = 0
                    levels[list(line.when[name])] = 1
                weight = levels[first[name]]
                if (weight[class_of] != levels).any():
                    raise ConfigError(
                        f"table {table.name}: line {number + 1} tells levels of {name} apart that the types of persons do not; fix: attack it with tables "
                        "of tracts"
                    )
                own.append(weight)
            if other := sorted(set(line.when) - set(self.classes)):
                raise ConfigError(
                    f"table {table.name}: line {number + 1} tells {', '.join(other)} apart, which the attacked records do not have; allowed: {', '.join(self.classes)}"
                )
            every[number] = tuple(own)
        return every

    @cached_property
    def matrix(self) -> csr_array:
        """How often a person of a type counts in a line, float64, sparse, shape (types, lines)."""
        types, values = [], []
        for weights in self.weights:
            grid = np.ix_(*(np.flatnonzero(one) for one in weights))
            own = np.ravel_multi_index(np.broadcast_arrays(*grid), self.shape).ravel()
            places = np.unravel_index(own, self.shape)
            types.append(own.astype(np.int64))
            values.append(np.prod([one[at] for one, at in zip(weights, places, strict=True)], axis=0))
        line = np.repeat(np.arange(len(types)), [len(own) for own in types])
        shape = (int(np.prod(self.shape)), len(types))
        return csr_array((np.concatenate(values), (np.concatenate(types), line)), shape=shape)

    @property
    def possible(self) -> NDArray[np.bool_]:
        """Types of which there can be persons, as everybody knows, shape (types,)."""
        return np.ones(int(np.prod(self.shape)), np.bool_)

    @abstractmethod
    def types(self, people: Any) -> _Ints:
        """Type of every person, shape (n,)."""

    @abstractmethod
    def type_columns(self, types: _Ints) -> Mapping[str, Any]:
        """Some types as files have them, a column for each attribute or more."""

    @abstractmethod
    def types_of(self, rows: pa.Table) -> _Ints:
        """Types of rows with such columns."""


@dataclass(frozen=True, eq=False)
class Workload(CountedLines):
    """Lines of tables of U.S. census areas of one level."""

    space: TypeSpace

    @staticmethod
    def of(tables: Sequence[CensusTable], space: TypeSpace | None = None) -> Workload:
        """The lines of some tables of one level."""
        space = space or TypeSpace()
        age = np.searchsorted(space.edges, np.arange(_schema("persons").schema.shape[2]), side="right") - 1
        classes = {"sex": np.arange(2), "age": age, "cenrace": np.arange(RACES), "hispanic": np.arange(2)}
        return Workload("block", classes, tuple(tables), space)

    def types(self, people: People) -> _Ints:
        """Type of every person, shape (n,)."""
        return self.space.types(people)

    def type_columns(self, types: _Ints) -> dict[str, _Ints]:
        """Sex, lowest and highest age, race and origin of some types of persons, as files have them."""
        sex, age, race, hispanic = self.space.parts(types)
        edges = np.append(self.space.edges, OLDEST + 1)
        last = edges[np.searchsorted(edges, age, side="right")] - 1
        return {"sex": sex + 1, "age_from": age, "age_to": last, "race": race + 1, "hispanic": hispanic}

    def types_of(self, rows: pa.Table) -> _Ints:
        """Types of rows with such columns."""
        age = np.searchsorted(self.space.edges, rows["age_from"].to_numpy())
        parts = (rows["sex"].to_numpy() - 1, age, rows["race"].to_numpy() - 1, rows["hispanic"].to_numpy())
        return np.ravel_multi_index(parts, self.space.shape).astype(np.int64)


def tabulate_lines(
    workload: CountedLines,
    people: AttackedRecords,
    areas: _Ints | None = None,
    number: int | None = None,
) -> _Ints:
    """Every line of every area.

    Args:
        areas: area of every person; the block without, shape (n,).
    """
    place = people.block if areas is None else areas
    count = len(people.blocks) if number is None else number
    ones = np.ones(len(people))
    histogram = csr_array((ones, (place, workload.types(people))), shape=(count, workload.matrix.shape[0]))
    return np.rint((histogram @ workload.matrix).toarray()).astype(np.int64)


@cache
def line_tables() -> Mapping[str, CensusTable]:
    """The 34 tables by name: 18 of blocks and 16 of tracts."""
    tables = census_tables("dhc")
    return {name: tables[name] for name in _SHIPPED}


def _schema(histogram: str) -> HistogramSchema:
    return shipped_schemas()[SCHEMAS["dhc"][histogram]]


def read_line_tables(
    path: Path, histogram: str = "persons", schema_of: Callable[[str], HistogramSchema] = _schema
) -> Mapping[str, CensusTable]:
    """Tables of a file, under ``[tables.NAME]`` as in a configuration; they count the attacked persons.

    Args:
        histogram: of the persons.
        schema_of: schema of a histogram by its name.
    """
    entries = read_toml(path).get("tables")
    if not isinstance(entries, Mapping) or not entries:
        raise ConfigError(
            f"{path}: there is no table; allowed: tables under [tables.NAME], as in a configuration"
        )
    tables = {}
    for name, entry in entries.items():
        if not isinstance(entry, Mapping) or entry.get("histogram") != histogram:
            raise ConfigError(
                f'{path}, tables.{name}.histogram: persons are attacked; give title, universe, histogram = "{histogram}" and lines'
            )
        tables[name] = parse_table(name, entry, schema_of(histogram))
        if tables[name].median:
            raise ConfigError(
                f"{path}, tables.{name}.median: medians are no sums of records; fix: leave the table out"
            )
    return tables


def chosen_tables(levels: Sequence[str], without: Sequence[str] = ()) -> Mapping[str, CensusTable]:
    """The tables of some levels by name, or fewer."""
    tables = {name: table for name, table in line_tables().items() if table.lowest in levels}
    for name in without:
        if name not in tables:
            raise ConfigError(
                f"table {name!r}: there is no such table of {' and '.join(f'{one}s' for one in levels)}.{nearest(name, list(tables))} Allowed: {', '.join(tables)}"
            )
    return {name: table for name, table in tables.items() if name not in without}
