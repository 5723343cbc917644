"""Items of the redistricting tables P1 to P5 and H1, for those who read them and those who write them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

TABLE_ITEMS: Mapping[str, int] = {"P1": 71, "P2": 73, "P3": 71, "P4": 73, "P5": 10, "H1": 3}
_BY_RACES = (6, 15, 20, 15, 6, 1)  # how many of the 63 race codes name one, two, ... races


def _layout() -> tuple[tuple[int, ...], tuple[tuple[int, int, int], ...]]:
    """Item (from 0) of every race code, and (item, first code, stop) of every subtotal."""
    items: list[int] = []
    subtotals = [(0, 0, 63), (1, 0, 6), (8, 6, 63)]
    item, code = 2, 0
    for races, codes in enumerate(_BY_RACES, start=1):
        if races == 2:
            item += 1  # two or more races
        if races >= 2:
            subtotals.append((item, code, code + codes))
            item += 1
        items += range(item, item + codes)
        item, code = item + codes, code + codes
    return tuple(items), tuple(subtotals)


RACE_ITEMS, _SUBTOTALS = _layout()
"""Position (from 0) in P1 and P3 of the 63 race codes; two more in P2 and P4."""

GQ_ITEMS = (2, 3, 4, 5, 7, 8, 9)
"""Position (from 0) in P5 of the levels 1 to 7 of hhgq."""


def race_matrix() -> NDArray[np.int64]:
    """Which race codes every item of P1 adds up, 0 or 1, shape (71, 63).

    Example:
        >>> matrix = race_matrix()
        >>> matrix[0].sum(), matrix[8].sum(), matrix.sum()
        (np.int64(63), np.int64(57), np.int64(246))
    """
    matrix = np.zeros((TABLE_ITEMS["P1"], len(RACE_ITEMS)), np.int64)
    matrix[list(RACE_ITEMS), np.arange(len(RACE_ITEMS))] = 1
    for item, first, stop in _SUBTOTALS:
        matrix[item, first:stop] = 1
    return matrix


def item_names() -> tuple[str, ...]:
    """Names of all items in the order of the published files, P1_001 to H1_003 with P5 last but one.

    Example:
        >>> names = item_names()
        >>> names[0], names[-1], len(names)
        ('P1_001', 'H1_003', 301)
    """
    return tuple(
        f"{table}_{item:03d}" for table, items in TABLE_ITEMS.items() for item in range(1, items + 1)
    )
