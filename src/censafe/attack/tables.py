"""Tables of persons of blocks and tracts: which persons each line counts, by data, and the matrix of lines and types of persons."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.sparse import csr_array

from censafe.attack.people import AGE_BINS, OLDEST, RACE_BITS, RACE_LETTERS, RACES, AttackedRecords, People
from censafe.errors import ConfigError
from censafe.model.entries import nearest
from censafe.model.parsing import read_toml

_Flags = NDArray[np.bool_]
_P12: Final = (0, 5, 10, 15, 18, 20, 21, 22, 25, 30, 35, 40, 45, 50, 55, 60, 62, 65, 67, 70, 75, 80, 85)
SINGLE_YEARS: Final = (*range(101), 105, 110)
"""Lower ends of the classes of age of PCT12: single years, 100 to 104, 105 to 109, 110 and over."""
_ADULT: Final = 18
_TABLE_KEYS: Final = ("level", "by", "universe", "tallied", "iterations")
_LEVELS: Final = {"block": 15, "tract": 11}


@dataclass(frozen=True, eq=False)
class PersonLine:
    """A line of a table: who it counts, as flags by sex, single year of age, set of races and origin, all of which have to be true.

    Args:
        sex: shape (2,).
        age: shape (111,).
        race: shape (63,).
        hispanic: shape (2,).
        tallied: a person counts once for every race, as in the totals of tables of races alone or in combination.
    """

    table: str
    number: int
    label: str
    sex: _Flags = field(repr=False)
    age: _Flags = field(repr=False)
    race: _Flags = field(repr=False)
    hispanic: _Flags = field(repr=False)
    tallied: bool = False


@dataclass(frozen=True, eq=False)
class LineTable:
    """A table of persons."""

    name: str
    level: str
    lines: tuple[PersonLine, ...] = field(repr=False)


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

    def types(self, people: People) -> NDArray[np.int64]:
        """Type of every person, shape (n,)."""
        age = np.searchsorted(self.edges, people.age, side="right") - 1
        return np.ravel_multi_index((people.sex, age, people.race, people.hispanic), self.shape)

    def parts(self, types: NDArray[np.integer]) -> tuple[NDArray[np.int64], ...]:
        """Sex, lowest age, set of races and origin of some types, each of shape (len(types),)."""
        sex, age, race, hispanic = np.unravel_index(types, self.shape)
        return sex, np.asarray(self.edges)[age], race, hispanic


class CountedLines(Protocol):
    """Lines of tables of one level, over types of persons that attributes make."""

    @property
    def names(self) -> tuple[str, ...]:
        """Table of every line."""

    @property
    def numbers(self) -> tuple[int, ...]:
        """Number of every line in its table, from 1."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Levels of the attributes; the last changes fastest in the number of a type."""

    @property
    def matrix(self) -> csr_array:
        """How often a person of a type counts in a line, sparse, shape (types, lines)."""

    @property
    def possible(self) -> NDArray[np.bool_]:
        """Types of which there can be persons, as everybody knows, shape (types,)."""

    @property
    def area(self) -> str:
        """What the areas of the lines are called in files."""

    def types(self, people: Any) -> NDArray[np.int64]:
        """Type of every person, shape (n,)."""

    def type_columns(self, types: NDArray[np.int64]) -> Mapping[str, Any]:
        """Some types as files have them, a column for each attribute or more."""

    def types_of(self, rows: pa.Table) -> NDArray[np.int64]:
        """Types of rows with such columns."""


