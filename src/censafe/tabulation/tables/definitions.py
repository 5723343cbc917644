"""What a product counts: tables, cells, iterations and levels as frozen values, and how they are read from TOML.

Conditions and lines are in the notation of ``model/cells``: columns are attributes, and codes are their levels. Every reference is checked
before anything is counted. Everything here is public.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from censafe.errors import ConfigError
from censafe.model.cells.lines import Condition, ConditionReader, TableLine, lines_below, read_lines
from censafe.model.entries import require_keys
from censafe.model.parsing import parse_toml
from censafe.model.schema import Attribute, Schema

EVERYONE = "*"
"""Name of the iteration level, and code of the iteration, that holds all records."""


@dataclass(frozen=True)
class CanonicalColumn:
    """A column of the text by which records are ordered for truncation, zero-padded to ``width``."""

    column: str
    width: int


@dataclass(frozen=True)
class Derivation:
    """How a table that is not measured follows from one that is: every cell is a sum of source cells."""

    source: str
    cells: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class TableDefinition:
    """One published table.

    Args:
        measure: unit column that the truth adds up instead of counting rows, or None.
        iterations: columns of race and Hispanic origin that decide the iteration, by role; empty for a
            table that is not repeated by race and origin.
        derived: how the table follows from a measured one, or None for a measured table.
        cells: its lines by number, from "1"; the truth counts all of them.
        basis: the disjoint finest cells, which a release publishes: lines with none below them that repeat none before them.
    """

    name: str
    label: str
    cell_column: str
    counts: Literal["persons", "units"]
    universe: Condition
    truth_universe: Condition
    measure: str | None
    iterations: Mapping[str, str]
    derived: Derivation | None
    cells: Mapping[str, TableLine]
    basis: Mapping[str, TableLine]

    @property
    def measured(self) -> bool:
        """Whether noise is added to this table's own counts."""
        return self.derived is None

    @property
    def truncated(self) -> bool:
        """Whether the table needs a bound tau on the persons of one household."""
        return self.measured and self.counts == "persons"

    @property
    def iterated(self) -> bool:
        """Whether the table is repeated by race and Hispanic origin."""
        return bool(self.iterations)


@dataclass(frozen=True)
class Iteration:
    """A race or ethnicity group; its conditions name roles (race, hispanic), not columns."""

    code: str
    label: str
    where: Condition

    def where_of(self, table: TableDefinition) -> Condition:
        """The conditions on the columns that play the roles in ``table``."""
        return {table.iterations[role]: codes for role, codes in self.where.items()}


@dataclass(frozen=True)
class IterationLevel:
    """Disjoint iterations that are measured together.

    Args:
        printed: place among the levels of a printed plan; levels are measured in the order of their definitions.
    """

    name: str
    label: str
    words: str
    printed: int
    iterations: tuple[Iteration, ...]


@dataclass(frozen=True)
class RegionGroup:
    """A region that holds some of the data's regions."""

    id: str
    label: str
    regions: frozenset[str]


@dataclass(frozen=True)
class GeographyLevel:
    """A set of disjoint regions: the whole, every region of the data, or groups of these.

    Args:
        groups: disjoint groups of the data's regions; empty where the level has none. A region of the data that is in no
            group is in no region of the level.
    """

    name: str
    label: str
    words: str
    region_type: str
    region_id: str | None
    groups: tuple[RegionGroup, ...] = ()

    def region_ids(self, regions: Sequence[str]) -> tuple[str, ...]:
        """Identifiers of the level's regions that hold some of the data's regions, in output order.

        Example:
            >>> east = RegionGroup("E", "East", frozenset({"44", "50"}))
            >>> west = RegionGroup("W", "West", frozenset({"06"}))
            >>> GeographyLevel("half", "Half", "Halves", "HALF", None, (east, west)).region_ids(["44", "50"])
            ('E',)
        """
        if self.region_id is not None:
            return (self.region_id,)
        if self.groups:
            return tuple(group.id for group in self.groups if not group.regions.isdisjoint(regions))
        return tuple(regions)

    def members(self, regions: Sequence[str]) -> tuple[tuple[int, ...], ...]:
        """Positions of the data's regions that each of the level's regions holds, in the order of ``region_ids``.

        Example:
            >>> GeographyLevel("state", "State", "States", "STATE", None).members(["44", "50"])
            ((0,), (1,))
        """
        if self.region_id is not None:
            return (tuple(range(len(regions))),)
        if self.groups:
            members = [
                tuple(place for place, region in enumerate(regions) if region in group.regions)
                for group in self.groups
            ]
            return tuple(places for places in members if places)
        return tuple((place,) for place in range(len(regions)))


