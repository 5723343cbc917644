"""CONFIDENTIAL. Coarse categories and areas: top codes, bands of age, groups of races, and areas of a least population."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from censafe.attack.people import AGE_BINS, OLDEST, RACES, People, area_of_blocks
from censafe.errors import ConfigError

_Ints = NDArray[np.int64]
_AGES: Final[_Ints] = np.arange(OLDEST + 1)
_MULTIPLE: Final = 6
"""First of the sets of two or more races, which stands for all of them."""


@dataclass(frozen=True, eq=False)
class MergedCategories:
    """Categories that are published as one; each is written as one of its members.

    Args:
        age: youngest age published together with each age, shape (111,).
        race: set of races written for each set, shape (63,).
    """

    age: _Ints = field(default_factory=_AGES.copy, repr=False)
    race: _Ints = field(default_factory=lambda: np.arange(RACES), repr=False)

    def people(self, people: People) -> People:
        """Persons with the recoded categories."""
        return replace(
            people,
            age=self.age[people.age].astype(people.age.dtype),
            race=self.race[people.race].astype(people.race.dtype),
        )

    def rows(self, edges: tuple[int, ...]) -> _Ints:
        """Type of person that is written for each type, so that the tables of the recoded persons are rows on the types there were.

        Types are sex, class of age, set of races and origin; the last changes fastest.
        """
        starts = np.asarray(edges)
        written = np.searchsorted(starts, self.age, side="right") - 1  # class written for each age
        own = np.searchsorted(starts, _AGES, side="right") - 1
        of_class = written[starts]
        if (of_class[own] != written).any():
            raise ConfigError(
                "the recode tells ages apart that the types of persons do not; allowed: the lower ends of classes of age, such as 75 or bands of 5 years "
                "and more; fix: choose such an age"
            )
        shape = (2, len(edges), RACES, 2)
        sex, age, race, hispanic = np.unravel_index(np.arange(int(np.prod(shape))), shape)
        return np.ravel_multi_index((sex, of_class[age], self.race[race], hispanic), shape)


def top_code(age: int) -> MergedCategories:
    """Ages from one on are published together.

    Example:
        >>> top_code(75).age[[74, 75, 90]].tolist()
        [74, 75, 75]
    """
    if not 1 <= age <= OLDEST:
        raise ConfigError(f"a top code must be an age of 1 to {OLDEST} years, not {age}")
    return MergedCategories(age=np.minimum(_AGES, age))


def age_bands(years: int) -> MergedCategories:
    """Ages are published in bands of some years; the band of the age 85 holds all older persons.

    Example:
        >>> age_bands(10).age[[9, 10, 29]].tolist()
        [0, 10, 20]
    """
    if not 2 <= years <= OLDEST:
        raise ConfigError(f"bands of age must have 2 to {OLDEST} years, not {years}")
    return MergedCategories(age=np.minimum(_AGES, AGE_BINS[-1]) // years * years)


_ALONE: Final[_Ints] = np.minimum(np.arange(RACES), _MULTIPLE)
RACE_GROUPS: Final[Mapping[int, _Ints]] = {
    7: _ALONE,
    3: np.where(_ALONE <= 1, _ALONE, _MULTIPLE),
    2: np.where(_ALONE == 0, 0, _MULTIPLE),
}
"""Set of races written for each of the 63: seven groups (six alone, two or more), three (White alone, Black alone, other) or two (White alone, other)."""


def grouped_races(groups: int) -> MergedCategories:
    """Races are published in few groups.

    Example:
        >>> grouped_races(3).race[[0, 1, 2, 62]].tolist()
        [0, 1, 6, 6]
    """
    if groups not in RACE_GROUPS:
        raise ConfigError(
            f"there is no grouping of races into {groups}; allowed: 7 (six alone, two or more), 3 (White alone, Black alone, other), 2 (White alone, other)"
        )
    return MergedCategories(race=RACE_GROUPS[groups])


@dataclass(frozen=True, eq=False)
class MergedAreas:
    """Blocks published together.

    Args:
        blocks: codes of all blocks there were, rising, shape (blocks,).
        codes: of the published areas, each that of its first block, rising, shape (areas,).
        area: place of the area of each block, shape (blocks,).
    """

    blocks: NDArray[np.str_] = field(repr=False)
    codes: NDArray[np.str_] = field(repr=False)
    area: _Ints = field(repr=False)

    def frame(self) -> pa.Table:
        """A row a block: the code of the area with which it is published."""
        return pa.table({"block": self.blocks, "area": self.codes[self.area]})

    def people(self, people: People) -> People:
        """Persons in published areas, also those of an attacker's file."""
        place = np.minimum(np.searchsorted(self.blocks, people.blocks), len(self.blocks) - 1)
        inside = (self.blocks[place] == people.blocks)[people.block]
        within = people.take(inside)
        return replace(within, blocks=self.codes, block=self.area[place[within.block]])


def merge_small_areas(people: People, least: int) -> MergedAreas:
    """Blocks are joined with those after them in their tract until each area has enough persons, then small tracts in their county.

    What is left at the end of a tract or county joins the area before it. A county with too few persons stays below the threshold as one area.
    """
    if least < 1:
        raise ConfigError(f"the least population of an area must be at least 1, not {least}")
    area = np.arange(len(people.blocks))
    for level in ("tract", "county"):
        first = np.unique(area, return_index=True)[1]
        population = np.bincount(area, weights=people.population, minlength=len(first)).astype(np.int64)
        around = area_of_blocks(people.blocks, level)[first]
        area = _joined(population, around, least)[area]
    first = np.unique(area, return_index=True)[1]
    return MergedAreas(people.blocks, people.blocks[first], area)


def _joined(population: _Ints, around: _Ints, least: int) -> _Ints:
    """Number of the group of every area: neighbors within an area around them, each group with enough persons where it can."""
    group, number, persons, opened = [], -1, 0, -1
    for persons_of_area, outer in zip(population.tolist(), around.tolist(), strict=True):
        if outer != opened:
            opened, persons = outer, 0
            number += 1
        elif persons >= least:
            persons = 0
            number += 1
        persons += persons_of_area
        group.append(number)
    group_of = np.array(group, np.int64)
    persons_of_group = np.bincount(group_of, weights=population)
    outer = around[np.flatnonzero(np.diff(group_of, prepend=-1))]
    joins = (persons_of_group < least) & (
        np.diff(outer, prepend=-1) == 0
    )  # the last one, too small, joins the one before
    return (np.cumsum(~joins) - 1)[group_of]
