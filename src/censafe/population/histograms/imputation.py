"""The kind of quarters of every person of a published P.L. 94-171 block, made up by a fixed rule.

The tables give persons by age group, origin and race, and persons by kind of quarters, but not the two together.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["RULE", "impute_quarters"]

# (level of hhgq, age groups in the order in which they are used): nursing first, for it takes adults only
_ORDER: tuple[tuple[int, tuple[tuple[int, ...], ...]], ...] = (
    (3, ((1,),)),
    (1, ((1,), (0,))),
    (6, ((1,), (0,))),
    (5, ((1,), (0,))),
    (2, ((0,), (1,))),
    (4, ((0, 1),)),
    (7, ((0, 1),)),
)
RULE = (
    "kind of group quarters by age, origin and race: nursing adults only; correctional, military and college adults "
    "first; juvenile under 18 first; the rest of any age; each in proportion to the persons left in the block, rounded "
    "by largest remainders"
)
_Ints = NDArray[np.int64]


def impute_quarters(cells: _Ints, quarters: _Ints) -> _Ints | None:
    """Spread the persons in group quarters of a block over its cells.

    Args:
        cells: shape (2, origin and race): persons of the block by age group (0 under 18) and the rest.
        quarters: shape (8,): persons by level of hhgq; entry 0, those in households, is not read.

    Returns:
        Shape (8, 2, origin and race), sums over its first axis equal to `cells`; None where the block has too few
        persons, or too few adults for its nursing facilities.

    Example:
        >>> split = impute_quarters(np.array([[3, 0], [6, 2]]), np.array([0, 0, 1, 4, 0, 0, 0, 0]))
        >>> split[3].tolist(), split[2].tolist(), split[0].tolist()
        ([[0, 0], [3, 1]], [[1, 0], [0, 0]], [[2, 0], [3, 1]])
    """
    left = cells.copy()
    split = np.zeros((8, *cells.shape), np.int64)
    for level, groups in _ORDER:
        wanted = int(quarters[level])
        for ages in groups:
            taken = np.zeros_like(left)
            rows = list(ages)
            taken[rows] = _in_proportion(left[rows], min(wanted, int(left[rows].sum())))
            left -= taken
            split[level] += taken
            wanted -= int(taken.sum())
        if wanted:
            return None
    split[0] = left
    return split


def _in_proportion(held: _Ints, wanted: int) -> _Ints:
    """Take `wanted` persons from cells in proportion to what they hold; ties go to the earlier cell."""
    total = int(held.sum())
    if wanted == 0:
        return np.zeros_like(held)
    parts, remainder = np.divmod(held * wanted, total)
    order = np.argsort(-remainder.reshape(-1), kind="stable")
    flat = parts.reshape(-1)
    flat[order[: wanted - int(flat.sum())]] += 1
    return flat.reshape(held.shape)
