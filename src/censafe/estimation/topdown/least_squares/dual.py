"""Compiled Newton ascent on the multipliers of a parent's sums, for parents on which the active set goes in circles.

For given multipliers every child is a small problem of its own, which is solved exactly from its last state. The sum of their
least values is concave in the multipliers, with the sums that are missed as its gradient, so every step along the
Newton direction can be checked and shortened: unlike changes of all states at once it cannot go round in circles.
"""

from __future__ import annotations

import numpy as np
from numba import boolean, float64, int8, int32, int64, types, uint8

from censafe.estimation.topdown.least_squares.active_set import apply_changes, give_cells, mark_changes, schur
from censafe.estimation.topdown.least_squares.child import factor_child, gradient, push, row_step
from censafe.estimation.topdown.least_squares.dense import solve_vector
from censafe.model.compiled import compiled

__all__ = ["climb_dual"]

_MOST_STEPS = 60
_MOST_TRIALS = 12  # of the length of a step
_MOST_CHANGES = 400  # of the state of one child
_IN_BLOCKS = 20  # changes of a child before they are made one by one
_ENOUGH = 0.8  # share of the slope that may be left, on either side, at the end of a step
_MET = 1e-9  # persons by which sums may be missed at the end, of counts up to 10,000
_NEARLY_MET = 1e-9  # share of the largest count that is enough where steps lead no further
_RIDGE = 1e-3  # of the freedom of one cell of one child, for directions in which no child can move

_Store = types.Tuple(
    (
        float64[:, ::1], float64[:, ::1], int64[:, ::1], int64[::1], int64[::1], float64[:, :, ::1],
        float64[:, :, ::1], float64[:, ::1], boolean[::1],
    )
)  # fmt: skip


@compiled(boolean(uint8[:, ::1], float64[::1], float64[::1], int8[::1], float64[::1], float64))
def _on_rows(rows, lo, hi, active, x, eps):  # type: ignore[no-untyped-def]
    """Whether the active rows of a child are met; signs alone do not show that."""
    for r in range(rows.shape[0]):
        if active[r] != 0:
            total = 0.0
            for k in range(x.shape[0]):
                if rows[r, k]:
                    total += x[k]
            if abs(total - (hi[r] if active[r] == 1 else lo[r])) > eps * max(1.0, abs(total)):
                return False
    return True


@compiled(
    boolean(
        float64[:, :, ::1], int32[::1], float64[:, ::1], boolean[:, ::1], uint8[:, ::1], float64[:, ::1],
        float64[:, ::1], boolean[:, ::1], int8[:, ::1], float64[::1], float64, float64, _Store, float64[:, ::1],
        float64[:, ::1],
    )
)  # fmt: skip
def _children(  # type: ignore[no-untyped-def]
    h, h_of, b, allowed, rows, lo, hi, free, active, multiplier, eps_x, eps_mu, kept, x, nu
):
    """Solve every child for given multipliers from its last state; false where one goes in circles."""
    store, v, index, count, held, m, w, q, dirty = kept
    children, cells = b.shape
    value, mu, force, alone = np.empty(cells), np.empty(cells), np.empty(cells), np.full(1, np.int32(-1))
    flip, move = np.zeros((1, cells), dtype=np.bool_), np.zeros((1, rows.shape[0]), dtype=np.int8)
    for c in range(children):
        for k in range(cells):
            force[k] = b[c, k] + multiplier[k]
        left, one = 1, slice(c, c + 1)
        for change in range(_MOST_CHANGES):
            give_cells(free[one], allowed[one], rows, active[one], alone, 0, dirty[one], False)
            if dirty[c]:
                count[c], held[c] = factor_child(
                    h[h_of[c]], b[c], rows, lo[c], hi[c], free[c], active[c], store[c], v[c], index[c], count[c],
                    m[c], w[c], q[c],
                )  # fmt: skip
                dirty[c] = False
            n = count[c]
            value[:n] = v[c, :n]
            push(store[c], index[c, :n], held[c], m[c], w[c], multiplier, 0.0, 1.0, value)
            x[c] = 0.0
            for i in range(n):
                x[c, index[c, i]] = value[i]
            nu[c] = q[c]
            row_step(active[c], index[c, :n], w[c], force, 0.0, nu[c])
            gradient(h[h_of[c]], b[c], rows, multiplier, 0.0, x[c], nu[c], mu)
            left = mark_changes(
                rows,
                lo[c],
                hi[c],
                free[c],
                allowed[c],
                active[c],
                x[c],
                nu[c],
                mu,
                eps_x,
                eps_mu,
                flip[0],
                move[0],
            )
            if left == 0:
                break
            apply_changes(free[one], active[one], flip, move, dirty[one], change >= _IN_BLOCKS)
        if left > 0 or not _on_rows(rows, lo[c], hi[c], active[c], x[c], 100.0 * eps_x):
            return False
    return True


