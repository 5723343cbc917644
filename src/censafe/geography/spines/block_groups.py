"""Optimized block groups: blocks of one place, area and pattern of facilities inside a tract."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

STRONG_MCD_STATES: Final = (9, 23, 25, 26, 27, 33, 34, 36, 42, 44, 50, 55)


@dataclass(frozen=True, eq=False)
class BlockTraits:
    """What decides in which optimized block group a block of a tract comes.

    Args:
        tract: of every block, rising: a number for each geounit at the level of the tracts, shape (blocks,).
        aiannh: American Indian, Alaska Native or Hawaiian area that parts the state, 9999 for none.
        pattern: which kinds of group quarters there are, one bit each, less than 256.
    """

    tract: NDArray[np.int64] = field(repr=False)
    state: NDArray[np.int64] = field(repr=False)
    aiannh: NDArray[np.int64] = field(repr=False)
    place: NDArray[np.int64] = field(repr=False)
    cousub: NDArray[np.int64] = field(repr=False)
    pattern: NDArray[np.int64] = field(repr=False)

    @property
    def entity(self) -> NDArray[np.int64]:
        """Off-spine entity: the county subdivision in states of strong minor civil divisions, outside the areas; else the place.

        Example:
            >>> one = np.array([1, 1, 1])
            >>> BlockTraits(one, np.array([44, 44, 48]), np.array([9999, 10, 9999]), one * 5, one * 7, one).entity.tolist()
            [7, 5, 5]
        """
        strong = np.isin(self.state, STRONG_MCD_STATES) & (self.aiannh == 9999)
        return np.where(strong, self.cousub, self.place)


def optimized_groups(traits: BlockTraits, fanout_cutoff: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Order of the blocks that puts the members of a group beside each other, and the number of the group of each.

    Blocks of a tract are of one group if entity, area and pattern agree; a group is cut into runs of at most
    int(sqrt(blocks of the tract) + fanout_cutoff) + 1 blocks, in the order of the blocks.

    Returns:
        Positions of the blocks in their new order, int64, shape (blocks,); numbers of their groups, rising from 0.

    Source: optimized spine of the 2020 redistricting production.

    Example:
        >>> one = np.ones(5, np.int64)
        >>> places = np.array([7, 3, 7, 3, 3])
        >>> order, group = optimized_groups(BlockTraits(one, one, one * 9999, places, one, one * 0), 0)
        >>> order.tolist(), group.tolist()
        ([1, 3, 4, 0, 2], [0, 0, 0, 1, 1])
    """
    starts = np.flatnonzero(np.diff(traits.tract, prepend=-1))
    sizes = np.diff(starts, append=len(traits.tract))
    ordinal = np.repeat(np.arange(len(starts), dtype=np.int64), sizes)
    key = ((ordinal * 100_000 + traits.entity) * 10_000 + traits.aiannh) * 256 + traits.pattern
    order = np.argsort(key, kind="stable").astype(np.int64)
    most = np.floor(np.sqrt(sizes) + fanout_cutoff).astype(np.int64) + 1
    first = np.diff(key[order], prepend=-1) != 0
    place = np.arange(len(order), dtype=np.int64)
    within = place - np.maximum.accumulate(np.where(first, place, 0))
    cut = within % most[ordinal[order]] == 0
    return order, np.cumsum(cut) - 1
