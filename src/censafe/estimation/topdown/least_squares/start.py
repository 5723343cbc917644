"""Compiled starts of a solve: regular curvatures, totals of a parent's children, and the closed form of parents with two cells."""

from __future__ import annotations

import numpy as np
from numba import boolean, float64, int32, void

from censafe.estimation.topdown.least_squares.dense import factor, invert, solve_vector
from censafe.estimation.topdown.least_squares.structures import EQUATIONS, SIDES
from censafe.model.compiled import compiled

_RIDGE = 1e-4  # share of the mean diagonal that is added to a singular H
_ILL = 1e13  # product of the largest entries of H and its inverse above which H counts as singular


@compiled(float64(float64[:, ::1], float64[:, ::1]), apart=True)
def _regular(h, inverse):  # type: ignore[no-untyped-def]
    """Write the inverse; add a ridge to a singular h and return it."""
    cells = h.shape[0]
    inverse[:] = h
    invert(inverse)
    largest, most, trace, good = 0.0, 0.0, 0.0, True
    for i in range(cells):
        good = good and inverse[i, i] > 0.0
        trace += h[i, i]
        for j in range(cells):
            largest = max(largest, abs(inverse[i, j]))
            most = max(most, h[i, j])
            good = good and np.isfinite(inverse[i, j])
    if good and largest * most <= _ILL:
        return 0.0
    ridge = _RIDGE * trace / cells if trace > 0.0 else 1.0
    for i in range(cells):
        h[i, i] += ridge
    inverse[:] = h
    invert(inverse)
    return ridge


@compiled(void(float64[:, :, ::1], int32[::1], float64[::1], float64[:, ::1]))
def _couple_start(inverse, h_of, p, x):  # type: ignore[no-untyped-def]
    """Shift x so that the children add up to p, at the least cost in the curvatures."""
    children, cells = x.shape
    rest = p.copy()
    for c in range(children):
        rest -= x[c]
    if inverse.shape[0] == 1:
        for c in range(children):
            for k in range(cells):
                x[c, k] += rest[k] / children
        return
    total, independent = np.zeros((cells, cells)), np.ones(cells, dtype=np.bool_)
    for c in range(children):
        total += inverse[h_of[c]]
    factor(total, independent)
    solve_vector(total, independent, rest)
    for c in range(children):
        own = inverse[h_of[c]]
        for j in range(cells):
            for k in range(cells):
                x[c, k] += rest[j] * own[j, k]


@compiled(void(EQUATIONS, float64[:, ::1], float64[::1], float64[::1]), apart=True)
def start_point(equations, x, curvature, ridge):  # type: ignore[no-untyped-def]
    """Least squares without bounds, rows and groups: x_c = H_c^-1 (b_c + lambda); symbols as in :mod:`.structures`.

    Args:
        x: receives the point, shape (C, K).
        curvature: receives a lower bound of the smallest eigenvalue of each H, shape (G,).
        ridge: receives what was added to the diagonal of each H, shape (G,).
    """
    h, b = equations.h, equations.b
    kinds, cells = h.shape[0], h.shape[1]
    inverse = np.empty((kinds, cells, cells))
    for g in range(kinds):
        ridge[g] = _regular(h[g], inverse[g])
        squares = 0.0
        for i in range(cells):
            for j in range(cells):
                squares += inverse[g, i, j] * inverse[g, i, j]
        curvature[g] = 1.0 / np.sqrt(squares)
    for c in range(x.shape[0]):
        own = inverse[equations.h_of[c]]
        x[c] = 0.0
        for j in range(cells):
            s, row, out = b[c, j], own[j], x[c]
            for k in range(cells):
                out[k] += s * row[k]
    if equations.coupled:
        _couple_start(inverse, equations.h_of, equations.p, x)


MOST_KINDS = 8  # 256 sets
_TOLERANCE = 1e-9


@compiled(float64(float64[::1], float64[::1], float64[::1], float64[::1], float64, float64[::1]))
def _clipped(weight, b, low, high, multiplier, out):  # type: ignore[no-untyped-def]
    """Totals at a multiplier of their sum; returns the sum."""
    total = 0.0
    for c in range(out.shape[0]):
        out[c] = min(max((b[c] + multiplier) / weight[c], low[c]), high[c])
        total += out[c]
    return total


@compiled(void(float64[::1]))
def _sort(values):  # type: ignore[no-untyped-def]
    """Sort in place; a plain sort takes the compiler longer than all of this file."""
    gap = values.shape[0] // 2
    while gap > 0:
        for i in range(gap, values.shape[0]):
            value, at = values[i], i
            while at >= gap and values[at - gap] > value:
                values[at] = values[at - gap]
                at -= gap
            values[at] = value
        gap //= 2


@compiled(boolean(float64[::1], float64[::1], float64[::1], float64[::1], float64, float64[::1]))
def water_level(weight, b, low, high, total, out):  # type: ignore[no-untyped-def]
    """The least squares totals between bounds that add up to ``whole``: the multiplier lies between two breaks."""
    children = out.shape[0]
    breaks = np.empty(2 * children)
    for c in range(children):
        breaks[c] = weight[c] * low[c] - b[c]
        breaks[children + c] = weight[c] * high[c] - b[c]
    _sort(breaks)
    if low.sum() > total or high.sum() < total:
        return False
    first, last = 0, 2 * children - 1  # sums at the first break are the least, at the last the most
    while last - first > 1:
        middle = (first + last) // 2
        if _clipped(weight, b, low, high, breaks[middle], out) <= total:
            first = middle
        else:
            last = middle
    _clipped(weight, b, low, high, 0.5 * (breaks[first] + breaks[last]), out)
    rest, slope = total, 0.0
    for c in range(children):
        if low[c] < out[c] < high[c]:
            rest -= b[c] / weight[c]
            slope += 1.0 / weight[c]
        else:
            rest -= out[c]
    multiplier = rest / slope if slope > 0.0 else breaks[first]
    _clipped(weight, b, low, high, multiplier, out)
    return True


