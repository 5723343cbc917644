"""Compiled rounding of one parent: snap to integers, send a flow, and look what it broke.

Its network is trees of marginals within children, and cells across them; the flow has the least cost.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import boolean, float64, int32, int64, types, uint8, void
from numpy.typing import NDArray

from censafe.estimation.topdown.least_squares.structures import SIDES
from censafe.model.arrays import Floats, Integers
from censafe.model.compiled import compiled
from censafe.model.named_arrays import tuple_type

_STEP = 12  # the error allowed in reduced costs shrinks by this factor in every phase


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


class _Residual(NamedTuple):
    """The residual network: both directions of every arc, those that leave node u at first[u] .. first[u + 1] - 1."""

    first: Integers
    head: Integers
    mate: Integers  # place of the same arc in the other direction
    left: Integers  # units that still fit
    cost: Integers


class _Labels(NamedTuple):
    """Of every node the price, the units that wait there, and the arc that is tried next."""

    price: Integers
    excess: Integers
    current: Integers


_RESIDUAL = tuple_type(_Residual, int64[::1], int64[::1], int64[::1], int64[::1], int64[::1])
_LABELS = tuple_type(_Labels, int64[::1], int64[::1], int64[::1])


@compiled(int64(_RESIDUAL, _LABELS, int64), apart=True)
def _refine(network, labels, eps):  # type: ignore[no-untyped-def]  # noqa: C901
    """Turn a flow that is optimal up to the former eps into one up to this eps; returns how often prices changed.

    Invariant: no arc with room has a reduced cost, cost + price[tail] - price[head], below -eps. At the end no node has an excess.
    """
    first, head, mate, left, cost = network.first, network.head, network.mate, network.left, network.cost
    price, excess, current = labels.price, labels.excess, labels.current
    nodes = price.shape[0]
    for u in range(nodes):  # fill every arc of a negative reduced cost
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


@compiled(int64(int64, int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64[::1]), apart=True)
def min_cost_flow(nodes, tail, head, capacity, cost, supply, flow):  # type: ignore[no-untyped-def]
    """Flow that meets all supplies at a cost at most ``nodes`` above the least; the caller guarantees that there is one.

    So costs that are multiples of ``nodes + 1`` give the cheapest flow, and finely scaled ones one as good as it.

    Source: Goldberg (1997), "An efficient implementation of a scaling minimum-cost flow algorithm".
    """
    m = tail.shape[0]
    ends, first = np.empty(2 * m, dtype=np.int64), np.empty(nodes + 1, dtype=np.int64)
    ends[:m] = tail
    ends[m:] = head
    order, place = np.empty(2 * m, dtype=np.int64), np.empty(2 * m, dtype=np.int64)
    _star(nodes, ends, first, order, place)
    to, mate = np.empty(2 * m, dtype=np.int64), np.empty(2 * m, dtype=np.int64)
    left, cost_of = np.zeros(2 * m, dtype=np.int64), np.empty(2 * m, dtype=np.int64)
    largest = np.int64(1)
    for a in range(m):
        forward, back = place[a], place[m + a]
        to[forward], to[back] = head[a], tail[a]
        mate[forward], mate[back] = back, forward
        left[forward] = capacity[a]
        cost_of[forward] = cost[a]
        cost_of[back] = -cost_of[forward]
        largest = max(largest, abs(cost_of[forward]))
    network = _Residual(first, to, mate, left, cost_of)
    labels = _Labels(np.zeros(nodes, dtype=np.int64), supply.copy(), np.empty(nodes, dtype=np.int64))
    work, eps = 0, largest
    while eps > 1:
        eps = max(np.int64(1), eps // _STEP)
        work += _refine(network, labels, eps)
    for a in range(m):
        flow[a] = left[place[m + a]]
    return work


_PARTS = 1 << 24  # of a person; a sum that is this close to a half is one


@compiled(int64(float64))
def nearest_place(share):  # type: ignore[no-untyped-def]
    """The nearest integer, to the even one from a half, whatever the rounding errors of the sum."""
    return np.int64(np.rint(np.rint(share * _PARTS) / _PARTS))


class MarginTree(NamedTuple):
    """Marginals that refine each other, from the total down; nodes are numbered coarse to fine."""

    label: Integers  # (L, K) node of each cell on each level
    parent: Integers  # (V,) node above each node, -1 for the total


class Fractions(NamedTuple):
    """What is left of a point above its floors."""

    f: Floats  # (C, K) fractions
    leaf: NDArray[np.bool_]  # (C, K) entries that may go up by one
    need: Integers  # (K,) units that must go up in each cell; of a root (1,), in all cells


class NodeBounds(NamedTuple):
    """Units that the tree nodes of the children and the groups may and must take."""

    low: Integers  # (C, V) least units
    high: Integers  # (C, V) most units
    group: NDArray[np.int32]  # (C,) group of each child, -1 for none
    group_need: Integers  # units that the children of each group take together


class Prices(NamedTuple):
    """Cost of a unit, in integers."""

    weight: Integers  # (V,) away from a tree node's rounded fractions, in units of cost 1
    unit: np.int64  # cost 1
    steep: np.int64  # outside the bounds
    flat: bool  # whether a leaf costs its distance to its rounded fraction rather than to the fraction


MARGIN_TREE = tuple_type(MarginTree, int64[:, ::1], int64[::1])
FRACTIONS = tuple_type(Fractions, float64[:, ::1], boolean[:, ::1], int64[::1])
NODE_BOUNDS = tuple_type(NodeBounds, int64[:, ::1], int64[:, ::1], int32[::1], int64[::1])
PRICES = tuple_type(Prices, int64[::1], int64, int64, boolean)
_PAIR = types.UniTuple(int64, 2)


@compiled(int64(int64, _PAIR, int64, _PAIR, int64, int64, int64, int64[:, ::1]))
def _tree_arc(at, ends, target, bounds, most, slope, steep, arcs):  # type: ignore[no-untyped-def]
    """Arcs of one tree node: minus the slope below the target, plus it above, and steep slopes outside the bounds."""
    start = 0
    low, high = min(max(bounds[0], 0), most), min(max(bounds[1], 0), most)
    target = min(max(target, 0), most)
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
        arcs[0, at], arcs[1, at], arcs[2, at], arcs[3, at] = ends[0], ends[1], stop - start, cost
        at += 1
        start = stop
    return at


@compiled(_PAIR(boolean[:, ::1], NODE_BOUNDS, int64, int64, int64, int64[:, ::1]))
def _group_arcs(leaf, bounds, nodes, at, steep, arcs):  # type: ignore[no-untyped-def]
    """A node above the totals of each group's children, which passes exactly what the group still needs."""
    need = bounds.group_need
    for g in range(need.shape[0]):
        most = 0
        for c in range(leaf.shape[0]):
            if bounds.group[c] == g:
                most += leaf[c].sum()
        at = _tree_arc(at, (0, nodes), need[g], (need[g], need[g]), most, 0, steep, arcs)
        nodes += 1
    return nodes, at


