"""Histogram schemas, and the queries that sum their cells: marginals, coarsened or not."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

_TOTAL = "total"
_DETAILED = "detailed"


@dataclass(frozen=True)
class Attribute:
    """One attribute of a histogram: its levels are 0 .. levels - 1."""

    name: str
    levels: int

    def __post_init__(self) -> None:
        if not self.name or self.name in (_TOTAL, _DETAILED) or "*" in self.name:
            raise ValueError(f"{self.name!r} cannot name an attribute")
        if self.levels < 1:
            raise ValueError(f"attribute {self.name} must have at least one level")


@dataclass(frozen=True)
class Schema:
    """The attributes of a histogram in flattening order: C order, the last attribute changes fastest.

    Example:
        >>> schema = Schema("pair", (Attribute("adult", 2), Attribute("race", 3)))
        >>> schema.cells, schema.shape
        (6, (2, 3))
    """

    name: str
    attributes: tuple[Attribute, ...]

    def __post_init__(self) -> None:
        if not self.attributes:
            raise ValueError(f"schema {self.name} needs at least one attribute")
        if len(set(self.names)) != len(self.names):
            raise ValueError(f"schema {self.name} repeats an attribute")

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the attributes."""
        return tuple(attribute.name for attribute in self.attributes)

    @property
    def shape(self) -> tuple[int, ...]:
        """Levels of every attribute."""
        return tuple(attribute.levels for attribute in self.attributes)

    @property
    def cells(self) -> int:
        """Number of cells."""
        return math.prod(self.shape)

    def position(self, name: str) -> int:
        """Place of the attribute called ``name``; KeyError when there is none."""
        if name not in self.names:
            raise KeyError(name)
        return self.names.index(name)

    def cells_in(self, when: Mapping[str, Collection[int]]) -> NDArray[np.bool_]:
        """Which cells have levels in the named sets of attributes, others being free, shape (cells,).

        Example:
            >>> Schema("pair", (Attribute("adult", 2), Attribute("race", 3))).cells_in({"race": (0, 2)}).tolist()
            [True, False, True, True, False, True]
        """
        inside = np.zeros(self.shape, np.bool_)
        inside[np.ix_(*(sorted(when.get(one.name, range(one.levels))) for one in self.attributes))] = True
        return inside.reshape(-1)

    def levels_of(self, name: str) -> NDArray[np.int32]:
        """Level of one attribute at every cell, shape (cells,)."""
        shape = [1] * len(self.shape)
        shape[self.position(name)] = -1
        levels = np.arange(self.shape[self.position(name)], dtype=np.int32).reshape(shape)
        return np.ascontiguousarray(np.broadcast_to(levels, self.shape)).reshape(-1)


@dataclass(frozen=True)
class Recode:
    """A coarsening of one attribute: groups of its levels, in the order of the new levels.

    Args:
        partition: whether every level lies in exactly one group; only such a recode can be measured.
    """

    name: str
    attribute: str
    groups: tuple[tuple[int, ...], ...]
    partition: bool

    def covers(self, levels: int) -> bool:
        """Whether the groups hold each of ``levels`` levels exactly once."""
        return sorted(level for group in self.groups for level in group) == list(range(levels))


@dataclass(frozen=True, eq=False)
class Factor:
    """What a query makes of one attribute: keeps its levels, groups them, or sums them (one group).

    Args:
        of_level: int32, shape (levels,): the group of every level; -1 for levels that are in none.
    """

    groups: int
    of_level: NDArray[np.int32] = field(repr=False)

    @property
    def key(self) -> tuple[int, bytes]:
        """Equal for factors that group alike."""
        return self.groups, self.of_level.tobytes()

    def only(self, levels: Collection[int]) -> Factor:
        """The same without all other levels."""
        return Factor(
            self.groups,
            np.where(np.isin(np.arange(len(self.of_level)), list(levels)), self.of_level, -1).astype(
                np.int32
            ),
        )

    def refines(self, coarse: Factor) -> bool:
        """Whether each group lies in one group of ``coarse``, or in none of them."""
        grouped = self.of_level >= 0
        pairs = np.stack([self.of_level, coarse.of_level])[:, grouped]
        return np.unique(pairs, axis=1).shape[1] == len(np.unique(self.of_level[grouped]))


