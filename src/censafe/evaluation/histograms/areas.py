"""The areas that counts are compared for: levels of a spine, and lists of other areas."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from censafe.errors import DataError, UsageError
from censafe.geography.spine import Spine

__all__ = ["Areas", "areas_of_codes", "level_areas"]


@dataclass(frozen=True, eq=False)
class Areas:
    """Disjoint areas made of blocks; a block may lie in none of them.

    Args:
        level: name of the level of the spine, or of the kind of area, such as ``place``.
        area_class: empty for a level of the spine; otherwise the name of the area list.
        names: codes of the areas, shape (n,).
        of_block: int32, shape (blocks,), area of every block in the order of the spine; -1 in none.
    """

    level: str
    area_class: str
    names: NDArray[np.str_] = field(repr=False)
    of_block: NDArray[np.int32] = field(repr=False)

    def __post_init__(self) -> None:
        if len(self.of_block) and not -1 <= int(self.of_block.min()) <= int(self.of_block.max()) < len(
            self.names
        ):
            raise ValueError("a block lies in an area that is not listed")

    @property
    def number(self) -> int:
        """How many areas there are."""
        return len(self.names)

    @cached_property
    def blocks(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Blocks by area: their positions, and shape (n + 1,) where those of each area start."""
        inside = np.flatnonzero(self.of_block >= 0)
        order = inside[np.argsort(self.of_block[inside], kind="stable")]
        starts = np.searchsorted(self.of_block[order], np.arange(self.number + 1))
        return order.astype(np.int64), starts.astype(np.int64)


def level_areas(spine: Spine, level: str) -> Areas:
    """The geounits of one level of a spine.

    Raises:
        UsageError: the spine has no level of this name.

    Example:
        >>> from censafe.geography.spine import LevelRule, build_spine
        >>> spine = build_spine(np.array(["11", "12", "21"]), (LevelRule("US", 0), LevelRule("State", 1), LevelRule("Block", 2)))
        >>> level_areas(spine, "State").of_block.tolist()
        [0, 0, 1]
    """
    if level not in spine.names:
        raise UsageError(f"there is no level {level}; the levels are {', '.join(spine.names)}")
    depth = spine.names.index(level)
    return Areas(level, "", spine.levels[depth].geounits, spine.ancestors(depth))


def areas_of_codes(spine: Spine, name: str, blocks: NDArray[np.int64], codes: NDArray[np.str_]) -> Areas:
    """Areas from the code of the area of some blocks.

    Args:
        spine: the tree.
        name: of the kind of area, such as ``place``.
        blocks: geocodes as numbers, shape (m,), each once. Blocks that the spine does not have are left out.
        codes: code of the area of every one of them, shape (m,); an empty text means no area.

    Raises:
        DataError: a block is given twice, or no block of the list is in the spine.
    """
    if len(np.unique(blocks)) != len(blocks):
        raise DataError(
            f"area list {name}: {len(blocks) - len(np.unique(blocks))} blocks are given twice; allowed: once"
        )
    place = np.minimum(np.searchsorted(spine.leaf.codes, blocks), spine.leaf.nodes - 1)
    known = spine.leaf.codes[place] == blocks
    if not known.any():
        raise DataError(
            f"area list {name}: none of its {len(blocks)} blocks is in the data; allowed: geocodes of {spine.leaf.digits} digits"
        )
    inside = known & (codes != "")
    names, area = np.unique(codes[inside], return_inverse=True)
    of_block = np.full(spine.leaf.nodes, -1, np.int32)
    of_block[place[inside]] = area
    return Areas(name, name, names, of_block)
