"""CONFIDENTIAL. Persons as the attack has them: block, sex, age, race and Hispanic origin, with an identifier and a household where these are known."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any, Final, Protocol, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from censafe.errors import DataError

RACE_LETTERS: Final = ("White", "Black", "AIAN", "Asian", "NHPI", "SOR")
"""The six races: White, Black or African American, American Indian and Alaska Native, Asian, Native Hawaiian and Other Pacific Islander, some other race."""
RACE_BITS: Final[NDArray[np.bool_]] = np.array(
    sorted(
        ([bool(number >> bit & 1) for bit in range(6)] for number in range(1, 64)),
        key=lambda bits: (sum(bits), [-bit for bit in bits]),
    )
)
"""Which of the six races each of the 63 sets holds, in the order of table P8; shape (63, 6)."""
RACES: Final = len(RACE_BITS)
RACE_ORIGINS: Final = 2 * RACES
AGE_BINS: Final[NDArray[np.int64]] = np.array(
    [*range(23), 25, 30, 35, 40, 45, 50, 55, 60, 62, 65, 67, 70, 75, 80, 85]
)
"""Lower edges of the 38 classes of age that the tables of a block tell apart: single years below 20, then those of P12."""
OLDEST: Final = 110
"""The greatest age; in the tables of the Summary File, 110 and over. Records of the DHC, whose ages go to 115, are read with 110 for these."""
ADULT: Final = 18
BLOCK_DIGITS: Final = 15
AREA_DIGITS: Final = {"state": 2, "county": 5, "tract": 11, "block group": 12}
"""Digits of a block's code that name the area around it."""
TABLE_LEVELS: Final = {"block": 15, "tract": 11, "county": 5}
"""Levels of which tables are published, with the digits of their codes."""
SIZE_EDGES: Final = (9, 49, 99, 249, 499, 999)
SIZE_CLASSES: Final = ("1-9", "10-49", "50-99", "100-249", "250-499", "500-999", "1000+")
"""Classes of the population of a block."""


def block_size_class(population: NDArray[np.integer]) -> NDArray[np.int64]:
    """Class of size of each block, a place in ``SIZE_CLASSES``.

    Example:
        >>> [SIZE_CLASSES[one] for one in block_size_class(np.array([1, 9, 10, 1000]))]
        ['1-9', '1-9', '10-49', '1000+']
    """
    return np.searchsorted(SIZE_EDGES, population, side="left")


def area_of_blocks(blocks: NDArray[np.str_], level: str) -> NDArray[np.int64]:
    """Area of every block, numbered from 0 in the order of the codes.

    Args:
        blocks: 15-digit codes, rising, shape (blocks,).

    Example:
        >>> area_of_blocks(np.array(["500070001001001", "500070001001002", "500090001001001"]), "county").tolist()
        [0, 0, 1]
    """
    prefix = blocks.astype(f"U{AREA_DIGITS[level]}")
    return np.cumsum(np.concatenate(([False], prefix[1:] != prefix[:-1])), dtype=np.int64)[: len(blocks)]


class AttackedRecords(Protocol):
    """Records that can be attacked: each has an area, quasi-identifiers and a target. "Blocks" are the areas that the attacker knows, whatever they are."""

    @property
    def targets(self) -> int:
        """How many values the target has."""

    @property
    def within_levels(self) -> tuple[str, str, str]:
        """Levels within which households exchange their areas, from near to far."""

    @property
    def blocks(self) -> NDArray[np.str_]:
        """Codes of the areas, rising, shape (blocks,)."""

    @property
    def block(self) -> NDArray[np.int64]:
        """Area of every person, shape (n,)."""

    @property
    def person(self) -> NDArray[np.int64]:
        """Identifier, -1 where there is none, shape (n,)."""

    @property
    def household(self) -> NDArray[np.int64]:
        """Household, -1 for who is in none, shape (n,)."""

    @property
    def adult(self) -> NDArray[np.bool_]:
        """Whom households with as many of them are alike in, besides all persons, shape (n,)."""

    @property
    def target(self) -> NDArray[np.int64]:
        """What the attacker looks for, from 0, shape (n,)."""

    @property
    def population(self) -> NDArray[np.int64]:
        """Persons of every area, shape (blocks,)."""

    @property
    def wider(self) -> NDArray[np.int64]:
        """The next wider area of every area, from which guesses are made where it is empty, shape (blocks,)."""

    def __len__(self) -> int: ...

    def keys(self, *, binned: bool) -> NDArray[np.int64]:
        """Area and quasi-identifiers of every person as one number, or coarser ones, shape (n,)."""

    def around(self, level: str) -> NDArray[np.int64]:
        """Area of a level around every area, shape (blocks,)."""

    @property
    def table_levels(self) -> tuple[str, ...]:
        """Levels of which tables are published, the attacked one first."""

    def areas(self, level: str) -> tuple[NDArray[np.str_], NDArray[np.int64]]:
        """Codes of the areas of a level that have persons or are listed, rising, and the area of every person."""

    def frame(self) -> pa.Table:
        """The records as they are written."""

    def take(self, chosen: NDArray[Any]) -> Self:
        """Some of the persons."""

    def within(self, blocks: NDArray[np.str_]) -> Self:
        """The persons of some areas."""

    def moved(self, block: NDArray[np.int64]) -> Self:
        """The same persons in other areas."""