@dataclass(frozen=True, eq=False)
class CellQuery:
    """A query in which every cell counts towards at most one answer: the product of one factor an attribute.

    Answers are in C order of the kept and recoded axes, in the attribute order of the schema.

    Args:
        attributes: the attributes that it distinguishes, in schema order; an attribute coarsened to one group is not
            among them.
    """

    name: str
    answers: int
    factors: tuple[Factor, ...] = field(repr=False)
    attributes: tuple[str, ...] = ()
    shape: tuple[int, ...] = ()

    @classmethod
    def of_labels(
        cls, name: str, answers: int, label: NDArray[np.int32], attributes: tuple[str, ...] = ()
    ) -> CellQuery:
        """A query that is not a product of factors, from the answer of every cell.

        Args:
            label: int32, shape (cells,): the answer of every cell; -1 for cells in none.
        """
        return cls(name, answers, (Factor(answers, label),), attributes, (answers,))

    @cached_property
    def label(self) -> NDArray[np.int32]:
        """The answer of every cell, int32, shape (cells,), made when it is first used; -1 for cells in none."""
        label, outside = np.zeros((), np.int64), np.zeros((), np.bool_)
        for factor in self.factors:
            label = label[..., None] * factor.groups + np.maximum(factor.of_level, 0)
            outside = outside[..., None] | (factor.of_level < 0)
        return np.where(outside, -1, label).reshape(-1).astype(np.int32)

    def labels(self, cells: NDArray[np.integer]) -> NDArray[np.int64]:
        """The answers of some cells, without those of all others.

        Returns:
            int64, the same shape; -1 for cells in no answer.
        """
        shape = tuple(len(factor.of_level) for factor in self.factors)
        label, outside = np.zeros(cells.shape, np.int64), np.zeros(cells.shape, np.bool_)
        for factor, levels in zip(self.factors, np.unravel_index(cells, shape), strict=True):
            groups = factor.of_level[levels]
            label = label * factor.groups + groups
            outside |= groups < 0
        return np.where(outside, -1, label)

    @property
    def covers(self) -> bool:
        """Whether every cell counts towards an answer; only such a query can be measured."""
        return all(bool((factor.of_level >= 0).all()) for factor in self.factors)

    @cached_property
    def key(self) -> tuple[tuple[int, bytes], ...]:
        """Equal for queries of one schema whose answers sum the same cells."""
        return tuple(factor.key for factor in self.factors)

    def refines(self, coarse: CellQuery) -> bool:
        """Whether every answer of ``coarse`` is a sum of answers, whichever cells are empty."""
        return all(own.refines(other) for own, other in zip(self.factors, coarse.factors, strict=True))


def make_query(
    schema: Schema, text: str, recodes: Mapping[str, Recode], *, measured: bool = True
) -> CellQuery:
    """The query that ``text`` names: attributes and recodes joined by ``*``, or ``total``, or ``detailed``.

    Example:
        >>> schema = Schema("pair", (Attribute("adult", 2), Attribute("race", 3)))
        >>> make_query(schema, "race", {}).label.tolist()
        [0, 1, 2, 0, 1, 2]
        >>> white = {"white": Recode("white", "race", ((0,),), partition=False)}
        >>> make_query(schema, "adult * white", white, measured=False).label.tolist()
        [0, -1, -1, 1, -1, -1]
    """
    maps = _named_factors(schema, text, recodes, measured=measured)
    factors = tuple(
        maps.get(position, Factor(1, np.zeros(attribute.levels, np.int32)))
        for position, attribute in enumerate(schema.attributes)
    )
    shape = tuple(maps[position].groups for position in sorted(maps))
    attributes = tuple(schema.names[position] for position in sorted(maps) if maps[position].groups > 1)
    return CellQuery(text, math.prod(shape), factors, attributes, shape)


def _named_factors(
    schema: Schema, text: str, recodes: Mapping[str, Recode], *, measured: bool
) -> dict[int, Factor]:
    """The factors of the named attributes, by position."""
    names = [name.strip() for name in text.split("*")]
    if names == [_TOTAL]:
        return {}
    if names == [_DETAILED]:
        names = list(schema.names)
    maps: dict[int, Factor] = {}
    for name in names:
        attribute = recodes[name].attribute if name in recodes else name
        if attribute not in schema.names:
            raise ValueError(
                f"query {text!r}: {name!r} is neither an attribute of {schema.name} nor a recode of one"
            )
        position = schema.position(attribute)
        if position in maps:
            raise ValueError(f"query {text!r} takes the attribute {attribute} twice")
        levels = schema.shape[position]
        recode = recodes.get(name)
        if recode is None:
            maps[position] = Factor(levels, np.arange(levels, dtype=np.int32))
        else:
            maps[position] = _recoded(schema, text, recode, levels, measured=measured)
    return maps


def _recoded(schema: Schema, text: str, recode: Recode, levels: int, *, measured: bool) -> Factor:
    members = [level for group in recode.groups for level in group]
    good = recode.covers(levels) if measured else len(set(members)) == len(members)
    if not good:
        rule = f"each of the {levels} levels" if measured else "no level"
        groups = "exactly one group" if measured else "two groups"
        absent = sorted(set(range(levels)) - set(members)) if measured else []
        twice = sorted({level for level in members if members.count(level) > 1})
        wrong = f"in no group: {_shortened(absent)}" if absent else f"in two groups: {_shortened(twice)}"
        raise ValueError(
            f"query {text!r} of {schema.name}: recode {recode.name} must put {rule} of {recode.attribute} into {groups}; {wrong}; "
            "fix: change the groups of the recode"
        )
    of_level = np.full(levels, -1, np.int32)
    for group, own in enumerate(recode.groups):
        of_level[list(own)] = group
    return Factor(len(recode.groups), of_level)


def _shortened(levels: list[int]) -> str:
    return ", ".join(map(str, levels[:5])) + (", ..." if len(levels) > 5 else "")
