"""Compiled dense linear algebra that gives the same bits on every machine and with any number of threads.

Small symmetric matrices only: no BLAS call, so neither its threads nor its dispatch can change a result.
"""

from __future__ import annotations

import numpy as np
from numba import boolean, float64, int64, void

from censafe.model.compiled import compiled

BLOCK = 8  # terms of one pass over a row
DEPENDENT = 1e-10  # a pivot below this share of its diagonal belongs to a dependent equation


@compiled(void(float64[:, ::1], int64, int64, float64[::1]))
def _sweep(a, first, last, column):  # type: ignore[no-untyped-def]
    """Gauss-Jordan sweeps of the lower triangle of a[first:last, first:last]; leaves minus the inverse."""
    for k in range(first, last):
        d = 1.0 / a[k, k] if a[k, k] > 0.0 else 0.0  # the caller sees the 0 on the diagonal
        for i in range(first, k):
            column[i] = a[k, i]
        column[k] = 0.0
        for i in range(k + 1, last):
            column[i] = a[i, k]
        for i in range(first, last):
            s = column[i] * d
            if s != 0.0:
                row, other = a[i, first : i + 1], column[first : i + 1]
                for j in range(
                    row.shape[0]
                ):  # slices start at 0, which is what lets the compiler use vectors
                    row[j] -= s * other[j]
        for i in range(first, k):
            a[k, i] = column[i] * d
        for i in range(k + 1, last):
            a[i, k] = column[i] * d
        a[k, k] = -d


@compiled(void(float64[:, ::1], int64, float64[:, ::1], float64[:, ::1], int64))
def subtract_products(a, start, left, right, width):  # type: ignore[no-untyped-def]
    """Subtract left[i] @ right[:, start:i+1] from a[i, start:i+1] for i from start on."""
    for i in range(start, a.shape[0]):
        row = a[i, start : i + 1]
        if width == BLOCK:
            c0, c1, c2, c3 = left[i, 0], left[i, 1], left[i, 2], left[i, 3]
            c4, c5, c6, c7 = left[i, 4], left[i, 5], left[i, 6], left[i, 7]
            r0, r1 = right[0, start : i + 1], right[1, start : i + 1]
            r2, r3 = right[2, start : i + 1], right[3, start : i + 1]
            r4, r5 = right[4, start : i + 1], right[5, start : i + 1]
            r6, r7 = right[6, start : i + 1], right[7, start : i + 1]
            for j in range(row.shape[0]):
                first = (c0 * r0[j] + c1 * r1[j]) + (c2 * r2[j] + c3 * r3[j])
                row[j] -= first + ((c4 * r4[j] + c5 * r5[j]) + (c6 * r6[j] + c7 * r7[j]))
        else:
            for q in range(width):
                c0, r0 = left[i, q], right[q, start : i + 1]
                for j in range(row.shape[0]):
                    row[j] -= c0 * r0[j]


@compiled(void(float64[:, ::1], int64, int64, float64[:, ::1], float64[:, ::1], float64[::1]))
def _sweep_block(a, k0, k1, left, right, column):  # type: ignore[no-untyped-def]  # noqa: C901
    """One block of sweeps over the whole lower triangle."""
    n, m = a.shape[0], k1 - k0
    _sweep(a, k0, k1, column)
    for q in range(m):
        right[q, :] = 0.0
        for i in range(k0):
            right[q, i] = a[k0 + q, i]
        for i in range(k1, n):
            right[q, i] = a[i, k0 + q]
    middle = np.empty((m, m))
    for q in range(m):
        for s in range(q + 1):
            middle[q, s] = a[k0 + q, k0 + s]
            middle[s, q] = middle[q, s]
    for q in range(m):
        column[:] = 0.0
        for s in range(m):
            w, other = middle[q, s], right[s]
            for i in range(n):
                column[i] -= w * other[i]
        for i in range(n):
            left[i, q] = column[i]
    subtract_products(a, 0, left, right, m)
    for q in range(m):
        for i in range(k0):
            a[k0 + q, i] = left[i, q]
        for i in range(k1, n):
            a[i, k0 + q] = left[i, q]


