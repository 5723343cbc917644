"""Values of the cells of a table in any areas, from the histograms of blocks.

The conditions of a table distinguish some levels of each attribute and no others: the levels of an attribute fall into classes, and the cells
of a histogram into combinations of classes. Records are counted once by area and combination; a line of the table is then a sum of
combinations. A median is found in the counts of single levels of its attribute.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from censafe.model.schema import Schema
from censafe.model.sparse import SparseLevel
from censafe.products.topdown.census_tables.definitions import CensusTable

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


def tabulated(
    table: CensusTable, schema: Schema, blocks: SparseLevel, areas: AreaBlocks
) -> Iterator[tuple[slice, _Values]]:
    """Values of a table, some areas at a time.

    Returns:
        Pairs of a range of areas and their values, shape (areas of the range, lines): counts are whole; a median of nobody is NaN.

    Source: 2020 Census DHC technical documentation; medians by linear interpolation within single years (dhc.md 9.1).
    """
    of_cell, lines = _combinations(table, schema)
    combination, area = of_cell[blocks.cell], np.repeat(areas.area, np.diff(blocks.node_ptr))
    chosen = np.flatnonzero((combination >= 0) & (area >= 0))
    if bool((np.diff(area[chosen]) < 0).any()):
        chosen = chosen[np.argsort(area[chosen], kind="stable")]
    area, combination, count = area[chosen], combination[chosen], blocks.count[chosen]
    width = len(lines)
    step = max(1, _AT_ONCE // max(width, 1))
    for first in range(0, len(areas.names), step):
        last = min(first + step, len(areas.names))
        low, high = np.searchsorted(area, [first, last])
        key = (area[low:high] - first) * width + combination[low:high]
        records = np.bincount(key, count[low:high], (last - first) * width)
        counts = records.astype(np.float64).reshape(last - first, width)
        if table.median:
            levels = schema.shape[schema.position(table.median)]
            yield slice(first, last), _medians(counts, lines, levels)
            continue
        values = counts @ lines
        for number, line in reversed(list(enumerate(table.lines))):
            if line.summed:
                values[:, number] = values[:, list(line.summed)].sum(axis=1)
        yield slice(first, last), values


def _combinations(table: CensusTable, schema: Schema) -> tuple[NDArray[np.int32], _Values]:
    """Combination of every cell, -1 outside the universe, and zeros and ones for those that every line sums, shape (combinations, lines).

    They are of the classes of all attributes that the lines name; those of no line are left out.

    Combinations of a table of medians are all there, and numbered by level of its attribute first.
    """
    names = sorted({name for line in table.lines for name in line.when} | ({table.median} - {""}))
    names.sort(key=lambda name: name != table.median)
    combination = np.zeros((1,) * len(schema.shape), np.int64)
    member = np.ones((1, len(table.lines)), np.bool_)
    for name in names:
        class_of, lines = _classes(table, schema, name)
        along = [1] * len(schema.shape)
        along[schema.position(name)] = -1
        combination = combination * len(lines) + class_of.reshape(along)
        member = (member[:, None, :] & lines[None, :, :]).reshape(-1, len(table.lines))
    used = np.ones(len(member), np.bool_) if table.median else member.any(axis=1)
    number = np.where(used, np.cumsum(used) - 1, -1).astype(np.int32)
    of_cell = np.broadcast_to(number[combination], schema.shape).reshape(-1)
    return of_cell, member[used].astype(np.float64)


def _classes(table: CensusTable, schema: Schema, name: str) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Class of every level of an attribute, in the order of the levels, and which lines every class is in.

    Levels that are in the same lines are one class; in a table of medians each level of its attribute is one.
    """
    levels = schema.shape[schema.position(name)]
    inside = np.array(
        [[level in line.when.get(name, range(levels)) for line in table.lines] for level in range(levels)]
    )
    if name == table.median:
        return np.arange(levels), inside
    _, first, class_of = np.unique(inside, axis=0, return_index=True, return_inverse=True)
    place = np.argsort(np.argsort(first))
    return place[class_of.reshape(-1)], inside[np.sort(first)]


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
