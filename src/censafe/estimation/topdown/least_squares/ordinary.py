"""Compiled least squares of one ordinary parent: without groups, not a root, and with an objective that is not singular."""

from __future__ import annotations

import numpy as np
from numba import boolean, float64, int64, types

from censafe.estimation.topdown.least_squares.active_set import solve_active_set
from censafe.estimation.topdown.least_squares.certificate import GAP_TOLERANCE, VIOLATION_TOLERANCE, certify
from censafe.estimation.topdown.least_squares.dual import climb_dual
from censafe.estimation.topdown.least_squares.start import fit_two_cells, start_point
from censafe.estimation.topdown.least_squares.structures import (
    EQUATIONS,
    POINT,
    SIDES,
    STATE,
    TOLERANCES,
    PrimalDual,
    SignState,
    Tolerances,
)
from censafe.model.compiled import compiled

__all__ = ["FIT", "fit_family"]

_EPS = 1e-8


@compiled(types.UniTuple(float64, 2)(EQUATIONS, SIDES, float64[:, ::1], float64[:, ::1], float64[::1]))
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


@compiled(types.Tuple((STATE, TOLERANCES))(float64[:, ::1], float64[:, ::1], SIDES))
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


FIT = types.Tuple((int64, float64, float64, boolean))(EQUATIONS, SIDES, float64[:, ::1])


@compiled(FIT)
def fit_family(equations, sides, x):  # type: ignore[no-untyped-def]
    """Least squares of one parent without groups: iterations, violation, gap, and whether these are a certificate.

    First two cells in closed form, then the active set, then the climb on the multipliers where that gives up. After the
    climb the active set makes the sums exact; where it goes in circles once more, the point of the climb is looked at.

    Args:
        equations: of a parent that is not a root; a singular H gets a ridge, in place.
        sides: without groups.
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
    climbed, made = 0, 0
    for attempt in range(2):
        made += abs(solve_active_set(equations, sides, state, point, eps, False))
        violation, gap = _checked(equations, sides, x, point.nu, curvature)
        if attempt == 1 or _good(violation, gap):
            break
        climbed = climb_dual(equations, sides, climb_state, climb, eps)
        made += abs(climbed)
        if climbed <= 0:
            break
        state.free[:], state.active[:] = climb_state.free, climb_state.active
    if climbed > 0 and not _good(violation, gap):
        x[:] = climb.x
        violation, gap = _checked(equations, sides, x, climb.nu, curvature)
    return made, violation, gap, _good(violation, gap)
