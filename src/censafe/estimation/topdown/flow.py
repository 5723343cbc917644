"""Minimum-cost flow in integers by cost scaling, compiled."""

from __future__ import annotations

import numpy as np
from numba import int64, void

from censafe.model.compiled import compiled

__all__ = ["cost_bits", "min_cost_flow"]

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