@compiled(_PAIR(FRACTIONS, MARGIN_TREE, NODE_BOUNDS, PRICES, int64, int64, int64[:, :, ::1], int64[:, ::1]))
def _node_arcs(fractions, tree, bounds, prices, nodes, at, leaf_source, arcs):  # type: ignore[no-untyped-def]
    """Arcs of the tree nodes of all children, after ``nodes`` nodes and ``at`` arcs; returns the numbers with them.

    ``leaf_source`` receives of every tree node where the arcs of its leaves start, and what these cost in addition to their own: a node
    with one leaf has no arc, for the leaf takes its cost over. Shape (C, 2, V).
    """
    f, leaf, label, parent = fractions.f, fractions.leaf, tree.label, tree.parent
    group, low, high, weight = bounds.group, bounds.low, bounds.high, prices.weight
    used, sinks = parent.shape[0], fractions.need.shape[0]
    share, below = np.empty(used), np.empty(used, dtype=np.int64)
    for c in range(f.shape[0]):
        place, only = leaf_source[c, 0], leaf_source[c, 1]
        share[:] = 0.0
        below[:] = 0
        for k in range(f.shape[1]):
            for level in range(label.shape[0]):
                share[label[level, k]] += f[c, k]
                below[label[level, k]] += leaf[c, k]
        for v in range(used):
            if below[v] == 0:
                continue
            tail, cost = np.int64(1 + sinks + group[c] if group[c] >= 0 else 0), np.int64(0)
            if parent[v] >= 0:
                tail, cost = place[parent[v]], only[parent[v]]
            stop = _tree_arc(
                at, (tail, nodes), nearest_place(share[v]), (low[c, v], high[c, v]), below[v],
                weight[v] * prices.unit, prices.steep, arcs,
            )  # fmt: skip
            if below[v] == 1:
                place[v], only[v] = tail, cost + arcs[3, at]
            else:
                place[v], only[v] = nodes, 0
                nodes += 1
                at = stop
    return nodes, at


