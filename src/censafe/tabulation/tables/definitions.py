"""What a product counts: tables, cells, iterations and levels as frozen values.

Conditions are conjunctions of "this column holds one of these codes". Everything here is public.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

Where = Mapping[str, frozenset[int]]
"""Allowed codes by column; a record must satisfy all of them, and an empty mapping admits all records."""

EVERYONE = "*"
"""Name of the iteration level, and code of the iteration, that holds all records."""


@dataclass(frozen=True)
class CanonicalColumn:
    """A column of the text by which records are ordered for truncation, zero-padded to ``width``."""

    column: str
    width: int


@dataclass(frozen=True)
class Cell:
    """One cell of a table; basis cells are measured, the others are margins of the truth."""

    id: str
    label: str
    where: Where
    basis: bool


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
    """

    name: str
    label: str
    cell_column: str
    counts: Literal["persons", "units"]
    universe: Where
    truth_universe: Where
    measure: str | None
    iterations: Mapping[str, str]
    derived: Derivation | None
    cells: tuple[Cell, ...]

    @property
    def basis(self) -> tuple[Cell, ...]:
        """The disjoint finest cells, which a release publishes."""
        return tuple(cell for cell in self.cells if cell.basis)

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
    where: Where

    def where_of(self, table: TableDefinition) -> Where:
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
            held = [
                tuple(place for place, region in enumerate(regions) if region in group.regions)
                for group in self.groups
            ]
            return tuple(places for places in held if places)
        return tuple((place,) for place in range(len(regions)))


@dataclass(frozen=True)
class DefinitionSet:
    """All public definitions of a product's counts, checked when they are loaded."""

    household: str
    region: str
    places: Where
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

    def split(self, conditions: Where) -> dict[str, dict[str, frozenset[int]]]:
        """Conditions by the kind of record (person, unit, geo) that they look at."""
        parts: dict[str, dict[str, frozenset[int]]] = {"person": {}, "unit": {}, "geo": {}}
        for column, codes in conditions.items():
            parts[self.columns[column]][column] = codes
        return parts
