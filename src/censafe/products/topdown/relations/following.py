"""Housing units that follow the households of their blocks: as many of every tenure, the rest as it was estimated."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from censafe.estimation.topdown.operator.parent import level_sums
from censafe.model import SparseLevel
from censafe.model.arrays import Integers


def following(blocks: SparseLevel, label: NDArray[np.int32], wanted: Integers) -> SparseLevel:
    """Histograms with the wanted sums of groups of cells; blocks and groups that have them stay as they are.

    Where a sum changes, the cells of the group share it as they did in the block before, with one record that is shared as in all blocks
    together beside them. These shares are raked so that all blocks together have the shares that they had, and what does not divide is carried
    from block to block.

    Args:
        label: group of every cell, -1 for none, whose records stay; shape (cells,).
        wanted: sums of the groups, shape (blocks, groups).

    Example:
        >>> two = SparseLevel(np.array(["a", "b"]), np.array([0, 2, 3]), np.array([0, 2, 1], np.int32), np.array([4, 9, 2], np.int32))
        >>> found = following(two, np.array([0, 0, -1], np.int32), np.array([[2], [2]]))
        >>> found.node_ptr.tolist(), found.cell.tolist(), found.count.tolist()
        ([0, 2, 3], [0, 2, 1], [2, 9, 2])
    """
    change = level_sums(blocks, label, wanted.shape[1]) != wanted
    block = np.repeat(np.arange(blocks.nodes), np.diff(blocks.node_ptr))
    group = label[blocks.cell]
    stays = (group < 0) | ~change[block, group]
    pieces = [(block[stays], blocks.cell[stays].astype(np.int64), blocks.count[stays].astype(np.int64))]
    for number in range(wanted.shape[1]):
        chosen = np.flatnonzero(change[:, number])
        cells = np.flatnonzero(label == number)
        here = group == number
        usual = np.bincount(np.searchsorted(cells, blocks.cell[here]), blocks.count[here], len(cells))
        own = np.zeros((blocks.nodes, len(cells)))
        own[block[here], np.searchsorted(cells, blocks.cell[here])] = blocks.count[here]
        shares = own[chosen] + (usual + 1.0) / (usual + 1.0).sum()
        all_of_it = usual / max(usual.sum(), 1.0) * wanted[:, number].sum()
        changed = all_of_it - (own.sum(axis=0) - own[chosen].sum(axis=0))
        new = _shared_out(wanted[chosen, number], _raked(shares, wanted[chosen, number], changed))
        place, cell = np.nonzero(new)
        pieces.append((chosen[place], cells[cell], new[place, cell]))
    at, cell, count = (np.concatenate(part) for part in zip(*pieces, strict=True))
    order = np.lexsort((cell, at))
    pointer = np.searchsorted(at[order], np.arange(blocks.nodes + 1)).astype(np.int64)
    return SparseLevel(blocks.geounits, pointer, cell[order].astype(np.int32), count[order].astype(np.int32))


_RAKINGS = 50


def _raked(shares: NDArray[np.float64], total: Integers, columns: NDArray[np.float64]) -> NDArray[np.float64]:
    """Shares of rows under which the totals of the rows come near to sums of columns; 0 and less are not asked for."""
    for _ in range(_RAKINGS):
        found = (total / shares.sum(axis=1)) @ shares
        shares = shares * np.where((found > 0) & (columns > 0), columns / np.maximum(found, 1e-9), 1.0)
    return shares


def _shared_out(total: Integers, shares: NDArray[np.float64]) -> Integers:
    """Whole numbers that add up to the totals of rows, in proportion to shares; remainders are carried down the rows, column by column."""
    found = np.zeros(shares.shape, np.int64)
    left, weight = total.astype(np.int64), shares.sum(axis=1)
    for column in range(shares.shape[1] - 1):
        exact = np.cumsum(left * (shares[:, column] / weight))
        steps = np.diff(np.floor(exact + 0.5), prepend=0.0).astype(np.int64)
        found[:, column] = np.clip(steps, 0, left)
        left = left - found[:, column]
        weight = weight - shares[:, column]
    found[:, -1] = left
    return found
