"""Compiled answer of one child: its free cells and active side rows factored, values and multipliers under a force.

A child's answer is x = v + P force, where v minimises its own objective on its state and P = Q - M' W: Q is the inverse of
its H on the free cells, M the active rows times Q, and W makes P vanish on the active rows. Q is carried from state
to state.
"""

from __future__ import annotations

import numpy as np
from numba import boolean, float64, int8, int32, int64, types, uint8, void

from censafe.estimation.topdown.dense_kernels import factor, solve_factored
from censafe.estimation.topdown.inverse_kernels import refresh_inverse
from censafe.model.compiled import compiled

__all__ = ["factor_child", "gradient", "push", "row_step", "shift_of"]


@compiled(
    void(
        float64[:, ::1], float64[::1], uint8[:, ::1], int64[::1], int64[::1], float64[::1],
        float64[:, ::1], float64[:, ::1], float64[::1],
    )
)  # fmt: skip
def _project(inverse, v, rows, index, held, sides, m, w, q):  # type: ignore[no-untyped-def]  # noqa: C901
    """Restrict the free solution to the active rows; leave M and W, and in q what gives the rows' multipliers."""
    n, a = index.shape[0], held.shape[0]
    s, rest = np.zeros((a, a)), np.empty((a, 1))
    for r in range(a):
        m[r, :n] = 0.0
        for i in range(n):
            if rows[held[r], index[i]]:
                row, other = m[r], inverse[i]
                for j in range(n):
                    row[j] += other[j]
    for r in range(a):
        rest[r, 0] = sides[r]
        for j in range(n):
            if rows[held[r], index[j]]:
                rest[r, 0] -= v[j]
                for t in range(a):
                    s[t, r] += m[t, j]
    kept = np.ones(a, dtype=np.bool_)
    factor(s, kept)
    side = sides.copy().reshape(a, 1)
    solve_factored(s, kept, side)
    solve_factored(s, kept, rest)
    share = m[:a, :n].copy()
    solve_factored(s, kept, share)
    for r in range(a):
        q[held[r]] = side[r, 0]
        w[r, :n] = share[r]
        for j in range(n):
            v[j] += m[r, j] * rest[r, 0]


@compiled(
    types.UniTuple(int64, 2)(
        float64[:, ::1], float64[::1], uint8[:, ::1], float64[::1], float64[::1], boolean[::1], int8[::1],
        float64[::1], float64[::1], int64[::1], int64, float64[:, ::1], float64[:, ::1], float64[::1],
    )
)  # fmt: skip
def factor_child(h, b, rows, lo, hi, free, active, store, v, index, n, m, w, q):  # type: ignore[no-untyped-def]
    """Q (in ``store``, packed), M, W and v of one child; returns the numbers of free cells and active rows."""
    n = refresh_inverse(h, free, store, index, n)
    inverse = store[: n * n].reshape(n, n)
    v[:n] = 0.0
    for j in range(n):
        s, row, out = b[index[j]], inverse[j], v[:n]
        for i in range(n):
            out[i] += s * row[i]
    held, sides = np.empty(rows.shape[0], dtype=np.int64), np.empty(rows.shape[0])
    q[:], a = 0.0, 0
    for r in range(rows.shape[0]):
        if active[r] != 0:
            held[a] = r
            sides[a] = hi[r] if active[r] == 1 else lo[r]
            a += 1
    if a > 0 and n > 0:
        _project(inverse, v, rows, index[:n], held[:a], sides[:a], m, w, q)
    return n, a


@compiled(float64(float64[::1], int32, int64))
def shift_of(multiplier, group, cells):  # type: ignore[no-untyped-def]
    """What the total of its group adds to the multipliers of a child."""
    return multiplier[cells + group] if group >= 0 else 0.0


@compiled(
    void(
        float64[::1], int64[::1], int64, float64[:, ::1], float64[:, ::1], float64[::1], float64, float64,
        float64[::1],
    )
)  # fmt: skip
def push(store, index, held, m, w, force, shift, sign, value):  # type: ignore[no-untyped-def]
    """Add sign P (force + shift) to the free cells' values of a child."""
    n = index.shape[0]
    inverse = store[: n * n].reshape(n, n)
    for j in range(n):
        s, row = sign * (force[index[j]] + shift), inverse[j]
        if s != 0.0:
            for i in range(n):
                value[i] += s * row[i]
    for r in range(held):
        s, row = 0.0, m[r]
        for j in range(n):
            s += w[r, j] * (force[index[j]] + shift)
        s *= sign
        for i in range(n):
            value[i] -= s * row[i]


@compiled(
    void(
        float64[:, ::1], float64[::1], uint8[:, ::1], float64[::1], float64, float64[::1], float64[::1],
        float64[::1],
    )
)  # fmt: skip
def gradient(h, b, rows, multiplier, shift, x, nu, mu):  # type: ignore[no-untyped-def]
    """Reduced gradient mu of one child."""
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


@compiled(void(int8[::1], int64[::1], float64[:, ::1], float64[::1], float64, float64[::1]))
def row_step(active, index, w, force, shift, nu):  # type: ignore[no-untyped-def]
    """Subtract what a force on the free cells takes from the multipliers of the active rows."""
    a = 0
    for r in range(active.shape[0]):
        if active[r] == 0:
            nu[r] = 0.0
        else:
            for i in range(index.shape[0]):
                nu[r] -= w[a, i] * (force[index[i]] + shift)
            a += 1
