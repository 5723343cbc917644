"""The areas that counts are compared for, levels of a spine and lists of others, and strata of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from censafe.errors import DataError, UsageError
from censafe.geography.identifiers import block_words
from censafe.geography.spines.tree import Spine

_THREADS: Final = 2  # compiled loops and array operations hold no interpreter lock
Item = TypeVar("Item")
Result = TypeVar("Result")


def in_threads(work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """Call a function for every item, two at a time; results in the order of the items.

    Example:
        >>> in_threads(lambda one: one * one, [3, 1, 2])
        [9, 1, 4]
    """
    with ThreadPoolExecutor(_THREADS) as pool:
        return list(pool.map(work, items))


@dataclass(frozen=True, eq=False)
class ComparedAreas:
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
    remarks: tuple[str, ...] = ()

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


def level_areas(spine: Spine, level: str) -> ComparedAreas:
    """The geounits of one level of a spine.

    Example:
        >>> from censafe.geography.spines.tree import LevelRule, build_spine
        >>> spine = build_spine(np.array(["11", "12", "21"]), (LevelRule("US", 0), LevelRule("State", 1), LevelRule("Block", 2)))
        >>> level_areas(spine, "State").of_block.tolist()
        [0, 0, 1]
    """
    if level not in spine.names:
        raise UsageError(f"there is no level {level}; the levels are {', '.join(spine.names)}")
    depth = spine.names.index(level)
    return ComparedAreas(level, "", spine.levels[depth].geounits, spine.ancestors(depth))


def areas_of_codes(
    spine: Spine, name: str, blocks: NDArray[np.int64], codes: NDArray[np.str_]
) -> ComparedAreas:
    """Areas from the code of the area of some blocks.

    Args:
        blocks: geocodes as numbers, shape (m,), each once. Blocks that the spine does not have are left out.
        codes: code of the area of every one of them, shape (m,); an empty text means no area.
    """
    if len(np.unique(blocks)) != len(blocks):
        raise DataError(
            f"area list {name}: {len(blocks) - len(np.unique(blocks))} blocks are given twice; allowed: once"
        )
    place = np.minimum(np.searchsorted(spine.leaf.codes, blocks), spine.leaf.nodes - 1)
    known = spine.leaf.codes[place] == blocks
    if not known.any():
        raise DataError(
            f"area list {name}: none of its {len(blocks)} blocks is in the data; allowed: {block_words(spine.leaf.form)}"
        )
    inside = known & (codes != "")
    names, area = np.unique(codes[inside], return_inverse=True)
    of_block = np.full(spine.leaf.nodes, -1, np.int32)
    of_block[place[inside]] = area
    remarks: tuple[str, ...] = ()
    if 2 * int(known.sum()) < min(len(blocks), spine.leaf.nodes):
        remarks = (
            f"area list {name}: {int(known.sum()):,} of its {len(blocks):,} blocks are among the {spine.leaf.nodes:,} of the data; check that it is of "
            "the same states and vintage.",
        )
    return ComparedAreas(name, name, names, of_block, remarks)


COUNTY_SIZES: Final = (0, 1_000, 5_000, 10_000, 50_000, 100_000)
PLACE_SIZES: Final = (0, 500, 1_000, 5_000, 10_000, 50_000, 100_000)
AIANNH_SIZES: Final = (0, 100, 1_000, 10_000)
BLOCK_SIZES: Final = (0, 1, 10, 50, 100, 250, 500, 1_000)
_AIANNH: Final = ("aian", "air", "otsa", "anvsa", "tribal", "reservation")


@dataclass(frozen=True, eq=False)
class Strata:
    """Named classes of the areas of one level.

    Args:
        of_area: int32, shape (areas,); -1 for areas in no class.
    """

    kind: str
    names: tuple[str, ...]
    of_area: NDArray[np.int32] = field(repr=False)


def everything(areas: int) -> Strata:
    """One class, ``all``, that holds every area."""
    return Strata("all", ("all",), np.zeros(areas, np.int32))


def size_classes(population: NDArray[np.int64], edges: Sequence[int]) -> Strata:
    """Classes by true population, closed on the left, the last one open above.

    Args:
        population: true count of every area, shape (areas,).

    Example:
        >>> found = size_classes(np.array([999, 1000, 200000]), COUNTY_SIZES)
        >>> found.names[0], found.names[-1], found.of_area.tolist()
        ('0-999', '100000+', [0, 1, 5])
    """
    names = [f"{low}-{high - 1}" if high - low > 1 else str(low) for low, high in pairwise(edges)]
    names.append(f"{edges[-1]}+")
    place = np.searchsorted(np.asarray(edges, np.int64), population, side="right") - 1
    return Strata("population", tuple(names), place.astype(np.int32))


def population_bins(population: NDArray[np.int64], width: int) -> Strata:
    """Bins of equal width, those that hold an area.

    Args:
        population: true count of every area, shape (areas,).
        width: of a bin, in persons.

    Example:
        >>> population_bins(np.array([3, 120, 7]), 50).names
        ('0-49', '100-149')
    """
    filled, place = np.unique(population // width, return_inverse=True)
    names = tuple(f"{bin_ * width}-{bin_ * width + width - 1}" for bin_ in filled.tolist())
    return Strata("population", names, place.astype(np.int32))


def size_edges(areas: ComparedAreas, lowest: str = "") -> tuple[int, ...]:
    """Lower ends of the classes that areas of a kind are sorted into.

    Args:
        lowest: name of the lowest level, whose areas are sorted as blocks are.

    Source: classes of the Bureau's demonstration metrics; those of blocks are the ones of its slides.
    """
    if areas.level == lowest:
        return BLOCK_SIZES
    if not areas.area_class:
        return COUNTY_SIZES
    kind = areas.area_class.lower()
    if any(word in kind for word in ("place", "city", "town")):
        return PLACE_SIZES
    return AIANNH_SIZES if any(word in kind for word in _AIANNH) else COUNTY_SIZES