@dataclass(frozen=True, eq=False)
class Workload:
    """Lines of tables of one level, over the types of persons.

    Args:
        matrix: how often a person of a type counts in a line, float64, sparse, shape (types, lines).
    """

    space: TypeSpace
    lines: tuple[PersonLine, ...] = field(repr=False)
    matrix: csr_array = field(repr=False)

    @staticmethod
    def of(tables: Sequence[LineTable], space: TypeSpace | None = None) -> Workload:
        """The lines of some tables of one level."""
        space = space or TypeSpace()
        lines = tuple(line for table in tables for line in table.lines)
        columns = [_column(line, space) for line in lines]
        rows = np.concatenate([types for types, _ in columns])
        values = np.concatenate([value for _, value in columns])
        place = np.repeat(np.arange(len(lines)), [len(types) for types, _ in columns])
        return Workload(space, lines, csr_array((values, (rows, place)), shape=(space.size, len(lines))))

    @property
    def names(self) -> tuple[str, ...]:
        """Table of every line."""
        return tuple(line.table for line in self.lines)

    @property
    def numbers(self) -> tuple[int, ...]:
        """Number of every line in its table."""
        return tuple(line.number for line in self.lines)

    @property
    def shape(self) -> tuple[int, ...]:
        """Sexes, classes of age, sets of races, origins."""
        return self.space.shape

    @property
    def possible(self) -> NDArray[np.bool_]:
        """All types."""
        return np.ones(self.space.size, np.bool_)

    @property
    def area(self) -> str:
        """What the areas of the lines are called in files."""
        return "block"

    def types(self, people: People) -> NDArray[np.int64]:
        """Type of every person, shape (n,)."""
        return self.space.types(people)

    def type_columns(self, types: NDArray[np.int64]) -> dict[str, NDArray[np.int64]]:
        """Sex, lowest and highest age, race and origin of some types of persons, as files have them."""
        sex, age, race, hispanic = self.space.parts(types)
        edges = np.append(self.space.edges, OLDEST + 1)
        last = edges[np.searchsorted(edges, age, side="right")] - 1
        return {"sex": sex + 1, "age_from": age, "age_to": last, "race": race + 1, "hispanic": hispanic}

    def types_of(self, rows: pa.Table) -> NDArray[np.int64]:
        """Types of rows with such columns."""
        age = np.searchsorted(self.space.edges, rows["age_from"].to_numpy())
        parts = (rows["sex"].to_numpy() - 1, age, rows["race"].to_numpy() - 1, rows["hispanic"].to_numpy())
        return np.ravel_multi_index(parts, self.space.shape).astype(np.int64)


