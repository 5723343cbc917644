"""Areas as the fewest geounits of a tree that make them up, and which geounits' answers they need."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from censafe.geography.spines.tree import Spine
from censafe.model.arrays import Flags


def used_geounits(spine: Spine, kinds: Sequence[tuple[NDArray[np.int64], int]]) -> tuple[Flags, ...]:
    """Geounits whose answers are used: the widest ones, and all children of those that an area of some kind cuts.

    Args:
        kinds: of every kind, the area of every block in the order of the spine, -1 for none, and the lowest depth that may be used for it.

    Returns:
        Of every level, shape (n,).
    """
    found = [np.zeros(level.nodes, np.bool_) for level in spine.levels]
    found[0][:] = True
    for area_of, lowest in kinds:
        own = found[0]
        for depth in range(min(lowest, len(spine.levels) - 1)):
            cut = own & (_area(spine, depth, area_of)[1] < 0)
            own = cut[spine.levels[depth + 1].parent]
            found[depth + 1] |= own
    return tuple(found)


def area_members(
    spine: Spine, area_of: NDArray[np.int64], areas: int, used: Sequence[Flags]
) -> tuple[list[list[tuple[int, int]]], Flags]:
    """The geounits that make up every area.

    Args:
        area_of: area of every block in the order of the spine, -1 for none.
    """
    found: list[list[tuple[int, int]]] = [[] for _ in range(areas)]
    whole = np.ones(areas, np.bool_)
    inside = np.ones(spine.levels[0].nodes, np.bool_)
    for depth in range(len(spine.levels)):
        area, same = _area(spine, depth, area_of)
        wanted = inside & used[depth]
        for node in np.flatnonzero(wanted & (same >= 0) & (area >= 0)).tolist():
            found[int(area[node])].append((depth, node))
        cut = inside & (same < 0)
        if depth + 1 == len(spine.levels):
            break
        below = cut[spine.levels[depth + 1].parent]
        lost = below & ~used[depth + 1]
        if lost.any():
            block = lost[spine.ancestors(depth + 1)]
            gone = np.unique(area_of[block])
            whole[gone[gone >= 0]] = False
        inside = below & used[depth + 1]
    return found, whole


def _area(
    spine: Spine, depth: int, area_of: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Lowest area of the blocks of every geounit, and 0 where that is the area of all of them, else -1."""
    starts = spine.starts[depth]
    low, high = np.minimum.reduceat(area_of, starts), np.maximum.reduceat(area_of, starts)
    return low, np.where(low == high, 0, -1)