@dataclass(frozen=True)
class DefinitionSet:
    """All public definitions of a product's counts, checked when they are loaded."""

    household: str
    region: str
    places: Condition
    columns: Mapping[str, str]
    canonical: tuple[CanonicalColumn, ...]
    geographies: tuple[GeographyLevel, ...]
    iteration_levels: tuple[IterationLevel, ...]
    tables: tuple[TableDefinition, ...]

    def table(self, name: str) -> TableDefinition:
        """The table called ``name``; KeyError when there is none."""
        for table in self.tables:
            if table.name == name:
                return table
        raise KeyError(name)

    @property
    def measured(self) -> tuple[TableDefinition, ...]:
        """The tables that noise is added to."""
        return tuple(table for table in self.tables if table.measured)

    def levels(self, table: TableDefinition) -> dict[str, tuple[GeographyLevel, IterationLevel]]:
        """Population group levels of a table by name, for example ``usa_A-G``, in output order."""
        return {
            f"{geography.name}_{level.name}": (geography, level)
            for geography in self.geographies
            for level in self.iteration_levels
            if table.iterated or level.name == EVERYONE
        }

    @property
    def level_labels(self) -> dict[str, str]:
        """Every population group level in the words and in the order of a printed plan."""
        ordered = sorted(self.iteration_levels, key=lambda level: level.printed)
        return {
            f"{geography.name}_{level.name}": f"{geography.label}, {level.label}"
            for geography in self.geographies
            for level in ordered
        }

    def iterations(self, table: TableDefinition) -> tuple[Iteration, ...]:
        """Every iteration of a table, over all its levels."""
        return tuple(
            iteration
            for level in self.iteration_levels
            if table.iterated or level.name == EVERYONE
            for iteration in level.iterations
        )

    def split(self, conditions: Condition) -> dict[str, dict[str, frozenset[int]]]:
        """Conditions by the kind of record (person, unit, geo) that they look at."""
        parts: dict[str, dict[str, frozenset[int]]] = {"person": {}, "unit": {}, "geo": {}}
        for column, codes in conditions.items():
            parts[self.columns[column]][column] = codes
        return parts


_ROLES = ("race", "hispanic")
_KINDS = ("person", "unit", "geo")


def load_definitions(text: str, place: str) -> DefinitionSet:
    """Read a set of table definitions."""
    document = parse_toml(text, place)
    required = ("records", "geographies", "iteration_levels", "tables")
    require_keys(document, place, required)
    records = document["records"]
    require_keys(
        records, f"{place}, records", ("household", "region", "places", "columns", "canonical", "race_of")
    )
    require_keys(records["columns"], f"{place}, records.columns", _KINDS)
    columns = {column: kind for kind, names in records["columns"].items() for column in names}
    _distinct(itertools.chain(*records["columns"].values()), f"{place}, records.columns: column")
    race_of = records["race_of"]
    for whose, roles in race_of.items():
        require_keys(roles, f"{place}, records.race_of.{whose}", _ROLES)
        for column in roles.values():
            _known(column, columns, f"{place}, records.race_of.{whose}")
    loader = _Loader(place, records["columns"], race_of)
    definitions = DefinitionSet(
        household=records["household"],
        region=records["region"],
        places=loader.where(records["places"], "records.places", "geo"),
        columns=columns,
        canonical=tuple(
            _canonical(entry, records["household"], columns, place) for entry in records["canonical"]
        ),
        geographies=tuple(_geography(entry, place) for entry in document["geographies"]),
        iteration_levels=tuple(
            loader.iteration_level(entry, number)
            for number, entry in enumerate(document["iteration_levels"], 1)
        ),
        tables=tuple(loader.table(entry) for entry in document["tables"]),
    )
    _distinct((level.name for level in definitions.geographies), f"{place}: geography level")
    _distinct((level.name for level in definitions.iteration_levels), f"{place}: iteration level")
    _distinct(
        (iteration.code for level in definitions.iteration_levels for iteration in level.iterations),
        f"{place}: iteration code",
    )
    _distinct((table.name for table in definitions.tables), f"{place}: table")
    for table in definitions.tables:
        _check_derivation(definitions, table, place)
    return definitions


