"""Compiled network of one parent's rounding: trees of marginals within children, cells across children."""

from __future__ import annotations

import numpy as np
from numba import boolean, float64, int32, int64, types

from censafe.model.compiled import compiled

__all__ = ["nearest", "rounding_network"]


_PARTS = 1 << 24  # of a person; a sum that is this close to a half is one


@compiled(int64(float64))
def nearest(share):  # type: ignore[no-untyped-def]
    """The nearest integer, to the even one from a half, whatever the rounding errors of the sum."""
    return np.int64(np.rint(np.rint(share * _PARTS) / _PARTS))


@compiled(int64(int64, int64, int64, int64, int64, int64, int64, int64, int64, int64[:, ::1]))
def _tree_arc(at, tail, head, target, low, high, most, slope, steep, arcs):  # type: ignore[no-untyped-def]
    """Arcs of one tree node: minus the slope below the target, plus it above, and steep slopes outside the bounds."""
    start = 0
    low, high, target = min(max(low, 0), most), min(max(high, 0), most), min(max(target, 0), most)
    while start < most:
        stop = most
        cost = slope
        if start < target:
            cost = -slope
            stop = min(stop, target)
        if start < low:
            cost -= steep
            stop = min(stop, low)
        elif start >= high:
            cost += steep
        else:
            stop = min(stop, high)
        arcs[0, at], arcs[1, at], arcs[2, at], arcs[3, at] = tail, head, stop - start, cost
        at += 1
        start = stop
    return at


@compiled(
    types.UniTuple(int64, 2)(
        boolean[:, ::1], int32[::1], int64[::1], int64, int64, int64, int64[:, ::1],
    )
)  # fmt: skip
def _group_arcs(leaf, group, need, nodes, at, steep, arcs):  # type: ignore[no-untyped-def]
    """A node above the totals of each group's children, which passes exactly what the group still needs."""
    for g in range(need.shape[0]):
        most = 0
        for c in range(leaf.shape[0]):
            if group[c] == g:
                most += leaf[c].sum()
        at = _tree_arc(at, 0, nodes, need[g], need[g], need[g], most, 0, steep, arcs)
        nodes += 1
    return nodes, at


@compiled(
    types.UniTuple(int64, 2)(
        float64[:, ::1], boolean[:, ::1], int64[:, ::1], int64[::1], int64[::1], int64[:, ::1], int64[:, ::1],
        int32[::1], int64[::1], boolean, boolean, int64, int64, int64[:, ::1],
    )
)  # fmt: skip
def rounding_network(  # type: ignore[no-untyped-def]
    f, leaf, label, parent, weight, low, high, group, need, one_sink, flat, unit, steep, arcs
):
    """Write the arcs (tail, head, capacity, cost) of a parent's rounding; the first ones are the leaves in C order.

    Node 0 is the source, then the sinks of the cells (one if ``one_sink``), then the groups, then the used tree nodes
    of each child.

    Args:
        f: fractions, shape (C, K).
        leaf: which may be rounded up, shape (C, K).
        label: tree node of each cell on each level, coarse to fine, shape (L, K).
        parent: tree node above each tree node; -1 at the top.
        weight: price of a unit away from a tree node's rounded fractions, in units of cost 1.
        low: least units of each tree node, shape (C, V).
        high: most units, shape (C, V).
        group: group of each child, -1 for none.
        need: units that the children of each group take together.
        one_sink: whether cells need not add up to a parent.
        flat: whether a leaf costs its distance to its rounded fraction rather than to the fraction.
        unit: what cost 1 is in integers.
        steep: cost of a unit outside the bounds, in integers.
        arcs: receives the arcs, shape (4, at least 4 C V + 4 groups + leaves).

    Returns:
        Number of nodes and of arcs.
    """
    children, cells = f.shape
    levels, used = label.shape[0], parent.shape[0]
    sinks = 1 if one_sink else cells
    at = np.int64(leaf.sum())
    nodes, at = _group_arcs(leaf, group, need, sinks + 1, at, steep, arcs)
    place, leaves = np.zeros(used, dtype=np.int64), 0
    share, below, only = np.empty(used), np.empty(used, dtype=np.int64), np.zeros(used, dtype=np.int64)
    for c in range(children):
        share[:] = 0.0
        below[:] = 0
        for k in range(cells):
            for level in range(levels):
                share[label[level, k]] += f[c, k]
                below[label[level, k]] += leaf[c, k]
        for v in range(used):
            if below[v] == 0:
                continue
            tail, cost = np.int64(1 + sinks + group[c] if group[c] >= 0 else 0), np.int64(0)
            if parent[v] >= 0:
                tail, cost = place[parent[v]], only[parent[v]]
            stop = _tree_arc(
                at, tail, nodes, nearest(share[v]), low[c, v], high[c, v], below[v],
                weight[v] * unit, steep, arcs,
            )  # fmt: skip
            if below[v] == 1:  # its one leaf takes the cost over
                place[v], only[v] = tail, cost + arcs[3, at]
            else:
                place[v], only[v] = nodes, 0
                nodes += 1
                at = stop
        for k in range(cells):
            if leaf[c, k]:
                last = label[levels - 1, k]
                share_up = np.rint(f[c, k]) if flat else f[c, k]
                arcs[0, leaves] = place[last]
                arcs[1, leaves] = 1 if one_sink else 1 + k
                arcs[2, leaves] = 1
                arcs[3, leaves] = np.int64(np.rint((1.0 - 2.0 * share_up) * unit)) + only[last]
                leaves += 1
    return nodes, at
