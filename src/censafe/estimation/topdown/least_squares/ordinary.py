"""Compiled least squares of one ordinary parent: without groups, not a root, and with an objective that is not singular.

Parents on which the active set goes in circles are solved by Newton ascent on the multipliers of their sums. For given multipliers
every child is a small problem of its own, which is solved exactly from its last state. The sum of their least values is
concave in the multipliers, with the sums that are missed as its gradient, so every step along the Newton direction can be checked
and shortened: unlike changes of all states at once it cannot go round in circles.
"""

from __future__ import annotations

import numpy as np
from numba import boolean, float64, int8, int64, types, uint8

from censafe.estimation.topdown.least_squares.active_set import (
    apply_changes,
    factor_multipliers,
    find_changes,
    free_active_rows,
    solve_active_set,
)
from censafe.estimation.topdown.least_squares.certificate import GAP_TOLERANCE, VIOLATION_TOLERANCE, certify
from censafe.estimation.topdown.least_squares.child import factor_child, push, reduced_gradient, row_step
from censafe.estimation.topdown.least_squares.dense import solve_vector
from censafe.estimation.topdown.least_squares.start import fit_two_cells, start_point
from censafe.estimation.topdown.least_squares.structures import (
    CHANGES,
    EQUATIONS,
    FACTORS,
    POINT,
    SIDES,
    STATE,
    TOLERANCES,
    PrimalDual,
    SignState,
    Tolerances,
    new_changes,
    new_factors,
    new_system,
)
from censafe.model.compiled import compiled

_MOST_STEPS = 60
_MOST_TRIALS = 12  # of the length of a step
_MOST_CHANGES = 400  # of the state of one child
_IN_BLOCKS = 20  # changes of a child before they are made one by one
_ENOUGH = 0.8  # share of the slope that may be left, on either side, at the end of a step
_MET = 1e-9  # persons by which sums may be missed at the end, of counts up to 10,000
_NEARLY_MET = 1e-9  # share of the largest count that is enough where steps lead no further
_RIDGE = 1e-3  # of the freedom of one cell of one child, for directions in which no child can move


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


@compiled(boolean(EQUATIONS, SIDES, STATE, FACTORS, POINT, TOLERANCES, CHANGES, int64), apart=True)
def _solve_child(equations, sides, state, factors, point, eps, changes, c):  # type: ignore[no-untyped-def]
    """The optimal x_c for given lambda, from the child's last state; false where it goes in circles."""
    cells = point.x.shape[1]
    value, force = np.empty(cells), equations.b[c] + point.multiplier
    for change in range(_MOST_CHANGES):
        free_active_rows(sides, state, factors.stale, c)
        if factors.stale[c]:
            factor_child(equations, sides, state, factors, c)
        n = factors.n[c]
        value[:n] = factors.v[c, :n]
        push(factors, c, point.multiplier, 0.0, 1.0, value)
        point.x[c] = 0.0
        for i in range(n):
            point.x[c, factors.cell[c, i]] = value[i]
        point.nu[c] = factors.q[c]
        row_step(state, factors, c, force, 0.0, point.nu[c])
        reduced_gradient(equations, sides, point, c)
        if find_changes(sides, state, point, eps, changes, c) == 0:
            active, x = state.active[c], point.x[c]
            return _on_rows(sides.rows, sides.lo[c], sides.hi[c], active, x, 100.0 * eps.x)
        apply_changes(state, changes, factors.stale, c, c + 1, change >= _IN_BLOCKS)
    return False


@compiled(boolean(EQUATIONS, SIDES, STATE, FACTORS, POINT, TOLERANCES), apart=True)
def _children(equations, sides, state, factors, point, eps):  # type: ignore[no-untyped-def]
    """The optimal x_c of all children for given lambda; false where one goes in circles."""
    children, cells = point.x.shape
    changes = new_changes(children, sides.rows.shape[0], cells)
    for c in range(children):
        if not _solve_child(equations, sides, state, factors, point, eps, changes, c):
            return False
    return True


