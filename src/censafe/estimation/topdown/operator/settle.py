"""Open records of a parent's children split among kinds of facility, and the repair of a parent that allows no split.

A split consists of whole numbers by geounit and kind of facility, near an estimate, and such that the blocks can follow.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import LinearConstraint, milp
from scipy.sparse import coo_array

from censafe.errors import CheckError
from censafe.estimation.topdown.levels.repair import CellChange
from censafe.estimation.topdown.operator.facilities import OpenRecords
from censafe.estimation.topdown.operator.family import (
    OpenSums,
    OperatorFamily,
    observed_answers,
    pass_columns,
    positions,
    zero_multipliers,
)
from censafe.estimation.topdown.operator.newton import climb
from censafe.estimation.topdown.operator.passes import OperatorRules
from censafe.estimation.topdown.operator.problem import pass_problem
from censafe.model.arrays import Floats, Integers

__all__ = ["settle_open", "split_open"]


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


_ROUGH = 0.1  # records, of estimates that only say how whole open records are split


def settle_open(
    rules: OperatorRules, family: OperatorFamily, *, repair: bool = True
) -> tuple[OperatorFamily, tuple[CellChange, ...]]:
    """Decide the open records of the children: near the estimate under the published sums, so that their blocks can follow.

    A parent met the needs of its facilities with all its records together; its children may need kinds in cells of their own. Where
    no split adds up to the parent, the fewest of its records change their kind of facility; their other attributes change
    in as few queries as they can.

    Args:
        rules: of the level.
        family: a parent.
        repair: whether a parent may be changed.

    Returns:
        The family without open records, its answers still those of the cells that it had; changes of its cells, in their order.

    Raises:
        CheckError: no split adds up to the parent, and it may not be changed.
    """
    opened = family.open
    if opened is None:
        return family, ()
    groups = {(int(p), int(k)): g for g, (p, k) in enumerate(zip(opened.published, opened.kind, strict=True))}
    wanted = np.maximum(_estimate(rules, family, opened, groups) - family.right, 0.0)
    left = None
    if family.count is not None:
        group = positions(family.held, rules.passes[0].held[family.cell], family.name)
        left = np.bincount(group, family.count, len(family.held)).astype(np.int64) - family.right.sum(axis=0)
    split = split_open(opened.rows, opened.span, groups, wanted, left)
    if split is None and repair and left is not None:
        split = split_open(opened.rows, opened.span, groups, wanted, left, change=True)
    if split is None:
        raise CheckError(
            f"{family.name}: no split among kinds of facility meets its own counts and the facilities of its children"
        )
    settled = replace(family, right=family.right + split, open=None)
    if left is None or np.array_equal(left, split.sum(axis=0)):
        return settled, ()
    return _changed(rules, settled, opened, split.sum(axis=0) - left)


def _estimate(
    rules: OperatorRules, family: OperatorFamily, opened: OpenSums, groups: dict[tuple[int, int], int]
) -> Floats:
    """Records of every child and group by least squares under the published sums alone, shape (C, G)."""
    one, first = rules.passes[0], opened.span[0]
    rows = opened.rows.rows(*opened.span)
    child, published, kinds = (
        opened.rows.area[rows] - first,
        opened.rows.published[rows],
        opened.rows.kinds[rows],
    )
    can = family.right > 0
    for c, total, bits in zip(child.tolist(), published.tolist(), kinds.tolist(), strict=True):
        for kind in range(bits.bit_length()):
            if bits >> kind & 1 and (total, kind) in groups:
                can[c, groups[total, kind]] = True
    sums, of_group = np.unique(opened.published, return_inverse=True)
    right = np.zeros((len(family.right), len(sums)), np.int64)
    np.add.at(right.T, of_group, family.right.T)
    np.add.at(right, (child, np.searchsorted(sums, published)), opened.rows.count[rows])
    _, cell, column = pass_columns(one, family)
    group = positions(family.held, one.held[cell], family.name)
    problem = pass_problem(
        of_group[group].astype(np.int32),
        right,
        column,
        observed_answers(rules, one, family, cell),
        can[:, group],
    )
    dual = zero_multipliers(problem)
    climb(problem.entries, problem.sums, dual, _ROUGH)
    wanted = np.zeros(family.right.shape)
    entries = problem.entries
    np.add.at(wanted, (entries.child, group[problem.free[entries.column]]), dual.x)
    return wanted


def _changed(
    rules: OperatorRules, family: OperatorFamily, opened: OpenSums, more: Integers
) -> tuple[OperatorFamily, tuple[CellChange, ...]]:
    """Move records of the parent between groups of one published sum, until every group has as many more as it must.

    Args:
        rules: of the level.
        family: the parent.
        opened: its groups.
        more: records that every group gains, below 0 where it loses them, shape (G,).
    """
    label = rules.passes[0].held
    count = dict(
        zip(family.cell.tolist(), family.count.tolist() if family.count is not None else (), strict=True)
    )
    before, left = dict(count), more.copy()
    while (left > 0).any():
        gains = int(np.flatnonzero(left > 0)[0])
        from_groups = np.flatnonzero((left < 0) & (opened.published == opened.published[gains]))
        cells = np.array([cell for cell, number in count.items() if number > 0], np.int64)
        givers = cells[np.isin(label[cells], family.held[from_groups])]
        takers = np.flatnonzero(rules.allowed & (label == family.held[gains]))
        if not len(takers):
            raise CheckError(f"{family.name}: records are needed where no cell may hold any")
        giver, taker = _nearest(rules, givers, takers)
        loses = int(np.searchsorted(family.held, label[giver]))
        moved = min(int(left[gains]), -int(left[loses]), count[giver])
        count[giver] -= moved
        count[taker] = count.get(taker, 0) + moved
        left[gains] -= moved
        left[loses] += moved
    cell = np.array(sorted(cell for cell, number in count.items() if number > 0), np.int32)
    changes = tuple(
        CellChange(one, before.get(one, 0), count[one])
        for one in sorted(count)
        if count[one] != before.get(one, 0)
    )
    return replace(
        family, cell=cell, count=np.array([count[one] for one in cell.tolist()], np.int64)
    ), changes


def _nearest(
    rules: OperatorRules, givers: NDArray[np.integer], takers: NDArray[np.integer]
) -> tuple[int, int]:
    """The pair of cells that differs in the fewest queries; the first one of several."""
    alike = np.zeros((len(givers), len(takers)), np.int64)
    for query in rules.queries:
        alike += rules.labels[query][givers][:, None] == rules.labels[query][takers][None, :]
    giver, taker = np.unravel_index(int(alike.argmax()), alike.shape)
    return int(givers[giver]), int(takers[taker])