@compiled(boolean(float64[::1], float64[:, ::1], float64[:, ::1], float64[::1]))
def _can_share(have, least, most, totals):  # type: ignore[no-untyped-def]
    """Whether children with these totals can share out the parent's kinds: no set of kinds is too small (Hoffman)."""
    children, kinds = least.shape
    for chosen in range(1, 1 << kinds):
        kinds_have, need = 0.0, 0.0
        for g in range(kinds):
            if chosen >> g & 1:
                kinds_have += have[g]
        for c in range(children):
            inside, outside = 0.0, 0.0
            for g in range(kinds):
                if chosen >> g & 1:
                    inside += least[c, g]
                else:
                    outside += most[c, g]
            need += max(inside, totals[c] - outside)
        if need > kinds_have + _TOLERANCE * max(1.0, kinds_have):
            return False
    return True


@compiled(boolean(float64[::1], float64[::1], float64[::1], float64[:, ::1], float64[:, ::1], float64[::1]))
def share_total(weight, b, have, least, most, out):  # type: ignore[no-untyped-def]
    """Totals of the children nearest to their measured ones, if bounds on them and on kinds of cells allow these.

    The nearest totals that only obey each child's own bounds are found exactly. Where the kinds can be shared out with
    them they are the answer; otherwise the caller needs a slower way.

    Args:
        weight: of the measured total of every child, above 0, shape (C,).
        b: weight times the measured total, shape (C,).
        have: the parent's counts by kind, shape (T,), at most 8 kinds.
        least: fewest records of every child and kind, shape (C, T).
        out: receives the totals, shape (C,).

    Source: Hoffman's circulation theorem on children x kinds.
    """
    children, kinds = least.shape
    low, high, total = np.zeros(children), np.zeros(children), have.sum()
    for c in range(children):
        for g in range(kinds):
            low[c] += least[c, g]
            high[c] += min(most[c, g], have[g])
    return water_level(weight, b, low, high, total, out) and _can_share(have, least, most, out)


@compiled(float64(boolean[:, ::1], float64[::1], float64[::1], float64[::1], float64[::1]))
def _pair_multiplier(allowed, weight, side, total, first):  # type: ignore[no-untyped-def]
    """lambda_1 - lambda_2 of the parent's two cells: the mean force weight x1 - side where 0 < x1 < whole."""
    multiplier, free, above, below = 0.0, 0, np.inf, -np.inf
    for c in range(first.shape[0]):
        force = weight[c] * first[c] - side[c]
        if 0.0 < first[c] < total[c]:
            multiplier += force
            free += 1
        elif allowed[c, 0] and first[c] == 0.0:
            above = min(above, force)
        elif allowed[c, 0]:
            below = max(below, force)
    if free > 0:
        return multiplier / free
    # any number between the two will do
    return below if below > -np.inf else (above if above < np.inf else 0.0)


@compiled(boolean(EQUATIONS, SIDES, float64[:, ::1], float64[:, ::1], float64[::1]), apart=True)
def fit_two_cells(equations, sides, x, nu, curvature):  # type: ignore[no-untyped-def]
    """Least squares of one parent with two cells and exact totals of its children, such as housing units by occupancy.

    With x2 = whole - x1 the objective is the sum of weight x1^2 / 2 - side x1, and x1 has a sum and bounds.

    Args:
        x: receives the point, shape (C, 2).
        nu: receives the multipliers of the totals, shape (C, 1).
        curvature: receives a positive lower bound of the eigenvalues of each H, shape (G,).
    """
    h, h_of, b, allowed, lo = equations.h, equations.h_of, equations.b, sides.allowed, sides.lo
    children = b.shape[0]
    weight, side, total, first = (
        np.empty(children),
        np.empty(children),
        np.empty(children),
        np.empty(children),
    )
    for g in range(h.shape[0]):
        determinant = h[g, 0, 0] * h[g, 1, 1] - h[g, 0, 1] * h[g, 1, 0]
        curvature[g] = determinant / (h[g, 0, 0] + h[g, 1, 1])
        if not curvature[g] > 0.0:
            return False
    for c in range(children):
        own = h[h_of[c]]
        if allowed[c, 0] != allowed[c, 1] or (allowed[c, 0] and lo[c, 0] != sides.hi[c, 0]):
            return False
        total[c] = lo[c, 0] if allowed[c, 0] else 0.0
        weight[c] = own[0, 0] - 2.0 * own[0, 1] + own[1, 1]
        side[c] = b[c, 0] - b[c, 1] + (own[1, 1] - own[0, 1]) * total[c]
    if not water_level(weight, side, np.zeros(children), total, equations.p[0], first):
        return False
    multiplier = _pair_multiplier(allowed, weight, side, total, first)
    for c in range(children):
        own = h[h_of[c]]
        x[c, 0], x[c, 1] = first[c], total[c] - first[c]
        nu[c, 0] = 0.0
        if allowed[c, 0]:
            full = x[c, 1] == 0.0
            cell = 0 if full else 1
            nu[c, 0] = own[cell, 0] * x[c, 0] + own[cell, 1] * x[c, 1] - b[c, cell]
            nu[c, 0] -= multiplier if full else 0.0
    return True
