"""CONFIDENTIAL. What a defense publishes: tables of every level with the counts that agree with them, and microdata where there are any."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from censafe.attack.defenses.named import NO_VALUE, ChangedPeople, Defense, TableAreas, TableIntervals
from censafe.attack.defenses.recoding import MergedAreas, MergedCategories
from censafe.attack.people import ADULT, AttackedRecords, People
from censafe.attack.tables import CountedLines, Workload, tabulate_lines

_Ints = NDArray[np.int64]
_SAME: Callable[[Any], Any] = lambda people: people  # noqa: E731


@dataclass(frozen=True, eq=False)
class AttackKeys:
    """What published records can be matched by. Further knowledge of a person is rewritten to what is published before matching.

    Args:
        rewritten: persons with the values that are published in place of their own; they stay in the same list of blocks.
        race_alone: whether nothing but race, origin and voting age is published, without sex and single ages.
    """

    words: str
    rewritten: Callable[[Any], Any] = field(default=_SAME, repr=False)
    race_alone: bool = False

    @staticmethod
    def of_categories(recode: MergedCategories) -> AttackKeys:
        """Ages as they are published together. Race and origin stay, since they are what is looked for."""
        ages = MergedCategories(age=recode.age)
        if np.array_equal(recode.age, MergedCategories().age):
            return FULL_KEYS
        return AttackKeys("block, sex, age as published", ages.people)

    @staticmethod
    def of_areas(areas: MergedAreas, blocks: NDArray[np.str_]) -> AttackKeys:
        """Blocks as they are published together."""
        return AttackKeys("area as published, sex, age", lambda people: areas.people(people).within(blocks))


def by_voting_age(people: People) -> People:
    """Persons as redistricting data show them: without sex, and as 0 or 18 years old for children and adults.

    Example:
        >>> one = np.ones(2, np.int64)
        >>> people = People.of(np.array(["500070001001001"] * 2), sex=one, age=np.array([17, 40]), race=one, hispanic=0 * one)
        >>> found = by_voting_age(people)
        >>> found.sex.tolist(), found.age.tolist()
        ([0, 0], [0, 18])
    """
    age = np.where(people.age >= ADULT, ADULT, 0).astype(people.age.dtype)
    return replace(people, sex=np.zeros_like(people.sex), age=age)


FULL_KEYS: Final = AttackKeys("block, sex, age")
VOTING_AGE_KEYS: Final = AttackKeys("block, voting age", by_voting_age, race_alone=True)


def redistricting_lines(workload: Workload) -> NDArray[np.bool_]:
    """Lines that distinguish neither sexes nor ages, except children from adults: those of race, origin and voting age, shape (lines,)."""
    adult = workload.space.edges.index(ADULT)
    return np.array(
        [
            bool(sex.all()) and all(len(np.unique(one)) == 1 for one in (age[:adult], age[adult:]))
            for sex, age, *_ in workload.weights
        ]
    )


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
        tables: by level, the attacked one first.
        people: microdata, or persons of whom the tables are, in blocks of their own; None for tables that belong to no records.
        attacked: tables of blocks, or of merged areas, that are reconstructed; None where microdata are attacked as they are.
    """

    tables: Mapping[str, LevelTables] = field(repr=False)
    people: AttackedRecords | None = field(default=None, repr=False)
    attacked: LevelTables | None = field(default=None, repr=False)
    keys: AttackKeys = FULL_KEYS
    claim: str = ""
    files: Mapping[str, pa.Table] = field(default_factory=dict, repr=False)


def exact_tables(workload: CountedLines, people: AttackedRecords, level: str) -> LevelTables:
    """True tables of some persons."""
    codes, area = people.areas(level)
    return LevelTables(codes, TableIntervals.exact(tabulate_lines(workload, people, area, len(codes))))


def perturbed_data(
    workload: CountedLines, truth: AttackedRecords, defense: Defense, seed: int
) -> PublishedData:
    """Tables to which a defense of tables was applied, each level by itself."""
    if defense.tables is None:
        raise ValueError("the defense is none of tables")
    tables = {}
    for level in truth.table_levels:
        codes, area = truth.areas(level)
        counts = tabulate_lines(workload, truth, area, len(codes))
        areas = TableAreas(workload.types(truth), area, workload, counts, level)
        tables[level] = LevelTables(codes, defense.tables(areas, seed))
    notes = {name: make(truth) for name, make in defense.notes.items()}
    return PublishedData(tables, attacked=tables[truth.table_levels[0]], claim=defense.claim, files=notes)


