"""Compiled inverse of H on a child's free cells, carried from one state of the child to the next.

A cell that is fixed is swept out of the inverse, a cell that is freed is bordered to it, up to eight at a time; where many
change the inverse is made anew. The inverse is packed: n x n numbers at the start of the child's store, for the
cells index[0] .. index[n - 1] in any order.
"""

from __future__ import annotations

import numpy as np
from numba import boolean, float64, int64, void

from censafe.estimation.topdown.dense_kernels import BLOCK, invert, subtract_products
from censafe.model.compiled import compiled

__all__ = ["refresh_inverse"]

_FREED_COST = 3  # freeing a cell costs this many times as much as fixing one
_MOST_CHANGES = 0.6  # share of the cells, freed ones counted threefold, above which the inverse is made anew


@compiled(void(float64[:, ::1]))
def _mirror(a):  # type: ignore[no-untyped-def]
    """Copy the lower triangle to the upper one."""
    for i in range(a.shape[0]):
        for j in range(i):
            a[j, i] = a[i, j]


@compiled(boolean(float64[:, ::1], float64[:, ::1], float64[:, ::1], float64))
def _weighted(small, right, left, sign):  # type: ignore[no-untyped-def]
    """Invert a small matrix in place and set left = sign (small^-1 right)'; false if it is not positive."""
    invert(small)
    m, n = small.shape[0], right.shape[1]
    column = np.empty(n)
    for q in range(m):
        if not (small[q, q] > 0.0 and np.isfinite(small[q, q])):
            return False
        column[:] = 0.0
        for s in range(m):
            w, other = sign * small[q, s], right[s]
            for i in range(n):
                column[i] += w * other[i]
        for i in range(n):
            left[i, q] = column[i]
    return True


@compiled(boolean(float64[::1], int64[::1], int64, int64[::1]))
def _fix(store, index, n, gone):  # type: ignore[no-untyped-def]
    """Sweep the cells at the positions ``gone`` out of the inverse."""
    inverse = store[: n * n].reshape(n, n)
    left, right = np.empty((n, BLOCK)), np.empty((BLOCK, n))
    for first in range(0, gone.shape[0], BLOCK):
        m = min(BLOCK, gone.shape[0] - first)
        small = np.empty((m, m))
        for q in range(m):
            d = gone[first + q]
            right[q, : d + 1] = inverse[d, : d + 1]
            for i in range(d + 1, n):
                right[q, i] = inverse[i, d]
            for s in range(q + 1):
                small[q, s] = right[q, gone[first + s]]
        if not _weighted(small, right[:m], left, 1.0):
            return False
        subtract_products(inverse, 0, left, right, m)
    stay, kept, at = np.empty(n, dtype=np.int64), 0, 0
    for i in range(n):
        if at < gone.shape[0] and gone[at] == i:
            at += 1
        else:
            stay[kept] = i
            kept += 1
    packed = store[: kept * kept].reshape(kept, kept)
    for i in range(kept):  # in this order no number is overwritten before it is read
        for j in range(i + 1):
            packed[i, j] = inverse[stay[i], stay[j]]
        index[i] = index[stay[i]]
    _mirror(packed)
    return True


@compiled(boolean(float64[:, ::1], float64[::1], int64[::1], int64, int64[::1]))
def _free(h, store, index, n, new):  # type: ignore[no-untyped-def]  # noqa: C901
    """Border the inverse with up to eight cells."""
    inverse, m = store[: n * n].reshape(n, n), new.shape[0]
    left, right, small = np.empty((n, BLOCK)), np.zeros((BLOCK, n)), np.empty((m, m))
    for q in range(m):
        out, source = right[q], h[new[q]]
        for j in range(n):
            w, row = source[index[j]], inverse[j]
            if w != 0.0:
                for i in range(n):
                    out[i] += w * row[i]
    for q in range(m):
        for s in range(q + 1):
            small[q, s] = h[new[q], new[s]]
            for j in range(n):
                small[q, s] -= h[new[s], index[j]] * right[q, j]
    if not _weighted(small, right[:m], left, -1.0):
        return False
    subtract_products(inverse, 0, left, right, m)
    size = n + m
    wider = store[: size * size].reshape(size, size)
    for i in range(n - 1, -1, -1):  # backwards, for the same reason
        for j in range(i, -1, -1):
            wider[i, j] = inverse[i, j]
    for q in range(m):
        for i in range(n):
            wider[n + q, i] = left[i, q]
        for s in range(q + 1):
            wider[n + q, n + s] = small[q, s]
        index[n + q] = new[q]
    _mirror(wider)
    return True


@compiled(int64(float64[:, ::1], boolean[::1], float64[::1], int64[::1]))
def _anew(h, free, store, index):  # type: ignore[no-untyped-def]
    n = 0
    for k in range(h.shape[0]):
        if free[k]:
            index[n] = k
            n += 1
    inverse = store[: n * n].reshape(n, n)
    for i in range(n):
        for j in range(i + 1):
            inverse[i, j] = h[index[i], index[j]]
    invert(inverse)
    return n


@compiled(int64(float64[:, ::1], boolean[::1], float64[::1], int64[::1], int64))
def refresh_inverse(h, free, store, index, n):  # type: ignore[no-untyped-def]
    """Make the inverse that of the free cells.

    Args:
        h: shape (K, K).
        free: shape (K,).
        store: holds the packed inverse of the former cells, shape (K K,).
        index: the former cells, shape (K,); receives the free ones.
        n: number of former cells; 0 if there is no inverse.

    Returns:
        Number of free cells.

    Example:
        >>> h, store, index = 2 * np.eye(3) + 1, np.zeros(9), np.zeros(3, dtype=np.int64)
        >>> n = refresh_inverse(h, np.array([True, True, True]), store, index, 0)
        >>> n = refresh_inverse(h, np.array([True, False, True]), store, index, n)
        >>> n, np.round(store[:4] * 8, 9).tolist()
        (2, [3.0, -1.0, -1.0, 3.0])
    """
    cells = h.shape[0]
    held = np.zeros(cells, dtype=np.bool_)
    gone, new, fixed, freed = np.empty(n, dtype=np.int64), np.empty(cells, dtype=np.int64), 0, 0
    for i in range(n):
        held[index[i]] = True
        if not free[index[i]]:
            gone[fixed] = i
            fixed += 1
    for k in range(cells):
        if free[k] and not held[k]:
            new[freed] = k
            freed += 1
    if n - fixed < 2 * BLOCK or fixed + _FREED_COST * freed > _MOST_CHANGES * n:
        return _anew(h, free, store, index)
    if fixed > 0:
        if not _fix(store, index, n, gone[:fixed]):
            return _anew(h, free, store, index)
        n -= fixed
    for first in range(0, freed, BLOCK):
        m = min(BLOCK, freed - first)
        if not _free(h, store, index, n, new[first : first + m]):
            return _anew(h, free, store, index)
        n += m
    return n
