"""Exact counts over complete public key domains, added up over the parts of a population."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from censafe.errors import ConfigError, DataError
from censafe.model import Axis, ExactCounts, KeyDomain
from censafe.model.observer import unheard
from censafe.tabulation.tables.definitions import Cell, DefinitionSet, TableDefinition, Where
from censafe.tabulation.tables.profiles import Profile, RecordTables, Scan

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
    axes.append(Axis(table.cell_column, tuple(cell.id for cell in cells)))
    return KeyDomain(tuple(axes))


@dataclass
class _Tally:
    """Counts of one table by region: int64, shape (iterations, cells) each, and what met no cell."""

    regions: dict[str, NDArray[np.int64]] = field(default_factory=dict)
    unmatched: int = 0


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
        self._tables = _selection(definitions, tables, mode)
        self._tau = {} if mode == "truth" else _checked_tau(self._tables, tau or {})
        self._tallies = {table.name: _Tally() for table in self._tables}
        self._regions: set[str] = set()

    @property
    def regions(self) -> tuple[str, ...]:
        """Every region of the parts added so far, sorted."""
        return tuple(sorted(self._regions))

    @property
    def unmatched(self) -> dict[str, int]:
        """CONFIDENTIAL. Records in a table's universe that met no basis cell and were left out, by table."""
        return {name: tally.unmatched for name, tally in self._tallies.items()}

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
        tally = self._tallies[table.name].regions
        zero = np.zeros((len(codes), len(self._cells(table))), dtype=np.int64)
        values = np.stack([tally.get(region, zero)[rows] for region in regions])
        values = np.stack([values[list(held)].sum(axis=0) for held in geography.members(regions)])
        return ExactCounts(domain, np.ascontiguousarray(values.reshape(-1), dtype=np.int64))

    def _add_persons(self, scan: Scan, done: Callable[[int], None]) -> None:
        profile = scan.persons()
        done(3)
        groups: dict[str, tuple[Where, int]] = {}
        member: dict[str, str] = {}
        for name, tau in self._tau.items():
            pair = (self._definitions.split(self._definitions.table(name).universe)["person"], tau)
            found = next((key for key, other in groups.items() if other == pair), None)
            member[name] = found or f"universe_{len(groups)}"
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
        for position, cell in enumerate(cells):
            in_cell = members.mask(cell.where)
            matched |= in_cell
            for row, in_iteration in enumerate(iterations):
                both = in_cell & in_iteration
                np.add.at(total[:, row, position], members.region[both], weights[both])
        tally = self._tallies[table.name]
        tally.unmatched += sign * int(weights[~matched].sum())
        for region, counts in zip(regions, total, strict=True):
            tally.regions[region] = tally.regions.get(region, 0) + sign * counts

    def _cells(self, table: TableDefinition) -> tuple[Cell, ...]:
        return table.cells if self._mode == "truth" else table.basis

    def _universe(self, table: TableDefinition) -> Where:
        return table.truth_universe if self._mode == "truth" else table.universe

    def _conditions(self) -> list[Where]:
        conditions: list[Where] = []
        for table in self._tables:
            conditions.append(self._universe(table))
            conditions += [cell.where for cell in self._cells(table)]
            conditions += [iteration.where_of(table) for iteration in self._definitions.iterations(table)]
        return conditions


def _selection(
    definitions: DefinitionSet, names: Collection[str] | None, mode: Mode
) -> tuple[TableDefinition, ...]:
    allowed = definitions.tables if mode == "truth" else definitions.measured
    if names is None:
        return allowed
    unknown = sorted(set(names) - {table.name for table in allowed})
    if unknown:
        raise ConfigError(
            f"cannot count {unknown}; the tables are {', '.join(table.name for table in allowed)}"
        )
    return tuple(table for table in allowed if table.name in names)


def _checked_tau(tables: Sequence[TableDefinition], tau: Mapping[str, int]) -> dict[str, int]:
    needed = [table.name for table in tables if table.truncated]
    wrong = [name for name in needed if type(tau.get(name)) is not int or tau[name] < 1]
    if wrong:
        raise ConfigError(f"tau: an integer of at least 1 is needed for {', '.join(wrong)}")
    return {name: tau[name] for name in needed}
