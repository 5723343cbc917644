"""Exact counts over complete public key domains, added up over the parts of a population, and the truncation of households before it.

Proof of stability: ``truncation.proof.md``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol

import ibis
import numpy as np
from ibis.expr import types as ir
from numpy.typing import NDArray

from censafe.errors import ConfigError, DataError
from censafe.model import Axis, ExactCounts, KeyDomain
from censafe.model.cells.counting import level_classes
from censafe.model.cells.lines import Condition, TableLine
from censafe.model.closing import Closing
from censafe.model.engine import engine_of, fetch
from censafe.model.observer import unheard
from censafe.model.proven import proven
from censafe.tabulation.engine import (
    count_by,
    drop_non_unique,
    joined_by_key,
    recode,
    repeated_keys,
    stored,
    where,
)
from censafe.tabulation.tables.definitions import CanonicalColumn, DefinitionSet, TableDefinition


def canonical_text(table: ir.Table, canonical: Sequence[CanonicalColumn]) -> ir.StringValue:
    """Text of a record: its columns in the order of the file, zero-padded, joined by ``|``.

    A missing value is the empty text. Example: ``3|100000001|25|1|01|20``.
    """
    texts = [
        table[entry.column].cast("string").lpad(entry.width, "0").fill_null("")
        if entry.width > 1
        else table[entry.column].cast("string").fill_null("")
        for entry in canonical
    ]
    return ibis.literal("|").join(texts)


@proven("truncation.proof.md", digest="fca30d5814b64241")
def ranked(records: ir.Table, household: str, canonical: Sequence[CanonicalColumn], into: str) -> ir.Table:
    """Number the records of every household from 1 in the canonical order.

    The order is that of SHA-256, in hexadecimal, of the canonical text followed by ``|`` and the record's
    index among equal records of the household, counted from 1. It needs no key and depends neither on the
    order of the file nor on the engine; equal records are told apart by their index, and which of them
    carries which index makes no difference.

    Args:
        records: the records of one universe.
        household: name of the household key.
        canonical: columns of the text.
        into: name of the new column.
    """
    texts = records.mutate(_text=canonical_text(records, canonical))
    equal = ibis.window(group_by=[household, "_text"])
    indexed = texts.mutate(_index=ibis.row_number().over(equal) + 1)
    hashed = indexed.mutate(
        _digest=(indexed["_text"] + "|" + indexed["_index"].cast("string")).hexdigest("sha256")
    )
    order = ibis.window(group_by=household, order_by=["_digest", "_text", "_index"])
    return hashed.mutate(**{into: ibis.row_number().over(order) + 1}).drop("_text", "_index", "_digest")


@proven("truncation.proof.md", digest="8438ace1a83adec2")
def truncate(
    records: ir.Table, household: str, canonical: Sequence[CanonicalColumn], tau: int
) -> tuple[ir.Table, ir.Table]:
    """Split records into the first ``tau`` of every household and the rest.

    Args:
        records: the records of one universe; the universe is applied first.
        household: name of the household key.
        canonical: columns of the text that orders the records.
        tau: largest number of records of one household that are retained.

    Returns:
        The retained and the dropped records; together they are ``records``. One record more or less in
        ``records`` changes the retained ones by at most two.
    """
    numbered = ranked(records, household, canonical, "_rank")
    retained = numbered.filter(numbered["_rank"] <= tau).drop("_rank")
    dropped = numbered.filter(numbered["_rank"] > tau).drop("_rank")
    return retained, dropped


def over_threshold(records: ir.Table, household: str, tau: int) -> ir.Table:
    """Keys of the households with more than ``tau`` records, each once."""
    counted = records.group_by(household).aggregate(rows=records.count())
    return counted.filter(counted["rows"] > tau).select(household)


@dataclass(frozen=True)
class Coding:
    """Mixed-radix numbering of the atoms of some columns, the last column fastest.

    Args:
        atoms: disjoint sets of codes by column; atom 0 of every column stands for all other values,
            missing ones included, so it meets no condition.
    """

    atoms: dict[str, tuple[frozenset[int], ...]]

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of atoms of every column, atom 0 included."""
        return tuple(len(groups) + 1 for groups in self.atoms.values())

    @property
    def size(self) -> int:
        """Number of codes that :meth:`encode` can return."""
        return math.prod(self.shape)

    def encode(self, table: ir.Table) -> ir.IntegerValue:
        """The code of every row as an expression on ``table``, from 0 to ``size - 1``."""
        code = ibis.literal(0, "int64")
        for (column, groups), radix in zip(self.atoms.items(), self.shape, strict=True):
            code = code * radix + recode(table[column], groups).cast("int64")
        return code

    def decode(self, codes: NDArray[np.int64]) -> dict[str, NDArray[np.intp]]:
        """Atom of every column for every code; inverse of :meth:`encode`."""
        if not self.atoms:
            return {}
        return dict(zip(self.atoms, np.unravel_index(codes, self.shape), strict=True))

    def admitted(self, column: str, codes: frozenset[int]) -> NDArray[np.bool_]:
        """Which atoms of ``column`` lie in ``codes``, shape (number of atoms,)."""
        groups = self.atoms[column]
        if any(group & codes and not group <= codes for group in groups) or not codes <= frozenset().union(
            *groups
        ):
            raise ValueError(f"the coding of {column} was not made for these codes")
        return np.array([False, *(group <= codes for group in groups)])


