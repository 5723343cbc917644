"""Compiled answer of one child: the inverse of H on its free cells, carried from state to state, and its active side rows."""

from __future__ import annotations

import numpy as np
from numba import boolean, float64, int32, int64, void

from censafe.estimation.topdown.least_squares.dense import (
    BLOCK,
    factor,
    invert,
    solve_factored,
    subtract_products,
)
from censafe.estimation.topdown.least_squares.structures import EQUATIONS, FACTORS, POINT, SIDES, STATE
from censafe.model.compiled import compiled

_FREED_COST = 3  # freeing a cell costs this many times as much as fixing one
_MOST_CHANGES = (
    0.6  # share of the cells, freed ones counted threefold, above which the inverse is computed from H
)


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


@compiled(boolean(float64[::1], int64[::1], int64, int64[::1]), apart=True)
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
    stay, size, at = np.empty(n, dtype=np.int64), 0, 0
    for i in range(n):
        if at < gone.shape[0] and gone[at] == i:
            at += 1
        else:
            stay[size] = i
            size += 1
    packed = store[: size * size].reshape(size, size)
    for i in range(size):  # in this order no number is overwritten before it is read
        for j in range(i + 1):
            packed[i, j] = inverse[stay[i], stay[j]]
        index[i] = index[stay[i]]
    _mirror(packed)
    return True


@compiled(boolean(float64[:, ::1], float64[::1], int64[::1], int64, int64[::1]), apart=True)
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
def _fresh_inverse(h, free, store, index):  # type: ignore[no-untyped-def]
    """Q = (H_FF)^-1 without the help of a former inverse; returns the number of free cells."""
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


@compiled(int64(float64[:, ::1], boolean[::1], float64[::1], int64[::1], int64), apart=True)
def refresh_inverse(h, free, store, index, n):  # type: ignore[no-untyped-def]
    """Make the inverse that of the free cells.

    Args:
        h: shape (K, K).
        free: shape (K,).
        store: holds the packed inverse of the former cells, shape (K K,).
        index: the former cells, shape (K,); receives the free ones.

    Example:
        >>> h, store, index = 2 * np.eye(3) + 1, np.zeros(9), np.zeros(3, dtype=np.int64)
        >>> n = refresh_inverse(h, np.array([True, True, True]), store, index, 0)
        >>> n = refresh_inverse(h, np.array([True, False, True]), store, index, n)
        >>> n, np.round(store[:4] * 8, 9).tolist()
        (2, [3.0, -1.0, -1.0, 3.0])
    """
    cells = h.shape[0]
    stored = np.zeros(cells, dtype=np.bool_)
    gone, new, fixed, freed = np.empty(n, dtype=np.int64), np.empty(cells, dtype=np.int64), 0, 0
    for i in range(n):
        stored[index[i]] = True
        if not free[index[i]]:
            gone[fixed] = i
            fixed += 1
    for k in range(cells):
        if free[k] and not stored[k]:
            new[freed] = k
            freed += 1
    if n - fixed < 2 * BLOCK or fixed + _FREED_COST * freed > _MOST_CHANGES * n:
        return _fresh_inverse(h, free, store, index)
    if fixed > 0:
        if not _fix(store, index, n, gone[:fixed]):
            return _fresh_inverse(h, free, store, index)
        n -= fixed
    for first in range(0, freed, BLOCK):
        m = min(BLOCK, freed - first)
        if not _free(h, store, index, n, new[first : first + m]):
            return _fresh_inverse(h, free, store, index)
        n += m
    return n


@compiled(void(FACTORS, int64, SIDES, int64[::1], float64[::1]), apart=True)
def _project(factors, c, sides, active, side):  # type: ignore[no-untyped-def]
    """M, W and q of one child for the sides s of its active rows; turns v from Q b into P b + M' S^-1 s."""
    n, a, rows = factors.n[c], active.shape[0], sides.rows
    inverse, index = factors.inverse[c, : n * n].reshape(n, n), factors.cell[c, :n]
    v, m, w, q = factors.v[c], factors.m[c], factors.w[c], factors.q[c]
    s, rest = np.zeros((a, a)), np.empty((a, 1))
    for r in range(a):
        m[r, :n] = 0.0
        for i in range(n):
            if rows[active[r], index[i]]:
                row, other = m[r], inverse[i]
                for j in range(n):
                    row[j] += other[j]
    for r in range(a):
        rest[r, 0] = side[r]
        for j in range(n):
            if rows[active[r], index[j]]:
                rest[r, 0] -= v[j]
                for t in range(a):
                    s[t, r] += m[t, j]
    independent = np.ones(a, dtype=np.bool_)
    factor(s, independent)
    alone = side.copy().reshape(a, 1)
    solve_factored(s, independent, alone)
    solve_factored(s, independent, rest)
    share = m[:a, :n].copy()
    solve_factored(s, independent, share)
    for r in range(a):
        q[active[r]] = alone[r, 0]
        w[r, :n] = share[r]
        for j in range(n):
            v[j] += m[r, j] * rest[r, 0]


