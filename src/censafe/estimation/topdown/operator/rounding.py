"""Integers for one pass of a parent: every exact sum is rounded by itself, by a flow through its own tree of sums."""

from __future__ import annotations

import numpy as np
from numba import boolean, float64, int32, int64, types, void

from censafe.estimation.topdown.least_squares.structures import SIDES, Sides
from censafe.estimation.topdown.operator.structures import ENTRIES
from censafe.estimation.topdown.rounding.network import MARGIN_TREE, MarginTree
from censafe.estimation.topdown.rounding.steps import PARENT_SUMS, ParentSums, number_nodes, round_snapped
from censafe.model.compiled import compiled

__all__ = ["round_pass"]


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
def _exact(whole, right, sums):  # type: ignore[no-untyped-def]
    """Whether integers meet the exact sum of every child and the counts of the parent."""
    good = True
    for i in range(right.shape[0]):
        good = good and whole[i].sum() == right[i]
    for j in range(sums.p.shape[0] if sums.coupled else 0):
        good = good and whole[:, j].sum() == sums.p[j]
    return good


@compiled(
    types.UniTuple(float64, 2)(
        ENTRIES, float64[::1], int32[::1], int64[:, ::1], int64[::1], int32[:, ::1], int64[:, ::1]
    )
)
def round_pass(entries, x, held, right, column, chain, counts):  # type: ignore[no-untyped-def]
    """Round the open columns, keeping exact sums and the counts of the parent.

    Args:
        entries: as in the problem of the pass.
        x: fractional point, shape (N,).
        held: exact sum of every column, shape (K,).
        right: exact sums of the children, shape (C, sums).
        column: what the columns add up to; of no length where there is no parent.
        chain: sums that are kept close, coarse to fine, shape (L, K).
        counts: receives the integers, zeros before, shape (C, K).

    Returns:
        The cost, as in ``round_snapped``, and the number of exact sums that could not be rounded.
    """
    children, columns = counts.shape
    coupled = column.shape[0] > 0
    place = _places(entries, children, columns)
    order = np.argsort(held, kind="mergesort")
    start, cost, failed = 0, 0.0, 0
    while start < columns:
        g, stop = held[order[start]], start
        while stop < columns and held[order[stop]] == g:
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
        tree, whole = _tree(links), np.zeros(point.shape, dtype=np.int64)
        weight = np.ones(tree.parent.shape[0], dtype=np.int64)
        found = round_snapped(point, sums, _sides(allowed, exact), tree, weight, 0, whole)
        failed += found < 0.0 or not _exact(whole, exact, sums)
        cost += max(found, 0.0)
        for i in range(own.shape[0]):
            counts[own[i]][member] = whole[i]
        start = stop
    return cost, failed
