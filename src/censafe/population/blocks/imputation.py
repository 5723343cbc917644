"""Persons of a block by all attributes, from its P.L. 94-171 tables: kinds of group quarters are imputed by a fixed rule."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from censafe.model.topdown.pl94 import GQ_ITEMS, RACE_ITEMS

CHUNK = 20_000
"""Blocks that are held at once."""

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
_Tables = Mapping[str, NDArray[np.int32]]


def impute_quarters(cells: _Ints, quarters: _Ints) -> _Ints | None:
    """Spread the persons in group quarters of a block over its cells.

    Args:
        cells: shape (2, origin and race): persons of the block by age group (0 under 18) and the rest.
        quarters: shape (8,): persons by level of hhgq; entry 0, those in households, is not read.

    Example:
        >>> split = impute_quarters(np.array([[3, 0], [6, 2]]), np.array([0, 0, 1, 4, 0, 0, 0, 0]))
        >>> split[3].tolist(), split[2].tolist(), split[0].tolist()
        ([[0, 0], [3, 1]], [[1, 0], [0, 0]], [[2, 0], [3, 1]])
    """
    left = cells.copy()
    split = np.zeros((8, *cells.shape), np.int64)
    for level, groups in _ORDER:
        remaining = int(quarters[level])
        for ages in groups:
            taken = np.zeros_like(left)
            rows = list(ages)
            taken[rows] = _in_proportion(left[rows], min(remaining, int(left[rows].sum())))
            left -= taken
            split[level] += taken
            remaining -= int(taken.sum())
        if remaining:
            return None
    split[0] = left
    return split


def _in_proportion(cells: _Ints, persons: int) -> _Ints:
    """Take some persons from cells in proportion to their counts; ties go to the earlier cell."""
    total = int(cells.sum())
    if persons == 0:
        return np.zeros_like(cells)
    parts, remainder = np.divmod(cells * persons, total)
    order = np.argsort(-remainder.reshape(-1), kind="stable")
    flat = parts.reshape(-1)
    flat[order[: persons - int(flat.sum())]] += 1
    return flat.reshape(cells.shape)


def block_cells(tables: _Tables, rows: slice) -> _Ints:
    """Persons of some blocks by age group (0 under 18) and by origin and race, shape (blocks, 2, 126).

    Args:
        tables: P1 to P4 by name, each of shape (blocks, items).
    """
    races = np.array(RACE_ITEMS)
    everyone, adults = tables["P1"][rows][:, races], tables["P3"][rows][:, races]
    not_hispanic, adults_not = tables["P2"][rows][:, races + 2], tables["P4"][rows][:, races + 2]
    children_not = not_hispanic - adults_not
    children = np.concatenate([children_not, everyone - adults - children_not], axis=1)
    both = np.stack([children, np.concatenate([adults_not, adults - adults_not], axis=1)], axis=1)
    return both.astype(np.int64)


def imputed_cells(tables: _Tables) -> tuple[_Ints, _Ints, int]:
    """The joint histogram of persons from their tables, the kind of quarters by the stated rule.

    Args:
        tables: P1 to P5 by name, each of shape (blocks, items).
    """
    blocks = len(tables["P1"])
    keys, counts, failed = [], [], 0
    for first in range(0, blocks, CHUNK):
        rows = slice(first, first + CHUNK)
        cells = block_cells(tables, rows)
        quarters = tables["P5"][rows][:, list(GQ_ITEMS)].astype(np.int64)
        plain = quarters.sum(axis=1) == 0
        for row in np.flatnonzero(~plain):
            split = impute_quarters(cells[row], np.append(0, quarters[row]))
            failed += split is None
            if split is not None:
                flat = split.reshape(-1)
                (cell,) = np.nonzero(flat)
                keys.append((first + row) * flat.size + cell)
                counts.append(flat[cell])
        plain_cells = cells.reshape(len(cells), -1) * plain[:, None]
        block, cell = np.nonzero(plain_cells)
        keys.append((first + block) * (8 * plain_cells.shape[1]) + cell)
        counts.append(plain_cells[block, cell])
    return np.concatenate(keys), np.concatenate(counts), failed
