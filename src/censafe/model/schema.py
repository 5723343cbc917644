"""Histogram schemas, and the queries that sum their cells: marginals, coarsened or not."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

__all__ = ["Attribute", "CellQuery", "Recode", "Schema", "make_query"]

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
        >>> schema.cells, schema.flat_index([1, 2])
        (6, 5)
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

    def flat_index(self, levels: list[int] | tuple[int, ...]) -> int:
        """Cell of one combination of levels.

        Args:
            levels: one level for every attribute, in flattening order.

        Raises:
            ValueError: a level is outside its attribute, or one is missing.
        """
        if len(levels) != len(self.shape):
            raise ValueError(f"schema {self.name} has {len(self.shape)} attributes")
        return int(np.ravel_multi_index(tuple(levels), self.shape))

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
        name: unique among the recodes and attributes of a schema.
        attribute: the attribute that is coarsened.
        groups: 0-based levels of every group.
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
class CellQuery:
    """A query in which every cell counts towards exactly one answer.

    Args:
        name: as it was written, names joined by ``*``.
        answers: number of answers.
        label: int32, shape (cells,): the answer of every cell. Answers are in C order of the kept and recoded
            axes, in the attribute order of the schema.
        attributes: the attributes that it tells apart, in schema order; an attribute coarsened to one group is not
            among them.
        shape: length of every kept or recoded axis.
    """

    name: str
    answers: int
    label: NDArray[np.int32] = field(repr=False)
    attributes: tuple[str, ...] = ()
    shape: tuple[int, ...] = ()

    def answer(self, histogram: NDArray[np.int64]) -> NDArray[np.int64]:
        """Answers of one histogram, int64, shape (answers,), from its cells, shape (cells,)."""
        sums = np.zeros(self.answers, dtype=np.int64)
        np.add.at(sums, self.label, histogram)
        return sums


def make_query(schema: Schema, text: str, recodes: Mapping[str, Recode]) -> CellQuery:
    """The query that ``text`` names: attributes and recodes joined by ``*``, or ``total``, or ``detailed``.

    Args:
        schema: the histogram.
        text: for example ``hispanic * cenrace``; the order of the names does not matter.
        recodes: by name.

    Raises:
        ValueError: a name is unknown or takes an attribute a second time, or a recode does not put every level of
            its attribute into exactly one group.

    Example:
        >>> schema = Schema("pair", (Attribute("adult", 2), Attribute("race", 3)))
        >>> make_query(schema, "race", {}).label.tolist()
        [0, 1, 2, 0, 1, 2]
    """
    maps = _level_maps(schema, text, recodes)
    label = np.zeros(schema.cells, dtype=np.int64)
    for position, attribute in enumerate(schema.attributes):
        if position in maps:
            groups, of_level = maps[position]
            label = label * groups + of_level[schema.levels_of(attribute.name)]
    shape = tuple(maps[position][0] for position in sorted(maps))
    attributes = tuple(schema.names[position] for position in sorted(maps) if maps[position][0] > 1)
    return CellQuery(text, math.prod(shape), label.astype(np.int32), attributes, shape)


def _level_maps(
    schema: Schema, text: str, recodes: Mapping[str, Recode]
) -> dict[int, tuple[int, NDArray[np.int64]]]:
    """By position of an attribute: the number of its groups, and the group of every level."""
    names = [name.strip() for name in text.split("*")]
    if names == [_TOTAL]:
        return {}
    if names == [_DETAILED]:
        names = list(schema.names)
    maps: dict[int, tuple[int, NDArray[np.int64]]] = {}
    for name in names:
        attribute = recodes[name].attribute if name in recodes else name
        if attribute not in schema.names:
            raise ValueError(
                f"query {text!r}: {name!r} is neither an attribute of {schema.name} nor a recode of one"
            )
        position = schema.position(attribute)
        if position in maps:
            raise ValueError(f"query {text!r} takes the attribute {attribute} twice")
        maps[position] = _level_map(schema, text, recodes.get(name), schema.shape[position])
    return maps


def _level_map(
    schema: Schema, text: str, recode: Recode | None, levels: int
) -> tuple[int, NDArray[np.int64]]:
    if recode is None:
        return levels, np.arange(levels, dtype=np.int64)
    if not recode.covers(levels):
        raise ValueError(
            f"query {text!r} of {schema.name}: recode {recode.name} must put each of the {levels} levels of "
            f"{recode.attribute} into exactly one group"
        )
    of_level = np.empty(levels, dtype=np.int64)
    for group, members in enumerate(recode.groups):
        of_level[list(members)] = group
    return len(recode.groups), of_level
