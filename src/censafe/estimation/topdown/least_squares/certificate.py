"""Evidence for a fractional point: how far it is from its constraints and, at most, from the optimum."""

from __future__ import annotations

import numpy as np
from numba import boolean, float64, int32, int64, types, uint8, void

from censafe.estimation.topdown.least_squares.structures import EQUATIONS, SIDES
from censafe.model.compiled import compiled

GAP_TOLERANCE = 1e-4  # half chi-square units; rounding to integers moves the objective far more
VIOLATION_TOLERANCE = 1e-6


@compiled(
    float64(float64[::1], uint8[:, ::1], float64[::1], float64[::1], float64[::1], float64[::1], float64[::1])
)
def _rows(x, rows, lo, hi, nu, reduced, out):  # type: ignore[no-untyped-def]
    """Relative violation of lo <= R x <= hi of a child; subtracts R' nu from its reduced gradient, adds to the gap ``out[0]``."""
    worst = 0.0
    for r in range(rows.shape[0]):
        total = 0.0
        for k in range(x.shape[0]):
            if rows[r, k]:
                total += x[k]
                reduced[k] -= nu[r]
        worst = max(worst, max(lo[r] - total, total - hi[r]) / max(1.0, abs(total)))
        if nu[r] > 0.0:
            out[0] += nu[r] * (total - lo[r])
        elif nu[r] < 0.0:
            out[0] += nu[r] * (total - hi[r])
    return worst


@compiled(float64(float64, float64, float64))
def _most_gain(force, x, curvature):  # type: ignore[no-untyped-def]
    """Most that moving one cell, not below 0, against a force can lower an objective of this curvature."""
    if force > 0.0 and force > curvature * x:
        return force * x - 0.5 * curvature * x * x
    return force * force / (2.0 * curvature)


@compiled(
    float64(float64[:, ::1], float64[:, ::1], boolean[:, ::1], int64, float64, float64[::1], int32[::1])
)
def _column_gap(reduced, x, allowed, k, p, curvature, h_of):  # type: ignore[no-untyped-def]
    """Bound of one cell of the parent: the smaller of the two bounds of ``certify``."""
    least, total, mean, positive = np.inf, 0.0, 0.0, 0
    for c in range(x.shape[0]):
        if allowed[c, k]:
            total += x[c, k]
            least = min(least, reduced[c, k])
            if x[c, k] > 0.0:
                mean += reduced[c, k]
                positive += 1
    if least == np.inf:
        return 0.0
    mean = mean / positive if positive > 0 else least
    moved, curved = least * (total - p), mean * (total - p)
    for c in range(x.shape[0]):
        if allowed[c, k]:
            moved += (reduced[c, k] - least) * x[c, k]
            curved += _most_gain(reduced[c, k] - mean, x[c, k], curvature[h_of[c]])
    return min(moved, curved)


@compiled(void(EQUATIONS, int32[::1], float64[:, ::1], float64[::1], float64[:, ::1]))
def _gradients(equations, group, x, gamma, reduced):  # type: ignore[no-untyped-def]
    """Write H x - b - gamma of every child, the part of its reduced gradient without sums and rows."""
    h, h_of, b = equations.h, equations.h_of, equations.b
    for c in range(x.shape[0]):
        own, shift = h[h_of[c]], gamma[group[c]] if group[c] >= 0 else 0.0
        for k in range(x.shape[1]):
            reduced[c, k] = -b[c, k] - shift
        for k in range(x.shape[1]):
            if x[c, k] != 0.0:
                for j in range(x.shape[1]):
                    reduced[c, j] += x[c, k] * own[k, j]


@compiled(
    types.UniTuple(float64, 2)(
        EQUATIONS, SIDES, float64[:, ::1], float64[:, ::1], float64[::1], float64[::1]
    ),
    apart=True,
)
def certify(equations, sides, x, nu, gamma, curvature):  # type: ignore[no-untyped-def]
    """Violation and gap of a point; symbols as in :mod:`.structures`.

    For any multipliers of rows and groups, the rest of the problem falls apart into the cells of the parent. A cell is
    bounded in two ways, of which the smaller counts. Frank-Wolfe: its count goes to the child with the least reduced
    gradient. Curvature: no child can gain more than its reduced gradient, less the cell's mean, allows against the
    smallest curvature of the objective. The second keeps rounding errors of gradients from being multiplied
    by counts of millions; it alone serves a root, which has no sums.

    Args:
        x: the point, shape (C, K), not negative.
        nu: multipliers of the rows, shape (C, R).
        curvature: of each H a positive number not above its smallest eigenvalue, shape (G,).

    Returns:
        Largest relative violation, and the gap in half chi-square units.
    """
    p, allowed, group, group_totals = equations.p, sides.allowed, sides.group, sides.group_totals
    children, cells = x.shape
    reduced, out, worst = np.empty((children, cells)), np.zeros(1), 0.0
    totals = np.zeros(gamma.shape[0])
    _gradients(equations, group, x, gamma, reduced)
    for c in range(children):
        if group[c] >= 0:
            totals[group[c]] += x[c].sum()
        worst = max(worst, _rows(x[c], sides.rows, sides.lo[c], sides.hi[c], nu[c], reduced[c], out))
        for k in range(cells):
            worst = max(worst, -x[c, k] if allowed[c, k] else abs(x[c, k]))
    gap, largest = out[0], 1.0
    for g in range(gamma.shape[0]):
        worst = max(worst, abs(totals[g] - group_totals[g]) / max(1.0, group_totals[g]))
        gap += gamma[g] * (totals[g] - group_totals[g])
    for k in range(cells):
        largest = max(largest, p[k])
    for k in range(cells):
        if equations.coupled:
            worst = max(worst, abs(x[:, k].sum() - p[k]) / largest)
            gap += _column_gap(reduced, x, allowed, k, p[k], curvature, equations.h_of)
        elif allowed[0, k]:
            gap += _most_gain(reduced[0, k], x[0, k], curvature[equations.h_of[0]])
    return worst, gap
