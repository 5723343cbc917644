"""Compiled rounding of one parent: snap to integers, build the network, send the flow, and look what it broke."""

from __future__ import annotations

import numpy as np
from numba import boolean, float64, int32, int64, types, uint8, void

from censafe.estimation.topdown.rounding.network import min_cost_flow, nearest_place, rounding_network
from censafe.model.compiled import compiled

__all__ = ["ALL_POSITIVE", "FLAT", "SNAP", "count_broken", "number_nodes", "round_snapped"]

ALL_POSITIVE, FLAT = 1, 2  # bits of the options
SNAP = 1e-6
_STEEP = 10_000
_FAR = np.int64(1) << 50
_MOST_BITS = 26


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
        label: receives the node of each cell on each kept level, the total first, shape (L + 1, K).
        parent: receives the node above each node, -1 for the total, shape (at least L K + 1,).

    Returns:
        Number of nodes, or -1 less the ordinal of the first level that does not refine those before it; number of levels
        with the total.
    """
    cells, nodes, kept = levels.shape[1], 1, 1
    order = np.empty(cells, dtype=np.int64)
    label[0], parent[0] = 0, -1
    for level in range(levels.shape[0]):
        _sorted(levels[level], order)
        node = nodes - 1
        for i in range(cells):
            k = order[i]
            if i == 0 or levels[level, k] != levels[level, order[i - 1]]:
                node += 1
                parent[node] = label[kept - 1, k]
            elif parent[node] != label[kept - 1, k]:
                return -1 - level, kept
            label[kept, k] = node
        if 1 < node + 1 - nodes < cells:
            nodes = node + 1
            kept += 1
    return nodes, kept


@compiled(void(int64[:, ::1], int64, int64, int64[::1]))
def _take_back(whole, k, units, chosen):  # type: ignore[no-untyped-def]
    """Children whose counts of a cell are the largest, each once; -1 where there are none above 0."""
    for i in range(units):
        best = -1
        for c in range(whole.shape[0]):
            taken = False
            for j in range(i):
                taken = taken or chosen[j] == c
            if not taken and whole[c, k] > 0 and (best < 0 or whole[c, k] > whole[best, k]):
                best = c
        chosen[i] = best


@compiled(boolean(int64[:, ::1], float64[:, ::1], boolean[:, ::1], int64[::1]))
def _lowered(whole, f, leaf, need):  # type: ignore[no-untyped-def]
    """Where snapping rounded too many up, take units back from the largest counts; they may return."""
    for k in range(need.shape[0]):
        if need[k] < 0:
            units = -need[k]
            if units > whole.shape[0]:
                return False
            chosen = np.empty(units, dtype=np.int64)
            _take_back(whole, k, units, chosen)
            for i in range(units):
                c = chosen[i]
                if c < 0:
                    return False
                whole[c, k] -= 1
                f[c, k] = 1.0
                leaf[c, k] = True
            need[k] = 0
    return True


@compiled(
    boolean(
        float64[:, ::1], boolean[:, ::1], int64[::1], boolean, int64, boolean,
        int64[:, ::1], float64[:, ::1], boolean[:, ::1], int64[::1],
    )
)  # fmt: skip
def _snap(x, allowed, p, coupled, total, all_positive, whole, f, leaf, need):  # type: ignore[no-untyped-def]
    """Floors, fractions, entries that may go up, and how many must go up in each cell (at the root: in all)."""
    children, cells = x.shape
    sinks = cells if coupled else 1
    have = np.zeros(sinks, dtype=np.int64)
    for k in range(sinks):
        need[k] = p[k] if coupled else total
    for c in range(children):
        for k in range(cells):
            value = max(x[c, k], 0.0)
            whole[c, k] = np.int64(np.floor(value + SNAP))
            f[c, k] = value - whole[c, k] if allowed[c, k] else 0.0
            if f[c, k] < SNAP:
                f[c, k] = 0.0
            leaf[c, k] = allowed[c, k] if all_positive else f[c, k] > 0.0
            need[k if coupled else 0] -= whole[c, k]
            have[k if coupled else 0] += leaf[c, k]
    for c in range(children):
        for k in range(cells):
            sink = k if coupled else 0
            if need[sink] > have[sink] and allowed[c, k]:
                leaf[c, k] = True
    if coupled or need[0] >= 0:
        return _lowered(whole, f, leaf, need)
    flat = np.ascontiguousarray(whole.reshape(cells, 1))
    fractions, leaves = f.reshape(cells, 1), leaf.reshape(cells, 1)
    good = _lowered(flat, fractions, leaves, need)
    whole[0], f[0], leaf[0] = flat[:, 0], fractions[:, 0], leaves[:, 0]
    return good


@compiled(
    void(
        int64[:, ::1], uint8[:, ::1], float64[:, ::1], float64[:, ::1], int64[:, ::1], int64[:, ::1],
        int64[:, ::1],
    )
)  # fmt: skip
def _node_bounds(whole, rows, lo, hi, label, low, high):  # type: ignore[no-untyped-def]
    """Least and most units that may still be added at the tree nodes whose cells are those of a row."""
    children, cells = whole.shape
    low[:] = -_FAR
    high[:] = _FAR
    for r in range(rows.shape[0]):
        inside = 0
        while inside < cells and rows[r, inside] == 0:
            inside += 1
        for level in range(label.shape[0] if inside < cells else 0):
            v, same = label[level, inside], True
            for k in range(cells):
                same = same and (label[level, k] == v) == (rows[r, k] != 0)
            if same:
                for c in range(children):
                    have = 0
                    for k in range(cells):
                        have += whole[c, k] if rows[r, k] else 0
                    least = max(np.ceil(lo[c, r] - SNAP), -float(_FAR))
                    most = min(np.floor(hi[c, r] + SNAP), float(_FAR))
                    low[c, v] = max(low[c, v], np.int64(least) - have)
                    high[c, v] = min(high[c, v], np.int64(most) - have)
                break


@compiled(
    void(
        float64[:, ::1], boolean[:, ::1], int64[::1], int64[:, ::1], int64[::1], int64[::1], int64[:, ::1],
        int64[:, ::1], int32[::1], int64[::1], boolean, boolean, int64[:, ::1],
    )
)  # fmt: skip
def _send(f, leaf, need, label, parent, weight, low, high, group, group_need, coupled, flat, up):  # type: ignore[no-untyped-def]
    """The cheapest units of all leaves."""
    children, cells = f.shape
    used, leaves, sinks, groups = parent.shape[0], np.int64(leaf.sum()), need.shape[0], group_need.shape[0]
    most_nodes = 1 + sinks + groups + children * used
    steep = _STEEP * weight.max()
    room = 9.2e18 / (4.0 * (most_nodes + 1.0) * (2.0 * steep + 1.0))
    unit = np.int64(1) << np.int64(max(0.0, min(_MOST_BITS, np.floor(np.log2(room)))))
    arcs = np.empty((4, leaves + 4 * children * used + 4 * groups), dtype=np.int64)
    nodes, count = rounding_network(
        f,
        leaf,
        label,
        parent,
        weight,
        low,
        high,
        group,
        group_need,
        not coupled,
        flat,
        unit,
        steep * unit,
        arcs,
    )
    supply, flow = np.zeros(nodes, dtype=np.int64), np.zeros(count, dtype=np.int64)
    supply[0] = need.sum()
    supply[1 : 1 + sinks] = -need
    tail, head, most, cost = arcs[0, :count], arcs[1, :count], arcs[2, :count], arcs[3, :count]
    min_cost_flow(nodes, tail, head, most, cost, supply, flow)
    at = 0
    for c in range(children):
        for k in range(cells):
            up[c, k] = 0
            if leaf[c, k]:
                up[c, k] = flow[at]
                at += 1


@compiled(float64(float64[:, ::1], float64[:, ::1], int64[:, ::1], int64[:, ::1], int64))
def _cost(f, price, up, label, nodes):  # type: ignore[no-untyped-def]
    """Distance of the units to the fractions: of cells, and of marginals to their rounded fractions."""
    cost = 0.0
    share, held = np.empty(nodes), np.empty(nodes)
    for c in range(f.shape[0]):
        share[:] = 0.0
        held[:] = 0.0
        for k in range(f.shape[1]):
            cost += abs(up[c, k] - price[c, k])
            for level in range(label.shape[0]):
                share[label[level, k]] += f[c, k]
                held[label[level, k]] += up[c, k]
        for v in range(nodes):
            cost += abs(held[v] - nearest_place(share[v]))
    return cost


@compiled(
    float64(
        float64[:, ::1], int64[::1], boolean, int64, boolean[:, ::1], uint8[:, ::1], float64[:, ::1],
        float64[:, ::1], int32[::1], float64[::1], int64[:, ::1], int64[::1], int64[::1], int64, int64[:, ::1],
    )
)  # fmt: skip
def round_snapped(  # type: ignore[no-untyped-def]
    x, p, coupled, total, allowed, rows, lo, hi, group, group_totals, label, parent, weight, options, counts
):
    """Round a fractional point to integers that keep sums, masks, totals of groups and those rows that are tree nodes.

    Args:
        x: shape (C, K).
        p: the parent's counts, shape (K,).
        coupled: false at the root, whose cells need not add up to a parent.
        total: of the root, what its cells add up to.
        allowed: shape (C, K).
        rows: shape (R, K).
        lo: shape (C, R).
        hi: shape (C, R).
        group: group of each child or -1, shape (C,).
        group_totals: records of each group.
        label: tree node of each cell on each level, coarse to fine, shape (L, K).
        parent: tree node above each node, -1 at the top.
        weight: price of a unit away from a tree node's rounded fractions; a leaf's is 1.
        options: bits ``ALL_POSITIVE`` (which leaves may go up) and ``FLAT`` (fractions of leaves are rounded).
        counts: receives the integers, shape (C, K).

    Returns:
        The cost; -1 where the point is too far from its sums to be rounded.
    """
    children, cells = x.shape
    f, leaf = np.empty((children, cells)), np.empty((children, cells), dtype=np.bool_)
    need = np.zeros(cells if coupled else 1, dtype=np.int64)
    if not _snap(x, allowed, p, coupled, total, options & ALL_POSITIVE != 0, counts, f, leaf, need):
        return -1.0
    up, price = np.zeros((children, cells), dtype=np.int64), f
    if options & FLAT:
        price = np.rint(f)
    if need.sum() > 0:
        low = np.empty((children, parent.shape[0]), dtype=np.int64)
        high = np.empty((children, parent.shape[0]), dtype=np.int64)
        _node_bounds(counts, rows, lo, hi, label, low, high)
        group_need = np.zeros(group_totals.shape[0], dtype=np.int64)
        for g in range(group_totals.shape[0]):
            group_need[g] = np.int64(np.rint(group_totals[g]))
        for c in range(children):
            if group[c] >= 0:
                group_need[group[c]] -= counts[c].sum()
        flat = options & FLAT != 0
        _send(f, leaf, need, label, parent, weight, low, high, group, group_need, coupled, flat, up)
    cost = _cost(f, price, up, label, parent.shape[0])
    counts += up
    return cost


@compiled(
    types.UniTuple(int64, 5)(
        int64[:, ::1], int64[::1], boolean, boolean[:, ::1], uint8[:, ::1], float64[:, ::1], float64[:, ::1],
        int32[::1], float64[::1],
    )
)  # fmt: skip
def count_broken(counts, p, coupled, allowed, rows, lo, hi, group, group_totals):  # type: ignore[no-untyped-def]
    """Sums over children, signs, masks, rows and groups that integers break."""
    children, cells = counts.shape
    sums = negative = masked = sides = groups = 0
    for k in range(cells if coupled else 0):
        sums += counts[:, k].sum() != p[k]
    held = np.zeros(group_totals.shape[0])
    for c in range(children):
        for k in range(cells):
            negative += counts[c, k] < 0
            masked += counts[c, k] != 0 and not allowed[c, k]
        for r in range(rows.shape[0]):
            total = 0
            for k in range(cells):
                total += counts[c, k] if rows[r, k] else 0
            sides += total < lo[c, r] or total > hi[c, r]
        if group[c] >= 0:
            held[group[c]] += counts[c].sum()
    for g in range(group_totals.shape[0]):
        groups += held[g] != group_totals[g]
    return sums, negative, masked, sides, groups
