"""Compiled primal-dual active set on the whole optimality system of one parent.

A child's state is its free cells and its active side rows; its answer is x = v + P (lambda + gamma), where lambda are the
multipliers of the parent's sums, gamma that of the total of the child's group, and P = Q - M' W: Q is the inverse of
its H on the free cells, M the active rows times Q, and W makes P vanish on the active rows. Q is carried from state
to state. The multipliers of the groups follow those of the sums in one vector.
"""

from __future__ import annotations

import numpy as np
from numba import boolean, float64, int8, int32, int64, types, uint8, void

from censafe.estimation.topdown.dense_kernels import factor, factor_scaled, solve_factored, solve_vector
from censafe.estimation.topdown.inverse_kernels import refresh_inverse
from censafe.estimation.topdown.state_kernels import apply_changes, give_cells, mark_changes
from censafe.model.compiled import compiled

__all__ = ["solve_active_set"]

_MOST_ITERATIONS = 120
_MOST_STALLS = 5
_MANY = 1 << 60


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
def _factor_child(h, b, rows, lo, hi, free, active, store, v, index, n, m, w, q):  # type: ignore[no-untyped-def]
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


@compiled(
    void(
        float64[:, ::1], int64[::1], int64[:, ::1], int64[::1], float64[:, :, ::1], float64[:, :, ::1],
        int32[::1], int64, float64[:, ::1], boolean[::1],
    )
)  # fmt: skip
def _schur(store, count, index, held, m, w, group, cells, t, kept):  # type: ignore[no-untyped-def]
    """Factor the sum of the children's P, on which the multipliers of sums and groups depend."""
    t[:] = 0.0
    line, scale = (
        np.empty(cells),
        np.zeros(t.shape[0]),
    )  # what rows take from P may leave nothing but rounding errors
    for c in range(store.shape[0]):
        n, row_sum = count[c], 0.0
        inverse = store[c, : n * n].reshape(n, n)
        for i in range(n):
            k, own = index[c, i], line[:n]
            own[:] = inverse[i]
            scale[k] += own[i]
            if group[c] >= 0:
                scale[cells + group[c]] += own.sum()
            for r in range(held[c]):
                y, other = m[c, r, i], w[c, r]
                for j in range(n):
                    own[j] -= y * other[j]
            target = t[k]
            for j in range(n):
                target[index[c, j]] += own[j]
            if group[c] >= 0:
                row_sum = own.sum()
                t[cells + group[c], k] += row_sum
                t[cells + group[c], cells + group[c]] += row_sum
    factor_scaled(t, scale, kept)


@compiled(float64(float64[::1], int32, int64))
def _shift(multiplier, group, cells):  # type: ignore[no-untyped-def]
    """What the total of its group adds to the multipliers of a child."""
    return multiplier[cells + group] if group >= 0 else 0.0


@compiled(
    void(
        float64[::1], int64[::1], int64, float64[:, ::1], float64[:, ::1], float64[::1], float64, float64,
        float64[::1],
    )
)  # fmt: skip
def _push(store, index, held, m, w, force, shift, sign, value):  # type: ignore[no-untyped-def]
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
        float64[:, ::1], boolean[::1], boolean, float64[:, ::1], int64[::1], int64[:, ::1], int64[::1],
        float64[:, :, ::1], float64[:, :, ::1], float64[:, ::1], float64[::1], int32[::1], float64[::1],
        float64[::1], float64[:, ::1],
    )
)  # fmt: skip
def _couple(t, kept, coupled, store, count, index, held, m, w, v, p, group, group_totals, step, x):  # type: ignore[no-untyped-def]
    """Set x = v + P step, with the step of the multipliers that makes children add up to parent and groups."""
    children, cells = x.shape
    step[:] = 0.0
    if coupled:
        step[:cells] = p
        step[cells:] = group_totals
        for c in range(children):
            for i in range(count[c]):
                step[index[c, i]] -= v[c, i]
                if group[c] >= 0:
                    step[cells + group[c]] -= v[c, i]
        solve_vector(t, kept, step)
    value = np.empty(cells)
    for c in range(children):
        n = count[c]
        value[:n] = v[c, :n]
        if coupled:
            shift = _shift(step, group[c], cells)
            _push(store[c], index[c, :n], held[c], m[c], w[c], step, shift, 1.0, value)
        x[c, :] = 0.0
        for i in range(n):
            x[c, index[c, i]] = value[i]


@compiled(
    void(
        float64[:, ::1], float64[::1], uint8[:, ::1], float64[::1], float64, float64[::1], float64[::1],
        float64[::1],
    )
)  # fmt: skip
def _gradient(h, b, rows, multiplier, shift, x, nu, mu):  # type: ignore[no-untyped-def]
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
def _row_step(active, index, w, force, shift, nu):  # type: ignore[no-untyped-def]
    """Subtract what a force on the free cells takes from the multipliers of the active rows."""
    a = 0
    for r in range(active.shape[0]):
        if active[r] == 0:
            nu[r] = 0.0
        else:
            for i in range(index.shape[0]):
                nu[r] -= w[a, i] * (force[index[i]] + shift)
            a += 1


