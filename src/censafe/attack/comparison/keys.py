"""CONFIDENTIAL. What an attacker's records can be matched by in published data: block, sex and age, or as much of these as the data have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from censafe.attack.defenses.recoding import MergedAreas, MergedCategories
from censafe.attack.people import ADULT, People
from censafe.attack.tables import Workload

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
