"""CONFIDENTIAL. Households of persons, the areas they live in, and persons after households exchanged their blocks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from censafe.attack.people import AttackedRecords
from censafe.errors import DataError

_Ints = NDArray[np.int64]
Records = TypeVar("Records", bound=AttackedRecords)


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
    def of(people: AttackedRecords) -> Households:
        """Households of persons.

        Example:
            >>> from censafe.attack.people import People
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
                f"households: {len(apart):,} households have persons in more than one area; allowed: one area a household; "
                "fix: number households uniquely over all areas"
            )
        size = np.bincount(place, minlength=len(number))
        adults = np.bincount(place[people.adult[housed]], minlength=len(number))
        return Households(number, of_person, block, size, adults)

    def alike(self, area: _Ints) -> _Ints:
        """One number for a wider area, persons and adults of every household, shape (h,); it sorts by them in this order.

        Args:
            area: around every block, shape (blocks,).
        """
        key = area[self.block]
        for column in (self.size, self.adults):
            key = key * (column.max(initial=0) + 1) + column
        return key


@dataclass(frozen=True, eq=False)
class SwappedPeople(Generic[Records]):
    """Persons after a swap, and which household took whose block.

    Args:
        partner: household whose block each household took, itself where it stayed, shape (h,).
    """

    people: Records = field(repr=False)
    households: Households = field(repr=False)
    partner: _Ints = field(repr=False)

    @staticmethod
    def of(people: Records, households: Households, partner: _Ints) -> SwappedPeople[Records]:
        """The persons after households took the blocks of their partners; persons in group quarters stay."""
        housed = households.of_person >= 0
        block = people.block.copy()
        block[housed] = households.block[partner][households.of_person[housed]]
        return SwappedPeople(people.moved(block), households, partner)

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


def rank_in_run(keys: _Ints) -> _Ints:
    """Place from 0 of every entry among the equal ones it stands with.

    Example:
        >>> rank_in_run(np.array([4, 4, 9, 4])).tolist()
        [0, 1, 0, 0]
    """
    place = np.arange(len(keys))
    starts = np.concatenate(([True], keys[1:] != keys[:-1]))[: len(keys)]
    return place - np.maximum.accumulate(np.where(starts, place, 0))
