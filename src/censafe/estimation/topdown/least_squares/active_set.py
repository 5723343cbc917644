"""Compiled primal-dual active set on the whole optimality system of one parent; symbols as in :mod:`.structures`."""

from __future__ import annotations

import numpy as np
from numba import boolean, float64, int32, int64, void

from censafe.estimation.topdown.least_squares.child import (
    factor_child,
    push,
    reduced_gradient,
    row_step,
    shift_of,
)
from censafe.estimation.topdown.least_squares.dense import factor_scaled, solve_vector
from censafe.estimation.topdown.least_squares.structures import (
    CHANGES,
    EQUATIONS,
    FACTORS,
    POINT,
    SIDES,
    STATE,
    SYSTEM,
    TOLERANCES,
    new_changes,
    new_factors,
    new_system,
)
from censafe.model.compiled import compiled

_NO_MOVE = 9  # of the state of a row


@compiled(void(SIDES, STATE, boolean[::1], int64))
def free_active_rows(sides, state, stale, c):  # type: ignore[no-untyped-def]
    """Free the allowed cells of those active rows of a child that have no free cell."""
    free, allowed, rows = state.free[c], sides.allowed[c], sides.rows
    for r in range(rows.shape[0]):
        if state.active[c, r] != 0 and not (free & (rows[r] != 0)).any():
            for k in range(free.shape[0]):
                if allowed[k] and rows[r, k]:
                    free[k] = True
                    stale[c] = True


@compiled(void(boolean, SIDES, STATE, boolean[::1]), apart=True)
def _free_needed(coupled, sides, state, stale):  # type: ignore[no-untyped-def]
    """Free the allowed cells wherever a group, a cell of the parent or an active row has no free cell."""
    free, allowed, group = state.free, sides.allowed, sides.group
    children, cells = free.shape
    for g in range(sides.group_totals.shape[0]):
        some = False
        for c in range(children):
            some = some or (group[c] == g and free[c].any())
        if not some:
            for c in range(children):
                if group[c] == g:
                    free[c] = allowed[c]
                    stale[c] = True
    for k in range(cells if coupled else 0):
        if not free[:, k].any():
            for c in range(children):
                if allowed[c, k]:
                    free[c, k] = True
                    stale[c] = True
    for c in range(children):
        free_active_rows(sides, state, stale, c)


@compiled(int64(SIDES, STATE, POINT, TOLERANCES, CHANGES, int64))
def find_changes(sides, state, point, eps, changes, c):  # type: ignore[no-untyped-def]
    """What the signs of x, mu, nu and of lo <= R x <= hi ask a child to change; returns how many changes there are."""
    rows, lo, hi, free, allowed = sides.rows, sides.lo[c], sides.hi[c], state.free[c], sides.allowed[c]
    active, x, nu, mu = state.active[c], point.x[c], point.nu[c], point.mu[c]
    flip, move, count = changes.flip[c], changes.move[c], 0
    for k in range(x.shape[0]):
        flip[k] = x[k] < -eps.x if free[k] else (allowed[k] and mu[k] < -eps.mu)
        count += flip[k]
    for r in range(rows.shape[0]):
        move[r] = _NO_MOVE
        if (active[r] == -1 and nu[r] < -eps.mu) or (active[r] == 1 and nu[r] > eps.mu):
            move[r] = 0
        elif active[r] == 0 or (active[r] != 2 and nu[r] == 0.0):
            total = 0.0
            for k in range(x.shape[0]):
                if rows[r, k]:
                    total += x[k]
            if active[r] != 0:
                # a row that others imply is left out of the equations and need not lie on its side
                side = hi[r] if active[r] == 1 else lo[r]
                if abs(total - side) > eps.x * max(1.0, abs(total)):
                    move[r] = 0
            elif total < lo[r] - eps.x:
                move[r] = -1
            elif total > hi[r] + eps.x:
                move[r] = 1
        count += move[r] != _NO_MOVE
    return count


@compiled(void(STATE, CHANGES, boolean[::1], int64, int64, boolean))
def apply_changes(state, changes, stale, first, last, single):  # type: ignore[no-untyped-def]
    """Change the states of the children first .. last - 1: all, or only the last one in the order child, cell, row."""
    free, active, flip, move = state.free, state.active, changes.flip, changes.move
    for c in range(last - 1, first - 1, -1):
        for r in range(active.shape[1] - 1, -1, -1):
            if move[c, r] != _NO_MOVE:
                active[c, r] = move[c, r]
                stale[c] = True
                if single:
                    return
        for k in range(free.shape[1] - 1, -1, -1):
            if flip[c, k]:
                free[c, k] = not free[c, k]
                stale[c] = True
                if single:
                    return


_MOST_ITERATIONS = 120
_MOST_STALLS = 5
_MANY = 1 << 60


