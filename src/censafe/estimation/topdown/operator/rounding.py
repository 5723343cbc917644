"""Integers for one pass of a parent, and exchanges that bring measured answers about several exact sums back to the fractions.

Every exact sum is rounded by itself, by a flow through its own tree of sums, and keeps sums of its own columns close. An answer about
several exact sums gathers the errors of all of them, which at a state is several times its own noise. An exchange takes a unit of a
child from a column that was rounded up and gives it to one that was rounded down, both of one exact sum; where columns have a
parent, another child does the opposite. So exact sums, counts of the parent, and floor and ceiling of every entry stay as they
are. With e_i what rounding has added to answer i, and w_i its weight, an exchange is made where it lowers

    sum_i w_i e_i^2

by a least amount, so that answers whose noise is large compared with a unit cost no time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import boolean, float64, int8, int32, int64, types, void
from numpy.typing import NDArray

from censafe.estimation.topdown.least_squares.structures import SIDES, Sides
from censafe.estimation.topdown.operator.problem import ENTRIES, SUMS
from censafe.estimation.topdown.rounding.network import (
    MARGIN_TREE,
    PARENT_SUMS,
    SNAP,
    MarginTree,
    ParentSums,
    number_nodes,
    round_snapped,
)
from censafe.model.arrays import Floats, Integers
from censafe.model.compiled import compiled
from censafe.model.named_arrays import tuple_type


@compiled(MARGIN_TREE(int32[:, ::1]))
def _tree(chain):  # type: ignore[no-untyped-def]
    """The tree of the columns of one exact sum."""
    levels, cells = chain.shape
    label = np.zeros((levels + 1, cells), dtype=np.int64)
    parent = np.empty(levels * cells + 1, dtype=np.int64)
    nodes, used = number_nodes(chain, label, parent)
    return MarginTree(label[:used].copy(), parent[: max(nodes, 1)].copy())


@compiled(SIDES(boolean[:, ::1], int64[::1]))
def _sides(allowed, right):  # type: ignore[no-untyped-def]
    """One row, the total of the columns, which is exact."""
    children, cells = allowed.shape
    exact = right.astype(np.float64).reshape(children, 1)
    return Sides(
        allowed,
        np.ones((1, cells), dtype=np.uint8),
        exact,
        exact.copy(),
        np.full(children, np.int32(-1)),
        np.zeros(0),
    )


@compiled(int32[:, ::1](ENTRIES, int64, int64))
def _places(entries, children, columns):  # type: ignore[no-untyped-def]
    """Entry of every child and column, -1 where there is none."""
    place = np.full((children, columns), -1, dtype=np.int32)
    for v in range(entries.child.shape[0]):
        place[entries.child[v], entries.column[v]] = v
    return place


@compiled(void(int32[:, ::1], float64[::1], int64[::1], int64[::1], float64[:, ::1], boolean[:, ::1]))
def _point(place, x, own, member, point, allowed):  # type: ignore[no-untyped-def]
    """Write the fractional point of some children and columns, and where they may have records."""
    for i in range(own.shape[0]):
        for j in range(member.shape[0]):
            v = place[own[i], member[j]]
            allowed[i, j] = v >= 0
            point[i, j] = x[v] if v >= 0 else 0.0


@compiled(boolean(int64[:, ::1], int64[::1], PARENT_SUMS))
def _exact(rounded, right, sums):  # type: ignore[no-untyped-def]
    """Whether integers meet the exact sum of every child and the counts of the parent."""
    good = True
    for i in range(right.shape[0]):
        good = good and rounded[i].sum() == right[i]
    for j in range(sums.p.shape[0] if sums.coupled else 0):
        good = good and rounded[:, j].sum() == sums.p[j]
    return good


@compiled(
    types.UniTuple(float64, 2)(
        ENTRIES, float64[::1], int32[::1], int64[:, ::1], int64[::1], int32[:, ::1], int64[:, ::1]
    )
)
def round_pass(entries, x, group, right, column, chain, counts):  # type: ignore[no-untyped-def]
    """Round the open columns, keeping exact sums and the counts of the parent.

    Args:
        x: fractional point, shape (N,).
        group: exact sum of every column, shape (K,).
        right: exact sums of the children, shape (C, sums).
        chain: sums that are kept close, coarse to fine, shape (L, K).
        counts: receives the integers, zeros before, shape (C, K).
    """
    children, columns = counts.shape
    coupled = column.shape[0] > 0
    place = _places(entries, children, columns)
    order = np.argsort(group, kind="mergesort")
    start, cost, failed = 0, 0.0, 0
    while start < columns:
        g, stop = group[order[start]], start
        while stop < columns and group[order[stop]] == g:
            stop += 1
        member, own = order[start:stop], np.flatnonzero(right[:, g] > 0)
        point = np.empty((own.shape[0], member.shape[0]))
        allowed = np.empty(point.shape, dtype=np.bool_)
        _point(place, x, own, member, point, allowed)
        links = np.empty((chain.shape[0], member.shape[0]), dtype=np.int32)
        for level in range(chain.shape[0]):
            links[level] = chain[level][member]
        exact = right[:, g][own]
        sums = ParentSums(
            column[member] if coupled else np.zeros(member.shape[0], dtype=np.int64), coupled, exact.sum()
        )
        tree, rounded = _tree(links), np.zeros(point.shape, dtype=np.int64)
        weight = np.ones(tree.parent.shape[0], dtype=np.int64)
        distance = round_snapped(point, sums, _sides(allowed, exact), tree, weight, 0, rounded)
        failed += distance < 0.0 or not _exact(rounded, exact, sums)
        cost += max(distance, 0.0)
        for i in range(own.shape[0]):
            counts[own[i]][member] = rounded[i]
        start = stop
    return cost, failed


_LEAST_GAIN = 0.02  # in variances of the noise
_PARTNERS = 12  # children that each is compared with
_SWEEPS = 3


class _Gathered(NamedTuple):
    """The measured families with answers about several exact sums; the answer of child c and group g is first + c size + g."""

    label: NDArray[np.int32]  # (F, K) group of every column, -1 where the family leaves it out
    first: Integers  # (F,)
    size: Integers  # (F,)
    weight: Floats  # (R,)
    error: Floats  # (R,) what rounding has added, changed by exchanges


_GATHERED = tuple_type(_Gathered, int32[:, ::1], int64[::1], int64[::1], float64[::1], float64[::1])


@compiled(boolean(int32[::1], int64, int32[::1]))
def _about_several(label, size, group):  # type: ignore[no-untyped-def]
    """Whether a group of columns belongs to several exact sums."""
    of = np.full(size, np.int32(-1))
    several = False
    for k in range(group.shape[0]):
        a = label[k]
        if a >= 0:
            several = several or (of[a] >= 0 and of[a] != group[k])
            of[a] = group[k]
    return several


@compiled(void(int64, int64, float64, _GATHERED))
def _add_error(child, column, more, answers):  # type: ignore[no-untyped-def]
    """Add to every answer about an entry."""
    for family in range(answers.size.shape[0]):
        a = answers.label[family, column]
        if a >= 0:
            answers.error[answers.first[family] + child * answers.size[family] + a] += more


@compiled(float64(int64, int64, int64, _GATHERED))
def _price(child, column, unit, answers):  # type: ignore[no-untyped-def]
    """What a unit more (1) or less (-1) of one entry adds to the weighted squares."""
    price = 0.0
    for family in range(answers.size.shape[0]):
        a = answers.label[family, column]
        if a >= 0:
            i = answers.first[family] + child * answers.size[family] + a
            price += answers.weight[i] * (1.0 + 2.0 * unit * answers.error[i])
    return price


@compiled(float64(int64, int64, int64, _GATHERED))
def _shared(child, give, take, answers):  # type: ignore[no-untyped-def]
    """What the prices of two columns count, and what does not happen, for both belong to one answer."""
    both = 0.0
    for family in range(answers.size.shape[0]):
        a = answers.label[family, give]
        if a >= 0 and a == answers.label[family, take]:
            both += 2.0 * answers.weight[answers.first[family] + child * answers.size[family] + a]
    return both


@compiled(types.UniTuple(int64, 2)(int64, int64, int64[::1], int8[:, ::1], _GATHERED, float64))
def _best_pair(child, other, member, state, answers, least):  # type: ignore[no-untyped-def]
    """The columns of which a child gives and takes a unit at the least price, and another one, if any, the opposite.

    Args:
        other: who does the opposite; -1 where columns have no parent.
        state: 1 where an entry was rounded up, -1 where it was rounded down, 0 where it is an integer, shape (C, K).

    Returns:
        The columns; -1 where no exchange helps.
    """
    give, take, least_give, least_take = np.int64(-1), np.int64(-1), np.inf, np.inf
    for k in member:
        now = state[child, k]
        if now == 0 or (other >= 0 and state[other, k] != -now):
            continue
        price = _price(child, k, -now, answers)
        if other >= 0:
            price += _price(other, k, now, answers)
        if now > 0 and price < least_give:
            give, least_give = k, price
        if now < 0 and price < least_take:
            take, least_take = k, price
    if give < 0 or take < 0:
        return np.int64(-1), np.int64(-1)
    change = least_give + least_take - _shared(child, give, take, answers)
    if other >= 0:
        change -= _shared(other, give, take, answers)
    return (give, take) if change <= -least else (np.int64(-1), np.int64(-1))


@compiled(void(int64, int64, int64, int64[:, ::1], int8[:, ::1], _GATHERED))
def _move(child, give, take, counts, state, answers):  # type: ignore[no-untyped-def]
    """Take a unit of a child from one column and give it to another."""
    for column, unit in ((give, -1), (take, 1)):
        counts[child, column] += unit
        state[child, column] = unit
        _add_error(child, column, float(unit), answers)


@compiled(int64(int64, int64, int64[::1], int64[:, ::1], int8[:, ::1], _GATHERED, float64))
def _exchange(child, other, member, counts, state, answers, least):  # type: ignore[no-untyped-def]
    """Exchange units of one exact sum while that helps; returns how often."""
    exchanges = 0
    while True:
        give, take = _best_pair(child, other, member, state, answers, least)
        if give < 0:
            return exchanges
        _move(child, give, take, counts, state, answers)
        if other >= 0:
            _move(other, take, give, counts, state, answers)
        exchanges += 1


@compiled(int64(ENTRIES, float64[::1], int32[::1], SUMS, float64, int64[:, ::1]))
def exchange_units(entries, x, group, sums, scale, counts):  # type: ignore[no-untyped-def]
    """Exchange units between columns of one exact sum while that brings the answers closer.

    Every exchange lowers the squares by a least amount, so there is an end.

    Args:
        x: fractional point, shape (N,).
        group: exact sum of every column, shape (K,).
        counts: floor or ceiling of every entry, changed, shape (C, K).
    """
    # the families that exchanges heed, without errors; the first family of the sums are the exact ones
    several = np.zeros(sums.size.shape[0], dtype=np.bool_)
    for family in range(1, sums.size.shape[0]):
        several[family] = _about_several(sums.label[family], sums.size[family], group)
    chosen = np.flatnonzero(several)
    label = np.empty((chosen.shape[0], group.shape[0]), dtype=np.int32)
    for i in range(chosen.shape[0]):
        label[i] = sums.label[chosen[i]]
    error = np.zeros(sums.right.shape[0])
    answers = _Gathered(label, sums.first[chosen], sums.size[chosen], sums.weight, error)
    if answers.size.shape[0] == 0:
        return 0
    state = np.zeros(counts.shape, dtype=np.int8)
    for v in range(entries.child.shape[0]):
        child, column = entries.child[v], entries.column[v]
        more = counts[child, column] - x[v]
        if SNAP < abs(more) < 1.0 - SNAP:
            state[child, column] = 1 if more > 0.0 else -1
        _add_error(child, column, more, answers)
    children, coupled, least = counts.shape[0], sums.column.shape[0] > 0, _LEAST_GAIN / scale
    order = np.argsort(group, kind="mergesort")
    first = np.searchsorted(group[order], np.arange(group.max() + 2))
    partners = min(children - 1, _PARTNERS) if coupled else 1
    exchanges = 0
    for _ in range(_SWEEPS):
        before = exchanges
        for g in range(first.shape[0] - 1):
            member = order[first[g] : first[g + 1]]
            for child in range(children if member.shape[0] > 1 else 0):
                for step in range(partners):
                    other = (child + 1 + step) % children if coupled else -1
                    exchanges += _exchange(child, other, member, counts, state, answers, least)
        if exchanges == before:
            break
    return exchanges
