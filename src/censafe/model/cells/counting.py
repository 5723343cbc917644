"""Which cells of a histogram the lines of a table sum, and the values of the lines in any areas, from the histograms of blocks.

The conditions of lines distinguish some levels of each attribute and no others: the levels of an attribute fall into classes, and the cells
of a histogram into combinations of classes. Records are counted once by area and combination; a line of the table is then a sum of
combinations. A median is found in the counts of single levels of its attribute.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from censafe.model.cells.lines import CensusTable, TableLine
from censafe.model.schema import Schema
from censafe.model.sparse import SparseLevel

_AT_ONCE: Final = 20_000_000  # counts of areas by combination
_Values = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class AreaBlocks:
    """Which blocks are in which areas.

    Args:
        names: of the areas, shape (areas,).
        area: of every block, -1 for none, shape (blocks,).
    """

    names: NDArray[np.str_] = field(repr=False)
    area: NDArray[np.int64] = field(repr=False)


@dataclass(frozen=True, eq=False)
class LineSums:
    """Which cells every line sums, by combinations of classes of levels: cells of one combination are in the same lines.

    Args:
        of_cell: combination of every cell, -1 for cells of no line, shape (cells,).
        times: how often a record of a combination counts in a line, shape (combinations, lines).
    """

    of_cell: NDArray[np.int32] = field(repr=False)
    times: _Values = field(repr=False)

    @staticmethod
    def of(lines: Sequence[TableLine], schema: Schema, single: str = "") -> LineSums:
        """The sums of some lines.

        Args:
            single: an attribute of which every level is a class; combinations are then all there, and numbered by its level first.

        Example:
            >>> from censafe.model.schema import Attribute
            >>> adult = TableLine("adults", 0, {"age": frozenset({2, 3})})
            >>> sums = LineSums.of([adult], Schema("one", (Attribute("sex", 2), Attribute("age", 4))))
            >>> sums.of_cell.tolist(), sums.times.tolist()
            ([-1, -1, 0, 0, -1, -1, 0, 0], [[1.0]])
        """
        names = sorted({name for line in lines for name in line.when} | ({single} - {""}))
        names.sort(key=lambda name: name != single)
        combination = np.zeros((1,) * len(schema.shape), np.int64)
        member = np.ones((1, len(lines)), np.bool_)
        for name in names:
            class_of, inside = _classes(lines, schema, name, single)
            along = [1] * len(schema.shape)
            along[schema.position(name)] = -1
            combination = combination * len(inside) + class_of.reshape(along)
            member = (member[:, None, :] & inside[None, :, :]).reshape(-1, len(lines))
        times = member.astype(np.float64)
        for number, line in reversed(list(enumerate(lines))):
            if line.summed:
                times[:, number] = times[:, list(line.summed)].sum(axis=1)
        used = np.ones(len(times), np.bool_) if single else times.any(axis=1)
        number_of = np.where(used, np.cumsum(used) - 1, -1).astype(np.int32)
        return LineSums(np.broadcast_to(number_of[combination], schema.shape).reshape(-1), times[used])

    @property
    def of_cells(self) -> _Values:
        """How often a record of every cell counts in every line, shape (cells, lines)."""
        return np.vstack([self.times, np.zeros(self.times.shape[1])])[self.of_cell]


def tabulated(
    table: CensusTable, schema: Schema, blocks: SparseLevel, areas: AreaBlocks
) -> Iterator[tuple[slice, _Values]]:
    """Values of a table, some areas at a time.

    Returns:
        Pairs of a range of areas and their values, shape (areas of the range, lines): counts are whole; a median of nobody is NaN.

    Source: 2020 Census DHC technical documentation; medians by linear interpolation within single years (dhc.md 9.1).
    """
    sums = LineSums.of(table.lines, schema, table.median)
    combination, area = sums.of_cell[blocks.cell], np.repeat(areas.area, np.diff(blocks.node_ptr))
    chosen = np.flatnonzero((combination >= 0) & (area >= 0))
    if bool((np.diff(area[chosen]) < 0).any()):
        chosen = chosen[np.argsort(area[chosen], kind="stable")]
    area, combination, count = area[chosen], combination[chosen], blocks.count[chosen]
    width = len(sums.times)
    step = max(1, _AT_ONCE // max(width, 1))
    for first in range(0, len(areas.names), step):
        last = min(first + step, len(areas.names))
        low, high = np.searchsorted(area, [first, last])
        key = (area[low:high] - first) * width + combination[low:high]
        records = np.bincount(key, count[low:high], (last - first) * width)
        counts = records.astype(np.float64).reshape(last - first, width)
        if table.median:
            yield (
                slice(first, last),
                _medians(counts, sums.times, schema.shape[schema.position(table.median)]),
            )
        else:
            yield slice(first, last), counts @ sums.times


def _classes(
    lines: Sequence[TableLine], schema: Schema, name: str, single: str
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Class of every level of an attribute, in the order of the levels, and which lines every class is in.

    Levels that are in the same lines are one class.
    """
    levels = range(schema.shape[schema.position(name)])
    sets = [line.when.get(name, frozenset(levels)) for line in lines]
    classes: Sequence[frozenset[int]] = [frozenset([level]) for level in levels]
    if name != single:
        classes = level_classes([*sets, frozenset(levels)])
    class_of = np.empty(len(levels), np.int64)
    for number, own in enumerate(classes):
        class_of[list(own)] = number
    return class_of, np.array([[own <= chosen for chosen in sets] for own in classes])


def level_classes(sets: Iterable[frozenset[int]]) -> tuple[frozenset[int], ...]:
    """The fewest disjoint classes of levels of which every set is a union, by their first levels.

    Example:
        >>> [sorted(levels) for levels in level_classes([frozenset(range(4)), frozenset(range(2, 6))])]
        [[0, 1], [2, 3], [4, 5]]
    """
    chosen = list(sets)
    members: dict[tuple[bool, ...], set[int]] = {}
    for level in sorted(frozenset().union(*chosen)):
        members.setdefault(tuple(level in levels for levels in chosen), set()).add(level)
    return tuple(map(frozenset, members.values()))


def _medians(counts: _Values, lines: NDArray[np.float64], levels: int) -> _Values:
    """Medians of every line, shape (areas, lines): where half of its records are reached, those of a level spread evenly over it."""
    by_level = counts.reshape(len(counts), levels, -1)
    member = lines.reshape(levels, by_level.shape[2], -1)
    medians = np.full((len(counts), lines.shape[1]), np.nan)
    for number in range(lines.shape[1]):
        records = (by_level * member[None, :, :, number]).sum(axis=2)
        reached = np.cumsum(records, axis=1)
        some = np.flatnonzero(reached[:, -1] > 0)
        half = reached[some, -1] / 2
        level = (reached[some] < half[:, None]).sum(axis=1)
        own = records[some, level]
        medians[some, number] = level + (half - (reached[some, level] - own)) / own
    return medians