def _column(line: PersonLine, space: TypeSpace) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Types that a line counts, and how often."""
    edges = np.asarray(space.edges)
    every = np.diff(np.append(edges, OLDEST + 1))
    inside = np.add.reduceat(line.age.astype(np.int64), edges)
    if ((inside > 0) & (inside < every)).any():
        raise ConfigError(
            f"table {line.table}: line {line.number} tells ages apart that the types of persons do not; fix: attack it with tables of tracts"
        )
    flags = (line.sex, inside > 0, line.race, line.hispanic)
    grid = np.ix_(*(np.flatnonzero(one) for one in flags))
    types = np.ravel_multi_index(np.broadcast_arrays(*grid), space.shape).ravel()
    weight = (
        RACE_BITS.sum(axis=1)[np.unravel_index(types, space.shape)[2]]
        if line.tallied
        else np.ones(len(types))
    )
    return types.astype(np.int64), weight.astype(np.float64)


def tabulate_lines(
    workload: CountedLines,
    people: AttackedRecords,
    areas: NDArray[np.int64] | None = None,
    number: int | None = None,
) -> NDArray[np.int64]:
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
def _shipped() -> Mapping[str, Any]:
    return tomllib.loads((files("censafe.attack") / "data" / "tables.toml").read_text(encoding="utf-8"))


@cache
def line_tables() -> Mapping[str, LineTable]:
    """The 34 tables by name."""
    return _tables(_shipped(), "the shipped tables")


def read_line_tables(path: Path) -> Mapping[str, LineTable]:
    """Tables of a file in the form of the shipped ones."""
    return _tables({"iterations": _shipped()["iterations"]} | read_toml(path), str(path))


def chosen_tables(levels: Sequence[str], without: Sequence[str] = ()) -> Mapping[str, LineTable]:
    """The tables of some levels by name, or fewer."""
    tables = {name: table for name, table in line_tables().items() if table.level in levels}
    for name in without:
        if name not in tables:
            raise ConfigError(
                f"table {name!r}: there is no such table of {' and '.join(f'{one}s' for one in levels)}.{nearest(name, list(tables))} Allowed: {', '.join(tables)}"
            )
    return {name: table for name, table in tables.items() if name not in without}


def _tables(document: Mapping[str, Any], place: str) -> Mapping[str, LineTable]:
    tables: dict[str, LineTable] = {}
    for name, entry in document.get("tables", {}).items():
        unknown = sorted(set(entry) - set(_TABLE_KEYS))
        if unknown or entry.get("level") not in _LEVELS or not set(entry.get("by", [""])) <= set(_CLASSES):
            raise ConfigError(
                f"{place}: table {name} needs level ({', '.join(_LEVELS)}) and by (of {', '.join(_CLASSES)}); allowed beside them: universe, tallied, "
                f"iterations; fix: {'leave out ' + ', '.join(unknown) if unknown else 'correct level or by'}"
            )
        for letter in ("", *entry.get("iterations", "")):
            universe = entry.get("universe", {}) | (document["iterations"][letter] if letter else {})
            lines = _lines(name + letter, entry["by"], _universe(universe), bool(entry.get("tallied")))
            tables[name + letter] = LineTable(name + letter, entry["level"], tuple(lines))
    if not tables:
        raise ConfigError(f"{place}: there is no table; allowed: a table of entries under [tables]")
    return tables


def _universe(conditions: Mapping[str, Any]) -> Mapping[str, _Flags]:
    """Flags of everybody in a universe, by attribute."""
    years, races = np.arange(OLDEST + 1), RACE_BITS.sum(axis=1)
    race = np.ones(RACES, np.bool_)
    if "race" in conditions:
        alone = conditions["race"]
        race = races > 1 if alone == "two or more" else RACE_BITS[:, RACE_LETTERS.index(alone)] & (races == 1)
    return {
        "sex": np.ones(2, np.bool_),
        "age": (years >= (_ADULT if conditions.get("adults") else 0))
        & (years < conditions.get("below", OLDEST + 1)),
        "race": race,
        "hispanic": np.array(
            [conditions.get("hispanic") is not True, conditions.get("hispanic") is not False]
        ),
    }


_Class = tuple[str, dict[str, _Flags]]
"""Words of a class, and the flags by attribute that make it."""


def _lines(
    name: str, by: Sequence[str], universe: Mapping[str, _Flags], tallied: bool
) -> Iterator[PersonLine]:
    """Everybody, then class by class."""
    rows: list[_Class] = [("Total", {})]
    if by:
        for label, flags in _CLASSES[by[0]]():
            rows.append((label, flags))
            if len(by) > 1:
                rows += [(f"{label}: {part}", flags | inner) for part, inner in _CLASSES[by[1]]()]
    number = 0
    for label, flags in rows:
        chosen = {
            one: everybody & flags[one] if one in flags else everybody for one, everybody in universe.items()
        }
        if all(one.any() for one in chosen.values()):
            number += 1
            yield PersonLine(name, number, label, **chosen, tallied=tallied and "race" not in flags)


def _two(attribute: str, labels: Sequence[str]) -> Iterator[_Class]:
    for place, label in enumerate(labels):
        yield label, {attribute: np.arange(2) == place}


def _ages(edges: Sequence[int]) -> Iterator[_Class]:
    years = np.arange(OLDEST + 1)
    for first, after in zip(edges, (*edges[1:], OLDEST + 1), strict=True):
        last = " and over" if after > OLDEST else f" to {after - 1}" if after > first + 1 else ""
        yield f"{first}{last}", {"age": (years >= first) & (years < after)}


def _six() -> Iterator[_Class]:
    for place, label in enumerate(RACE_LETTERS):
        yield label, {"race": RACE_BITS[:, place]}


def _sets() -> Iterator[_Class]:
    many = RACE_BITS.sum(axis=1)
    words = ("One race", "Two races", "Three races", "Four races", "Five races", "Six races")
    for races in range(1, 7):
        yield words[races - 1], {"race": many == races}
        for place in np.flatnonzero(many == races).tolist():
            letters = zip(RACE_LETTERS, RACE_BITS[place], strict=True)
            yield "-".join(letter for letter, has in letters if has), {"race": np.arange(RACES) == place}
        if races == 1:
            yield "Two or more races", {"race": many > 1}


def _others() -> Iterator[_Class]:
    outside = np.array([True, False])
    yield "Hispanic", {"hispanic": ~outside}
    yield "Not Hispanic", {"hispanic": outside}
    for label, flags in _sets():
        yield f"Not Hispanic: {label}", flags | {"hispanic": outside}


_CLASSES: Final[Mapping[str, Callable[[], Iterator[_Class]]]] = {
    "sex": partial(_two, "sex", ("Male", "Female")), "hispanic": partial(_two, "hispanic", ("Not Hispanic", "Hispanic")),
    "race": _six, "races": _sets, "not_hispanic_races": _others,
    "age": partial(_ages, _P12), "year": partial(_ages, range(21)), "single": partial(_ages, SINGLE_YEARS),
}  # fmt: skip