@compiled(void(float64[:, ::1]))
def invert(a):  # type: ignore[no-untyped-def]
    """Replace a symmetric positive definite matrix by its inverse; only the lower triangle is read."""
    n = a.shape[0]
    column = np.empty(n)
    if n <= BLOCK:
        _sweep(a, 0, n, column)
    else:
        left, right = np.empty((n, BLOCK)), np.empty((BLOCK, n))
        for k0 in range(0, n, BLOCK):
            _sweep_block(a, k0, min(n, k0 + BLOCK), left, right, column)
    for i in range(n):
        for j in range(i + 1):
            a[i, j] = -a[i, j]
            a[j, i] = a[i, j]


@compiled(void(float64[:, ::1], int64, int64, float64[::1], boolean[::1], float64[:, ::1], float64[:, ::1]))
def _factor_panel(a, k0, k1, scale, independent, left, right):  # type: ignore[no-untyped-def]
    """Columns k0 .. k1 - 1 of L; leaves them in ``left`` and, transposed, in ``right``."""
    n = a.shape[0]
    for q in range(k1 - k0):
        k = k0 + q
        column = right[q]
        for i in range(k, n):
            column[i] = a[i, k]
        for s in range(q):
            w, other = right[s, k], right[s]
            if w != 0.0:
                for i in range(k, n):
                    column[i] -= w * other[i]
        independent[k] = column[k] > DEPENDENT * scale[k]
        root = np.sqrt(column[k]) if independent[k] else 1.0
        share = 1.0 / root if independent[k] else 0.0
        for i in range(k + 1, n):
            column[i] *= share
        column[k] = root
        for i in range(k, n):
            a[i, k] = column[i]
            left[i, q] = column[i]


@compiled(void(float64[:, ::1], float64[::1], boolean[::1]))
def factor_scaled(a, scale, independent):  # type: ignore[no-untyped-def]
    """Cholesky factor L of a = L L' where the size from which a pivot counts is given by equation."""
    n = a.shape[0]
    left, right = np.empty((n, BLOCK)), np.empty((BLOCK, n))
    for k0 in range(0, n, BLOCK):
        k1 = min(n, k0 + BLOCK)
        _factor_panel(a, k0, k1, scale, independent, left, right)
        if k1 < n:
            subtract_products(a, k1, left, right, k1 - k0)


@compiled(void(float64[:, ::1], boolean[::1]))
def factor(a, independent):  # type: ignore[no-untyped-def]
    """Cholesky factor L of a = L L' in the lower triangle; an equation that others imply is left out and is not ``independent``."""
    scale = np.empty(a.shape[0])
    for i in range(a.shape[0]):
        scale[i] = a[i, i]
    factor_scaled(a, scale, independent)


@compiled(void(float64[::1], float64, float64[::1]))
def _subtract(target, weight, other):  # type: ignore[no-untyped-def]
    """Subtract weight * other from the target in place; an array expression would allocate."""
    for j in range(target.shape[0]):
        target[j] -= weight * other[j]


@compiled(void(float64[:, ::1], boolean[::1], float64[:, ::1]))
def solve_factored(a, independent, sides):  # type: ignore[no-untyped-def]
    """Solve L L' z = s in place for every column s of ``sides``, shape (n, columns); a left-out unknown is 0."""
    n = a.shape[0]
    for i in range(n):
        for j in range(i):
            if independent[i] and a[i, j] != 0.0:
                _subtract(sides[i], a[i, j], sides[j])
        for j in range(sides.shape[1]):
            sides[i, j] = sides[i, j] / a[i, i] if independent[i] else 0.0
    for i in range(n - 1, -1, -1):
        for j in range(sides.shape[1]):
            sides[i, j] /= a[i, i]
        for j in range(i):
            if a[i, j] != 0.0:
                _subtract(sides[j], a[i, j], sides[i])


@compiled(void(float64[:, ::1], boolean[::1], float64[::1]))
def solve_vector(a, independent, x):  # type: ignore[no-untyped-def]
    """Solve L L' z = x in place for one right side; a left-out unknown is 0."""
    n = a.shape[0]
    for i in range(n):
        total, row = x[i], a[i, :i]
        for j in range(row.shape[0]):
            total -= row[j] * x[j]
        x[i] = total / a[i, i] if independent[i] else 0.0
    for i in range(n - 1, -1, -1):
        x[i] /= a[i, i]
        _subtract(x[:i], x[i], a[i, :i])