@compiled(_PAIR(FRACTIONS, MARGIN_TREE, NODE_BOUNDS, PRICES, int64[:, ::1]), apart=True)
def rounding_network(fractions, tree, bounds, prices, arcs):  # type: ignore[no-untyped-def]
    """Write the arcs (tail, head, capacity, cost) of a parent's rounding; the first ones are the leaves in C order.

    Node 0 is the source, then the sinks of the cells (one for a root), then the groups, then the used tree nodes of each
    child. The flow u makes the sum of |u - f| over leaves and of weight |U - rounded F| over tree nodes small, U and F being
    the sums of u and f below a node.

    Args:
        arcs: receives the arcs, shape (4, at least 4 C V + 4 groups + leaves).
    """
    f, leaf, last = fractions.f, fractions.leaf, tree.label[tree.label.shape[0] - 1]
    sinks, leaves = fractions.need.shape[0], 0
    leaf_source = np.zeros((f.shape[0], 2, tree.parent.shape[0]), dtype=np.int64)
    nodes, at = _group_arcs(leaf, bounds, sinks + 1, np.int64(leaf.sum()), prices.steep, arcs)
    nodes, at = _node_arcs(fractions, tree, bounds, prices, nodes, at, leaf_source, arcs)
    for c in range(f.shape[0]):
        for k in range(f.shape[1]):
            if leaf[c, k]:
                share_up = np.rint(f[c, k]) if prices.flat else f[c, k]
                arcs[0, leaves] = leaf_source[c, 0, last[k]]
                arcs[1, leaves] = 1 + min(k, sinks - 1)
                arcs[2, leaves] = 1
                own = np.int64(np.rint((1.0 - 2.0 * share_up) * prices.unit))
                arcs[3, leaves] = own + leaf_source[c, 1, last[k]]
                leaves += 1
    return nodes, at


ALL_POSITIVE, FLAT = 1, 2  # bits of the options
SNAP = 1e-6
_STEEP = 10_000
_FAR = np.int64(1) << 50
_MOST_BITS = 26


class ParentSums(NamedTuple):
    """What the children add up to."""

    p: Integers  # (K,) the parent's counts
    coupled: bool  # false at the root, whose cells need not add up to a parent
    total: int  # of the root, what its cells add up to


PARENT_SUMS = tuple_type(ParentSums, int64[::1], boolean, int64)


@compiled(void(int32[::1], int64[::1]))
def _sorted(values, order):  # type: ignore[no-untyped-def]
    """Positions by value, equal ones in their order; values come nearly sorted."""
    for i in range(values.shape[0]):
        at = i
        while at > 0 and values[order[at - 1]] > values[i]:
            order[at] = order[at - 1]
            at -= 1
        order[at] = i


