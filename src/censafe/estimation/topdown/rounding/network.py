"""The network of one parent's rounding, trees of marginals within children and cells across them, and its minimum-cost flow."""

from __future__ import annotations

import numpy as np
from numba import boolean, float64, int32, int64, types, void

from censafe.model.compiled import compiled

__all__ = ["cost_bits", "min_cost_flow", "nearest_place", "rounding_network"]


_STEP = 12  # the error allowed in reduced costs shrinks by this factor in every phase


def cost_bits(nodes: int, largest: float, most: int = 26) -> int:
    """Bits after the point with which costs up to ``largest`` can be scaled without overflow of prices."""
    room = float(np.iinfo(np.int64).max) / (4.0 * (nodes + 1.0) * max(largest, 1.0))
    return max(0, min(most, int(np.floor(np.log2(room)))))


@compiled(void(int64, int64[::1], int64[::1], int64[::1], int64[::1]))
def _star(nodes, ends, first, order, place):  # type: ignore[no-untyped-def]
    """Sort directed arcs by their tail: arcs of node u are order[first[u]:first[u + 1]]; place is the inverse."""
    first[:] = 0
    for a in range(ends.shape[0]):
        first[ends[a] + 1] += 1
    for u in range(nodes):
        first[u + 1] += first[u]
    fill = first[:nodes].copy()
    for a in range(ends.shape[0]):
        place[a] = fill[ends[a]]
        order[fill[ends[a]]] = a
        fill[ends[a]] += 1


@compiled(
    int64(
        int64,
        int64[::1],
        int64[::1],
        int64[::1],
        int64[::1],
        int64[::1],
        int64[::1],
        int64[::1],
        int64[::1],
        int64,
    )
)
def _refine(nodes, first, head, mate, left, cost, price, excess, current, eps):  # type: ignore[no-untyped-def]  # noqa: C901
    """Turn a flow that is optimal up to the former eps into one up to this eps; returns how often prices changed."""
    for u in range(nodes):
        current[u] = first[u]
        for a in range(first[u], first[u + 1]):
            if left[a] > 0 and cost[a] + price[u] - price[head[a]] < 0:
                excess[u] -= left[a]
                excess[head[a]] += left[a]
                left[mate[a]] += left[a]
                left[a] = 0
    queue, waiting = np.empty(nodes + 1, dtype=np.int64), np.zeros(nodes, dtype=np.bool_)
    start, stop, changes = 0, 0, 0
    for u in range(nodes):
        if excess[u] > 0:
            queue[stop] = u
            waiting[u] = True
            stop += 1
    while start != stop:
        u = queue[start]
        start = start + 1 if start < nodes else 0
        waiting[u] = False
        while excess[u] > 0:
            if current[u] == first[u + 1]:
                best = np.int64(-(1 << 62))
                for a in range(first[u], first[u + 1]):
                    if left[a] > 0:
                        best = max(best, price[head[a]] - cost[a])
                price[u] = best - eps
                current[u] = first[u]
                changes += 1
            a = current[u]
            v = head[a]
            if left[a] > 0 and cost[a] + price[u] - price[v] < 0:
                sent = min(excess[u], left[a])
                left[a] -= sent
                left[mate[a]] += sent
                excess[u] -= sent
                excess[v] += sent
                if excess[v] > 0 and not waiting[v]:
                    queue[stop] = v
                    stop = stop + 1 if stop < nodes else 0
                    waiting[v] = True
            else:
                current[u] += 1
    return changes


@compiled(int64(int64, int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64[::1]))
def min_cost_flow(nodes, tail, head, capacity, cost, supply, flow):  # type: ignore[no-untyped-def]
    """Flow that meets all supplies at a cost at most ``nodes`` above the least; the caller guarantees that there is one.

    So costs that are multiples of ``nodes + 1`` give the cheapest flow, and finely scaled ones one as good as it.

    Args:
        nodes: number of nodes.
        tail: node where each arc starts.
        head: node where each arc ends.
        capacity: most units on each arc, 0 or more.
        cost: cost of a unit on each arc, in integers; see ``cost_bits`` for how large they may be.
        supply: units that enter the network at each node; negative where they leave; sums to 0.
        flow: receives the units on each arc.

    Returns:
        Number of price changes, the work done.

    Source: Goldberg (1997), "An efficient implementation of a scaling minimum-cost flow algorithm".
    """
    m = tail.shape[0]
    ends, first = np.empty(2 * m, dtype=np.int64), np.empty(nodes + 1, dtype=np.int64)
    ends[:m] = tail
    ends[m:] = head
    order, place = np.empty(2 * m, dtype=np.int64), np.empty(2 * m, dtype=np.int64)
    _star(nodes, ends, first, order, place)
    to, mate = np.empty(2 * m, dtype=np.int64), np.empty(2 * m, dtype=np.int64)
    left, price_of = np.zeros(2 * m, dtype=np.int64), np.empty(2 * m, dtype=np.int64)
    largest = np.int64(1)
    for a in range(m):
        forward, back = place[a], place[m + a]
        to[forward], to[back] = head[a], tail[a]
        mate[forward], mate[back] = back, forward
        left[forward] = capacity[a]
        price_of[forward] = cost[a]
        price_of[back] = -price_of[forward]
        largest = max(largest, abs(price_of[forward]))
    price, current = np.zeros(nodes, dtype=np.int64), np.empty(nodes, dtype=np.int64)
    excess = supply.copy()
    work, eps = 0, largest
    while eps > 1:
        eps = max(np.int64(1), eps // _STEP)
        work += _refine(nodes, first, to, mate, left, price_of, price, excess, current, eps)
    for a in range(m):
        flow[a] = left[place[m + a]]
    return work


_PARTS = 1 << 24  # of a person; a sum that is this close to a half is one


@compiled(int64(float64))
def nearest_place(share):  # type: ignore[no-untyped-def]
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
                at, tail, nodes, nearest_place(share[v]), low[c, v], high[c, v], below[v],
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
