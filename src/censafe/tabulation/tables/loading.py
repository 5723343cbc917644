"""Table definitions from TOML, with every reference checked before anything is counted."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from censafe.errors import ConfigError
from censafe.model.entries import require_keys
from censafe.model.parsing import parse_toml
from censafe.tabulation.tables.definitions import (
    EVERYONE,
    CanonicalColumn,
    Cell,
    DefinitionSet,
    Derivation,
    GeographyLevel,
    Iteration,
    IterationLevel,
    RegionGroup,
    TableDefinition,
    Where,
)

_ROLES = ("race", "hispanic")
_CODES = re.compile(r"\d+(-\d+)?(,\s*\d+(-\d+)?)*")


def parse_codes(text: object, place: str) -> frozenset[int]:
    """Set of codes written as numbers and ranges.

    Example:
        >>> sorted(parse_codes("20,21,25-27", "cell 2"))
        [20, 21, 25, 26, 27]
    """
    if not isinstance(text, str) or not _CODES.fullmatch(text):
        raise ConfigError(f'{place}: codes must be text such as "20,21,25-33", not {text!r}')
    codes: set[int] = set()
    for piece in text.split(","):
        first, _, last = piece.strip().partition("-")
        run = range(int(first), int(last or first) + 1)
        if not run:
            raise ConfigError(f"{place}: the range {piece.strip()} runs backwards")
        codes.update(run)
    return frozenset(codes)


def load_definitions(text: str, place: str) -> DefinitionSet:
    """Read a set of table definitions."""
    document = parse_toml(text, place)
    required = ("records", "geographies", "iteration_levels", "tables")
    require_keys(document, place, required)
    records = document["records"]
    require_keys(
        records, f"{place}, records", ("household", "region", "places", "columns", "canonical", "race_of")
    )
    require_keys(records["columns"], f"{place}, records.columns", ("person", "unit", "geo"))
    columns = {column: kind for kind, names in records["columns"].items() for column in names}
    _distinct(itertools.chain(*records["columns"].values()), f"{place}, records.columns: column")
    loader = _Loader(place, columns, _race_of(records["race_of"], columns, place))
    definitions = DefinitionSet(
        household=records["household"],
        region=records["region"],
        places=loader.where(records["places"], "records.places", ("geo",)),
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
        self, place: str, columns: Mapping[str, str], race_of: Mapping[str, Mapping[str, str]]
    ) -> None:
        self._place = place
        self._columns = columns
        self._race_of = race_of

    def where(self, entry: object, name: str, kinds: Sequence[str]) -> Where:
        """Conditions on columns that belong to the given kinds of record."""
        allowed = [column for column, kind in self._columns.items() if kind in kinds]
        return self._conditions(entry, name, allowed)

    def iteration_level(self, entry: Mapping[str, Any], number: int) -> IterationLevel:
        """A level and its disjoint iterations; ``number`` is its place in the file."""
        place = f"{self._place}, iteration level {entry.get('name', '?')}"
        require_keys(entry, place, ("name", "iterations"), ("label", "words", "printed"))
        iterations = []
        for item in entry["iterations"]:
            require_keys(item, place, ("code", "label"), ("where",))
            name = f"iteration {item['code']}"
            iterations.append(
                Iteration(item["code"], item["label"], self._conditions(item.get("where", {}), name, _ROLES))
            )
        for one, other in itertools.combinations(iterations, 2):
            if not _disjoint(one.where, other.where):
                raise ConfigError(f"{place}: a record could be in both {one.code} and {other.code}")
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
        require_keys(entry, place, ("name", "label", "cell_column", "counts", "universe", "cells"), optional)
        if entry["counts"] not in ("persons", "units"):
            raise ConfigError(f"{place}: counts must be persons or units, not {entry['counts']!r}")
        kinds = ("person", "unit") if entry["counts"] == "persons" else ("unit",)
        if "measure" in entry and (entry["counts"], self._columns.get(entry["measure"])) != ("units", "unit"):
            raise ConfigError(f"{place}: measure must be a unit column of a table of units")
        universe = self.where(entry["universe"], f"table {entry['name']}, universe", kinds)
        truth = entry.get("truth_universe", entry["universe"])
        return TableDefinition(
            name=entry["name"],
            label=entry["label"],
            cell_column=entry["cell_column"],
            counts=entry["counts"],
            universe=universe,
            truth_universe=self.where(truth, f"table {entry['name']}, truth_universe", kinds),
            measure=entry.get("measure"),
            iterations=self._iterated(entry.get("race_of"), place, kinds),
            derived=_derivation(entry["derived"], place) if "derived" in entry else None,
            cells=self._cells(entry, place, kinds),
        )

    def _cells(self, entry: Mapping[str, Any], place: str, kinds: Sequence[str]) -> tuple[Cell, ...]:
        cells = []
        for item in entry["cells"]:
            require_keys(item, f"{place}, cell {item.get('id', '?')}", ("id", "label"), ("where", "basis"))
            name = f"table {entry['name']}, cell {item['id']}"
            condition = self.where(item.get("where", {}), name, kinds)
            cells.append(Cell(item["id"], item["label"], condition, item.get("basis", False)))
        _distinct((cell.id for cell in cells), f"{place}: cell")
        basis = [cell for cell in cells if cell.basis]
        if not basis:
            raise ConfigError(f"{place}: at least one cell must have basis = true")
        for one, other in itertools.combinations(basis, 2):
            if not _disjoint(one.where, other.where):
                raise ConfigError(f"{place}: a record could be in both basis cells {one.id} and {other.id}")
        return tuple(cells)

    def _iterated(self, whose: object, place: str, kinds: Sequence[str]) -> Mapping[str, str]:
        if whose is None:
            return {}
        if not isinstance(whose, str) or whose not in self._race_of:
            raise ConfigError(f"{place}: race_of must be one of {', '.join(self._race_of)}, not {whose!r}")
        roles = self._race_of[whose]
        if any(self._columns[column] not in kinds for column in roles.values()):
            raise ConfigError(f"{place}: a table of units cannot be repeated by the race of a person")
        return roles

    def _conditions(self, entry: object, name: str, allowed: Sequence[str]) -> Where:
        place = f"{self._place}, {name}"
        if not isinstance(entry, Mapping):
            raise ConfigError(f"{place}: conditions must be a table of column = codes")
        require_keys(entry, place, (), allowed)
        return {column: parse_codes(codes, f"{place}, {column}") for column, codes in entry.items()}


def _race_of(
    entry: Mapping[str, Mapping[str, str]], columns: Mapping[str, str], place: str
) -> Mapping[str, Mapping[str, str]]:
    for whose, roles in entry.items():
        require_keys(roles, f"{place}, records.race_of.{whose}", _ROLES)
        for column in roles.values():
            _known(column, columns, f"{place}, records.race_of.{whose}")
    return entry


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
    if set(table.derived.cells) != {cell.id for cell in table.basis}:
        raise ConfigError(f"{where}: cells must name exactly the basis cells of {table.name}")
    for cells in table.derived.cells.values():
        for cell in cells:
            _known(cell, [basis.id for basis in source.basis], where)


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


def _disjoint(one: Where, other: Where) -> bool:
    return any(one[column].isdisjoint(other[column]) for column in one.keys() & other.keys())