def coding_for(conditions: Iterable[Condition]) -> Coding:
    """The coarsest coding that answers all ``conditions``.

    Example:
        >>> coding_for([{"QAGE": frozenset(range(4))}, {"QAGE": frozenset(range(2, 6))}]).atoms
        {'QAGE': (frozenset({0, 1}), frozenset({2, 3}), frozenset({4, 5}))}
    """
    sets: dict[str, list[frozenset[int]]] = {}
    for condition in conditions:
        for column, codes in condition.items():
            sets.setdefault(column, []).append(codes)
    return Coding({column: level_classes(codes) for column, codes in sorted(sets.items())})


class RecordTables(Protocol):
    """CONFIDENTIAL. The three record tables of a population, or of a part with whole households."""

    @property
    def persons(self) -> ir.Table:
        """One row a person."""

    @property
    def units(self) -> ir.Table:
        """One row a housing unit or group quarters."""

    @property
    def geo(self) -> ir.Table:
        """One row a unit, with its region."""

    @property
    def unique(self) -> bool:
        """Whether it is known that no household key occurs twice in units, or twice in geo."""

    @property
    def sizes(self) -> ir.Table | None:
        """Every household key of persons with its number of rows there as PERSONS, where these were counted."""


@dataclass(frozen=True, eq=False)
class Profile:
    """CONFIDENTIAL. Number of records by region and atoms.

    Args:
        region: position of the row's region, shape (rows,).
        atoms: atom of every column, shape (rows,) each.
        weights: number of records (under ``""``) and sums of unit columns by name, int64, shape (rows,).
    """

    coding: Coding
    region: NDArray[np.int64] = field(repr=False)
    atoms: Mapping[str, NDArray[np.intp]] = field(repr=False)
    weights: Mapping[str, NDArray[np.int64]] = field(repr=False)

    def mask(self, conditions: Condition) -> NDArray[np.bool_]:
        """Which rows meet all conditions, shape (rows,)."""
        mask = np.ones(len(self.region), dtype=np.bool_)
        for column, codes in conditions.items():
            mask &= self.coding.admitted(column, codes)[self.atoms[column]]
        return mask

    def take(self, mask: NDArray[np.bool_]) -> Profile:
        """The rows of a mask."""
        return Profile(
            self.coding,
            self.region[mask],
            {column: atoms[mask] for column, atoms in self.atoms.items()},
            {name: weights[mask] for name, weights in self.weights.items()},
        )