@compiled(types.UniTuple(int64, 2)(int32[:, ::1], int64[:, ::1], int64[::1]))
def number_nodes(levels, label, parent):  # type: ignore[no-untyped-def]
    """Number the groups of cells of nested levels, coarse to fine; node 0 is the total.

    Levels of one group are the total, and levels that tell all cells apart say nothing beyond the cells: both are left
    out.

    Args:
        levels: group of each cell on each level, shape (L, K).
        label: receives the node of each cell on each level used, the total first, shape (L + 1, K).
        parent: receives the node above each node, -1 for the total, shape (at least L K + 1,).
    """
    cells, nodes, used = levels.shape[1], 1, 1
    order = np.empty(cells, dtype=np.int64)
    label[0], parent[0] = 0, -1
    for level in range(levels.shape[0]):
        _sorted(levels[level], order)
        node = nodes - 1
        for i in range(cells):
            k = order[i]
            if i == 0 or levels[level, k] != levels[level, order[i - 1]]:
                node += 1
                parent[node] = label[used - 1, k]
            elif parent[node] != label[used - 1, k]:
                return -1 - level, used
            label[used, k] = node
        if 1 < node + 1 - nodes < cells:
            nodes = node + 1
            used += 1
    return nodes, used


@compiled(void(int64[:, ::1], int64, int64, int64[::1]))
def _take_back(floors, k, units, chosen):  # type: ignore[no-untyped-def]
    """Children whose counts of a cell are the largest, each once; -1 where there are none above 0."""
    for i in range(units):
        best = -1
        for c in range(floors.shape[0]):
            taken = False
            for j in range(i):
                taken = taken or chosen[j] == c
            if not taken and floors[c, k] > 0 and (best < 0 or floors[c, k] > floors[best, k]):
                best = c
        chosen[i] = best


@compiled(boolean(int64[:, ::1], float64[:, ::1], boolean[:, ::1], int64[::1]))
def _lowered(floors, f, leaf, need):  # type: ignore[no-untyped-def]
    """Where snapping rounded too many up, take units back from the largest counts; they may return."""
    for k in range(need.shape[0]):
        if need[k] < 0:
            units = -need[k]
            if units > floors.shape[0]:
                return False
            chosen = np.empty(units, dtype=np.int64)
            _take_back(floors, k, units, chosen)
            for i in range(units):
                c = chosen[i]
                if c < 0:
                    return False
                floors[c, k] -= 1
                f[c, k] = 1.0
                leaf[c, k] = True
            need[k] = 0
    return True


@compiled(boolean(boolean[:, ::1], int64[::1]))
def _enough(leaf, need):  # type: ignore[no-untyped-def]
    """Whether as many entries may go up as must; a flow that cannot be sent would be looked for without end."""
    if need.shape[0] == 1:
        return need[0] <= leaf.sum()
    enough = True
    for k in range(need.shape[0]):
        enough = enough and need[k] <= leaf[:, k].sum()
    return enough


@compiled(
    boolean(float64[:, ::1], boolean[:, ::1], PARENT_SUMS, boolean, int64[:, ::1], FRACTIONS), apart=True
)
def _snap(x, allowed, sums, all_positive, floors, fractions):  # type: ignore[no-untyped-def]
    """Write floors and fractions of a point, the entries that may go up, and how many must; false where it is too far off."""
    f, leaf, need = fractions.f, fractions.leaf, fractions.need
    children, cells = x.shape
    sinks, step = need.shape[0], 1 if sums.coupled else 0
    have = np.zeros(sinks, dtype=np.int64)
    for k in range(sinks):
        need[k] = sums.p[k] if sums.coupled else sums.total
    for c in range(children):
        for k in range(cells):
            value = max(x[c, k], 0.0)
            floors[c, k] = np.int64(np.floor(value + SNAP))
            f[c, k] = value - floors[c, k] if allowed[c, k] else 0.0
            if f[c, k] < SNAP:
                f[c, k] = 0.0
            leaf[c, k] = allowed[c, k] if all_positive else f[c, k] > 0.0
            need[step * k] -= floors[c, k]
            have[step * k] += leaf[c, k]
    for c in range(children):
        for k in range(cells):
            if need[step * k] > have[step * k] and allowed[c, k]:
                leaf[c, k] = True
    if not _enough(leaf, need):
        return False
    if sums.coupled or need[0] >= 0:
        return _lowered(floors, f, leaf, need)
    flat = np.ascontiguousarray(floors.reshape(cells, 1))
    shares, leaves = f.reshape(cells, 1), leaf.reshape(cells, 1)
    good = _lowered(flat, shares, leaves, need)
    floors[0], f[0], leaf[0] = flat[:, 0], shares[:, 0], leaves[:, 0]
    return good


