"""Sparse histograms of blocks from the keys of records."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from censafe.model.compiled import compiled

__all__ = ["merge_keys"]

_Column = NDArray[np.int32]
_Ints = NDArray[np.int64]
_kernel = compiled()


@_kernel
def _distinct(keys: _Ints) -> int:
    found = 0
    for i in range(len(keys)):
        found += i == 0 or keys[i] != keys[i - 1]
    return found


@_kernel
def _spread(keys: _Ints, cells: int, pointer: _Ints, cell: _Column, count: _Column) -> None:
    entry, block = -1, 0
    for i in range(len(keys)):
        if i > 0 and keys[i] == keys[i - 1]:
            count[entry] += 1
            continue
        entry += 1
        here = keys[i] // cells
        while block < here:
            block += 1
            pointer[block] = entry
        cell[entry] = keys[i] - here * cells
        count[entry] = 1
    while block < len(pointer) - 1:
        block += 1
        pointer[block] = entry + 1


def merge_keys(keys: _Ints, cells: int, blocks: int) -> tuple[_Ints, _Column, _Column]:
    """Pointer, cells and counts of sparse histograms from keys that rise and may repeat.

    Args:
        keys: block * cells + cell of every record, shape (records,).
        cells: of the histogram.
        blocks: how many.

    Returns:
        node_ptr (blocks + 1,), cell and count as :class:`ExactHistograms` holds them.

    Example:
        >>> [part.tolist() for part in merge_keys(np.array([0, 0, 7], np.int64), 5, 3)]
        [[0, 1, 2, 2], [0, 2], [2, 1]]
    """
    entries = _distinct(keys)
    pointer = np.zeros(blocks + 1, np.int64)
    cell, count = np.zeros(entries, np.int32), np.zeros(entries, np.int32)
    _spread(keys, cells, pointer, cell, count)
    return pointer, cell, count
