"""Compiled estimation of the common parents of a level: from right sides to integer histograms, one after another.

Whatever is not ordinary (no point, no certificate, a point that cannot be rounded) is left alone and reported, and
goes the general way.
"""

from __future__ import annotations

import numpy as np
from numba import boolean, float64, int8, int32, int64, types, uint8, void

from censafe.estimation.topdown.least_squares.active_set import solve_active_set
from censafe.estimation.topdown.least_squares.certificate import GAP_TOLERANCE, VIOLATION_TOLERANCE, certify
from censafe.estimation.topdown.least_squares.dual import climb_dual
from censafe.estimation.topdown.least_squares.sides import drop_implied, kind_sides, tighten_sides
from censafe.estimation.topdown.least_squares.start import MOST_KINDS, fit_two_cells, share_total, start_point
from censafe.estimation.topdown.rounding.steps import count_broken, number_nodes, round_snapped
from censafe.model.compiled import compiled

__all__ = ["DONE", "LEFT", "estimate_families", "family_totals", "fit_family", "round_family"]

DONE, LEFT = 1, 0  # how a parent ended: estimated, or left to the general way
_EPS = 1e-8

_Families = types.Tuple((int64[::1], int64[::1], int64[::1], int32[::1], int64[::1]))
_Objective = types.Tuple(
    (
        int32[:, ::1], float64[:, ::1], int32[::1], float64[::1], float64[::1],
        float64[:, :, :, ::1], int32[::1], int32[:, ::1],
    )
)  # fmt: skip
_Sides = types.Tuple(
    (int32[::1], int64[:, ::1], int64[:, ::1], int64[::1], uint8[:, ::1], float64[:, ::1], float64[:, ::1])
)
_Found = types.Tuple((int8[::1], int64[::1], float64[:, ::1], int64[::1], int64[::1], int32[::1], int32[::1]))


@compiled(int64(int64[::1], int32[::1], int32[::1], int32[::1]))
def _classes(child, kinds, present, h_of):  # type: ignore[no-untyped-def]
    """The distinct kinds of the children, rising, and which one each child has."""
    count = 0
    for c in range(child.shape[0]):
        kind, at = kinds[child[c]], 0
        while at < count and present[at] < kind:
            at += 1
        if at == count or present[at] != kind:
            for i in range(count, at, -1):
                present[i] = present[i - 1]
            present[at] = kind
            count += 1
    for c in range(child.shape[0]):
        for i in range(count):
            if present[i] == kinds[child[c]]:
                h_of[c] = i
    return count


@compiled(void(int32[:, ::1], float64[:, ::1], int32[::1], int32[::1], int64, float64[:, :, ::1]))
def _curvatures(labels, weights, cell, present, without, h):  # type: ignore[no-untyped-def]
    """H of every kind on the parent's cells, the queries in their order, one of them left out."""
    cells = cell.shape[0]
    answer = np.empty(cells, dtype=np.int32)
    h[:] = 0.0
    for q in range(labels.shape[0]):
        for k in range(cells):
            answer[k] = labels[q, cell[k]]
        for g in range(h.shape[0]):
            weight = weights[present[g], q]
            for i in range(cells if weight != 0.0 and q != without else 0):
                one, row = answer[i], h[g, i]
                for j in range(cells):
                    row[j] += weight if answer[j] == one else 0.0


@compiled(
    boolean(
        float64[::1],
        float64[::1],
        int64[::1],
        int32[::1],
        int64[::1],
        int64[:, ::1],
        int64[:, ::1],
        float64[::1],
    )
)
def family_totals(weight, b, p, kind_of, child, lower, upper, out):  # type: ignore[no-untyped-def]
    """Totals of a parent's children from their measured totals alone, where the kinds of its cells allow these.

    Args:
        weight: of the measured total of every child, shape (C,).
        b: weight times the measured total, shape (C,).
        p: the parent's counts, shape (K,).
        kind_of: kind of unit of each cell of the parent, shape (K,).
        child: geounits of the children, shape (C,).
        lower: fewest records of every geounit and kind; no columns where nothing bounds them.
        upper: most records.
        out: receives the totals, shape (C,).

    Returns:
        Whether they were found; otherwise the caller needs a slower way.
    """
    children, kinds, used = child.shape[0], max(lower.shape[1], 1), 0
    place, have = np.full(kinds, -1), np.zeros(MOST_KINDS)
    for k in range(p.shape[0]):
        kind = kind_of[k]
        if place[kind] < 0:
            if used == MOST_KINDS:
                return False
            place[kind] = used
            used += 1
        have[place[kind]] += p[k]
    least, most = np.zeros((children, used)), np.zeros((children, used))
    for c in range(children):
        if weight[c] <= 0.0:
            return False
        for kind in range(kinds):
            if place[kind] >= 0:
                least[c, place[kind]] = lower[child[c], kind] if lower.shape[1] > 0 else 0
                most[c, place[kind]] = upper[child[c], kind] if lower.shape[1] > 0 else have[place[kind]]
    return share_total(weight, b, have[:used], least, most, out)


