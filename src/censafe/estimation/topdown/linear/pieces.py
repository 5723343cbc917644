"""Pieces of a level that are worked on at a time, so that little memory is needed."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

__all__ = ["parts", "whole_families"]

_CELLS = 1 << 22  # numbers of all geounits that are worked on at a time


def parts(nodes: int, cells: int) -> Iterator[slice]:
    """Pieces of a level.

    Args:
        nodes: geounits of the level.
        cells: of the schema.
    """
    step = max(1, _CELLS // cells)
    for first in range(0, nodes, step):
        yield slice(first, min(nodes, first + step))


def whole_families(parent: NDArray[np.integer], cells: int) -> Iterator[slice]:
    """Pieces of a level in which siblings stay together: their sums are then the same bits in a part of a tree as in the whole.

    Args:
        parent: of every geounit, rising, shape (n,).
        cells: of the schema.

    Example:
        >>> [(one.start, one.stop) for one in whole_families(np.array([0, 0, 0, 1, 2, 2]), 1 << 21)]
        [(0, 3), (3, 4), (4, 6)]
    """
    starts = np.append(np.flatnonzero(np.diff(parent, prepend=-1)), len(parent))
    first = 0
    while first < len(parent):
        last = int(starts[np.searchsorted(starts, first + max(1, _CELLS // cells), side="right") - 1])
        if last <= first:
            last = int(starts[np.searchsorted(starts, first, side="right")])
        yield slice(first, last)
        first = last
