"""Areas of synthetic blocks: they follow tracts and block groups, and cut through some of them as real ones do."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from censafe.geography.block_areas import NO_AIANNH, NO_PLACE
from censafe.population.synthetic.layouts import Coded, Column
from censafe.population.synthetic.plan import Plan

__all__ = ["area_columns", "place_in_group"]

_SUBDIVISION_TRACTS = 6
_OUTSIDE = (
    7  # in a block group whose number it is the turn of, every block of that remainder lies outside the place
)
_Ints = NDArray[np.int64]


def area_columns(plan: Plan, tract: NDArray[np.int32], group: NDArray[np.int32]) -> dict[str, Column]:
    """American Indian area, place and county subdivision of every block, as text.

    A tract has one place and, where American Indians are its group, the American Indian area of its state. Of the second
    block group of every tract some blocks are outside the place, and its last one, if it has several, is outside the
    American Indian area. Six tracts of a county that follow each other are a county subdivision.

    Args:
        plan: the tracts of the blocks.
        tract: of every block, position in the plan, shape (blocks,), rising.
        group: block group of every block within its tract, from 1.
    """
    places = plan.places
    number = place_in_group(tract.astype(np.int64) * 10 + group)
    last = np.zeros(len(plan.tracts.state), np.int64)
    np.maximum.at(last, tract, group)
    outside = (group == 2) & (number % _OUTSIDE == places.tract[tract] // 100 % _OUTSIDE)
    place = np.where(outside, NO_PLACE, places.place[tract])
    apart = (group == last[tract]) & (group > 1)
    aiannh = np.where(apart, NO_AIANNH, places.aiannh[tract])
    cousub = 1 + (places.county * 110 + places.tract // (100 * _SUBDIVISION_TRACTS)) % 99_998
    return {
        "aiannhce": _text(aiannh, 4),
        "placefp": _text(place, 5),
        "cousubfp": _text(cousub[tract], 5),
    }


def place_in_group(group: _Ints) -> _Ints:
    """Position from 0 of every row among those of its group, which stand together.

    Example:
        >>> place_in_group(np.array([5, 5, 7])).tolist()
        [0, 1, 0]
    """
    row = np.arange(len(group))
    return row - np.maximum.accumulate(np.where(np.diff(group, prepend=-1) != 0, row, 0))


def _text(numbers: _Ints, digits: int) -> Coded:
    used, position = np.unique(numbers, return_inverse=True)
    return Coded(tuple(f"{number:0{digits}d}" for number in used.tolist()), position.astype(np.int32))