@compiled(void(float64[:, :, :, ::1], int32[::1], int32[:, ::1], int32[::1], int32[::1], float64[:, :, ::1]))
def _add_below(tables, kept, traits, cell, present, h):  # type: ignore[no-untyped-def]
    """Add to the H of every kind what is known from below: an entry depends on what two cells agree in."""
    cells = cell.shape[0]
    for i in range(cells):
        one = kept[cell[i]]
        for j in range(cells):
            other, agree = kept[cell[j]], 0
            for axis in range(traits.shape[0]):
                if traits[axis, cell[i]] == traits[axis, cell[j]]:
                    agree |= 1 << axis
            for g in range(h.shape[0]):
                h[g, i, j] += tables[present[g], agree, one, other]


_Fit = types.Tuple((int64, float64, float64, boolean))(
    float64[:, :, ::1], int32[::1], float64[:, ::1], float64[::1], boolean[:, ::1], uint8[:, ::1],
    float64[:, ::1], float64[:, ::1], float64[:, ::1],
)  # fmt: skip


@compiled(
    types.UniTuple(float64, 2)(
        float64[:, :, ::1], int32[::1], float64[:, ::1], float64[::1], boolean[:, ::1], uint8[:, ::1],
        float64[:, ::1], float64[:, ::1], float64[:, ::1], float64[:, ::1], float64[::1],
    )
)  # fmt: skip
def _checked(h, h_of, b, p, allowed, rows, lo, hi, x, nu, curvature):  # type: ignore[no-untyped-def]
    """Set rounding errors below 0 to 0; violation and gap of the point."""
    for c in range(x.shape[0]):
        for k in range(x.shape[1]):
            if not np.isfinite(x[c, k]):
                return np.inf, np.inf
            x[c, k] = max(x[c, k], 0.0)
    group, none = np.full(x.shape[0], np.int32(-1)), np.zeros(0)
    return certify(h, h_of, b, p, True, allowed, rows, lo, hi, group, none, x, nu, none, curvature)


@compiled(
    types.UniTuple(float64, 2)(
        float64[:, ::1], boolean[:, ::1], float64[:, ::1], float64[:, ::1], float64[:, ::1],
        boolean[:, ::1], int8[:, ::1],
    )
)  # fmt: skip
def _first_state(x, allowed, b, lo, hi, free, active):  # type: ignore[no-untyped-def]
    """The state that a point suggests, and the sizes from which values and multipliers count."""
    far, steep = 0.0, 0.0
    for c in range(x.shape[0]):
        for k in range(x.shape[1]):
            free[c, k] = x[c, k] > 0.0 and allowed[c, k]
            far = max(far, abs(x[c, k]))
            steep = max(steep, abs(b[c, k]))
        for r in range(lo.shape[1]):
            active[c, r] = 2 if lo[c, r] == hi[c, r] else 0
    return _EPS * min(100.0, max(1.0, 1e-4 * far)), _EPS * max(1.0, 1e-6 * steep)


@compiled(_Fit)
def fit_family(h, h_of, b, p, allowed, rows, lo, hi, x):  # type: ignore[no-untyped-def]
    """Least squares of one parent without groups: iterations, violation, gap, and whether these are a certificate.

    First two cells in closed form, then the active set, then the climb on the multipliers where that gives up. After the
    climb the active set makes the sums exact; where it goes in circles again, the point of the climb is looked at.
    """
    children, cells = b.shape
    curvature, ridge = np.empty(h.shape[0]), np.empty(h.shape[0])
    none, group, nu = np.zeros(0), np.full(children, np.int32(-1)), np.zeros((children, rows.shape[0]))
    pair = cells == 2 and rows.shape[0] == 1 and rows.all()
    if pair and fit_two_cells(h, h_of, b, p, allowed, lo, hi, x, nu, curvature):
        violation, gap = _checked(h, h_of, b, p, allowed, rows, lo, hi, x, nu, curvature)
        if violation <= VIOLATION_TOLERANCE and gap <= GAP_TOLERANCE:
            return 1, violation, gap, True
    start_point(h, h_of, b, p, True, x, curvature, ridge)
    if ridge.max() > 0.0:  # a singular objective needs the proximal steps of the general way
        return 0, np.inf, np.inf, False
    free, active = np.empty((children, cells), dtype=np.bool_), np.zeros(nu.shape, dtype=np.int8)
    eps_x, eps_mu = _first_state(x, allowed, b, lo, hi, free, active)
    first_free, first_active = free.copy(), active.copy()
    sums, start = np.zeros(cells), np.zeros(cells)
    for k in range(cells):
        start[k] = (h[h_of[0], k] * x[0]).sum() - b[0, k]
    other, other_nu, climbed, made = np.empty((children, cells)), np.zeros(nu.shape), 0, 0
    nu[:] = 0.0
    for attempt in range(2):
        found = solve_active_set(
            h, h_of, b, p, True, allowed, rows, lo, hi, group, none, free, active, eps_x, eps_mu, False, x, sums, nu
        )  # fmt: skip
        made += abs(found)
        violation, gap = _checked(h, h_of, b, p, allowed, rows, lo, hi, x, nu, curvature)
        if attempt == 1 or (violation <= VIOLATION_TOLERANCE and gap <= GAP_TOLERANCE):
            break
        climbed = climb_dual(
            h, h_of, b, p, allowed, rows, lo, hi, first_free, first_active, eps_x, eps_mu, other, start, other_nu
        )  # fmt: skip
        made += abs(climbed)
        if climbed <= 0:
            break
        free[:], active[:] = first_free, first_active
    if climbed > 0 and (violation > VIOLATION_TOLERANCE or gap > GAP_TOLERANCE):
        x[:] = other
        violation, gap = _checked(h, h_of, b, p, allowed, rows, lo, hi, x, other_nu, curvature)
    return made, violation, gap, violation <= VIOLATION_TOLERANCE and gap <= GAP_TOLERANCE


