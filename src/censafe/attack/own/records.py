"""CONFIDENTIAL. Records of an own schema as the attack has them: an area, quasi-identifiers and a target, and the lines of the table of these."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.sparse import csr_array

from censafe.errors import DataError

_Ints = NDArray[np.int64]


@dataclass(frozen=True)
class NamedLevels:
    """An attribute, or a recode of one, with the labels of its levels."""

    name: str
    labels: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class OwnLines:
    """Lines of the table of quasi-identifiers by target: total, levels of the target, combinations of quasi-identifiers, and all cells.

    Args:
        area: name of the level of the areas that are attacked.
        impossible: types that structural zeros rule out.

    Example:
        >>> lines = OwnLines("Grid", (NamedLevels("sex", ("female", "male")),), NamedLevels("status", ("well", "ill")))
        >>> lines.labels
        ('Total', 'well', 'ill', 'female', 'male', 'female: well', 'female: ill', 'male: well', 'male: ill')
        >>> lines.matrix.toarray().astype(int).tolist()[1]
        [1, 0, 1, 1, 0, 0, 1, 0, 0]
    """

    area: str
    quasi: tuple[NamedLevels, ...]
    target: NamedLevels
    impossible: tuple[int, ...] = ()

    @property
    def shape(self) -> tuple[int, ...]:
        """Levels of the quasi-identifiers and of the target."""
        return tuple(len(one.labels) for one in (*self.quasi, self.target))

    @property
    def keys(self) -> int:
        """Combinations of quasi-identifiers."""
        return prod(self.shape[:-1])

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Whom every line counts."""
        keys = [""]
        for one in self.quasi:
            keys = [f"{key}, {label}" if key else label for key in keys for label in one.labels]
        cells = [f"{key}: {label}" for key in keys for label in self.target.labels]
        return ("Total", *self.target.labels, *keys, *cells)

    @property
    def names(self) -> tuple[str, ...]:
        """Table of every line: there is one."""
        return (" * ".join(one.name for one in (*self.quasi, self.target)),) * len(self.labels)

    @property
    def numbers(self) -> tuple[int, ...]:
        """Number of every line."""
        return tuple(range(1, len(self.labels) + 1))

    @cached_property
    def matrix(self) -> csr_array:
        """Lines that count a person of each type, sparse, shape (types, lines)."""
        types, targets = self.keys * self.shape[-1], self.shape[-1]
        number = np.arange(types)
        margins = (0 * number, 1 + number % targets, 1 + targets + number // targets)
        line = np.stack([*margins, 1 + targets + self.keys + number])
        shape = (types, len(self.labels))
        return csr_array((np.ones(line.size), (np.tile(number, len(line)), line.ravel())), shape=shape)

    @cached_property
    def possible(self) -> NDArray[np.bool_]:
        """Types that structural zeros leave, shape (types,)."""
        possible = np.ones(prod(self.shape), np.bool_)
        possible[list(self.impossible)] = False
        return possible

    def types(self, people: OwnRecords) -> _Ints:
        """Type of every person, shape (n,)."""
        return people.type

    def type_columns(self, types: _Ints) -> Mapping[str, Any]:
        """Labels of the quasi-identifiers and of the target."""
        levels = np.unravel_index(types, self.shape)
        return {
            f"{one.name}_level": np.array(one.labels)[level]
            for one, level in zip((*self.quasi, self.target), levels, strict=True)
        }

    def types_of(self, rows: pa.Table) -> _Ints:
        """Types of rows with such columns."""
        levels = []
        for one in (*self.quasi, self.target):
            places = {label: place for place, label in enumerate(one.labels)}
            texts = rows[f"{one.name}_level"].to_pylist()
            levels.append(np.array([places[text] for text in texts], np.int64))
        return np.ravel_multi_index(tuple(levels), self.shape).astype(np.int64)


@dataclass(frozen=True, eq=False)
class OwnAreas:
    """The areas of the attacked level and of those above it.

    Args:
        levels: names, the attacked one first, the root last.
        codes: of the areas of every level, rising, by name.
        place: area of each level around every attacked area, by name, shape (areas,).
        geocodes: of the attacked areas in a release, shape (areas,).
    """

    levels: tuple[str, ...]
    codes: Mapping[str, NDArray[np.str_]] = field(repr=False)
    place: Mapping[str, _Ints] = field(repr=False)
    geocodes: NDArray[np.str_] = field(repr=False)

    @property
    def near(self) -> tuple[str, str, str]:
        """The three levels above, from near to far; the last one again where there are fewer."""
        first, second, third = (*self.levels[1:4], *self.levels[-1:] * 3)[:3]
        return first, second, third


@dataclass(frozen=True, eq=False)
class OwnRecords:
    """Records of persons; every array has one entry a person.

    Args:
        block: attacked area, a place in ``blocks``.
        type: quasi-identifiers and target as one number; the target changes fastest.
        household: numbered from 0; -1 where a person is in none or in quarters.
    """

    lines: OwnLines
    geography: OwnAreas
    block: _Ints = field(repr=False)
    type: _Ints = field(repr=False)
    household: _Ints = field(repr=False)

    def __len__(self) -> int:
        return len(self.block)

    @property
    def blocks(self) -> NDArray[np.str_]:
        """Codes of the attacked areas."""
        return self.geography.codes[self.lines.area]

    @property
    def person(self) -> _Ints:
        """No identifiers: every record can be looked for."""
        return np.full(len(self), -1, np.int64)

    @property
    def adult(self) -> NDArray[np.bool_]:
        """Nobody: households are alike in their number of persons alone."""
        return np.zeros(len(self), np.bool_)

    @property
    def target(self) -> _Ints:
        """Level of the target."""
        return self.type % self.targets

    @property
    def targets(self) -> int:
        """Levels of the target."""
        return self.lines.shape[-1]

    @property
    def population(self) -> _Ints:
        """Persons of every area."""
        return np.bincount(self.block, minlength=len(self.blocks))

    @property
    def wider(self) -> _Ints:
        """Area of the level above of every area."""
        return self.around(self.geography.near[0])

    @property
    def within_levels(self) -> tuple[str, str, str]:
        """Levels within which households exchange their areas, from near to far."""
        return self.geography.near

    @property
    def table_levels(self) -> tuple[str, ...]:
        """The attacked level and those above it."""
        return self.geography.levels

    def keys(self, *, binned: bool) -> _Ints:
        """Area and quasi-identifiers as one number; there are no coarser ones."""
        return self.block * self.lines.keys + self.type // self.targets

    def around(self, level: str) -> _Ints:
        """Area of a level around every area."""
        return self.geography.place[level]

    def areas(self, level: str) -> tuple[NDArray[np.str_], _Ints]:
        """Codes of all areas of a level, and the area of every person."""
        return self.geography.codes[level], self.geography.place[level][self.block]

    def take(self, chosen: NDArray[Any]) -> Self:
        """Some of the persons, by places or flags."""
        return replace(
            self, block=self.block[chosen], type=self.type[chosen], household=self.household[chosen]
        )

    def moved(self, block: _Ints) -> Self:
        """The same persons in other areas."""
        return replace(self, block=block)

    def within(self, blocks: NDArray[np.str_]) -> Self:
        """The same persons: all records of one geography have the same list of areas."""
        if not np.array_equal(blocks, self.blocks):
            raise ValueError("records of another list of areas")
        return self

    def frame(self) -> pa.Table:
        """A row a person: area and labels, and the number of the household where there are households."""
        columns = {self.lines.area: self.blocks[self.block], **self.lines.type_columns(self.type)}
        if (self.household >= 0).any():
            columns["household"] = pa.array(self.household, pa.int64(), mask=self.household < 0)
        return pa.table(columns)

    def of_counts(self, area: _Ints, types: _Ints, counts: NDArray[np.integer]) -> OwnRecords:
        """As many records of other data as counts say, in the same areas.

        Args:
            area: places of the areas of the counts.
            types: of the counts.
        """
        rows = np.repeat(np.arange(len(types)), counts)
        none = np.full(len(rows), -1, np.int64)
        return replace(self, block=area[rows], type=types[rows], household=none)

    def places(self, codes: NDArray[np.str_]) -> _Ints:
        """Places of areas by code."""
        place = np.minimum(np.searchsorted(self.blocks, codes), len(self.blocks) - 1)
        unknown = int((self.blocks[place] != codes).sum())
        if unknown:
            raise DataError(
                f"{unknown:,} areas of the published tables are no {self.lines.area} of the records; fix: give tables of the same areas"
            )
        return place.astype(np.int64)