def swapped_data(
    workload: CountedLines, truth: AttackedRecords, defense: Defense, seed: int
) -> PublishedData:
    """Exact tables of swapped households."""
    if defense.swap is None:
        raise ValueError("the defense swaps no households")
    return _exact_data(workload, defense.swap(truth, seed), defense)


def changed_data(workload: Workload, truth: People, defense: Defense, seed: int) -> PublishedData:
    """Exact tables of swapped households or of merged blocks; a block that is published with others has no tables of its own."""
    if defense.change is None:
        raise ValueError("the defense changes no persons")
    changed = defense.change(truth, seed)
    published = _exact_data(workload, changed, defense)
    if changed.areas is None:
        return published
    merged = published.tables["block"]
    alone = np.bincount(changed.areas.area)[changed.areas.area] == 1
    own = exact_tables(workload, truth, "block")
    tables = {level: exact_tables(workload, truth, level) for level in truth.table_levels} | {
        "block": LevelTables(own.codes, own.tables.without(~alone[:, None]))
    }
    keys = AttackKeys.of_areas(changed.areas, truth.blocks)
    return replace(published, tables=tables, attacked=merged, keys=keys)


def _exact_data(workload: CountedLines, changed: ChangedPeople[Any], defense: Defense) -> PublishedData:
    """Exact tables of changed persons."""
    people = changed.people
    tables = {level: exact_tables(workload, people, level) for level in people.table_levels}
    attacked = tables[people.table_levels[0]]
    claim = changed.claim or defense.claim
    return PublishedData(tables, people, attacked, claim=claim, files=changed.files)


def data_of_people(
    workload: CountedLines,
    people: AttackedRecords,
    keys: AttackKeys = FULL_KEYS,
    *,
    microdata: bool,
    hidden: NDArray[np.bool_] | None = None,
) -> PublishedData:
    """Exact tables of persons.

    Args:
        hidden: lines that are not published, shape (lines,); None for none.
    """
    tables = {level: exact_tables(workload, people, level) for level in people.table_levels}
    if hidden is not None:
        tables = {level: LevelTables(one.codes, one.tables.without(hidden)) for level, one in tables.items()}
    return PublishedData(tables, people, None if microdata else tables[people.table_levels[0]], keys)


@dataclass(frozen=True)
class LineErrors:
    """Errors of the lines of a level that are not 0 in truth.

    Args:
        mean: absolute error; a line that is not published is read as 0.
        race_mean: the same error in the lines of race, origin and voting age alone; None where this was not requested.
    """

    mean: float
    withheld: float
    race_mean: float | None = None


def table_errors(
    workload: CountedLines,
    truth: AttackedRecords,
    published: PublishedData,
    race: NDArray[np.bool_] | None = None,
) -> dict[str, LineErrors]:
    """Errors of published tables by level. Areas on one side only have no persons on the other.

    Args:
        race: lines of race, origin and voting age, shape (lines,); None without errors of these.
    """
    errors = {}
    for level, own in published.tables.items():
        true = exact_tables(workload, truth, level)
        every = np.union1d(true.codes, own.codes)
        counts = np.zeros((len(every), len(workload.names)), np.int64)
        counts[np.searchsorted(every, true.codes)] = true.tables.value
        value = np.zeros_like(counts)
        value[np.searchsorted(every, own.codes)] = own.tables.value
        here, printed = counts > 0, value != NO_VALUE
        difference = np.abs(np.where(printed, value, 0) - counts)
        mean, race_mean = (
            None if flags is None else float(difference[flags].mean()) if flags.any() else 0.0
            for flags in (here, None if race is None else here & race)
        )
        withheld = 100 * float((~printed)[here].mean()) if here.any() else 0.0
        errors[level] = LineErrors(mean or 0.0, withheld, race_mean)
    return errors