@compiled(void(FACTORS, int32[::1], float64[::1], SYSTEM), apart=True)
def factor_multipliers(factors, group, ridge, system):  # type: ignore[no-untyped-def]
    """Factor T, the sum of the children's P = Q - M' W over cells and groups, and a ridge on its diagonal."""
    t, count, index, m, w = system.t, factors.n, factors.cell, factors.m, factors.w
    cells = index.shape[1]
    t[:] = 0.0
    line, scale = np.empty(cells), ridge.copy()  # what rows take from P may leave nothing but rounding errors
    for c in range(index.shape[0]):
        n, row_sum = count[c], 0.0
        inverse = factors.inverse[c, : n * n].reshape(n, n)
        for i in range(n):
            k, own = index[c, i], line[:n]
            own[:] = inverse[i]
            scale[k] += own[i]
            if group[c] >= 0:
                scale[cells + group[c]] += own.sum()
            for r in range(factors.active_rows[c]):
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
    factor_scaled(t, scale, system.independent)


@compiled(void(EQUATIONS, SIDES, FACTORS, SYSTEM, float64[:, ::1], float64[::1], float64[:, ::1]), apart=True)
def _couple(equations, sides, factors, system, v, step, x):  # type: ignore[no-untyped-def]
    """Solve T step = (p, s) - sum of v_c, and set x_c = v_c + P_c step: the children add up to parent and groups."""
    group, index, count = sides.group, factors.cell, factors.n
    children, cells = x.shape
    step[:] = 0.0
    if equations.coupled:
        step[:cells] = equations.p
        step[cells:] = sides.group_totals
        for c in range(children):
            for i in range(count[c]):
                step[index[c, i]] -= v[c, i]
                if group[c] >= 0:
                    step[cells + group[c]] -= v[c, i]
        solve_vector(system.t, system.independent, step)
    value = np.empty(cells)
    for c in range(children):
        n = count[c]
        value[:n] = v[c, :n]
        if equations.coupled:
            push(factors, c, step, shift_of(step, group[c], cells), 1.0, value)
        x[c, :] = 0.0
        for i in range(n):
            x[c, index[c, i]] = value[i]


@compiled(void(EQUATIONS, SIDES, STATE, FACTORS, SYSTEM, POINT), apart=True)
def _answer(equations, sides, state, factors, system, point):  # type: ignore[no-untyped-def]
    """The point and all multipliers of one state: x = v + P (lambda + gamma), nu = q - W (b + lambda + gamma), and mu."""
    children, cells = point.x.shape
    for c in range(children):
        if factors.stale[c]:
            factor_child(equations, sides, state, factors, c)
    if equations.coupled:
        factor_multipliers(factors, sides.group, np.zeros(point.multiplier.shape[0]), system)
    _couple(equations, sides, factors, system, factors.v, point.multiplier, point.x)
    for c in range(children):
        point.nu[c] = factors.q[c]
        force, shift = (
            equations.b[c] + point.multiplier[:cells],
            shift_of(point.multiplier, sides.group[c], cells),
        )
        row_step(state, factors, c, force, shift, point.nu[c])
        reduced_gradient(equations, sides, point, c)


@compiled(void(EQUATIONS, SIDES, STATE, FACTORS, SYSTEM, POINT), apart=True)
def _refine(equations, sides, state, factors, system, point):  # type: ignore[no-untyped-def]
    """One step of iterative refinement in one state: rounding errors shrink to those of mu, which is pushed to 0 through P."""
    index, x, mu, multiplier = factors.cell, point.x, point.mu, point.multiplier
    children, cells = x.shape
    v, step = np.zeros((children, cells)), np.empty(multiplier.shape[0])
    for c in range(children):
        for i in range(factors.n[c]):
            v[c, i] = x[c, index[c, i]]
        push(factors, c, mu[c], 0.0, -1.0, v[c])
    _couple(equations, sides, factors, system, v, step, x)
    multiplier += step
    for c in range(children):
        shift = shift_of(step, sides.group[c], cells)
        row_step(state, factors, c, step[:cells] - mu[c], shift, point.nu[c])
        reduced_gradient(equations, sides, point, c)


@compiled(int64(EQUATIONS, SIDES, STATE, POINT, TOLERANCES, boolean), apart=True)
def solve_active_set(equations, sides, state, point, eps, patient):  # type: ignore[no-untyped-def]
    """Iterate from a state to the optimum; writes the point and its multipliers.

    Invariant: in every iteration the point solves the equations of its state exactly, so that only signs can be wrong. Changes
    are made in blocks while that leaves fewer of them to make. After that a patient solve makes them one by one, and an
    impatient one gives up.
    """
    children, cells = point.x.shape
    factors, system = new_factors(children, sides.rows.shape[0], cells), new_system(point.multiplier.shape[0])
    changes = new_changes(children, sides.rows.shape[0], cells)
    fewest, stalls, single = _MANY, 0, False
    for iteration in range(1, _MOST_ITERATIONS + 1):
        _free_needed(equations.coupled, sides, state, factors.stale)
        _answer(equations, sides, state, factors, system, point)
        if stalls > 0:  # signs within rounding errors would go round in circles
            _refine(equations, sides, state, factors, system, point)
        wrong = 0
        for c in range(children):
            wrong += find_changes(sides, state, point, eps, changes, c)
        if wrong < fewest:
            fewest, stalls, single = wrong, 0, False
        else:
            stalls += 1
            single = stalls > _MOST_STALLS
        if wrong == 0 or iteration == _MOST_ITERATIONS or (single and not patient):
            for _ in range(2):
                _refine(equations, sides, state, factors, system, point)
            return iteration if wrong == 0 else -iteration
        apply_changes(state, changes, factors.stale, 0, children, single)
    return -_MOST_ITERATIONS
