"""Compiled primal-dual active set on the whole optimality system of one parent."""

from __future__ import annotations

import numpy as np
from numba import boolean, float64, int8, int32, int64, uint8, void

from censafe.estimation.topdown.least_squares.child import factor_child, gradient, push, row_step, shift_of
from censafe.estimation.topdown.least_squares.dense import factor_scaled, solve_vector
from censafe.model.compiled import compiled

__all__ = ["apply_changes", "give_cells", "mark_changes", "schur", "solve_active_set"]


_NONE = 9  # no change of a row's state


@compiled(
    void(
        boolean[:, ::1],
        boolean[:, ::1],
        uint8[:, ::1],
        int8[:, ::1],
        int32[::1],
        int64,
        boolean[::1],
        boolean,
    )
)
def give_cells(free, allowed, rows, active, group, groups, dirty, coupled):  # type: ignore[no-untyped-def]  # noqa: C901
    """Every cell needs a free child, every active row and every group a free cell: free the allowed ones otherwise."""
    children, cells = free.shape
    for g in range(groups):
        held = False
        for c in range(children):
            held = held or (group[c] == g and free[c].any())
        if not held:
            for c in range(children):
                if group[c] == g:
                    free[c] = allowed[c]
                    dirty[c] = True
    if coupled:
        for k in range(cells):
            if not free[:, k].any():
                for c in range(children):
                    if allowed[c, k]:
                        free[c, k] = True
                        dirty[c] = True
    for c in range(children):
        for r in range(rows.shape[0]):
            if active[c, r] != 0 and not (free[c] & (rows[r] != 0)).any():
                for k in range(cells):
                    if allowed[c, k] and rows[r, k]:
                        free[c, k] = True
                        dirty[c] = True


@compiled(
    int64(
        uint8[:, ::1], float64[::1], float64[::1], boolean[::1], boolean[::1], int8[::1], float64[::1],
        float64[::1], float64[::1], float64, float64, boolean[::1], int8[::1],
    )
)  # fmt: skip
def mark_changes(rows, lo, hi, free, allowed, active, x, nu, mu, eps_x, eps_mu, flip, move):  # type: ignore[no-untyped-def]  # noqa: C901
    """What one child must change; returns how many changes there are."""
    count = 0
    for k in range(x.shape[0]):
        flip[k] = x[k] < -eps_x if free[k] else (allowed[k] and mu[k] < -eps_mu)
        count += flip[k]
    for r in range(rows.shape[0]):
        move[r] = _NONE
        if (active[r] == -1 and nu[r] < -eps_mu) or (active[r] == 1 and nu[r] > eps_mu):
            move[r] = 0
        elif active[r] == 0 or (active[r] != 2 and nu[r] == 0.0):
            total = 0.0
            for k in range(x.shape[0]):
                if rows[r, k]:
                    total += x[k]
            if active[r] != 0:
                # a row that others imply is left out of the equations and need not lie on its side
                side = hi[r] if active[r] == 1 else lo[r]
                if abs(total - side) > eps_x * max(1.0, abs(total)):
                    move[r] = 0
            elif total < lo[r] - eps_x:
                move[r] = -1
            elif total > hi[r] + eps_x:
                move[r] = 1
        count += move[r] != _NONE
    return count


@compiled(void(boolean[:, ::1], int8[:, ::1], boolean[:, ::1], int8[:, ::1], boolean[::1], boolean))
def apply_changes(free, active, flip, move, dirty, single):  # type: ignore[no-untyped-def]
    """Make all changes, or only the last one in the order child, cell, row."""
    children, cells = free.shape
    for c in range(children - 1, -1, -1):
        for r in range(active.shape[1] - 1, -1, -1):
            if move[c, r] != _NONE:
                active[c, r] = move[c, r]
                dirty[c] = True
                if single:
                    return
        for k in range(cells - 1, -1, -1):
            if flip[c, k]:
                free[c, k] = not free[c, k]
                dirty[c] = True
                if single:
                    return


_MOST_ITERATIONS = 120
_MOST_STALLS = 5
_MANY = 1 << 60


