"""Compiled rounding of one parent: snap to integers, build the network, send the flow, and look what it broke."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import boolean, float64, int32, int64, types, uint8, void

from censafe.estimation.topdown.least_squares.structures import SIDES
from censafe.estimation.topdown.rounding.network import (
    FRACTIONS,
    MARGIN_TREE,
    NODE_BOUNDS,
    Fractions,
    NodeBounds,
    Prices,
    min_cost_flow,
    nearest_place,
    rounding_network,
)
from censafe.model.arrays import Integers
from censafe.model.compiled import compiled
from censafe.model.named_arrays import tuple_type

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
