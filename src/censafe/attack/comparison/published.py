"""CONFIDENTIAL. What a defense publishes: tables of every level with the counts that agree with them, and microdata where there are any."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from censafe.attack.comparison.keys import FULL_KEYS, AttackKeys, redistricting_lines
from censafe.attack.defenses.intervals import NO_VALUE, TableIntervals
from censafe.attack.defenses.named import Defense, TableAreas
from censafe.attack.people import People
from censafe.attack.tables import Workload, tabulate_lines

LEVELS: Final[Mapping[str, int]] = {"block": 15, "tract": 11, "county": 5}
"""Levels of which tables are published, with the digits of their codes."""
_Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class LevelTables:
    """Tables of the areas of a level.

    Args:
        codes: of the areas, rising, shape (areas,).
        tables: shape (areas, lines).
    """

    codes: NDArray[np.str_] = field(repr=False)
    tables: TableIntervals = field(repr=False)


@dataclass(frozen=True, eq=False)
class PublishedData:
    """What a defense publishes.

    Args:
        people: microdata, or persons of whom the tables are, in blocks of their own; None for tables that belong to no records.
        attacked: tables of blocks, or of merged areas, that are reconstructed; None where microdata are attacked as they are.
    """

    tables: Mapping[str, LevelTables] = field(repr=False)
    people: People | None = field(default=None, repr=False)
    attacked: LevelTables | None = field(default=None, repr=False)
    keys: AttackKeys = FULL_KEYS
    claim: str = ""
    files: Mapping[str, pa.Table] = field(default_factory=dict, repr=False)


def _areas(people: People, level: str) -> tuple[NDArray[np.str_], _Ints]:
    """Codes of the areas of a level, and the area of every person."""
    codes, place = np.unique(people.blocks.astype(f"U{LEVELS[level]}"), return_inverse=True)
    return codes, place.ravel().astype(np.int64)[people.block]


def exact_tables(workload: Workload, people: People, level: str) -> LevelTables:
    """True tables of some persons."""
    codes, area = _areas(people, level)
    return LevelTables(codes, TableIntervals.exact(tabulate_lines(workload, people, area, len(codes))))


def perturbed_data(workload: Workload, truth: People, defense: Defense, seed: int) -> PublishedData:
    """Tables to which a defense of tables was applied, each level by itself."""
    if defense.tables is None:
        raise ValueError("the defense is none of tables")
    tables = {}
    for level in LEVELS:
        codes, area = _areas(truth, level)
        counts = tabulate_lines(workload, truth, area, len(codes))
        areas = TableAreas(truth, area, workload, counts, level)
        tables[level] = LevelTables(codes, defense.tables(areas, seed))
    notes = {name: make(truth) for name, make in defense.notes.items()}
    return PublishedData(tables, attacked=tables["block"], claim=defense.claim, files=notes)


def changed_data(workload: Workload, truth: People, defense: Defense, seed: int) -> PublishedData:
    """Exact tables of swapped households or of merged blocks; a block that is published with others has no tables of its own."""
    if defense.change is None:
        raise ValueError("the defense changes no persons")
    changed = defense.change(truth, seed)
    claim = changed.claim or defense.claim
    tables = {level: exact_tables(workload, changed.people, level) for level in LEVELS}
    if changed.areas is None:
        return PublishedData(tables, changed.people, tables["block"], claim=claim, files=changed.files)
    merged = tables["block"]
    alone = np.bincount(changed.areas.area)[changed.areas.area] == 1
    own = exact_tables(workload, truth, "block")
    tables = {level: exact_tables(workload, truth, level) for level in LEVELS} | {
        "block": LevelTables(own.codes, own.tables.without(~alone[:, None]))
    }
    keys = AttackKeys.of_areas(changed.areas, truth.blocks)
    return PublishedData(tables, changed.people, merged, keys, claim, changed.files)


def data_of_people(
    workload: Workload, people: People, keys: AttackKeys = FULL_KEYS, *, microdata: bool
) -> PublishedData:
    """Exact tables of persons; of redistricting data those of race, origin and voting age alone."""
    tables = {level: exact_tables(workload, people, level) for level in LEVELS}
    if keys.race_alone:
        hidden = ~redistricting_lines(workload)
        tables = {level: LevelTables(one.codes, one.tables.without(hidden)) for level, one in tables.items()}
    return PublishedData(tables, people, None if microdata else tables["block"], keys)


@dataclass(frozen=True)
class LineErrors:
    """Errors of the lines of a level that are not 0 in truth.

    Args:
        mean: absolute error; a line that is not published is read as 0.
        race_mean: the same error in the lines of race, origin and voting age alone.
    """

    mean: float
    withheld: float
    race_mean: float


def table_errors(workload: Workload, truth: People, published: PublishedData) -> dict[str, LineErrors]:
    """Errors of published tables by level. Areas on one side only have no persons on the other."""
    race, errors = redistricting_lines(workload), {}
    for level, own in published.tables.items():
        true = exact_tables(workload, truth, level)
        every = np.union1d(true.codes, own.codes)
        counts = np.zeros((len(every), len(workload.lines)), np.int64)
        counts[np.searchsorted(every, true.codes)] = true.tables.value
        value = np.zeros_like(counts)
        value[np.searchsorted(every, own.codes)] = own.tables.value
        here, printed = counts > 0, value != NO_VALUE
        difference = np.abs(np.where(printed, value, 0) - counts)
        mean, race_mean = (
            float(difference[flags].mean()) if flags.any() else 0.0 for flags in (here, here & race)
        )
        withheld = 100 * float((~printed)[here].mean()) if here.any() else 0.0
        errors[level] = LineErrors(mean, withheld, race_mean)
    return errors