@compiled(
    void(
        float64[:, ::1], int64[::1], int64[:, ::1], int64[::1], float64[:, :, ::1], float64[:, :, ::1],
        int32[::1], int64, float64[::1], float64[:, ::1], boolean[::1],
    )
)  # fmt: skip
def schur(store, count, index, held, m, w, group, cells, ridge, t, kept):  # type: ignore[no-untyped-def]
    """Factor the sum of the children's P and a ridge, on which the multipliers of sums and groups depend."""
    t[:] = 0.0
    line, scale = np.empty(cells), ridge.copy()  # what rows take from P may leave nothing but rounding errors
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
    for k in range(t.shape[0]):
        t[k, k] += ridge[k]
    factor_scaled(t, scale, kept)


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
            shift = shift_of(step, group[c], cells)
            push(store[c], index[c, :n], held[c], m[c], w[c], step, shift, 1.0, value)
        x[c, :] = 0.0
        for i in range(n):
            x[c, index[c, i]] = value[i]


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
        push(store[c], index[c, :n], held[c], m[c], w[c], mu[c], 0.0, -1.0, v[c])
    _couple(t, kept, coupled, store, count, index, held, m, w, v, p, group, group_totals, step, x)
    multiplier += step
    for c in range(children):
        shift = shift_of(step, group[c], cells)
        row_step(active[c], index[c, : count[c]], w[c], step[:cells] - mu[c], shift, nu[c])
        shift = shift_of(multiplier, group[c], cells)
        gradient(h[h_of[c]], b[c], rows, multiplier, shift, x[c], nu[c], mu[c])


@compiled(
    int64(
        float64[:, :, ::1], int32[::1], float64[:, ::1], float64[::1], boolean, boolean[:, ::1], uint8[:, ::1],
        float64[:, ::1], float64[:, ::1], int32[::1], float64[::1], boolean[:, ::1], int8[:, ::1],
        float64, float64, boolean, float64[:, ::1], float64[::1], float64[:, ::1],
    )
)  # fmt: skip
def solve_active_set(  # type: ignore[no-untyped-def]  # noqa: C901
    h, h_of, b, p, coupled, allowed, rows, lo, hi, group, group_totals, free, active, eps_x, eps_mu, patient, x,
    multiplier, nu
):  # fmt: skip
    """Iterate from the state (free, active) to the optimum; writes x and the multipliers of sums, groups and rows.

    Changes are made in blocks while that leaves fewer of them to make. After that a patient solve makes them one by one, and
    an impatient one gives up.

    Returns:
        Iterations made; negative when it gave up or the limit came first.
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
    t, kept, no_ridge = np.zeros((size, size)), np.ones(size, dtype=np.bool_), np.zeros(size)
    fewest, stalls, single = _MANY, 0, False
    for iteration in range(1, _MOST_ITERATIONS + 1):
        give_cells(free, allowed, rows, active, group, size - cells, dirty, coupled)
        for c in range(children):
            if dirty[c]:
                count[c], held[c] = factor_child(
                    h[h_of[c]], b[c], rows, lo[c], hi[c], free[c], active[c], store[c], v[c], index[c], count[c],
                    m[c], w[c], q[c],
                )  # fmt: skip
                dirty[c] = False
        if coupled:
            schur(store, count, index, held, m, w, group, cells, no_ridge, t, kept)
        _couple(t, kept, coupled, store, count, index, held, m, w, v, p, group, group_totals, multiplier, x)
        left = 0
        for c in range(children):
            nu[c], shift = q[c], shift_of(multiplier, group[c], cells)
            row_step(active[c], index[c, : count[c]], w[c], b[c] + multiplier[:cells], shift, nu[c])
            gradient(h[h_of[c]], b[c], rows, multiplier, shift, x[c], nu[c], mu[c])
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
        if left < fewest:
            fewest, stalls, single = left, 0, False
        else:
            stalls += 1
            single = stalls > _MOST_STALLS
        last = left == 0 or iteration == _MOST_ITERATIONS or (single and not patient)
        if last:
            for _ in range(2):
                _refine(
                    h, h_of, b, p, coupled, rows, active, group, group_totals, t, kept, store, count, index, held, m,
                    w, x, multiplier, nu, mu,
                )  # fmt: skip
            return iteration if left == 0 else -iteration
        apply_changes(free, active, flip, move, dirty, single)
    return -_MOST_ITERATIONS