@compiled(
    types.Tuple((uint8[:, ::1], float64[:, ::1], float64[:, ::1]))(
        uint8[:, ::1], float64[:, ::1], float64[:, ::1], float64[::1]
    )
)
def _with_totals(rows, lo, hi, totals):  # type: ignore[no-untyped-def]
    """The rows with a total held in front; rows of all cells say nothing beside it."""
    children, cells, used = lo.shape[0], rows.shape[1], 1
    kept = np.zeros(rows.shape[0], dtype=np.int64)
    for r in range(rows.shape[0]):
        members = 0
        for k in range(cells):
            members += rows[r, k] != 0
        kept[r] = used if members < cells else 0
        used += members < cells
    more = np.ones((used, cells), dtype=np.uint8)
    low, high = np.empty((children, used)), np.empty((children, used))
    for c in range(children):
        low[c, 0] = high[c, 0] = totals[c]
        for r in range(rows.shape[0]):
            if kept[r] > 0:
                low[c, kept[r]], high[c, kept[r]] = lo[c, r], hi[c, r]
    for r in range(rows.shape[0]):
        for k in range(cells if kept[r] > 0 else 0):
            more[kept[r], k] = rows[r, k]
    return more, low, high


@compiled(int64(int64[:, ::1], int32[::1], int64, int64[::1], int32[::1], int32[::1]))
def _write(counts, cell, at, sizes, cells_out, counts_out):  # type: ignore[no-untyped-def]
    """Append the entries above 0 of every child; returns where the next ones go."""
    for c in range(counts.shape[0]):
        first = at
        for k in range(counts.shape[1]):
            if counts[c, k] > 0:
                cells_out[at], counts_out[at] = cell[k], np.int32(counts[c, k])
                at += 1
        sizes[c] = at - first
    return at


_Round = float64(
    float64[:, ::1], int64[::1], int32[::1], int32[:, ::1], int64, int64, boolean[:, ::1], uint8[:, ::1],
    float64[:, ::1], float64[:, ::1], int64[:, ::1],
)  # fmt: skip


@compiled(_Round)
def round_family(x, p, cell, levels, total_weight, options, allowed, rows, lo, hi, counts):  # type: ignore[no-untyped-def]
    """Round the children of a parent and look again at every integer; returns the cost, -1 where it did not work."""
    children, cells = x.shape
    own = np.empty((levels.shape[0], cells), dtype=np.int32)
    for level in range(levels.shape[0]):
        for k in range(cells):
            own[level, k] = levels[level, cell[k]]
    label = np.zeros((levels.shape[0] + 1, cells), dtype=np.int64)
    parent = np.empty(levels.shape[0] * cells + 1, dtype=np.int64)
    nodes, kept = number_nodes(own, label, parent)
    if nodes < 0:
        return -1.0
    weight = np.ones(nodes, dtype=np.int64)
    weight[0] = total_weight
    group, none = np.full(children, np.int32(-1)), np.zeros(0)
    cost = round_snapped(
        x,
        p,
        True,
        0,
        allowed,
        rows,
        lo,
        hi,
        group,
        none,
        label[:kept],
        parent[:nodes],
        weight,
        options,
        counts,
    )
    if cost < 0.0:
        return cost
    sums, negative, masked, sides, _ = count_broken(counts, p, True, allowed, rows, lo, hi, group, none)
    return cost if sums + negative + masked + sides == 0 else -1.0


