"""Evidence for a fractional point: how far it is from its constraints and, at most, from the optimum."""

from __future__ import annotations

import numpy as np
from numba import boolean, float64, types, uint8

from censafe.model.compiled import compiled

__all__ = ["GAP_TOLERANCE", "VIOLATION_TOLERANCE", "certify"]

GAP_TOLERANCE = 1e-4  # half chi-square units; rounding to integers moves the objective far more
VIOLATION_TOLERANCE = 1e-6


@compiled(
    float64(float64[::1], uint8[:, ::1], float64[::1], float64[::1], float64[::1], float64[::1], float64[::1])
)
def _rows(x, rows, lo, hi, nu, reduced, out):  # type: ignore[no-untyped-def]
    """Relative violation of the side rows of a child; adds their part of the gap to ``out[0]``."""
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


@compiled(
    types.UniTuple(float64, 3)(
        float64[:, ::1], float64[:, ::1], float64[::1], boolean, boolean[:, ::1], uint8[:, ::1],
        float64[:, ::1], float64[:, ::1], float64[:, ::1], float64[:, ::1], float64,
    )
)  # fmt: skip
def certify(h, b, p, coupled, allowed, rows, lo, hi, x, nu, curvature):  # type: ignore[no-untyped-def]  # noqa: C901
    """Violation and gap of a point.

    The gap is a lower bound by duality: for any multipliers nu of the rows the rest is minimised cell by cell, where
    each parent count goes to the child with the least reduced gradient. A root has no such sums; there the
    smallest curvature of the objective bounds what a negative reduced gradient could still bring.

    Returns:
        Largest relative violation, gap, and the size of what rounding errors can add to the gap.
    """
    children, cells = b.shape
    reduced, out = np.empty((children, cells)), np.zeros(1)
    worst, noise = 0.0, 0.0
    for c in range(children):
        for k in range(cells):
            reduced[c, k] = -b[c, k]
        for k in range(cells):
            if x[c, k] != 0.0:
                for j in range(cells):
                    reduced[c, j] += x[c, k] * h[k, j]
        worst = max(worst, _rows(x[c], rows, lo[c], hi[c], nu[c], reduced[c], out))
        for k in range(cells):
            worst = max(worst, -x[c, k])
            noise += abs(b[c, k] * x[c, k])
            if not allowed[c, k]:
                worst = max(worst, abs(x[c, k]))
    gap, largest = out[0], 1.0
    for k in range(cells):
        largest = max(largest, p[k])
    for k in range(cells):
        if coupled:
            least, total = np.inf, 0.0
            for c in range(children):
                total += x[c, k]
                if allowed[c, k]:
                    least = min(least, reduced[c, k])
            worst = max(worst, abs(total - p[k]) / largest)
            if least < np.inf:
                gap += least * (total - p[k])
                for c in range(children):
                    gap += (reduced[c, k] - least) * x[c, k]
        elif allowed[0, k]:
            gap += reduced[0, k] * x[0, k]
            if reduced[0, k] < 0.0:
                gap += reduced[0, k] ** 2 / (2.0 * curvature)
    return worst, gap, noise * 2.220446049250313e-16
