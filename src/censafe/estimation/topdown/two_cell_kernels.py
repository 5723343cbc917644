"""Compiled closed form of parents with two cells whose children's totals are known: one number a child is free."""

from __future__ import annotations

import numpy as np
from numba import boolean, float64, int32

from censafe.estimation.topdown.total_kernels import water_level
from censafe.model.compiled import compiled

__all__ = ["fit_two_cells"]


@compiled(
    boolean(
        float64[:, :, ::1], int32[::1], float64[:, ::1], float64[::1], boolean[:, ::1], float64[:, ::1],
        float64[:, ::1], float64[:, ::1], float64[:, ::1], float64[::1],
    )
)  # fmt: skip
def fit_two_cells(h, h_of, b, p, allowed, lo, hi, x, nu, curvature):  # type: ignore[no-untyped-def]  # noqa: C901
    """Least squares of one parent with two cells and exact totals of its children, such as housing units by occupancy.

    Args:
        h: shape (G, 2, 2).
        h_of: which h a child has, shape (C,).
        b: shape (C, 2).
        p: the parent's counts, shape (2,).
        allowed: shape (C, 2).
        lo: the totals, shape (C, 1); -inf for a child without records.
        hi: the same, inf for a child without records.
        x: receives the point, shape (C, 2).
        nu: receives the multipliers of the totals, shape (C, 1).
        curvature: receives a positive lower bound of the eigenvalues of each h, shape (G,).

    Returns:
        Whether the point was found; otherwise the problem is of another kind.
    """
    children = b.shape[0]
    weight, side, whole, none = np.empty(children), np.empty(children), np.empty(children), np.zeros(children)
    for g in range(h.shape[0]):
        determinant = h[g, 0, 0] * h[g, 1, 1] - h[g, 0, 1] * h[g, 1, 0]
        curvature[g] = determinant / (h[g, 0, 0] + h[g, 1, 1])
        if not curvature[g] > 0.0:
            return False
    for c in range(children):
        own = h[h_of[c]]
        if allowed[c, 0] != allowed[c, 1] or (allowed[c, 0] and lo[c, 0] != hi[c, 0]):
            return False
        whole[c] = lo[c, 0] if allowed[c, 0] else 0.0
        weight[c] = own[0, 0] - 2.0 * own[0, 1] + own[1, 1]
        side[c] = b[c, 0] - b[c, 1] + (own[1, 1] - own[0, 1]) * whole[c]
    first = np.empty(children)
    if not water_level(weight, side, none, whole, p[0], first):
        return False
    multiplier, free, above, below = 0.0, 0, np.inf, -np.inf
    for c in range(children):
        force = weight[c] * first[c] - side[c]
        if 0.0 < first[c] < whole[c]:
            multiplier += force
            free += 1
        elif allowed[c, 0] and first[c] == 0.0:
            above = min(above, force)
        elif allowed[c, 0]:
            below = max(below, force)
    if free > 0:
        multiplier /= free
    else:  # any number between the two will do
        multiplier = below if below > -np.inf else (above if above < np.inf else 0.0)
    for c in range(children):
        own = h[h_of[c]]
        x[c, 0], x[c, 1] = first[c], whole[c] - first[c]
        nu[c, 0] = 0.0
        if allowed[c, 0]:
            full = x[c, 1] == 0.0
            cell = 0 if full else 1
            nu[c, 0] = own[cell, 0] * x[c, 0] + own[cell, 1] * x[c, 1] - b[c, cell]
            nu[c, 0] -= multiplier if full else 0.0
    return True
