"""CONFIDENTIAL. Records of an own schema as the attack has them: an area, quasi-identifiers and a target, and the lines of tables of these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from censafe.attack.tables import CountedLines
from censafe.errors import DataError
from censafe.model.cells.counting import level_classes
from censafe.model.cells.lines import LOWEST, CensusTable, Condition, TableLine

_Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class NamedLevels:
    """A quasi-identifier or target: an attribute, or a recode of one.

    Args:
        labels: of its levels, or of the groups of the recode.
        attribute: of the schema.
        of_level: its level for every level of the attribute, shape (levels,).
    """

    name: str
    labels: tuple[str, ...]
    attribute: str
    of_level: _Ints = field(repr=False)

    @property
    def conditions(self) -> list[tuple[str, Condition]]:
        """Label and condition of every level."""
        return [
            (label, {self.attribute: frozenset(np.flatnonzero(self.of_level == level).tolist())})
            for level, label in enumerate(self.labels)
        ]


def crossed_table(quasi: Sequence[NamedLevels], target: NamedLevels, histogram: str = "") -> CensusTable:
    """The table of quasi-identifiers by target: total, levels of the target, combinations of quasi-identifiers, and all cells.

    Example:
        >>> sex, status = (NamedLevels(name, labels, name, np.arange(2)) for name, labels in (("sex", ("female", "male")), ("status", ("well", "ill"))))
        >>> [line.label for line in crossed_table([sex], status).lines]
        ['Total', 'well', 'ill', 'female', 'male', 'female: well', 'female: ill', 'male: well', 'male: ill']
    """
    keys: list[tuple[str, Condition]] = [("", {})]
    for one in quasi:
        keys = [
            (f"{key}, {label}" if key else label, {**when, **own})
            for key, when in keys
            for label, own in one.conditions
        ]
    cells = [(f"{key}: {label}", {**when, **own}) for key, when in keys for label, own in target.conditions]
    name = " * ".join(one.name for one in (*quasi, target))
    lines = [("Total", {}), *target.conditions, *keys, *cells]
    return CensusTable(
        name, name, histogram, histogram, LOWEST[0], tuple(TableLine(label, 0, when) for label, when in lines)
    )


@dataclass(frozen=True, eq=False)
class OwnLines(CountedLines):
    """Lines of tables of an own schema. Types are combinations of classes of levels that quasi-identifiers, target and lines distinguish.

    Args:
        area: name of the level of the areas that are attacked.
        labels_of: labels of the classes of every attribute, by attribute.
        impossible: types that structural zeros rule out.

    Example:
        >>> sex, status = (NamedLevels(name, labels, name, np.arange(2)) for name, labels in (("sex", ("female", "male")), ("status", ("well", "ill"))))
        >>> lines = OwnLines.of("Grid", [sex], status, [crossed_table([sex], status)])
        >>> lines.matrix.toarray().astype(int).tolist()[1]
        [1, 0, 1, 1, 0, 0, 1, 0, 0]
    """

    quasi: tuple[NamedLevels, ...]
    target: NamedLevels
    labels_of: Mapping[str, tuple[str, ...]] = field(repr=False)
    impossible: tuple[int, ...] = ()

    @staticmethod
    def of(
        area: str,
        quasi: Sequence[NamedLevels],
        target: NamedLevels,
        tables: Sequence[CensusTable],
        levels: Mapping[str, tuple[str, ...]] | None = None,
    ) -> OwnLines:
        """Lines of some tables.

        Args:
            levels: labels of all levels of every attribute of the schema, by attribute; without, those of the named.
        """
        named = {one.attribute: one for one in (*quasi, target)}
        levels = levels or {name: one.labels for name, one in named.items()}
        conditions: dict[str, set[frozenset[int]]] = {name: set() for name in named}
        for table in tables:
            for line in table.lines:
                for name, chosen in line.when.items():
                    conditions.setdefault(name, set()).add(chosen)
        classes, labels = {}, {}
        for name, own in conditions.items():
            every = np.arange(len(levels[name]))
            group = named[name].of_level if name in named else 0 * every
            groups = (frozenset(np.flatnonzero(group == one).tolist()) for one in np.unique(group))
            members = [sorted(one) for one in level_classes([*groups, *own])]
            members.sort(key=lambda chosen: (int(group[chosen[0]]), chosen[0]))
            classes[name] = np.empty_like(every)
            for number, inside in enumerate(members):
                classes[name][inside] = number
            labels[name] = (
                named[name].labels
                if name in named and len(members) == len(named[name].labels)
                else tuple(" or ".join(levels[name][one] for one in inside) for inside in members)
            )
        return OwnLines(area, classes, tuple(tables), tuple(quasi), target, labels)

    @cached_property
    def _named_levels(self) -> tuple[_Ints, ...]:
        """Level of every quasi-identifier and of the target of every type, each of shape (types,)."""
        places = dict(
            zip(self.classes, np.unravel_index(np.arange(prod(self.shape)), self.shape), strict=True)
        )
        first = {name: np.unique(one, return_index=True)[1] for name, one in self.classes.items()}
        return tuple(
            one.of_level[first[one.attribute]][places[one.attribute]] for one in (*self.quasi, self.target)
        )

    @property
    def keys(self) -> int:
        """Combinations of quasi-identifiers."""
        return prod(len(one.labels) for one in self.quasi)

    @cached_property
    def key_of(self) -> _Ints:
        """Combination of quasi-identifiers of every type, shape (types,)."""
        shape = tuple(len(one.labels) for one in self.quasi)
        return np.ravel_multi_index(self._named_levels[:-1], shape).astype(np.int64)

    @property
    def target_of(self) -> _Ints:
        """Level of the target of every type, shape (types,)."""
        return self._named_levels[-1]

    @cached_property
    def possible(self) -> NDArray[np.bool_]:
        """Types that structural zeros leave, shape (types,)."""
        possible = np.ones(prod(self.shape), np.bool_)
        possible[list(self.impossible)] = False
        return possible

    def types(self, people: OwnRecords) -> _Ints:
        """Type of every person, shape (n,)."""
        return people.type

    @property
    def _columns(self) -> dict[str, str]:
        """Column of every attribute in files."""
        words = {one.attribute: one.name for one in (*self.quasi, self.target)}
        return {name: f"{words.get(name, name)}_level" for name in self.classes}

    def type_columns(self, types: _Ints) -> Mapping[str, Any]:
        """Labels of the quasi-identifiers, of the target and of what else lines distinguish."""
        return {
            column: np.array(self.labels_of[name])[level]
            for (name, column), level in zip(
                self._columns.items(), np.unravel_index(types, self.shape), strict=True
            )
        }

    def types_of(self, rows: pa.Table) -> _Ints:
        """Types of rows with such columns."""
        levels = []
        for name, column in self._columns.items():
            places = {label: place for place, label in enumerate(self.labels_of[name])}
            levels.append(np.array([places[text] for text in rows[column].to_pylist()], np.int64))
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
        type: of the lines.
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
        return self.lines.target_of[self.type]

    @property
    def targets(self) -> int:
        """Levels of the target."""
        return len(self.lines.target.labels)

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
        return self.block * self.lines.keys + self.lines.key_of[self.type]

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