class _Loader:
    """Turns TOML entries into definitions, knowing the file's name, its columns and whose race is meant."""

    def __init__(
        self,
        place: str,
        columns: Mapping[str, Mapping[str, int]],
        race_of: Mapping[str, Mapping[str, str]],
    ) -> None:
        self._place = place
        self._race_of = race_of
        self._kind_of = {column: kind for kind in columns for column in columns[kind]}
        levels = {column: number for kind in columns for column, number in columns[kind].items()}
        roles = {role: max(levels[entry[role]] for entry in race_of.values()) for role in _ROLES if race_of}
        self._schemas = {
            kinds: Schema("records", tuple(itertools.starmap(Attribute, attributes.items())))
            for kinds, attributes in {
                "persons": {**columns["person"], **columns["unit"]},
                "units": columns["unit"],
                "geo": columns["geo"],
                "roles": roles,
            }.items()
            if attributes
        }

    def where(self, text: object, name: str, records: str) -> Condition:
        """A condition on the columns that the kind of records has."""
        place = f"{self._place}, {name}"
        if not isinstance(text, str):
            raise ConfigError(f'{place}: give a condition as text, such as "QAGE=0-17 & HHT2=1,2"')
        return ConditionReader(place, self._schemas[records]).read(text, {})

    def iteration_level(self, entry: Mapping[str, Any], number: int) -> IterationLevel:
        """A level and its disjoint iterations; ``number`` is its place in the file."""
        place = f"{self._place}, iteration level {entry.get('name', '?')}"
        require_keys(entry, place, ("name", "iterations"), ("label", "words", "printed"))
        iterations = []
        for item in entry["iterations"]:
            require_keys(item, place, ("code", "label"), ("where",))
            where = self.where(item.get("where", ""), f"iteration {item['code']}", "roles")
            iterations.append(Iteration(item["code"], item["label"], where))
        for first, second in itertools.combinations(iterations, 2):
            if not _disjoint(first.where, second.where):
                raise ConfigError(f"{place}: a record could be in both {first.code} and {second.code}")
        if (entry["name"] == EVERYONE) != any(not iteration.where for iteration in iterations):
            raise ConfigError(f"{place}: only the level {EVERYONE!r} holds all records")
        name = entry["name"]
        label = entry.get("label", name)
        words, printed = entry.get("words", label), entry.get("printed", number)
        return IterationLevel(name, label, words, printed, tuple(iterations))

    def table(self, entry: Mapping[str, Any]) -> TableDefinition:
        """A table with its cells."""
        place = f"{self._place}, table {entry.get('name', '?')}"
        optional = ("truth_universe", "measure", "race_of", "derived")
        require_keys(entry, place, ("name", "label", "cell_column", "counts", "universe", "lines"), optional)
        if entry["counts"] not in ("persons", "units"):
            raise ConfigError(f"{place}: counts must be persons or units, not {entry['counts']!r}")
        if "measure" in entry and (entry["counts"], self._kind_of.get(entry["measure"])) != ("units", "unit"):
            raise ConfigError(f"{place}: measure must be a unit column of a table of units")
        universe = self.where(entry["universe"], f"table {entry['name']}, universe", entry["counts"])
        truth = entry.get("truth_universe", entry["universe"])
        lines = read_lines(place, entry["lines"], {}, ConditionReader(place, self._schemas[entry["counts"]]))
        cells = {str(number): line for number, line in enumerate(lines, 1)}
        basis: dict[str, TableLine] = {}
        for number, line in enumerate(lines):
            if not lines_below(lines, number) and all(line.when != other.when for other in basis.values()):
                basis[str(number + 1)] = line
        if not basis:
            raise ConfigError(f"{place}: there is no line; give one for each cell")
        for (first, one), (second, other) in itertools.combinations(basis.items(), 2):
            if not _disjoint(one.when, other.when):
                raise ConfigError(f"{place}: a record could be in both basis cells {first} and {second}")
        return TableDefinition(
            name=entry["name"],
            label=entry["label"],
            cell_column=entry["cell_column"],
            counts=entry["counts"],
            universe=universe,
            truth_universe=self.where(truth, f"table {entry['name']}, truth_universe", entry["counts"]),
            measure=entry.get("measure"),
            iterations=self._iterated(entry.get("race_of"), place, entry["counts"]),
            derived=_derivation(entry["derived"], place) if "derived" in entry else None,
            cells=cells,
            basis=basis,
        )

    def _iterated(self, whose: object, place: str, counts: str) -> Mapping[str, str]:
        if whose is None:
            return {}
        if not isinstance(whose, str) or whose not in self._race_of:
            raise ConfigError(f"{place}: race_of must be one of {', '.join(self._race_of)}, not {whose!r}")
        roles = self._race_of[whose]
        if counts == "units" and any(self._kind_of[column] != "unit" for column in roles.values()):
            raise ConfigError(f"{place}: a table of units cannot be repeated by the race of a person")
        return roles


