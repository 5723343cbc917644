"""Compiled start of a solve: regular curvatures, their inverses, and the point that ignores bounds and rows."""

from __future__ import annotations

import numpy as np
from numba import boolean, float64, int32, void

from censafe.estimation.topdown.dense_kernels import factor, invert, solve_vector
from censafe.model.compiled import compiled

__all__ = ["start_point"]

_RIDGE = 1e-4  # share of the mean diagonal that is added to a singular H
_ILL = 1e13  # product of the largest entries of H and its inverse above which H counts as singular


@compiled(float64(float64[:, ::1], float64[:, ::1]))
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
    total, kept = np.zeros((cells, cells)), np.ones(cells, dtype=np.bool_)
    for c in range(children):
        total += inverse[h_of[c]]
    factor(total, kept)
    solve_vector(total, kept, rest)
    for c in range(children):
        own = inverse[h_of[c]]
        for j in range(cells):
            for k in range(cells):
                x[c, k] += rest[j] * own[j, k]


@compiled(
    void(
        float64[:, :, ::1], int32[::1], float64[:, ::1], float64[::1], boolean,
        float64[:, ::1], float64[::1], float64[::1],
    )
)  # fmt: skip
def start_point(h, h_of, b, p, coupled, x, curvature, ridge):  # type: ignore[no-untyped-def]
    """Least squares without bounds, rows and groups.

    Args:
        h: shape (G, K, K); a singular one gets a ridge, in place.
        h_of: which h a child has, shape (C,).
        b: shape (C, K).
        p: the parent's counts, shape (K,).
        coupled: whether children add up to the parent.
        x: receives the point, shape (C, K).
        curvature: receives a lower bound of the smallest eigenvalue of each h, shape (G,).
        ridge: receives what was added to the diagonal of each h, shape (G,).
    """
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
        own = inverse[h_of[c]]
        x[c] = 0.0
        for j in range(cells):
            s, row, out = b[c, j], own[j], x[c]
            for k in range(cells):
                out[k] += s * row[k]
    if coupled:
        _couple_start(inverse, h_of, p, x)
