"""CONFIDENTIAL. Suppression by the rules of the 1980 census: small cells become 0, and tables with small groups or of small areas are withheld."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from censafe.attack.defenses.households import ADULT, AREA_DIGITS, area_of_blocks
from censafe.attack.defenses.intervals import TableIntervals
from censafe.attack.defenses.named import TableAreas
from censafe.attack.people import RACE_BITS, People

_Ints = NDArray[np.int64]
_LARGEST_ZEROED: Final = 2
SMALL_GROUP: Final = 15
"""Persons that a group or an area needs so that its tables are published."""
_RACES: Final = 7
_RACE_TABLES: Final = ("P1", "P6", "P7", "P8", "P9")
_ADULT_TABLES: Final = ("P10", "P11")


def _groups() -> NDArray[np.int8]:
    """White alone; Black, AIAN, Asian, NHPI, some other race, alone or with White; two or more otherwise."""
    others = RACE_BITS[:, 1:]
    one = others.sum(axis=1) == 1
    return np.where(~others.any(axis=1), 0, np.where(one, 1 + others.argmax(axis=1), 6)).astype(np.int8)


GROUPS_1980: Final[NDArray[np.int8]] = _groups()
"""Group 0 to 6 of each of the 63 sets of races."""


@dataclass(frozen=True)
class SuppressionShare:
    """What a rule does at a level.

    Args:
        table: of the redistricting data, or ``persons`` for tables of age and sex.
    """

    level: str
    table: str
    tables: int
    suppressed: int
    cells: int
    zeroed: int


def race_tables(people: People, area: _Ints, areas: int) -> Mapping[str, _Ints]:
    """Persons by race (P1) and by origin and race (P2), and the same for persons of 18 and over (P3, P4).

    Args:
        area: of every block, shape (blocks,).

    Returns:
        By name; shape (areas, 7) for P1 and P3, and (areas, 14) for P2 and P4, not Hispanic first.

    Source: attack.md 10.
    """
    race = GROUPS_1980[people.race].astype(np.int64)
    cell = (area[people.block] * 2 + people.hispanic) * _RACES + race
    adult = people.age >= ADULT
    found = {}
    for chosen, by_race, by_origin in ((np.ones(len(people), np.bool_), "P1", "P2"), (adult, "P3", "P4")):
        counts = np.bincount(cell[chosen], minlength=areas * 2 * _RACES)
        found[by_origin] = counts.reshape(areas, 2 * _RACES)
        found[by_race] = found[by_origin].reshape(areas, 2, _RACES).sum(axis=1)
    return found


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


def suppress_small_areas(counts: _Ints, population: _Ints) -> TableIntervals:
    """Tables of an area with 1 to 14 persons are withheld.

    Args:
        counts: of tables that are not of race and origin alone, shape (areas, lines).
        population: shape (areas,).
    """
    return TableIntervals.exact(counts).without(((population > 0) & (population < SMALL_GROUP))[:, None])


def shares_suppressed(people: People) -> tuple[SuppressionShare, ...]:
    """What the rules do to the tables of areas with persons, by level; P3 and P4 of areas with adults.

    P1, P2 and P4 have their cells of 1 and 2 counted; P3, P4 and tables of persons are withheld. Complementary suppression is not modeled.

    Source: tables 18 and 19 of the supplement of "A Simulated Reconstruction and Reidentification Attack on the 2010 U.S. Census".
    """
    found = []
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
                shown = suppress_tables_of_small_groups(counts[used], groups[used])
                withheld = int((~shown.published[:, 0]).sum())
            zeroed = int(((counts > 0) & (counts <= _LARGEST_ZEROED)).sum()) if name != "P3" else 0
            found.append(
                SuppressionShare(
                    level, name, int(used.sum()), withheld, int(used.sum()) * counts.shape[1], zeroed
                )
            )
        used = population > 0
        small = int((population[used] < SMALL_GROUP).sum())
        found.append(SuppressionShare(level, "persons", int(used.sum()), small, 0, 0))
    return tuple(found)


def share_frame(people: People) -> pa.Table:
    """What the rules do, a row for each level and table; see :func:`shares_suppressed`."""
    return pa.Table.from_pylist([asdict(one) for one in shares_suppressed(people)])


def suppress_1980(areas: TableAreas, seed: int) -> TableIntervals:
    """Cells of 1 and 2 in tables of race and origin, tables of adults where a group is small, and all others of small areas."""
    names = np.array(areas.workload.names)
    counts = areas.counts
    number = len(counts)
    population = np.bincount(areas.area, minlength=number)
    groups = np.zeros((number, 126), np.int64)
    np.add.at(groups, (areas.area, areas.people.race_origin), 1)
    found = suppress_small_areas(counts, population)
    low, high, value = found.low.copy(), found.high.copy(), found.value.copy()
    for tables, own in (
        (_RACE_TABLES, suppress_cells(counts)),
        (_ADULT_TABLES, suppress_tables_of_small_groups(counts, groups)),
    ):
        here = np.isin(names, tables)
        low[:, here], high[:, here], value[:, here] = own.low[:, here], own.high[:, here], own.value[:, here]
    return TableIntervals(low, high, value)
