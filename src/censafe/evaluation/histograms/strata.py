"""Strata of areas: population bins and other classes, each area in at most one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from censafe.evaluation.histograms.areas import Areas

__all__ = [
    "AIANNH_SIZES",
    "BLOCK_SIZES",
    "COUNTY_SIZES",
    "PLACE_SIZES",
    "Strata",
    "everything",
    "population_bins",
    "size_classes",
    "size_edges",
]

COUNTY_SIZES: Final = (0, 1_000, 5_000, 10_000, 50_000, 100_000)
PLACE_SIZES: Final = (0, 500, 1_000, 5_000, 10_000, 50_000, 100_000)
AIANNH_SIZES: Final = (0, 100, 1_000, 10_000)
BLOCK_SIZES: Final = (0, 1, 10, 50, 100, 250, 500, 1_000)
_AIANNH: Final = ("aian", "air", "otsa", "anvsa", "tribal", "reservation")


@dataclass(frozen=True, eq=False)
class Strata:
    """Named classes of the areas of one level.

    Args:
        kind: what the classes are, such as ``population``.
        names: of the classes, in order.
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
        edges: lower ends, rising. Areas below the first are in no class.

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
    held, place = np.unique(population // width, return_inverse=True)
    names = tuple(f"{bin_ * width}-{bin_ * width + width - 1}" for bin_ in held.tolist())
    return Strata("population", names, place.astype(np.int32))


def size_edges(areas: Areas, lowest: str = "") -> tuple[int, ...]:
    """Lower ends of the classes that areas of a kind are sorted into.

    Args:
        areas: a level of the spine or a list of areas.
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