@compiled(
    void(
        _Families, _Objective, _Sides, int32[:, ::1], int64, int64, int64, _Found,
        types.FunctionType(_Fit), types.FunctionType(_Round),
    )
)  # fmt: skip
def estimate_families(  # type: ignore[no-untyped-def]
    families, objective, sides, levels, total_query, total_weight, options, found, fit, rounded
):
    """Estimate parents one after another.

    The two large parts are called by pointer: the compiler would otherwise go over all of their code a second time.

    Args:
        families: where the children of every parent start; the children (geounits of the level); where the cells of every
            parent start; the cells; their counts.
        objective: labels of the queries, weights by kind and query, kinds of the geounits, right sides of all
            parents one after another, right sides of the totals of all children (read with ``total_query`` alone); and
            tables, kept combinations and exchangeable levels of what is known from below, empty where that is not used.
        sides: kind of unit of every cell, lower and upper bounds, exact totals, sets of kinds and their bounds.
        levels: groups of the cells of the schema that rounding keeps close, coarse to fine.
        total_query: ordinal of the query of the totals, which are fitted first and held; -1 for one fit of all.
        total_weight: price of a unit away from a total in the rounding.
        options: of the rounding.
        found: receives of every parent how it ended, iterations, (violation, gap, cost of rounding); of every child
            the number of its entries; where the entries of every parent start; cells and counts of all entries.
        fit: ``fit_family``.
        rounded: ``round_family``.
    """
    child_ptr, children_of, cell_ptr, cells_of, counts_of = families
    labels, weights, kinds, right, right_total, tables, kept, traits = objective
    unit_kind, lower, upper, known, sets, least, most = sides
    state, iterations, measures, sizes, starts, cells_out, counts_out = found
    base, at = 0, 0
    for parent in range(child_ptr.shape[0] - 1):
        child = children_of[child_ptr[parent] : child_ptr[parent + 1]]
        cell = cells_of[cell_ptr[parent] : cell_ptr[parent + 1]]
        p = counts_of[cell_ptr[parent] : cell_ptr[parent + 1]]
        children, cells = child.shape[0], cell.shape[0]
        b = right[base : base + children * cells].reshape(children, cells)
        base += children * cells
        state[parent], starts[parent] = LEFT, at
        present, h_of = np.empty(children, dtype=np.int32), np.zeros(children, dtype=np.int32)
        classes = _classes(child, kinds, present, h_of)
        kind_of = np.zeros(cells, dtype=np.int32)
        for k in range(cells if lower.shape[1] > 0 else 0):
            kind_of[k] = unit_kind[cell[k]]
        space = 1 + lower.shape[1] + sets.shape[0]
        allowed, rows = np.empty((children, cells), dtype=np.bool_), np.zeros((space, cells), dtype=np.uint8)
        lo, hi = np.empty((children, space)), np.empty((children, space))
        used = kind_sides(
            kind_of, child, p, True, lower, upper, known, sets, least, most, allowed, rows, lo, hi
        )
        rows, lo, hi = rows[:used], lo[:, :used].copy(), hi[:, :used].copy()
        fit_rows, fit_lo, fit_hi, fit_allowed = rows, lo.copy(), hi.copy(), allowed.copy()
        if total_query >= 0 and known.shape[0] == 0:
            weight, totals = np.empty(children), np.empty(children)
            for c in range(children):
                weight[c] = weights[kinds[child[c]], total_query]
            b_total = right_total[child_ptr[parent] : child_ptr[parent + 1]]
            if not family_totals(weight, b_total, p, kind_of, child, lower, upper, totals):
                continue
            fit_rows, fit_lo, fit_hi = _with_totals(rows, lo, hi, totals)
        wanted = p.astype(np.float64)
        if not tighten_sides(wanted, True, fit_rows, fit_allowed, fit_lo, fit_hi):
            continue
        drop_implied(fit_rows, fit_allowed, fit_lo, fit_hi)
        h, x = np.empty((classes, cells, cells)), np.empty((children, cells))
        _curvatures(labels, weights, cell, present[:classes], total_query, h)
        if tables.shape[0] > 0:
            _add_below(tables, kept, traits, cell, present[:classes], h)
        made, violation, gap, good = fit(h, h_of, b, wanted, fit_allowed, fit_rows, fit_lo, fit_hi, x)
        iterations[parent], measures[parent, 0], measures[parent, 1] = made, violation, gap
        if not good:
            continue
        counts = np.empty((children, cells), dtype=np.int64)
        cost = rounded(x, p, cell, levels, total_weight, options, allowed, rows, lo, hi, counts)
        if cost >= 0.0:
            measures[parent, 2] = cost
            own = sizes[child_ptr[parent] : child_ptr[parent + 1]]
            at = _write(counts, cell, at, own, cells_out, counts_out)
            state[parent] = DONE
