"""Compiled network of one parent's rounding: trees of marginals within children, cells across children."""

from __future__ import annotations

import numpy as np
from numba import boolean, float64, int64, types

from censafe.model.compiled import compiled

__all__ = ["rounding_network"]


@compiled(int64(int64, int64, int64, int64, int64, int64, int64, int64, int64, int64[:, ::1]))
def _tree_arc(at, tail, head, target, low, high, most, unit, steep, arcs):  # type: ignore[no-untyped-def]
    """Arcs of one tree node: slope -1 below the target, +1 above, and steep slopes outside the bounds."""
    start = 0
    low, high, target = min(max(low, 0), most), min(max(high, 0), most), min(max(target, 0), most)
    while start < most:
        stop = most
        slope = unit
        if start < target:
            slope = -unit
            stop = min(stop, target)
        if start < low:
            slope -= steep * unit
            stop = min(stop, low)
        elif start >= high:
            slope += steep * unit
        else:
            stop = min(stop, high)
        arcs[0, at], arcs[1, at], arcs[2, at], arcs[3, at] = tail, head, stop - start, slope
        at += 1
        start = stop
    return at


@compiled(
    types.UniTuple(int64, 2)(
        float64[:, ::1], boolean[:, ::1], int64[:, ::1], int64[::1], int64[:, ::1], int64[:, ::1],
        boolean, int64, int64, int64[:, ::1],
    )
)  # fmt: skip
def rounding_network(f, leaf, label, parent, low, high, one_sink, unit, steep, arcs):  # type: ignore[no-untyped-def]  # noqa: C901
    """Write the arcs (tail, head, capacity, cost) of a parent's rounding; the first ones are the leaves in C order.

    Node 0 is the source, then the sinks of the cells (one if ``one_sink``), then the used tree nodes of each child.

    Args:
        f: fractions, shape (C, K).
        leaf: which may be rounded up, shape (C, K).
        label: tree node of each cell on each level, coarse to fine, shape (L, K).
        parent: tree node above each tree node; -1 at the top.
        low: least units of each tree node, shape (C, V).
        high: most units, shape (C, V).
        one_sink: whether cells need not add up to a parent.
        unit: what cost 1 is in integers.
        steep: cost of a unit outside the bounds.
        arcs: receives the arcs, shape (4, at least 4 C V + leaves).

    Returns:
        Number of nodes and of arcs.
    """
    children, cells = f.shape
    levels, used = label.shape[0], parent.shape[0]
    nodes = 2 if one_sink else cells + 1
    at = 0
    for c in range(children):
        for k in range(cells):
            if leaf[c, k]:
                at += 1
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
            tail, cost = np.int64(0), np.int64(0)
            if parent[v] >= 0:
                tail, cost = place[parent[v]], only[parent[v]]
            stop = _tree_arc(
                at,
                tail,
                nodes,
                np.int64(np.rint(share[v])),
                low[c, v],
                high[c, v],
                below[v],
                unit,
                steep,
                arcs,
            )
            if below[v] == 1:  # its one leaf takes the cost over
                place[v], only[v] = tail, cost + arcs[3, at]
            else:
                place[v], only[v] = nodes, 0
                nodes += 1
                at = stop
        for k in range(cells):
            if leaf[c, k]:
                last = label[levels - 1, k]
                arcs[0, leaves] = place[last]
                arcs[1, leaves] = 1 if one_sink else 1 + k
                arcs[2, leaves] = 1
                arcs[3, leaves] = np.int64(np.rint((1.0 - 2.0 * f[c, k]) * unit)) + only[last]
                leaves += 1
    return nodes, at