def _canonical(
    entry: Mapping[str, Any], household: str, columns: Mapping[str, str], place: str
) -> CanonicalColumn:
    where = f"{place}, records.canonical"
    require_keys(entry, where, ("column", "width"))
    if entry["column"] != household:
        _known(entry["column"], [name for name, kind in columns.items() if kind == "person"], where)
    return CanonicalColumn(entry["column"], entry["width"])


def _geography(entry: Mapping[str, Any], place: str) -> GeographyLevel:
    where = f"{place}, geographies"
    require_keys(entry, where, ("name", "region_type"), ("label", "words", "region_id", "groups"))
    if {"region_id", "groups"} <= entry.keys():
        raise ConfigError(f"{where}: {entry['name']} has region_id or groups, not both")
    if entry["region_type"] != entry["name"].upper():
        raise ConfigError(f"{where}: region_type of {entry['name']} must be {entry['name'].upper()}")
    groups = []
    for group in entry.get("groups", ()):
        require_keys(group, f"{where}, groups", ("id", "label", "regions"))
        groups.append(RegionGroup(group["id"], group["label"], frozenset(group["regions"])))
    _distinct((group.id for group in groups), f"{where}: {entry['name']}: group")
    _distinct((region for group in groups for region in group.regions), f"{where}: {entry['name']}: region")
    label = entry.get("label", entry["name"])
    return GeographyLevel(
        name=entry["name"],
        label=label,
        words=entry.get("words", label),
        region_type=entry["region_type"],
        region_id=entry.get("region_id"),
        groups=tuple(groups),
    )


def _derivation(entry: Mapping[str, Any], place: str) -> Derivation:
    require_keys(entry, f"{place}, derived", ("source", "cells"))
    return Derivation(entry["source"], {cell: tuple(sources) for cell, sources in entry["cells"].items()})


def _check_derivation(definitions: DefinitionSet, table: TableDefinition, place: str) -> None:
    if table.derived is None:
        return
    where = f"{place}, table {table.name}, derived"
    _known(table.derived.source, [source.name for source in definitions.measured], where)
    source = definitions.table(table.derived.source)
    if source.iterations != table.iterations:
        raise ConfigError(f"{where}: {table.name} and {source.name} must be repeated by the same race_of")
    if set(table.derived.cells) != set(table.basis):
        raise ConfigError(f"{where}: cells must name exactly the basis cells of {table.name}")
    for cells in table.derived.cells.values():
        for cell in cells:
            _known(cell, source.basis, where)


def _known(name: object, allowed: Iterable[str], place: str) -> None:
    names = list(allowed)
    if name not in names:
        raise ConfigError(f"{place}: {name!r} is not known; allowed are {', '.join(names)}")


def _distinct(names: Iterable[str], place: str) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ConfigError(f"{place} {name} is defined twice")
        seen.add(name)


def _disjoint(first: Condition, second: Condition) -> bool:
    return any(first[column].isdisjoint(second[column]) for column in first.keys() & second.keys())
