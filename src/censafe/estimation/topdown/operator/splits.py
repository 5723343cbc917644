"""Whole numbers of open records by geounit and kind of facility: near an estimate, and such that the blocks can follow."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import LinearConstraint, milp
from scipy.sparse import coo_array

from censafe.estimation.topdown.operator.facilities import OpenRecords
from censafe.model.arrays import Floats, Integers

__all__ = ["split_open"]


class _Limit(NamedTuple):
    """Sums of the split, and what they may be."""

    place: Integers  # (n,) sum that every unknown of the split belongs to
    least: Floats  # of every sum
    most: Floats


class _Aim(NamedTuple):
    """Sums of the split, and what they should be near."""

    place: Integers  # (n,) sum that every unknown of the split belongs to
    value: Floats  # of every sum


def split_open(
    rows: OpenRecords, span: tuple[int, int], groups: dict[tuple[int, int], int], wanted: Floats,
    parent: Integers | None, *, change: bool = False,
) -> Integers | None:  # fmt: skip
    """Split the open records of consecutive geounits among kinds, close to an estimate, so that their blocks can follow.

    Args:
        rows: of the level.
        span: first and one past the last geounit.
        groups: position of a published sum and kind among the groups of the parent.
        wanted: estimated open records of every geounit and group, shape (C, G).
        parent: open records of the parent by group, shape (G,); None at a root.
        change: whether the split may differ from the parent, by as few records as possible.

    Returns:
        int64, shape (C, G); None where there is no such split.
    """
    area, group, limits = _unknowns(rows, span, groups)
    cell = area * wanted.shape[1] + group
    near = _Aim(cell, wanted.ravel())
    if parent is None:
        units = _least_split(limits, near)
    elif not change:
        exact = parent.astype(float)
        units = _least_split([*limits, _Limit(group, exact, exact)], near)
    else:
        own = _Aim(group, parent.astype(float))
        least = _least_split(limits, own)
        if least is None:
            return None
        moved = float(np.abs(np.bincount(group, least, len(parent)) - parent)[np.unique(group)].sum())
        units = _least_split(limits, near, own, moved)
    if units is None:
        return None
    return np.bincount(cell, units, wanted.size).astype(np.int64).reshape(wanted.shape)


def _unknowns(
    rows: OpenRecords, span: tuple[int, int], groups: dict[tuple[int, int], int]
) -> tuple[Integers, Integers, list[_Limit]]:
    """Every way that a row of open records may go: its geounit and its group; and what rows and facilities ask of them."""
    at = rows.rows(*span)
    area, published, kinds = rows.area[at] - span[0], rows.published[at], rows.kinds[at]
    place = rows.place[at]
    choice = [
        (row, kind)
        for row in range(len(area))
        for kind in range(int(kinds[row]).bit_length())
        if kinds[row] >> kind & 1 and (int(published[row]), kind) in groups
    ]
    row = np.array([one for one, _ in choice], np.int64)
    group = np.array([groups[int(published[r]), k] for r, k in choice], np.int64)
    count = rows.count[at].astype(float)
    limits = [_Limit(row, count, count)]
    need = rows.least[int(rows.least_pointer[span[0]]) : int(rows.least_pointer[span[1]])]
    if len(need):
        key = {(int(a) - span[0], int(p), int(k)): i for i, (a, p, k, _) in enumerate(need)}
        which = np.array([key[int(area[r]), int(place[r]), k] for r, k in choice], np.int64)
        limits.append(_Limit(which, need[:, 3].astype(float), np.full(len(need), np.inf)))
    return area[row], group, limits


def _least_split(
    limits: list[_Limit], near: _Aim, other: _Aim | None = None, most: float = 0.0
) -> Floats | None:
    """Whole numbers of least distance from an aim, at most ``most`` away from another one; None where there are none."""
    size = len(near.place)
    aims = [near] if other is None else [near, other]
    used = [np.unique(aim.place) for aim in aims]
    width = size + 2 * sum(len(one) for one in used)
    every, start = np.arange(size), size
    blocks = [_rows(one, every, width) for one in limits]
    for aim, one in zip(aims, used, strict=True):
        place = np.searchsorted(one, aim.place)
        blocks.append(_near(place, aim.value[one], size, start, width))
        start += 2 * len(one)
    cost = np.zeros(width)
    cost[size : size + 2 * len(used[0])] = 1.0
    if other is not None:
        far = np.arange(size + 2 * len(used[0]), width)
        limit = _Limit(np.zeros(len(far), np.int64), np.full(1, -np.inf), np.full(1, most))
        blocks.append(_rows(limit, far, width))
    integral = np.zeros(width)
    integral[:size] = 1
    found = milp(cost, integrality=integral, constraints=blocks)
    return None if found.x is None else np.rint(found.x[:size])


def _rows(limit: _Limit, column: Integers, width: int) -> LinearConstraint:
    shape = (len(limit.least), width)
    matrix = coo_array((np.ones(len(column)), (limit.place, column)), shape=shape).tocsr()
    return LinearConstraint(matrix, limit.least, limit.most)


def _near(place: Integers, aim: Floats, size: int, start: int, width: int) -> LinearConstraint:
    """Sums of the split, less what is above the aim, plus what is below it, are the aim; these follow from ``start``."""
    n = len(aim)
    row = np.concatenate([place, np.arange(n), np.arange(n)])
    column = np.concatenate([np.arange(size), start + np.arange(n), start + n + np.arange(n)])
    value = np.concatenate([np.ones(size), -np.ones(n), np.ones(n)])
    return LinearConstraint(coo_array((value, (row, column)), shape=(n, width)).tocsr(), aim, aim)