class Scan(Closing):
    """CONFIDENTIAL. The joined records of a population, ready to be profiled; a context manager.

    A household whose key occurs more than once among the units counts in no person table; one whose key
    occurs more than once in the geography counts nowhere. A key that occurs once in both gives one row of
    their join, so the rows of repeated keys are found in the join by one grouped count.
    """

    @proven("profiles.proof.md", digest="d924389cfab20950")
    def __init__(
        self,
        definitions: DefinitionSet,
        conditions: Iterable[Condition],
        tables: RecordTables,
        measures: Iterable[str] = (),
    ) -> None:
        split = [definitions.split(condition) for condition in conditions]
        self._definitions = definitions
        self._unit_coding = coding_for(part["unit"] for part in split)
        self._person_coding = coding_for(part["person"] for part in split)
        self._both = Coding({**self._unit_coding.atoms, **self._person_coding.atoms})
        self._persons = tables.persons
        self._sizes = tables.sizes
        self._measures = tuple(measures)
        inside = where(tables.geo, definitions.places) & tables.geo[definitions.region].notnull()
        place = tables.geo.filter(inside).select(definitions.household, definitions.region)
        with ExitStack() as stack:
            occurring = place.select(definitions.region).distinct()
            number = ibis.row_number().over(order_by=definitions.region).cast("int64")
            numbers = stack.enter_context(stored("tabulation_regions", occurring.mutate(_region=number)))
            self.regions = tuple(fetch(numbers.order_by("_region"))[definitions.region].to_pylist())
            numbered = stack.enter_context(
                joined_by_key("tabulation_numbered", place, numbers, definitions.region)
            )
            coded = tables.units.select(
                definitions.household, *self._measures, _unit=self._unit_coding.encode(tables.units)
            )
            located = stack.enter_context(
                joined_by_key(
                    "tabulation_located",
                    coded,
                    numbered.select(definitions.household, "_region"),
                    definitions.household,
                )
            )
            code = located["_region"] * self._unit_coding.size + located["_unit"]
            placed = located.select(definitions.household, *self._measures, _unit=code)
            self._placed = stack.enter_context(stored("tabulation_placed", placed))
            self._unique = tables.unique
            if not self._unique:
                self._repeated = stack.enter_context(
                    stored("tabulation_repeated", repeated_keys(self._placed, definitions.household))
                )
                places = place.semi_join(self._repeated, definitions.household)
                self._misplaced = stack.enter_context(
                    stored("tabulation_misplaced", repeated_keys(places, definitions.household))
                )
            self._stored = stack.pop_all()

    def close(self) -> None:
        """Drop the intermediate tables."""
        self._stored.close()

    def units(self) -> Profile:
        """Profile of the placed units."""
        placed = self._placed
        if not self._unique:
            placed = placed.anti_join(self._misplaced, self._definitions.household)
        counted = count_by(placed, ["_unit"], self._measures)
        return self._profile(counted, "_unit", self._unit_coding)

    def persons(self) -> Profile:
        """Profile of all persons of placed units, without truncation."""
        household, own = self._definitions.household, self._person_coding
        counted = engine_of(self._persons).counted(
            self._persons, household, own.encode, self._countable(), "_unit", own.size
        )
        return self._profile(counted, "_key", self._both)

    @proven("profiles.proof.md", digest="034ed012067f1a6f")
    def dropped(self, universes: Mapping[str, tuple[Condition, int]]) -> dict[str, Profile]:
        """Profiles of the persons that truncation takes away.

        Args:
            universes: conditions on persons, and tau, by a name for the pair.
        """
        if not universes:
            return {}
        household = self._definitions.household

        def anyone(persons: ir.Table) -> ir.BooleanValue:
            return ibis.or_(*(where(persons, universe) for universe, _ in universes.values()))

        least = min(tau for _, tau in universes.values())
        if self._sizes is None:
            over = over_threshold(self._persons.filter(anyone(self._persons)), household, least)
        else:
            over = self._sizes.filter(self._sizes["PERSONS"] > least).select(household)
        with (
            joined_by_key("tabulation_crowds", self._persons, over, household) as crowds,
            stored("tabulation_few", crowds.filter(anyone(crowds))) as few,
            joined_by_key("tabulation_housed", few, self._countable(), household) as housed,
            stored("tabulation_candidates", self._keyed(housed)) as candidates,
        ):
            return {
                name: self._dropped(candidates.filter(where(candidates, universe)), tau)
                for name, (universe, tau) in universes.items()
            }

    def _dropped(self, members: ir.Table, tau: int) -> Profile:
        household = self._definitions.household
        crowded = members.semi_join(over_threshold(members, household, tau), household)
        _, dropped = truncate(crowded, household, self._definitions.canonical, tau)
        return self._profile(count_by(dropped, ["_key"]), "_key", self._both)

    def _countable(self) -> ir.Table:
        """Placed units that occur once, with the code of region and atoms."""
        household = self._definitions.household
        unique = self._placed if self._unique else drop_non_unique(self._placed, household, self._repeated)
        return unique.select(household, "_unit")

    def _keyed(self, housed: ir.Table) -> ir.Table:
        """Persons of placed units with the code of region and atoms."""
        key = housed["_unit"] * self._person_coding.size + self._person_coding.encode(housed)
        return housed.mutate(_key=key).drop("_unit")

    def _profile(self, counted: Any, key: str, coding: Coding) -> Profile:
        keys = counted[key].to_numpy()
        region, codes = np.divmod(keys, coding.size)
        weights = {"": counted["rows"].to_numpy()}
        weights |= {name: counted[f"sum_{name}"].to_numpy() for name in self._measures if key == "_unit"}
        return Profile(coding, region, coding.decode(codes), weights)