@compiled(
    void(
        float64[:, :, ::1], int32[::1], float64[:, ::1], float64[::1], boolean, uint8[:, ::1], int8[:, ::1],
        int32[::1], float64[::1], float64[:, ::1], boolean[::1], float64[:, ::1], int64[::1], int64[:, ::1],
        int64[::1], float64[:, :, ::1], float64[:, :, ::1], float64[:, ::1], float64[::1], float64[:, ::1],
        float64[:, ::1],
    )
)  # fmt: skip
def _refine(  # type: ignore[no-untyped-def]
    h, h_of, b, p, coupled, rows, active, group, group_totals, t, kept, store, count, index, held, m, w,
    x, multiplier, nu, mu
):  # fmt: skip
    """One step of iterative refinement at the final state: rounding errors shrink to those of the gradient."""
    children, cells = x.shape
    v, step = np.zeros((children, cells)), np.empty(multiplier.shape[0])
    for c in range(children):
        n = count[c]
        for i in range(n):
            v[c, i] = x[c, index[c, i]]
        _push(store[c], index[c, :n], held[c], m[c], w[c], mu[c], 0.0, -1.0, v[c])
    _couple(t, kept, coupled, store, count, index, held, m, w, v, p, group, group_totals, step, x)
    multiplier += step
    for c in range(children):
        shift = _shift(step, group[c], cells)
        _row_step(active[c], index[c, : count[c]], w[c], step[:cells] - mu[c], shift, nu[c])
        shift = _shift(multiplier, group[c], cells)
        _gradient(h[h_of[c]], b[c], rows, multiplier, shift, x[c], nu[c], mu[c])


@compiled(
    int64(
        float64[:, :, ::1], int32[::1], float64[:, ::1], float64[::1], boolean, boolean[:, ::1], uint8[:, ::1],
        float64[:, ::1], float64[:, ::1], int32[::1], float64[::1], boolean[:, ::1], int8[:, ::1],
        float64, float64, float64[:, ::1], float64[::1], float64[:, ::1],
    )
)  # fmt: skip
def solve_active_set(  # type: ignore[no-untyped-def]  # noqa: C901
    h, h_of, b, p, coupled, allowed, rows, lo, hi, group, group_totals, free, active, eps_x, eps_mu, x, multiplier, nu
):  # fmt: skip
    """Iterate from the state (free, active) to the optimum; writes x and the multipliers of sums, groups and rows.

    Returns:
        Iterations made; negative when the limit came first.
    """
    children, cells = b.shape
    store = np.empty((children, cells * cells))  # a child touches only the square of its free cells
    v, mu = np.empty((children, cells)), np.empty((children, cells))
    index, count = np.empty((children, cells), dtype=np.int64), np.zeros(children, dtype=np.int64)
    m, w = np.empty((children, rows.shape[0], cells)), np.empty((children, rows.shape[0], cells))
    q, held = np.zeros((children, rows.shape[0])), np.zeros(children, dtype=np.int64)
    flip, move = np.zeros((children, cells), dtype=np.bool_), np.zeros(active.shape, dtype=np.int8)
    dirty = np.ones(children, dtype=np.bool_)
    size = multiplier.shape[0]
    t, kept = np.zeros((size, size)), np.ones(size, dtype=np.bool_)
    fewest, stalls, single = _MANY, 0, False
    for iteration in range(1, _MOST_ITERATIONS + 1):
        give_cells(free, allowed, rows, active, group, size - cells, dirty, coupled)
        for c in range(children):
            if dirty[c]:
                count[c], held[c] = _factor_child(
                    h[h_of[c]], b[c], rows, lo[c], hi[c], free[c], active[c], store[c], v[c], index[c], count[c],
                    m[c], w[c], q[c],
                )  # fmt: skip
                dirty[c] = False
        if coupled:
            _schur(store, count, index, held, m, w, group, cells, t, kept)
        _couple(t, kept, coupled, store, count, index, held, m, w, v, p, group, group_totals, multiplier, x)
        left = 0
        for c in range(children):
            nu[c], shift = q[c], _shift(multiplier, group[c], cells)
            _row_step(active[c], index[c, : count[c]], w[c], b[c] + multiplier[:cells], shift, nu[c])
            _gradient(h[h_of[c]], b[c], rows, multiplier, shift, x[c], nu[c], mu[c])
        if stalls > 0:  # signs within rounding errors would go round in circles
            _refine(
                h, h_of, b, p, coupled, rows, active, group, group_totals, t, kept, store, count, index, held, m,
                w, x, multiplier, nu, mu,
            )  # fmt: skip
        for c in range(children):
            left += mark_changes(
                rows, lo[c], hi[c], free[c], allowed[c], active[c], x[c], nu[c], mu[c],
                eps_x, eps_mu, flip[c], move[c],
            )  # fmt: skip
        last = left == 0 or iteration == _MOST_ITERATIONS
        if last:
            for _ in range(2):
                _refine(
                    h, h_of, b, p, coupled, rows, active, group, group_totals, t, kept, store, count, index, held, m,
                    w, x, multiplier, nu, mu,
                )  # fmt: skip
            return iteration if left == 0 else -iteration
        if left < fewest:
            fewest, stalls, single = left, 0, False
        else:
            stalls += 1
            single = stalls > _MOST_STALLS
        apply_changes(free, active, flip, move, dirty, single)
    return -_MOST_ITERATIONS