@compiled(float64(float64[:, ::1], float64[::1], float64[::1], float64[::1]))
def _missed(x, p, step, rest):  # type: ignore[no-untyped-def]
    """Write the sums that are missed, p - sum of x_c; returns their product with a step."""
    slope = 0.0
    rest[:] = p
    for c in range(x.shape[0]):
        for k in range(x.shape[1]):
            rest[k] -= x[c, k]
    for k in range(x.shape[1]):
        slope += rest[k] * step[k]
    return slope


@compiled(
    boolean(EQUATIONS, SIDES, STATE, FACTORS, POINT, float64[::1], float64[::1], TOLERANCES), apart=True
)
def _search(equations, sides, state, factors, trial, start, step, eps):  # type: ignore[no-untyped-def]
    """Move the trial's lambda from ``start`` along a step until little of the slope is left; false where a child fails.

    Invariant: the slope of the dual is positive at the length ``near`` and, where ``far`` is set, not positive there.
    """
    rest, p = np.empty(step.shape[0]), equations.p
    slope = _missed(trial.x, p, step, rest)
    near, near_slope, far, far_slope, length = 0.0, slope, -1.0, 0.0, 1.0
    for _ in range(_MOST_TRIALS):
        for k in range(step.shape[0]):
            trial.multiplier[k] = start[k] + length * step[k]
        if not _children(equations, sides, state, factors, trial, eps):
            return False
        derivative = _missed(trial.x, p, step, rest)
        if abs(derivative) <= _ENOUGH * slope or (derivative > 0.0 and far < 0.0):
            break
        if derivative > 0.0:
            near, near_slope = length, derivative
        else:
            far, far_slope = length, derivative
        share = near_slope / (near_slope - far_slope)
        length = near + (far - near) * min(0.9, max(0.1, share))
    return True


@compiled(int64(EQUATIONS, SIDES, STATE, POINT, TOLERANCES), apart=True)
def climb_dual(equations, sides, state, point, eps):  # type: ignore[no-untyped-def]
    """Climb from the given lambda until the children add up to the parent, by Newton steps T step = p - sum of x_c.

    Args:
        point: its ``multiplier`` is lambda, shape (K,), to start from; receives x and all multipliers.

    Source: Qi & Sun (2006), "A quadratically convergent Newton method for computing the nearest correlation
        matrix", for the method.
    """
    h, p, multiplier = equations.h, equations.p, point.multiplier
    children, cells = point.x.shape
    factors, system = new_factors(children, sides.rows.shape[0], cells), new_system(cells)
    trial = PrimalDual(point.x, multiplier.copy(), point.nu, point.mu)
    rest, step, ridge = np.empty(cells), np.zeros(cells), np.empty(cells)
    if not _children(equations, sides, state, factors, trial, eps):
        return -1
    missed = np.inf
    for number in range(1, _MOST_STEPS + 1):
        _missed(point.x, p, step, rest)
        missed = np.abs(rest).max()
        if missed <= _MET * max(1.0, 1e-4 * p.max()):
            return number
        for k in range(cells):
            ridge[k] = _RIDGE * min(1.0, missed) / h[0, k, k]
        factor_multipliers(factors, sides.group, ridge, system)
        step[:] = rest
        solve_vector(system.t, system.independent, step)
        if not _search(equations, sides, state, factors, trial, multiplier, step, eps):
            return -number
        multiplier[:] = trial.multiplier
    return _MOST_STEPS if missed <= _NEARLY_MET * max(1.0, p.max()) else -_MOST_STEPS


_EPS = 1e-8


@compiled(
    types.UniTuple(float64, 2)(EQUATIONS, SIDES, float64[:, ::1], float64[:, ::1], float64[::1]), apart=True
)
def _checked(equations, sides, x, nu, curvature):  # type: ignore[no-untyped-def]
    """Set rounding errors below 0 to 0; violation and gap of the point."""
    for c in range(x.shape[0]):
        for k in range(x.shape[1]):
            if not np.isfinite(x[c, k]):
                return np.inf, np.inf
            x[c, k] = max(x[c, k], 0.0)
    return certify(equations, sides, x, nu, np.zeros(0), curvature)