COUNTING_STEPS: Final = 5
"""Units with their places; profile of units; profile of persons; persons that truncation takes away; tables."""

REGION_AXIS = "REGION_ID"
ITERATION_AXIS = "ITERATION_CODE"

Mode = Literal["release", "truth"]


def key_domain(
    definitions: DefinitionSet,
    table: TableDefinition,
    level: str,
    regions: Sequence[str],
    *,
    margins: bool = False,
) -> KeyDomain:
    """The complete public keys of a table at one population group level.

    Example:
        >>> from censafe.products.phsafe.definitions import phsafe_definitions
        >>> phsafe = phsafe_definitions()
        >>> key_domain(phsafe, phsafe.table("PH7"), "state_H,I", ["01", "02"]).shape
        (2, 2, 3)
    """
    geography, iteration_level = definitions.levels(table)[level]
    cells = table.cells if margins else table.basis
    axes = [Axis(REGION_AXIS, geography.region_ids(regions))]
    if table.iterated:
        axes.append(Axis(ITERATION_AXIS, tuple(iteration.code for iteration in iteration_level.iterations)))
    axes.append(Axis(table.cell_column, tuple(cells)))
    return KeyDomain(tuple(axes))


class CountAccumulator:
    """CONFIDENTIAL. Counts of several tables, added up over the parts of a population.

    Args:
        tables: names of the tables, in the order of the results; every measured table when None.
        tau: largest number of persons of one household, by person table. The truth needs none.
        mode: ``release`` counts basis cells of the release's universes after truncation; ``truth`` counts all
            cells of the truth's universes without truncation.
    """

    def __init__(
        self,
        definitions: DefinitionSet,
        *,
        tables: Collection[str] | None = None,
        tau: Mapping[str, int] | None = None,
        mode: Mode = "release",
    ) -> None:
        self._definitions = definitions
        self._mode = mode
        allowed = definitions.tables if mode == "truth" else definitions.measured
        unknown = sorted(set(tables or ()) - {table.name for table in allowed})
        if unknown:
            raise ConfigError(
                f"cannot count {unknown}; the tables are {', '.join(table.name for table in allowed)}"
            )
        self._tables = tuple(table for table in allowed if tables is None or table.name in tables)
        self._tau: dict[str, int] = {}
        if mode == "release":
            tau = tau or {}
            needed = [table.name for table in self._tables if table.truncated]
            wrong = [name for name in needed if type(tau.get(name)) is not int or tau[name] < 1]
            if wrong:
                raise ConfigError(f"tau: an integer of at least 1 is needed for {', '.join(wrong)}")
            self._tau = {name: tau[name] for name in needed}
        # by table and region: int64, shape (iterations, cells)
        self._counted: dict[str, dict[str, NDArray[np.int64]]] = {table.name: {} for table in self._tables}
        self._unmatched = dict.fromkeys(self._counted, 0)
        self._regions: set[str] = set()

    @property
    def regions(self) -> tuple[str, ...]:
        """Every region of the parts added so far, sorted."""
        return tuple(sorted(self._regions))

    @property
    def unmatched(self) -> dict[str, int]:
        """CONFIDENTIAL. Records in a table's universe that met no basis cell and were left out, by table."""
        return dict(self._unmatched)

    def add(self, population: RecordTables, done: Callable[[int], None] = unheard) -> None:
        """Count one part of a population; parts must not share households."""
        measures = (
            {table.measure for table in self._tables if table.measure} if self._mode == "truth" else set()
        )
        with Scan(self._definitions, self._conditions(), population, sorted(measures)) as scan:
            self._regions.update(scan.regions)
            done(1)
            if any(table.counts == "units" for table in self._tables):
                profile = scan.units()
                for table in self._tables:
                    if table.counts == "units":
                        self._tally(table, profile, scan.regions, 1)
            done(2)
            if any(table.counts == "persons" for table in self._tables):
                self._add_persons(scan, done)

    def finish(self, levels: Mapping[str, Iterable[str]] | None = None) -> dict[tuple[str, str], ExactCounts]:
        """The counts of all parts over complete key domains, zeros included."""
        if not self._regions:
            raise DataError(
                "geo: no row is left after the state filter and after leaving out group quarters "
                "(RTYPE 4 and 5), so there is no region to publish. Check state_filter and the geo file."
            )
        counts = {}
        for table in self._tables:
            known = self._definitions.levels(table)
            for level in known if levels is None else levels.get(table.name, ()):
                if level not in known:
                    raise ConfigError(
                        f"{table.name} has no level {level!r}; its levels are {', '.join(known)}"
                    )
                counts[table.name, level] = self._counts(table, level)
        return counts

    def _counts(self, table: TableDefinition, level: str) -> ExactCounts:
        geography, iteration_level = self._definitions.levels(table)[level]
        regions = self.regions
        domain = key_domain(self._definitions, table, level, regions, margins=self._mode == "truth")
        codes = [iteration.code for iteration in self._definitions.iterations(table)]
        rows = [codes.index(iteration.code) for iteration in iteration_level.iterations]
        counted = self._counted[table.name]
        zero = np.zeros((len(codes), len(self._cells(table))), dtype=np.int64)
        values = np.stack([counted.get(region, zero)[rows] for region in regions])
        values = np.stack([values[list(places)].sum(axis=0) for places in geography.members(regions)])
        return ExactCounts(domain, np.ascontiguousarray(values.reshape(-1), dtype=np.int64))

    def _add_persons(self, scan: Scan, done: Callable[[int], None]) -> None:
        profile = scan.persons()
        done(3)
        groups: dict[str, tuple[Condition, int]] = {}
        member: dict[str, str] = {}
        for name, tau in self._tau.items():
            pair = (self._definitions.split(self._definitions.table(name).universe)["person"], tau)
            same = next((key for key, other in groups.items() if other == pair), None)
            member[name] = same or f"universe_{len(groups)}"
            groups[member[name]] = pair
        dropped = scan.dropped(groups)
        done(4)
        for table in self._tables:
            if table.counts == "persons":
                self._tally(table, profile, scan.regions, 1)
                if table.name in member:
                    self._tally(table, dropped[member[table.name]], scan.regions, -1)

    def _tally(self, table: TableDefinition, profile: Profile, regions: Sequence[str], sign: int) -> None:
        """Add (or take away) the records of a profile."""
        members = profile.take(profile.mask(self._universe(table)))
        weights = members.weights[(table.measure or "") if self._mode == "truth" else ""]
        iterations = [
            members.mask(iteration.where_of(table)) for iteration in self._definitions.iterations(table)
        ]
        cells = self._cells(table)
        total = np.zeros((len(regions), len(iterations), len(cells)), dtype=np.int64)
        matched = np.zeros(len(weights), dtype=np.bool_)
        for position, cell in enumerate(cells.values()):
            in_cell = members.mask(cell.when)
            matched |= in_cell
            for row, in_iteration in enumerate(iterations):
                both = in_cell & in_iteration
                np.add.at(total[:, row, position], members.region[both], weights[both])
        self._unmatched[table.name] += sign * int(weights[~matched].sum())
        counted = self._counted[table.name]
        for region, counts in zip(regions, total, strict=True):
            counted[region] = counted.get(region, 0) + sign * counts

    def _cells(self, table: TableDefinition) -> Mapping[str, TableLine]:
        return table.cells if self._mode == "truth" else table.basis

    def _universe(self, table: TableDefinition) -> Condition:
        return table.truth_universe if self._mode == "truth" else table.universe

    def _conditions(self) -> list[Condition]:
        conditions: list[Condition] = []
        for table in self._tables:
            conditions.append(self._universe(table))
            conditions += [cell.when for cell in self._cells(table).values()]
            conditions += [iteration.where_of(table) for iteration in self._definitions.iterations(table)]
        return conditions