@compiled(int64(uint8[::1], int64[:, ::1]))
def _node_of_row(row, label):  # type: ignore[no-untyped-def]
    """The coarsest tree node whose cells are those of a side row; -1 where there is none."""
    cells, inside = row.shape[0], 0
    while inside < cells and row[inside] == 0:
        inside += 1
    for level in range(label.shape[0] if inside < cells else 0):
        v, same = label[level, inside], True
        for k in range(cells):
            same = same and (label[level, k] == v) == (row[k] != 0)
        if same:
            return v
    return -1


@compiled(void(int64[:, ::1], SIDES, int64[:, ::1], int64[:, ::1], int64[:, ::1]))
def _node_bounds(floors, sides, label, low, high):  # type: ignore[no-untyped-def]
    """Least and most units, ceil(lo) - R w and floor(hi) - R w, that may be added to the floors w at tree nodes that are rows."""
    rows, lo, hi = sides.rows, sides.lo, sides.hi
    children, cells = floors.shape
    low[:] = -_FAR
    high[:] = _FAR
    for r in range(rows.shape[0]):
        v = _node_of_row(rows[r], label)
        for c in range(children if v >= 0 else 0):
            have = 0
            for k in range(cells):
                have += floors[c, k] if rows[r, k] else 0
            least = max(np.ceil(lo[c, r] - SNAP), -float(_FAR))
            most = min(np.floor(hi[c, r] + SNAP), float(_FAR))
            low[c, v] = max(low[c, v], np.int64(least) - have)
            high[c, v] = min(high[c, v], np.int64(most) - have)


@compiled(NODE_BOUNDS(int64[:, ::1], SIDES, MARGIN_TREE))
def _bounds(floors, sides, tree):  # type: ignore[no-untyped-def]
    """What may and must still be added to the floors at the tree nodes of every child, and in the groups."""
    group, nodes = sides.group, tree.parent.shape[0]
    low = np.empty((floors.shape[0], nodes), dtype=np.int64)
    high = np.empty((floors.shape[0], nodes), dtype=np.int64)
    _node_bounds(floors, sides, tree.label, low, high)
    group_need = np.zeros(sides.group_totals.shape[0], dtype=np.int64)
    for g in range(group_need.shape[0]):
        group_need[g] = np.int64(np.rint(sides.group_totals[g]))
    for c in range(floors.shape[0]):
        if group[c] >= 0:
            group_need[group[c]] -= floors[c].sum()
    return NodeBounds(low, high, group, group_need)


@compiled(void(FRACTIONS, MARGIN_TREE, NODE_BOUNDS, int64[::1], boolean, int64[:, ::1]), apart=True)
def _send(fractions, tree, bounds, weight, flat, up):  # type: ignore[no-untyped-def]
    """The cheapest units u of all leaves, by a flow through the rounding network."""
    leaf, need = fractions.leaf, fractions.need
    children, cells = leaf.shape
    leaves, sinks, groups = np.int64(leaf.sum()), need.shape[0], bounds.group_need.shape[0]
    tree_nodes = children * tree.parent.shape[0]
    steep = _STEEP * weight.max()
    room = 9.2e18 / (4.0 * (1 + sinks + groups + tree_nodes + 1.0) * (2.0 * steep + 1.0))
    unit = np.int64(1) << np.int64(max(0.0, min(_MOST_BITS, np.floor(np.log2(room)))))
    arcs = np.empty((4, leaves + 4 * tree_nodes + 4 * groups), dtype=np.int64)
    nodes, count = rounding_network(fractions, tree, bounds, Prices(weight, unit, steep * unit, flat), arcs)
    supply, flow = np.zeros(nodes, dtype=np.int64), np.zeros(count, dtype=np.int64)
    supply[0] = need.sum()
    supply[1 : 1 + sinks] = -need
    min_cost_flow(nodes, arcs[0, :count], arcs[1, :count], arcs[2, :count], arcs[3, :count], supply, flow)
    at = 0
    for c in range(children):
        for k in range(cells):
            up[c, k] = 0
            if leaf[c, k]:
                up[c, k] = flow[at]
                at += 1


