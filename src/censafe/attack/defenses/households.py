"""CONFIDENTIAL. Households of persons, the areas they live in, and persons after households exchanged their blocks."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from censafe.attack.people import People
from censafe.errors import DataError

ADULT: Final = 18
AREA_DIGITS: Final = {"state": 2, "county": 5, "tract": 11, "block group": 12}
"""Digits of a block's code that name the area around it."""
_Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Households:
    """Households in the order of their numbers, so that the order of the persons does not matter.

    Args:
        number: as in ``People.household``, rising, shape (h,).
        of_person: place of every person's household, -1 in group quarters, shape (n,).
        block: place of the block in ``People.blocks``, shape (h,).
        size: persons, shape (h,).
        adults: persons of 18 and over, shape (h,).
    """

    number: _Ints = field(repr=False)
    of_person: _Ints = field(repr=False)
    block: _Ints = field(repr=False)
    size: _Ints = field(repr=False)
    adults: _Ints = field(repr=False)

    def __len__(self) -> int:
        return len(self.number)

    @staticmethod
    def of(people: People) -> Households:
        """Households of persons.

        Example:
            >>> one = np.ones(3, np.int64)
            >>> home = np.array(["500070001001001"] * 3)
            >>> people = People.of(home, sex=one, age=np.array([40, 9, 20]), race=one, hispanic=0 * one, household=np.array([7, 7, -1]))
            >>> found = Households.of(people)
            >>> found.size.tolist(), found.adults.tolist(), found.of_person.tolist()
            ([2], [1], [0, 0, -1])
        """
        housed = np.flatnonzero(people.household >= 0)
        if not len(housed) and len(people):
            raise DataError(
                "swapping needs households, and no person has one; allowed: a column household_id, empty for persons in group quarters; "
                "fix: give a file with households, or choose a defense of tables"
            )
        number, first, place = np.unique(people.household[housed], return_index=True, return_inverse=True)
        of_person = np.full(len(people), -1, np.int64)
        of_person[housed] = place
        block = people.block[housed[first]]
        apart = np.unique(place[people.block[housed] != block[place]])
        if len(apart):
            raise DataError(
                f"household_id: {len(apart):,} households have persons in more than one block; allowed: one block a household; "
                "fix: number households uniquely over all blocks"
            )
        size = np.bincount(place, minlength=len(number))
        adults = np.bincount(place[people.age[housed] >= ADULT], minlength=len(number))
        return Households(number, of_person, block, size, adults)

    def alike(self, blocks: NDArray[np.str_], level: str) -> _Ints:
        """One number for the area of a level, persons and adults of every household, shape (h,); it sorts by them in this order."""
        key = area_of_blocks(blocks, level)[self.block]
        for column in (self.size, self.adults):
            key = key * (column.max(initial=0) + 1) + column
        return key


@dataclass(frozen=True, eq=False)
class SwappedPeople:
    """Persons after a swap, and which household took whose block.

    Args:
        partner: household whose block each household took, itself where it stayed, shape (h,).
    """

    people: People = field(repr=False)
    households: Households = field(repr=False)
    partner: _Ints = field(repr=False)

    @staticmethod
    def of(people: People, households: Households, partner: _Ints) -> SwappedPeople:
        """The persons after households took the blocks of their partners; persons in group quarters stay."""
        housed = households.of_person >= 0
        block = people.block.copy()
        block[housed] = households.block[partner][households.of_person[housed]]
        return SwappedPeople(replace(people, block=block), households, partner)

    @property
    def swapped(self) -> NDArray[np.bool_]:
        """Households with another household as their partner, shape (h,)."""
        return self.partner != np.arange(len(self.partner))

    def pairs(self) -> pa.Table:
        """A row for each household that took the block of another: both households, their blocks before, persons and adults."""
        first = np.flatnonzero(self.swapped)
        two, households = self.partner[first], self.households
        blocks = self.people.blocks
        return pa.table(
            {
                "household": households.number[first],
                "partner": households.number[two],
                "block": blocks[households.block[first]],
                "block_taken": blocks[households.block[two]],
                "persons": households.size[first],
                "partner_persons": households.size[two],
                "adults": households.adults[first],
                "partner_adults": households.adults[two],
            }
        )


def area_of_blocks(blocks: NDArray[np.str_], level: str) -> _Ints:
    """Area of every block, numbered from 0 in the order of the codes.

    Args:
        blocks: 15-digit codes, rising, shape (blocks,).

    Example:
        >>> area_of_blocks(np.array(["500070001001001", "500070001001002", "500090001001001"]), "county").tolist()
        [0, 0, 1]
    """
    prefix = blocks.astype(f"U{AREA_DIGITS[level]}")
    return np.cumsum(np.concatenate(([False], prefix[1:] != prefix[:-1])), dtype=np.int64)[: len(blocks)]


def rank_in_run(keys: _Ints) -> _Ints:
    """Place from 0 of every entry among the equal ones it stands with.

    Example:
        >>> rank_in_run(np.array([4, 4, 9, 4])).tolist()
        [0, 1, 0, 0]
    """
    place = np.arange(len(keys))
    starts = np.concatenate(([True], keys[1:] != keys[:-1]))[: len(keys)]
    return place - np.maximum.accumulate(np.where(starts, place, 0))