@dataclass(frozen=True, eq=False)
class People:
    """Records of persons; every array but the first has one entry a person.

    Args:
        blocks: 15-digit codes of the blocks, rising, without repetition; text, shape (blocks,).
        block: place of the person's block in these; int64, shape (n,).
        sex: 0 male, 1 female; int8, shape (n,).
        age: in years, 0 to 110; int16, shape (n,).
        race: set of races in the order of ``RACE_BITS``, 0 to 62; int8, shape (n,).
        hispanic: 0 or 1; int8, shape (n,).
        person: identifier, -1 where there is none; int64, shape (n,).
        household: number of the household, -1 for persons in group quarters and where households are not known; int64, shape (n,).
    """

    blocks: NDArray[np.str_] = field(repr=False)
    block: NDArray[np.int64] = field(repr=False)
    sex: NDArray[np.int8] = field(repr=False)
    age: NDArray[np.int16] = field(repr=False)
    race: NDArray[np.int8] = field(repr=False)
    hispanic: NDArray[np.int8] = field(repr=False)
    person: NDArray[np.int64] = field(repr=False)
    household: NDArray[np.int64] = field(repr=False)

    def __post_init__(self) -> None:
        columns = self._columns()
        if len({len(column) for column in columns.values()}) > 1:
            raise ValueError("every column must have one entry a person")
        _require_blocks(self.blocks)
        for name, most, allowed in (("block", len(self.blocks) - 1, "a block of the list"), *_RANGES):
            outside = int(((columns[name] < 0) | (columns[name] > most)).sum())
            if outside:
                raise DataError(
                    f"{name}: {outside:,} persons have a value out of range; allowed: {allowed}; fix: correct or leave out these records"
                )

    def __len__(self) -> int:
        return len(self.block)

    def _columns(self) -> dict[str, NDArray[Any]]:
        """All arrays but the codes of the blocks."""
        return {column.name: getattr(self, column.name) for column in fields(self)[1:]}

    @staticmethod
    def of(blocks: NDArray[np.str_], **columns: NDArray[Any]) -> People:
        """People from one code of a block a person.

        Args:
            blocks: 15-digit code of every person's block, shape (n,).

        Example:
            >>> one = np.ones(2, np.int8)
            >>> people = People.of(np.array(["500070001001002", "500070001001001"]), sex=one, age=30 * one, race=0 * one, hispanic=0 * one)
            >>> len(people), people.blocks.tolist(), people.block.tolist()
            (2, ['500070001001001', '500070001001002'], [1, 0])
        """
        codes, block = np.unique(blocks, return_inverse=True)
        none = np.full(len(blocks), -1, np.int64)
        columns = {"person": none, "household": none, **columns}
        return People(
            codes,
            block.ravel().astype(np.int64),
            **{name: np.asarray(columns[name]).astype(kind) for name, kind in _KINDS.items()},
        )

    @staticmethod
    def empty() -> People:
        """No persons in no blocks."""
        none = np.zeros(0, np.int64)
        return People.of(np.zeros(0, f"U{BLOCK_DIGITS}"), sex=none, age=none, race=none, hispanic=none)

    def take(self, chosen: NDArray[Any]) -> Self:
        """Some of the persons, by places or flags, in the same blocks."""
        return type(self)(self.blocks, *(column[chosen] for column in self._columns().values()))

    def within(self, blocks: NDArray[np.str_]) -> Self:
        """The persons of some blocks, which are then all the blocks there are."""
        place = np.minimum(np.searchsorted(blocks, self.blocks), len(blocks) - 1)
        here = blocks[place] == self.blocks
        chosen = here[self.block]
        columns = {name: column[chosen] for name, column in self._columns().items()}
        return type(self)(blocks, **columns | {"block": place[columns["block"]].astype(np.int64)})

    @property
    def targets(self) -> int:
        """How many values race and origin have."""
        return RACE_ORIGINS

    @property
    def within_levels(self) -> tuple[str, str, str]:
        """Levels within which households exchange their blocks."""
        return "tract", "county", "state"

    def moved(self, block: NDArray[np.int64]) -> Self:
        """The same persons in other blocks."""
        return replace(self, block=block)

    def around(self, level: str) -> NDArray[np.int64]:
        """Area of a level around every block, shape (blocks,)."""
        return area_of_blocks(self.blocks, level)

    @property
    def table_levels(self) -> tuple[str, ...]:
        """Levels of which tables are published."""
        return tuple(TABLE_LEVELS)

    def areas(self, level: str) -> tuple[NDArray[np.str_], NDArray[np.int64]]:
        """Codes of the areas of a level, and the area of every person."""
        codes, place = np.unique(self.blocks.astype(f"U{TABLE_LEVELS[level]}"), return_inverse=True)
        return codes, place.ravel().astype(np.int64)[self.block]

    def frame(self) -> pa.Table:
        """Persons in the columns that the attack reads; identifiers where there are any."""
        columns: dict[str, Any] = {
            "block": self.blocks[self.block],
            "sex": self.sex + 1,
            "age": self.age,
            "race": self.race + 1,
            "hispanic": self.hispanic,
        }
        for name, own in (("person_id", self.person), ("household_id", self.household)):
            if (own >= 0).any():
                columns[name] = pa.array(own, pa.int64(), mask=own < 0)
        return pa.table(columns)

    @property
    def wider(self) -> NDArray[np.int64]:
        """Block group of every block, shape (blocks,)."""
        return self.around("block group")

    @property
    def adult(self) -> NDArray[np.bool_]:
        """Who is 18 or over, shape (n,)."""
        return self.age >= ADULT

    @property
    def population(self) -> NDArray[np.int64]:
        """Persons of every block, shape (blocks,)."""
        return np.bincount(self.block, minlength=len(self.blocks))

    @property
    def age_bin(self) -> NDArray[np.int64]:
        """Class of age of every person, a place in ``AGE_BINS``."""
        return np.searchsorted(AGE_BINS, self.age, side="right") - 1

    def keys(self, *, binned: bool) -> NDArray[np.int64]:
        """Block, sex and class of age, or single year of age, of every person as one number."""
        age, ages = (self.age_bin, len(AGE_BINS)) if binned else (self.age.astype(np.int64), OLDEST + 1)
        return (self.block * 2 + self.sex) * ages + age

    @property
    def target(self) -> NDArray[np.int64]:
        """Race and origin of every person as one number, twice the race and one for Hispanic; 0 to 125."""
        return self.race.astype(np.int64) * 2 + self.hispanic


_KINDS: Final = {
    "sex": np.int8, "age": np.int16, "race": np.int8, "hispanic": np.int8, "person": np.int64, "household": np.int64,
}  # fmt: skip
_RANGES: Final = (
    ("sex", 1, "male and female"),
    ("age", OLDEST, f"0 to {OLDEST} years"),
    ("race", RACES - 1, "the 63 sets of the six races"),
    ("hispanic", 1, "no and yes"),
)


def _require_blocks(codes: NDArray[np.str_]) -> None:
    if not len(codes):
        return
    wrong = np.char.str_len(codes) != BLOCK_DIGITS
    if wrong.any() or not np.char.isdigit(codes).all():
        raise DataError(
            f"{int((wrong | ~np.char.isdigit(codes)).sum()):,} codes of blocks do not have {BLOCK_DIGITS} digits, which a lost leading zero does; allowed: "
            "state, county, tract and block as text; fix: write the codes as text with their zeros"
        )
    if (codes[1:] <= codes[:-1]).any():
        raise DataError("codes of blocks must rise, each once; fix: make people with `People.of`")