@compiled(void(EQUATIONS, SIDES, STATE, FACTORS, int64), apart=True)
def factor_child(equations, sides, state, factors, c):  # type: ignore[no-untyped-def]
    """Q, M, W, v and q of one child in its state."""
    h, index, v = equations.h[equations.h_of[c]], factors.cell[c], factors.v[c]
    n = refresh_inverse(h, state.free[c], factors.inverse[c], index, factors.n[c])
    inverse, b = factors.inverse[c, : n * n].reshape(n, n), equations.b[c]
    v[:n] = 0.0
    for j in range(n):
        s, row, out = b[index[j]], inverse[j], v[:n]
        for i in range(n):
            out[i] += s * row[i]
    rows = sides.rows.shape[0]
    active, side, a = np.empty(rows, dtype=np.int64), np.empty(rows), 0
    factors.q[c] = 0.0
    for r in range(rows):
        if state.active[c, r] != 0:
            active[a] = r
            side[a] = sides.hi[c, r] if state.active[c, r] == 1 else sides.lo[c, r]
            a += 1
    factors.n[c], factors.active_rows[c], factors.stale[c] = n, a, False
    if a > 0 and n > 0:
        _project(factors, c, sides, active[:a], side[:a])


@compiled(float64(float64[::1], int32, int64))
def shift_of(multiplier, group, cells):  # type: ignore[no-untyped-def]
    """The multiplier gamma of a child's group, 0 without one."""
    return multiplier[cells + group] if group >= 0 else 0.0


@compiled(void(FACTORS, int64, float64[::1], float64, float64, float64[::1]))
def push(factors, c, force, shift, sign, value):  # type: ignore[no-untyped-def]
    """Add sign P (force + shift) to the values of a child's free cells."""
    n = factors.n[c]
    inverse, index = factors.inverse[c, : n * n].reshape(n, n), factors.cell[c, :n]
    m, w = factors.m[c], factors.w[c]
    for j in range(n):
        s, row = sign * (force[index[j]] + shift), inverse[j]
        if s != 0.0:
            for i in range(n):
                value[i] += s * row[i]
    for r in range(factors.active_rows[c]):
        s, row = 0.0, m[r]
        for j in range(n):
            s += w[r, j] * (force[index[j]] + shift)
        s *= sign
        for i in range(n):
            value[i] -= s * row[i]


@compiled(void(EQUATIONS, SIDES, POINT, int64))
def reduced_gradient(equations, sides, point, c):  # type: ignore[no-untyped-def]
    """Set mu = H x - b - lambda - gamma - R' nu of one child."""
    h, b, rows, multiplier = equations.h[equations.h_of[c]], equations.b[c], sides.rows, point.multiplier
    x, nu, mu = point.x[c], point.nu[c], point.mu[c]
    shift = shift_of(multiplier, sides.group[c], x.shape[0])
    for k in range(x.shape[0]):
        mu[k] = -b[k] - multiplier[k] - shift
    for i in range(x.shape[0]):
        value, row = x[i], h[i]
        if value != 0.0:
            for k in range(x.shape[0]):
                mu[k] += value * row[k]
    for r in range(rows.shape[0]):
        if nu[r] != 0.0:
            for k in range(x.shape[0]):
                if rows[r, k]:
                    mu[k] -= nu[r]


@compiled(void(STATE, FACTORS, int64, float64[::1], float64, float64[::1]))
def row_step(state, factors, c, force, shift, nu):  # type: ignore[no-untyped-def]
    """Subtract W (force + shift) from the multipliers of a child's active rows; the others are 0."""
    active, index, w, a = state.active[c], factors.cell[c], factors.w[c], 0
    for r in range(active.shape[0]):
        if active[r] == 0:
            nu[r] = 0.0
        else:
            for i in range(factors.n[c]):
                nu[r] -= w[a, i] * (force[index[i]] + shift)
            a += 1