@compiled(float64(float64[:, ::1], float64[::1], float64[::1], float64[::1]))
def _missed(x, p, step, rest):  # type: ignore[no-untyped-def]
    """Write the sums that are missed; returns their product with a step."""
    slope = 0.0
    rest[:] = p
    for c in range(x.shape[0]):
        for k in range(x.shape[1]):
            rest[k] -= x[c, k]
    for k in range(x.shape[1]):
        slope += rest[k] * step[k]
    return slope


@compiled(
    int64(
        float64[:, :, ::1], int32[::1], float64[:, ::1], float64[::1], boolean[:, ::1], uint8[:, ::1],
        float64[:, ::1], float64[:, ::1], boolean[:, ::1], int8[:, ::1], float64, float64, float64[:, ::1],
        float64[::1], float64[:, ::1],
    )
)  # fmt: skip
def climb_dual(  # type: ignore[no-untyped-def]
    h, h_of, b, p, allowed, rows, lo, hi, free, active, eps_x, eps_mu, x, multiplier, nu
):
    """Climb from the given multipliers until the children add up to the parent; writes x, multipliers, states.

    Args:
        h: shape (G, K, K).
        h_of: which h a child has, shape (C,).
        b: shape (C, K).
        p: the parent's counts, shape (K,).
        allowed: shape (C, K).
        rows: shape (R, K).
        lo: shape (C, R).
        hi: shape (C, R).
        free: states of the cells to start from; receives those of the end, shape (C, K).
        active: states of the rows.
        eps_x: size from which a negative value counts.
        eps_mu: size from which a multiplier of the wrong sign counts.
        x: receives the point, shape (C, K).
        multiplier: of the sums, shape (K,), to start from.
        nu: receives the multipliers of the rows, shape (C, R).

    Returns:
        Steps made; negative where the children do not add up, as when there is no point.

    Source: Qi & Sun (2006), "A quadratically convergent Newton method for computing the nearest correlation
        matrix", for the method.
    """
    children, cells = b.shape
    kept = (
        np.empty((children, cells * cells)), np.empty((children, cells)),
        np.empty((children, cells), dtype=np.int64), np.zeros(children, dtype=np.int64),
        np.zeros(children, dtype=np.int64), np.empty((children, rows.shape[0], cells)),
        np.empty((children, rows.shape[0], cells)), np.zeros((children, rows.shape[0])),
        np.ones(children, dtype=np.bool_),
    )  # fmt: skip
    store, _, index, count, held, m, w, _, _ = kept
    t, pivots = np.zeros((cells, cells)), np.ones(cells, dtype=np.bool_)
    rest, step, trial, ridge = np.empty(cells), np.zeros(cells), multiplier.copy(), np.empty(cells)
    alone = np.full(children, np.int32(-1))
    if not _children(h, h_of, b, allowed, rows, lo, hi, free, active, trial, eps_x, eps_mu, kept, x, nu):
        return -1
    missed = np.inf
    for number in range(1, _MOST_STEPS + 1):
        _missed(x, p, step, rest)
        missed = np.abs(rest).max()
        if missed <= _MET * max(1.0, 1e-4 * p.max()):
            return number
        for k in range(cells):
            ridge[k] = _RIDGE * min(1.0, missed) / h[0, k, k]
        schur(store, count, index, held, m, w, alone, cells, ridge, t, pivots)
        step[:] = rest
        solve_vector(t, pivots, step)
        slope = _missed(x, p, step, rest)
        near, near_slope, far, far_slope, length = 0.0, slope, -1.0, 0.0, 1.0
        for _ in range(_MOST_TRIALS):
            for k in range(cells):
                trial[k] = multiplier[k] + length * step[k]
            if not _children(
                h, h_of, b, allowed, rows, lo, hi, free, active, trial, eps_x, eps_mu, kept, x, nu
            ):
                return -number
            found = _missed(x, p, step, rest)
            if abs(found) <= _ENOUGH * slope or (found > 0.0 and far < 0.0):
                break
            if found > 0.0:
                near, near_slope = length, found
            else:
                far, far_slope = length, found
            share = near_slope / (near_slope - far_slope)
            length = near + (far - near) * min(0.9, max(0.1, share))
        multiplier[:] = trial
    return _MOST_STEPS if missed <= _NEARLY_MET * max(1.0, p.max()) else -_MOST_STEPS