@compiled(boolean(float64, float64))
def _good(violation, gap):  # type: ignore[no-untyped-def]
    return violation <= VIOLATION_TOLERANCE and gap <= GAP_TOLERANCE


@compiled(types.Tuple((STATE, TOLERANCES))(float64[:, ::1], float64[:, ::1], SIDES), apart=True)
def _first_state(x, b, sides):  # type: ignore[no-untyped-def]
    """The state that a point suggests, and the sizes from which values and multipliers count."""
    far, steep, lo, hi = 0.0, 0.0, sides.lo, sides.hi
    free, active = np.empty(x.shape, dtype=np.bool_), np.zeros(lo.shape, dtype=np.int8)
    for c in range(x.shape[0]):
        for k in range(x.shape[1]):
            free[c, k] = x[c, k] > 0.0 and sides.allowed[c, k]
            far = max(far, abs(x[c, k]))
            steep = max(steep, abs(b[c, k]))
        for r in range(lo.shape[1]):
            active[c, r] = 2 if lo[c, r] == hi[c, r] else 0
    eps_x = _EPS * min(100.0, max(1.0, 1e-4 * far))
    return SignState(free, active), Tolerances(eps_x, _EPS * max(1.0, 1e-6 * steep))


@compiled(POINT(int64, int64, int64))
def _new_point(children, rows, cells):  # type: ignore[no-untyped-def]
    """A point without groups, all 0."""
    shape = (children, cells)
    return PrimalDual(np.zeros(shape), np.zeros(cells), np.zeros((children, rows)), np.zeros(shape))


@compiled(types.Tuple((int64, float64, float64, boolean))(EQUATIONS, SIDES, float64[:, ::1]), apart=True)
def fit_family(equations, sides, x):  # type: ignore[no-untyped-def]
    """Least squares of one parent without groups: iterations, violation, gap, and whether these are a certificate.

    First two cells in closed form, then the active set, then the climb on the multipliers where that gives up. After the
    climb the active set makes the sums exact; where it goes in circles once more, the point of the climb is looked at.

    Args:
        x: receives the point, shape (C, K).
    """
    h, b, rows = equations.h, equations.b, sides.rows
    children, cells = x.shape
    curvature, ridge, nu = np.empty(h.shape[0]), np.empty(h.shape[0]), np.zeros((children, rows.shape[0]))
    pair = cells == 2 and rows.shape[0] == 1 and rows.all()
    if pair and fit_two_cells(equations, sides, x, nu, curvature):
        violation, gap = _checked(equations, sides, x, nu, curvature)
        if _good(violation, gap):
            return 1, violation, gap, True
    start_point(equations, x, curvature, ridge)
    if ridge.max() > 0.0:  # a singular objective needs the proximal steps of the general way
        return 0, np.inf, np.inf, False
    state, eps = _first_state(x, b, sides)
    climb_state = SignState(state.free.copy(), state.active.copy())
    fresh, climb = _new_point(children, rows.shape[0], cells), _new_point(children, rows.shape[0], cells)
    point = PrimalDual(x, fresh.multiplier, fresh.nu, fresh.mu)
    for k in range(cells):
        climb.multiplier[k] = (h[equations.h_of[0], k] * x[0]).sum() - b[0, k]
    climbed, solves = 0, 0
    for attempt in range(2):
        solves += abs(solve_active_set(equations, sides, state, point, eps, False))
        violation, gap = _checked(equations, sides, x, point.nu, curvature)
        if attempt == 1 or _good(violation, gap):
            break
        climbed = climb_dual(equations, sides, climb_state, climb, eps)
        solves += abs(climbed)
        if climbed <= 0:
            break
        state.free[:], state.active[:] = climb_state.free, climb_state.active
    if climbed > 0 and not _good(violation, gap):
        x[:] = climb.x
        violation, gap = _checked(equations, sides, x, climb.nu, curvature)
    return solves, violation, gap, _good(violation, gap)