@compiled(float64(float64[:, ::1], float64[:, ::1], int64[:, ::1], MARGIN_TREE))
def _cost(f, price, up, tree):  # type: ignore[no-untyped-def]
    """Distance of the units to the fractions: of cells, and of marginals to their rounded fractions."""
    cost, label, nodes = 0.0, tree.label, tree.parent.shape[0]
    share, units = np.empty(nodes), np.empty(nodes)
    for c in range(f.shape[0]):
        share[:] = 0.0
        units[:] = 0.0
        for k in range(f.shape[1]):
            cost += abs(up[c, k] - price[c, k])
            for level in range(label.shape[0]):
                share[label[level, k]] += f[c, k]
                units[label[level, k]] += up[c, k]
        for v in range(nodes):
            cost += abs(units[v] - nearest_place(share[v]))
    return cost


@compiled(
    float64(float64[:, ::1], PARENT_SUMS, SIDES, MARGIN_TREE, int64[::1], int64, int64[:, ::1]), apart=True
)
def round_snapped(x, sums, sides, tree, weight, options, counts):  # type: ignore[no-untyped-def]
    """Round a fractional point to integers that keep sums, masks, totals of groups and those rows that are tree nodes.

    Counts are the floors w of the point and units u, 0 or 1, that a flow chooses.

    Args:
        x: shape (C, K).
        weight: price of a unit away from a tree node's rounded fractions, shape (V,); a leaf's is 1.
        counts: receives the integers, shape (C, K).

    Returns:
        The cost; -1 where the point is too far from its sums to be rounded.
    """
    children, cells = x.shape
    f, leaf = np.empty((children, cells)), np.empty((children, cells), dtype=np.bool_)
    fractions = Fractions(f, leaf, np.zeros(cells if sums.coupled else 1, dtype=np.int64))
    if not _snap(x, sides.allowed, sums, options & ALL_POSITIVE != 0, counts, fractions):
        return -1.0
    flat, up, price = options & FLAT != 0, np.zeros((children, cells), dtype=np.int64), f
    if flat:
        price = np.rint(f)
    if fractions.need.sum() > 0:
        _send(fractions, tree, _bounds(counts, sides, tree), weight, flat, up)
    cost = _cost(f, price, up, tree)
    counts += up
    return cost


@compiled(types.UniTuple(int64, 5)(int64[:, ::1], int64[::1], boolean, SIDES), apart=True)
def count_broken(counts, p, coupled, sides):  # type: ignore[no-untyped-def]
    """Sums over children, signs, masks, rows and groups that integers break."""
    allowed, rows, group, group_totals = sides.allowed, sides.rows, sides.group, sides.group_totals
    children, cells = counts.shape
    sums = negative = masked = outside = groups = 0
    for k in range(cells if coupled else 0):
        sums += counts[:, k].sum() != p[k]
    totals = np.zeros(group_totals.shape[0])
    for c in range(children):
        for k in range(cells):
            negative += counts[c, k] < 0
            masked += counts[c, k] != 0 and not allowed[c, k]
        for r in range(rows.shape[0]):
            total = 0
            for k in range(cells):
                total += counts[c, k] if rows[r, k] else 0
            outside += total < sides.lo[c, r] or total > sides.hi[c, r]
        if group[c] >= 0:
            totals[group[c]] += counts[c].sum()
    for g in range(group_totals.shape[0]):
        groups += totals[g] != group_totals[g]
    return sums, negative, masked, outside, groups
