"""Rows of two histograms in one file, and a level of the first that the counts of the second tell apart.

In every geounit b the rows of the level that is split are the entries n_1, n_2, ... of the first histogram in their order. With
m_1, m_2, ... records of the answers in the second, the rows numbered up to m_1 are of answer 1, the next m_2 of answer 2, and so
on; sum n = sum m must hold. An entry that lies across a boundary becomes two.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from censafe.model.compiled import compiled
from censafe.model.named_arrays import SparseArrays
from censafe.model.sparse import SparseLevel
from censafe.model.topdown.constraints import CellGroups
from censafe.publication.microdata.layouts import MicrodataLayout, RowsBeside

__all__ = ["join_rows"]


class _Places(NamedTuple):
    """How cells of the histograms become cells of a row."""

    inner: int  # cells of the attributes after the one that is split
    levels: int  # of that attribute
    level: int  # that is split; -1 for none
    parts: int  # that it is split into; 1 for none
    cells: int  # of a row of the first histogram
    row: NDArray[np.int32]  # by cell of the second: place among its cells with rows; -1 for no rows
    part: NDArray[np.int32]  # by cell of the second: part that its records count; -1 for none


class _Rows(NamedTuple):
    """Entries of the file."""

    pointer: NDArray[np.int64]  # (geounits + 1,)
    cell: NDArray[np.int32]
    records: NDArray[np.int32]


def join_rows(
    layout: MicrodataLayout, beside: RowsBeside, level: SparseLevel, other: SparseLevel
) -> tuple[SparseLevel, NDArray[np.bool_]]:
    """How many rows a file has of every cell of a row.

    Args:
        layout: of the file.
        beside: of the layout.
        level: histograms of the records.
        other: histograms of the records beside, of the same geounits.

    Returns:
        The rows; and the geounits, shape (n,), where the level that is split has another number of records than the histogram
        beside counts.
    """
    places = _places(layout, beside)
    room = len(level.cell) + level.nodes * (places.parts - 1) + len(other.cell)
    rows = _Rows(np.zeros(level.nodes + 1, np.int64), np.empty(room, np.int32), np.empty(room, np.int32))
    wrong = np.zeros(level.nodes, np.bool_)
    _join(SparseArrays.of(level), SparseArrays.of(other), places, rows, wrong)
    used = int(rows.pointer[-1])
    return SparseLevel(level.geounits, rows.pointer, rows.cell[:used], rows.records[:used]), wrong


def _places(layout: MicrodataLayout, beside: RowsBeside) -> _Places:
    row = np.full(beside.schema.schema.cells, -1, np.int32)
    row[beside.cells] = np.arange(len(beside.cells))
    part = np.full(len(row), -1, np.int32)
    cells = layout.shown.schema.cells
    if layout.split is None:
        return _Places(1, 1, -1, 1, cells, row, part)
    label = beside.schema.grouped(CellGroups(layout.split.by)).label
    for number, answer in enumerate(layout.split.answers):
        part[label == answer] = number
    schema = layout.schema.schema
    place = schema.position(layout.split.attribute)
    inner, parts = math.prod(schema.shape[place + 1 :]), len(layout.split.answers)
    return _Places(inner, schema.shape[place], layout.split.level, parts, cells, row, part)


@compiled()
def _join(
    own: SparseArrays, other: SparseArrays, places: _Places, rows: _Rows, wrong: NDArray[np.bool_]
) -> None:
    """Fill the rows geounit by geounit; `left` holds what is left of every part."""
    inner, levels, split, parts, cells, row_of, part_of = places
    pointer, cell, count = rows
    left = np.zeros(parts, np.int64)
    place = 0
    for node in range(len(pointer) - 1):
        left[:] = 0
        for entry in range(other.node_ptr[node], other.node_ptr[node + 1]):
            if part_of[other.cell[entry]] >= 0:
                left[part_of[other.cell[entry]]] += other.records[entry]
        for entry in range(own.node_ptr[node], own.node_ptr[node + 1]):
            whole, inside = divmod(np.int64(own.cell[entry]), inner)
            outer, level = divmod(whole, levels)
            records = np.int64(own.records[entry])
            for part in range(parts):
                taken = min(left[part], records) if level == split else records
                if taken:
                    shown = level if part == 0 else levels + part - 1
                    cell[place] = (outer * (levels + parts - 1) + shown) * inner + inside
                    count[place] = taken
                    place += 1
                    records -= taken
                    if level == split:
                        left[part] -= taken
            wrong[node] |= records > 0
        wrong[node] |= left.any() and split >= 0
        for entry in range(other.node_ptr[node], other.node_ptr[node + 1]):
            if row_of[other.cell[entry]] >= 0:
                cell[place] = cells + row_of[other.cell[entry]]
                count[place] = other.records[entry]
                place += 1
        pointer[node + 1] = place
