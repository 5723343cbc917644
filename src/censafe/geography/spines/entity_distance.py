"""How far areas off the spine are from it: the least number of geounits to add and subtract to make one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from censafe.geography.spines.tree import Spine
from censafe.model.arrays import Integers


def entity_distances(spine: Spine, entity: NDArray[np.integer]) -> tuple[Integers, Integers]:
    """Distance of every area from the spine.

    At a block, an area costs 1 where the block is in it and its complement 1 where it is not. At a parent, both are
    the sum over the children, or one more than the sum of the other: the parent itself, less what does not belong.

    Args:
        entity: area of every block, in the order of the tree, -1 for none, shape (blocks,).

    Returns:
        The areas in rising order, and the distance of each, both int64, shape (areas,).

    Source: off-spine entity distance of the 2020 production spine.

    Example:
        >>> from censafe.geography.spines.tree import LevelRule, build_spine
        >>> rules = (LevelRule("US", 0), LevelRule("Tract", 1), LevelRule("Block", 2))
        >>> spine = build_spine(np.array(["10", "11", "12", "13", "20"]), rules)
        >>> areas, distances = entity_distances(spine, np.array([5, 5, 5, -1, 8]))
        >>> areas.tolist(), distances.tolist()  # tract 1 less one block; tract 2
        ([5, 8], [2, 1])
    """
    areas, place = np.unique(entity, return_inverse=True)
    first = int(np.searchsorted(areas, 0))
    node = np.flatnonzero(entity >= 0)
    area = place[node].astype(np.int64) - first
    areas = areas[first:].astype(np.int64)
    inside, outside = np.ones(len(node), np.int64), np.zeros(len(node), np.int64)
    for above, level in zip(spine.levels[-2::-1], spine.levels[:0:-1], strict=True):
        key = level.parent[node].astype(np.int64) * max(len(areas), 1) + area
        keys, group = np.unique(key, return_inverse=True)
        node, area = np.divmod(keys, max(len(areas), 1))
        # children that do not meet the area cost nothing inside and one each outside
        others = np.diff(above.first_child)[node] - np.bincount(group, minlength=len(keys))
        sum_in, sum_out = np.zeros(len(keys), np.int64), others.astype(np.int64)
        np.add.at(sum_in, group, inside)
        np.add.at(sum_out, group, outside)
        inside, outside = np.minimum(sum_in, sum_out + 1), np.minimum(sum_out, sum_in + 1)
    distances = np.zeros(len(areas), np.int64)
    np.add.at(distances, area, inside)
    return areas, distances
