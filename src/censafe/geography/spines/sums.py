"""Block histograms and block vectors added up to every level of a spine."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from censafe.errors import DataError
from censafe.geography.spines.tree import Spine
from censafe.model.compiled import compiled
from censafe.model.sparse import ExactHistograms, SparseLevel

_Histograms = TypeVar("_Histograms", ExactHistograms, SparseLevel)
_LARGEST = 2**31 - 1


def sum_histograms(spine: Spine, blocks: _Histograms, cells: int) -> tuple[_Histograms, ...]:
    """Histograms of the geounits of every level."""
    if not np.array_equal(blocks.geounits, spine.leaf.geounits):
        raise ValueError("the histograms are not those of the blocks of the spine")
    levels = [blocks]
    for level in reversed(spine.levels[:-1]):
        below = levels[0]
        space = min(len(below.cell), level.nodes * cells)
        node_ptr, cell, count = _sum_children(
            level.first_child, below.node_ptr, below.cell, below.count, cells, space
        )
        if len(count) and int(count.max()) > _LARGEST:
            raise DataError(
                f"histograms: counts at level {level.name} are above {_LARGEST:,}; allowed: counts that fit 32 bits; fix: "
                "run the states one by one"
            )
        levels.insert(0, type(blocks)(level.geounits, node_ptr, cell, count.astype(np.int32)))
    return tuple(levels)


def reordered(blocks: _Histograms, order: NDArray[np.int64], geounits: NDArray[np.str_]) -> _Histograms:
    """The same histograms in another order of the geounits, under other codes.

    Args:
        order: position in `blocks` of every geounit of the result, each once, shape (n,).
        geounits: codes of the result, shape (n,).

    Example:
        >>> pointer, cell, count = np.array([0, 1, 3]), np.array([4, 0, 5], np.int32), np.array([9, 7, 8], np.int32)
        >>> turned = reordered(SparseLevel(np.array(["a", "b"]), pointer, cell, count), np.array([1, 0]), np.array(["x", "y"]))
        >>> turned.node_ptr.tolist(), turned.cell.tolist(), turned.count.tolist()
        ([0, 2, 3], [0, 5, 4], [7, 8, 9])
    """
    if not np.array_equal(np.bincount(order, minlength=blocks.nodes), np.ones(blocks.nodes)):
        raise ValueError("an order must name every geounit once")
    pointer = np.zeros(blocks.nodes + 1, np.int64)
    np.cumsum(np.diff(blocks.node_ptr)[order], out=pointer[1:])
    cell, count = _moved(order, pointer, blocks.node_ptr, blocks.cell, blocks.count)
    return type(blocks)(geounits, pointer, cell, count)


def sum_vectors(spine: Spine, blocks: NDArray[np.integer]) -> tuple[NDArray[np.int64], ...]:
    """Sums of a vector of every block, such as its numbers of facilities, for the geounits of every level.

    Args:
        blocks: shape (blocks, items), in the order of the spine.

    Returns:
        One entry a level, root first, int64, shape (geounits, items).
    """
    if len(blocks) != spine.leaf.nodes:
        raise ValueError("there must be one vector for each block of the spine")
    sums = [np.asarray(blocks, np.int64)]
    for level in reversed(spine.levels[:-1]):
        sums.insert(0, np.add.reduceat(sums[0], level.first_child[:-1], axis=0))
    return tuple(sums)


@compiled()
def _sum_children(
    first_child: NDArray[np.int64],
    node_ptr: NDArray[np.int64],
    cell: NDArray[np.int32],
    count: NDArray[np.int32],
    cells: int,
    space: int,
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int64]]:
    """Rows of the parents: a dense accumulator, of which the used cells alone are read and cleared."""
    parents = len(first_child) - 1
    pointer = np.zeros(parents + 1, np.int64)
    cell_out = np.empty(space, np.int32)
    count_out = np.empty(space, np.int64)
    totals = np.zeros(cells, np.int64)
    written = 0
    for parent in range(parents):
        start = written
        for entry in range(node_ptr[first_child[parent]], node_ptr[first_child[parent + 1]]):
            if totals[cell[entry]] == 0:
                cell_out[written] = cell[entry]
                written += 1
            totals[cell[entry]] += count[entry]
        cell_out[start:written].sort()
        for place in range(start, written):
            count_out[place] = totals[cell_out[place]]
            totals[cell_out[place]] = 0
        pointer[parent + 1] = written
    return pointer, cell_out[:written].copy(), count_out[:written].copy()


@compiled()
def _moved(
    order: NDArray[np.int64],
    pointer: NDArray[np.int64],
    node_ptr: NDArray[np.int64],
    cell: NDArray[np.int32],
    count: NDArray[np.int32],
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Entries of every row at its new place."""
    cell_out, count_out = np.empty_like(cell), np.empty_like(count)
    for row in range(len(order)):
        first, start = node_ptr[order[row]], pointer[row]
        for entry in range(pointer[row + 1] - start):
            cell_out[start + entry] = cell[first + entry]
            count_out[start + entry] = count[first + entry]
    return cell_out, count_out
