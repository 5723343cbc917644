"""CONFIDENTIAL. Suppression: by the rules of the 1980 census, and of counts under a threshold with others, so that none can be computed.

By the rules of 1980 small cells become 0, and tables with small groups or of small areas are withheld. Under a threshold a withheld line is safe where
other records have the same published lines and another value in it. Such records are found by moving one person: one of a type t that counts in the
line becomes one of another type, or is left out. Every line that the move changes has to be withheld as well; of all moves the one is taken that
withholds least besides. The records before and after the move have the same published lines, and lines that are withheld later only make it harder to
distinguish them, so that each withheld line has a second value that nothing published excludes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from censafe.attack.defenses.named import TableAreas, TableIntervals
from censafe.attack.defenses.rounding import withhold_small_areas
from censafe.attack.people import ADULT, AREA_DIGITS, RACE_BITS, RACE_ORIGINS, People, area_of_blocks
from censafe.attack.tables import CountedLines
from censafe.errors import ConfigError

_Ints = NDArray[np.int64]
_LARGEST_ZEROED: Final = 2
SMALL_GROUP: Final = 15
"""Persons that a group or an area needs so that its tables are published."""
_RACES: Final = 7
_RACE_TABLES: Final = ("P1", "P6", "P7", "P8", "P9")
_ADULT_TABLES: Final = ("P10", "P11")


_OTHERS: Final = RACE_BITS[:, 1:]
GROUPS_1980: Final[NDArray[np.int64]] = np.where(
    _OTHERS.sum(axis=1) < 2, np.where(_OTHERS.any(axis=1), 1 + _OTHERS.argmax(axis=1), 0), 6
)
"""Group of each of the 63 sets of races: White alone; Black, AIAN, Asian, NHPI, some other race, alone or with White; two or more otherwise."""


def race_tables(people: People, area: _Ints, areas: int) -> Mapping[str, _Ints]:
    """Persons by race (P1) and by origin and race (P2), and the same for persons of 18 and over (P3, P4).

    Args:
        area: of every block, shape (blocks,).

    Returns:
        By name; shape (areas, 7) for P1 and P3, and (areas, 14) for P2 and P4, not Hispanic first.

    Source: attack.md 10.
    """
    race = GROUPS_1980[people.race]
    cell = (area[people.block] * 2 + people.hispanic) * _RACES + race
    adult = people.age >= ADULT
    tables = {}
    for chosen, by_race, by_origin in ((np.ones(len(people), np.bool_), "P1", "P2"), (adult, "P3", "P4")):
        counts = np.bincount(cell[chosen], minlength=areas * 2 * _RACES)
        tables[by_origin] = counts.reshape(areas, 2 * _RACES)
        tables[by_race] = tables[by_origin].reshape(areas, 2, _RACES).sum(axis=1)
    return tables


def suppress_cells(counts: _Ints) -> TableIntervals:
    """Counts of 1 and 2 become 0; a published 0 stands for 0, 1 or 2.

    Args:
        counts: of tables of race and origin alone, shape (areas, lines).

    Example:
        >>> found = suppress_cells(np.array([[0, 2, 3]]))
        >>> found.value.tolist(), found.high.tolist()
        ([[0, 0, 3]], [[2, 2, 3]])
    """
    value = np.where(counts <= _LARGEST_ZEROED, 0, counts)
    return TableIntervals(value, np.where(value == 0, _LARGEST_ZEROED, value), value)


def suppress_tables_of_small_groups(counts: _Ints, groups: _Ints) -> TableIntervals:
    """The whole table of an area is withheld where a group has 1 to 14 persons of all ages.

    Args:
        counts: of a table with a margin of adults, shape (areas, lines).
        groups: persons of all ages by group, P1 for P3 and P2 for P4, shape (areas, groups).

    Example:
        >>> people = np.array([[15, 3], [15, 0]])
        >>> suppress_tables_of_small_groups(people, people).published.tolist()
        [[False, False], [True, True]]
    """
    small = ((groups > 0) & (groups < SMALL_GROUP)).sum(axis=1) > 0
    return TableIntervals.exact(counts).without(small[:, None])


def shares_suppressed(people: People) -> pa.Table:
    """What the rules do to the tables of areas with persons, a row for each level and table; P3 and P4 of areas with adults.

    P1, P2 and P4 have their cells of 1 and 2 counted; P3, P4 and tables of persons are withheld. Complementary suppression is not modeled.

    Source: tables 18 and 19 of the supplement of "A Simulated Reconstruction and Reidentification Attack on the 2010 U.S. Census".
    """
    rows: list[tuple[str, str, int, int, int, int]] = []
    levels = {name: area_of_blocks(people.blocks, name) for name in AREA_DIGITS}
    levels["block"] = np.arange(len(people.blocks))
    for level, area in levels.items():
        tables = race_tables(people, area, int(area.max(initial=-1)) + 1)
        population = tables["P1"].sum(axis=1)
        for name in ("P1", "P2", "P3", "P4"):
            counts, groups = tables[name], tables["P1" if name in ("P1", "P3") else "P2"]
            used = counts.sum(axis=1) > 0
            withheld = 0
            if name in ("P3", "P4"):
                suppressed = suppress_tables_of_small_groups(counts[used], groups[used])
                withheld = int((~suppressed.published[:, 0]).sum())
            zeroed = int(((counts > 0) & (counts <= _LARGEST_ZEROED)).sum()) if name != "P3" else 0
            rows.append((level, name, int(used.sum()), withheld, int(used.sum()) * counts.shape[1], zeroed))
        used = population > 0
        small = int((population[used] < SMALL_GROUP).sum())
        rows.append((level, "persons", int(used.sum()), small, 0, 0))
    names = ("level", "table", "tables", "suppressed", "cells", "zeroed")
    return pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows])


def suppress_1980(areas: TableAreas, seed: int) -> TableIntervals:
    """Cells of 1 and 2 in tables of race and origin, tables of adults where a group is small, and all others of small areas."""
    names = np.array(areas.workload.names)
    counts = areas.counts
    groups = np.zeros((len(counts), RACE_ORIGINS), np.int64)
    np.add.at(groups, (areas.area, areas.types % RACE_ORIGINS), 1)  # race and origin change fastest
    small, cells = withhold_small_areas(areas, SMALL_GROUP), suppress_cells(counts)
    adult = suppress_tables_of_small_groups(counts, groups)
    rules = [np.isin(names, _RACE_TABLES), np.isin(names, _ADULT_TABLES)]
    return TableIntervals(
        *(
            np.select(rules, [getattr(cells, side), getattr(adult, side)], getattr(small, side))
            for side in ("low", "high", "value")
        )
    )


_Flags = NDArray[np.bool_]
NO_TYPE: Final = -1
"""Type of a person who is left out."""


@dataclass(frozen=True)
class CellMove:
    """One person of a type becomes one of another, which shows that the lines that change cannot be computed."""

    before: int
    after: int


@dataclass(frozen=True, eq=False)
class TypeRows:
    """How often a person of each type counts in each line, small numbers, shape (types + 1, lines); the last row is that of no person."""

    shape: tuple[int, ...]
    rows: NDArray[np.uint8] = field(repr=False)
    possible: _Flags = field(repr=False)

    @staticmethod
    def of(workload: CountedLines) -> TypeRows:
        """Of the lines of tables."""
        dense = workload.matrix.toarray().astype(np.uint8)
        return TypeRows(workload.shape, np.vstack([dense, np.zeros_like(dense[:1])]), workload.possible)

    def others(self, person_type: int, present: _Ints) -> _Ints:
        """Types that a person may become: possible ones that differ in one attribute, and those that are there; and no person."""
        place = np.unravel_index(person_type, self.shape)
        parts = [present, np.array([NO_TYPE])]
        for axis, length in enumerate(self.shape):
            changed = list(np.broadcast_arrays(*place, np.arange(length))[:-1])
            changed[axis] = np.arange(length)
            types = np.ravel_multi_index(tuple(changed), self.shape)
            parts.append(types[self.possible[types]])
        return np.concatenate(parts)


def withheld_lines(
    types: TypeRows, counts: _Ints, present: _Ints, threshold: int
) -> tuple[_Flags, tuple[CellMove, ...]]:
    """Lines of one area that are withheld, and the moves that show that none of them can be computed.

    Args:
        counts: of the area, shape (lines,).
        present: types of persons that are there, each once.

    Returns:
        Flags of shape (lines,), and moves; every withheld line is changed by one of them, and none changes a published line.
    """
    small = (counts > 0) & (counts < threshold)
    cost = np.where(small, 0.0, 1.0 + counts)
    hidden, safe = small.copy(), np.zeros_like(small)
    moves = []
    for line in np.flatnonzero(small)[np.argsort(counts[small], kind="stable")].tolist():
        if safe[line]:
            continue
        move, changed = min(
            _moves(types, line, present, cost), key=lambda move_and_lines: move_and_lines[1] @ cost
        )
        moves.append(move)
        hidden |= changed
        safe |= changed
        cost[changed] = 0.0
    return hidden, tuple(moves)


def _moves(
    types: TypeRows, line: int, present: _Ints, cost: NDArray[np.float64]
) -> Iterator[tuple[CellMove, _Flags]]:
    """The cheapest move of each present type that counts in a line, with the lines that it changes."""
    for person_type in present[types.rows[present, line] > 0].tolist():
        others = types.others(person_type, present)
        others = others[types.rows[others, line] != types.rows[person_type, line]]
        changed = types.rows[others] != types.rows[person_type]
        best = int(np.argmin(changed @ cost))
        yield CellMove(person_type, int(others[best])), changed[best]


def require_threshold(threshold: int) -> None:
    """Refuse a threshold under which no count can be."""
    if threshold < 2:
        raise ConfigError(
            f"the threshold of suppression must be at least 2, not {threshold}; fix: give one such as 3, which withholds 1 and 2"
        )


def suppress_under_threshold(areas: TableAreas, threshold: int) -> TableIntervals:
    """Primary and complementary suppression of the tables of every area; zeros are published unless they are withheld as complements.

    What the tables of one area imply is covered: all lines of all tables of the area together. Differences between areas, such as a tract and all but one
    of its blocks, are not, and bounds may be narrow: what is excluded is that a count is known exactly.

    Source: attack.md 17, 4; Cox (1980), "Suppression methodology and statistical disclosure control", for complementary suppression.
    """
    require_threshold(threshold)
    types, own = TypeRows.of(areas.workload), areas.types
    order = np.argsort(areas.area, kind="stable")
    ends = np.searchsorted(areas.area[order], np.arange(len(areas.counts) + 1))
    hidden = np.zeros(areas.counts.shape, np.bool_)
    for place, counts in enumerate(areas.counts):
        present = np.unique(own[order[ends[place] : ends[place + 1]]])
        hidden[place], _ = withheld_lines(types, counts, present, threshold)
    return TableIntervals.exact(areas.counts).without(hidden)
