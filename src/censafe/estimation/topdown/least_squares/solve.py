"""The fractional histograms of one parent's children: exact, certified least squares under all constraints, or the judged points of a user's solver."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from censafe.errors import CheckError
from censafe.estimation.topdown.least_squares.active_set import solve_active_set
from censafe.estimation.topdown.least_squares.certificate import GAP_TOLERANCE, VIOLATION_TOLERANCE, certify
from censafe.estimation.topdown.least_squares.feasibility import has_point, violated_cut
from censafe.estimation.topdown.least_squares.interior import interior_point
from censafe.estimation.topdown.least_squares.problem import L2Result, L2Status, ParentProblem
from censafe.estimation.topdown.least_squares.sides import Tightened, tighten
from censafe.estimation.topdown.least_squares.start import start_point
from censafe.estimation.topdown.least_squares.structures import (
    ParentEquations,
    PrimalDual,
    Sides,
    SignState,
    Tolerances,
)
from censafe.model.arrays import Floats

_EPS = 1e-8
_NO_POINT = "no point meets sums, bounds and rows"
_MOST_STEPS = 8  # towards the optimum of a singular objective
_RESOLUTION = 1e-15  # of the size of the objective, which is all that floating-point numbers can tell apart


@dataclass(eq=False)
class _Setting:
    """What the kernels need, in their types, and the iterates that they write."""

    problem: ParentProblem
    equations: ParentEquations
    sides: Sides
    ridge: float
    start: Floats
    curvature: Floats
    state: SignState
    point: PrimalDual
    iterations: int = 0


def solve_l2(problem: ParentProblem) -> L2Result:
    """Minimize the weighted squared distance of all children to their measurements.

    Where the objective is singular the optimum nearest to the point before is taken, step by step, until what is left is
    below the tolerance. The start solves without bounds; then cells and rows are fixed and freed by their signs, in blocks while that
    makes progress and one by one otherwise. No point is called a solution by its signs alone: sums, bounds, rows
    and the duality gap are checked, and what fails goes to a slower method and back.

    Source: primal-dual active set with least-index backup: Murty (1974), "Note on a Bard-type scheme for solving
        the complementarity problem"; Judice & Pires (1994).

    Example:
        >>> import numpy as np
        >>> H = 2 * np.eye(3) + 1
        >>> B = np.array([[13.0, 3, 5], [7, 9, 11]])
        >>> none = np.zeros((2, 0))  # no side rows, and every child may have every cell
        >>> solve_l2(ParentProblem(H, B, np.array([5, 1, 4]), np.ones((2, 3), bool), np.zeros((0, 3), np.uint8), none, none)).x
        array([[4.125, 0.   , 0.625],
               [0.875, 1.   , 3.375]])
    """
    result = _solve(problem)
    return _without_ridge(problem, result) if result.ridge and result.status.exact else result


def _without_ridge(problem: ParentProblem, result: L2Result) -> L2Result:
    """Proximal steps: the ridge is measured from the last point, and fades with the length of the steps.

    With the ridge r around the point before, the objective of a step of length d is at most its gap plus r d D
    above the optimum, where D is the largest distance of two points that meet the sums.

    Source: Rockafellar (1976), "Monotone operators and the proximal point algorithm".
    """
    size = problem.p if problem.p is not None else result.x.sum(keepdims=True)
    diameter = float(np.sqrt(2.0 * (size.astype(np.float64) ** 2).sum()))
    enough = max(GAP_TOLERANCE, _RESOLUTION * float(np.abs(problem.B * result.x).sum()))
    best, iterations, before = replace(result, gap=np.inf), result.iterations, result.x
    for _ in range(_MOST_STEPS):
        step = _solve(replace(problem, B=problem.B + result.ridge * before))
        iterations += step.iterations
        gap = step.gap + result.ridge * float(np.sqrt(((step.x - before) ** 2).sum())) * diameter
        stalled = gap > 0.5 * best.gap
        if step.status.exact and gap < best.gap:
            best = replace(step, gap=gap)
        if best.gap <= GAP_TOLERANCE or stalled or not step.status.exact:
            break
        before = step.x
    good = best.gap <= enough
    return replace(best, iterations=iterations, status=best.status if good else L2Status.APPROXIMATE)


def _solve(problem: ParentProblem) -> L2Result:
    """Solve with a ridge on a singular objective."""
    tight = tighten(problem)
    known = _known(problem, tight)
    if known is not None:
        return known
    setting = _setting(problem, tight)
    result = _run(setting, L2Status.OK)
    if result is not None:
        return result
    if not has_point(problem):
        return _infeasible(problem, violated_cut(problem) or _NO_POINT, setting.iterations)
    # the active set once more, from the state of an interior point; if that fails too, the interior point itself
    point = interior_point(setting.problem, setting.equations.h, tight)
    setting.state.free[:], setting.state.active[:] = point.free, point.active
    result = _run(setting, L2Status.OK_AFTER_INTERIOR)
    if result is not None:
        return result
    nu = point.row_multipliers
    violation, gap = _certified(setting, point.x, nu, point.group_multipliers)
    good = violation <= VIOLATION_TOLERANCE and gap <= GAP_TOLERANCE
    status = L2Status.OK_AFTER_INTERIOR if good else L2Status.APPROXIMATE
    return L2Result(point.x, status, gap, violation, setting.iterations, nu, setting.ridge)


def _known(problem: ParentProblem, tight: Tightened) -> L2Result | None:
    """What follows without a solve: that there is no point, or only one."""
    if tight.reason:
        return _infeasible(problem, tight.reason, 0)
    if problem.cells == 0 or (problem.p is not None and (problem.children == 1 or not problem.p.any())):
        # no cells, a parent without persons, or an only child, which is a copy of its parent
        x = np.zeros(problem.B.shape)
        if problem.p is not None and problem.children == 1:
            x[0] = problem.p
        totals = x @ problem.rows.T
        violation = float(max((tight.lo - totals).max(initial=0.0), (totals - tight.hi).max(initial=0.0)))
        sums = np.bincount(
            problem.group[problem.group >= 0], x.sum(axis=1)[problem.group >= 0], len(problem.group_totals)
        )
        if violation > 0 or (sums != problem.group_totals).any():
            return _infeasible(
                problem, "the only possible children break a side row or the total of a group", 0
            )
        return L2Result(x, L2Status.OK, 0.0, 0.0, 0, np.zeros(problem.lo.shape))
    return None


def _setting(problem: ParentProblem, tight: Tightened) -> _Setting:
    h, start = problem.H.copy(), np.empty(problem.B.shape)
    p = np.zeros(problem.cells) if problem.p is None else problem.p.astype(np.float64)
    curvature, ridge = np.empty(len(h)), np.empty(len(h))
    equations = ParentEquations(h, problem.h_of, problem.B, p, problem.p is not None)
    start_point(equations, start, curvature, ridge)
    # one ridge for all children, as the steps assume
    h += (ridge.max() - ridge)[:, None, None] * np.eye(problem.cells)
    shape, multipliers = problem.B.shape, problem.cells + len(problem.group_totals)
    return _Setting(
        problem, equations, tight.sides(problem), float(ridge.max()), start, curvature,
        SignState((start > 0) & tight.allowed, np.where(tight.lo == tight.hi, 2, 0).astype(np.int8)),
        PrimalDual(np.zeros(shape), np.zeros(multipliers), np.zeros(tight.lo.shape), np.zeros(shape)),
    )  # fmt: skip


def _run(setting: _Setting, status: L2Status) -> L2Result | None:
    eps_x = _EPS * min(100.0, max(1.0, 1e-4 * float(np.abs(setting.start).max())))
    eps_mu = _EPS * max(1.0, 1e-6 * float(np.abs(setting.problem.B).max()))
    iterations = solve_active_set(
        setting.equations, setting.sides, setting.state, setting.point, Tolerances(eps_x, eps_mu), True
    )
    setting.iterations += abs(iterations)
    point = setting.point
    if not np.isfinite(point.x).all():
        return None
    x = np.maximum(point.x, 0.0)
    violation, gap = _certified(setting, x, point.nu, point.multiplier[setting.problem.cells :])
    if violation > VIOLATION_TOLERANCE or gap > GAP_TOLERANCE:
        return None
    return L2Result(x, status, gap, violation, setting.iterations, point.nu, setting.ridge)


def _certified(setting: _Setting, x: Floats, nu: Floats, gamma: Floats) -> tuple[float, float]:
    violation, gap = certify(setting.equations, setting.sides, x, nu, gamma, setting.curvature)
    return float(violation), float(gap)


def _infeasible(problem: ParentProblem, reason: str, iterations: int) -> L2Result:
    zero = np.zeros(problem.lo.shape)
    infinite = float("inf")
    return L2Result(
        np.zeros(problem.B.shape), L2Status.INFEASIBLE, infinite, infinite, iterations, zero, reason=reason
    )


Solver = Callable[[ParentProblem], L2Result]
"""Takes the problem of a parent and returns a point with its status, gap and violation; ours is ``solve_l2``."""


class ParentSolver(Protocol):
    """Finds real numbers of persons for the children of one parent.

    It is called for every fit of every parent that has persons and more than one child, and of the root, from several threads.
    """

    def __call__(self, problem: ParentProblem, /) -> ArrayLike:
        """Return a point of shape (problem.children, problem.cells), in persons.

        It must meet ``x >= 0``, ``x == 0`` where not ``problem.allowed``, sums of ``problem.p`` over the children, and
        ``problem.lo <= x @ problem.rows.T <= problem.hi``, all within a relative 1e-6. What it makes small is its own choice;
        ours is the sum over children of ``x' H x / 2 - b' x``.
        """


def judged_solver(find: ParentSolver) -> Solver:
    """A solver whose points are checked and whose gaps are bounded before they are rounded.

    Example:
        >>> none, every = np.zeros((2, 0)), np.ones((2, 2), bool)
        >>> parent = ParentProblem(np.eye(2), np.zeros((2, 2)), np.array([4, 2]), every, np.zeros((0, 2), np.uint8), none, none)
        >>> judged_solver(lambda problem: np.tile(problem.p / problem.children, (problem.children, 1)))(parent).x
        array([[2., 1.],
               [2., 1.]])
    """

    def solver(problem: ParentProblem) -> L2Result:
        tight = tighten(problem)
        known = _known(problem, tight)
        if known is not None:
            return known
        if not has_point(problem):
            return _infeasible(problem, violated_cut(problem) or _NO_POINT, 0)
        x = np.array(find(problem), dtype=np.float64)
        if x.shape != problem.B.shape or not np.isfinite(x).all():
            raise CheckError(
                f"a point of {_name(find)} has the shape {x.shape} or is not finite; it must be finite and {problem.B.shape}"
            )
        # the gap is bounded without multipliers
        setting, point, nu = (
            _setting(problem, tight),
            np.ascontiguousarray(np.maximum(x, 0.0)),
            np.zeros(problem.lo.shape),
        )
        violation, gap = _certified(setting, point, nu, np.zeros(len(problem.group_totals)))
        worst = max(violation, float(-x.min(initial=0.0)))
        if worst > VIOLATION_TOLERANCE:
            raise CheckError(
                f"a point of {_name(find)} breaks a sum, a bound or a row of its parent by a relative {worst:.1e}; "
                f"at most {VIOLATION_TOLERANCE:.0e} is accepted"
            )
        status = L2Status.OK if gap <= GAP_TOLERANCE else L2Status.APPROXIMATE
        return L2Result(point, status, gap, violation, 0, nu, setting.ridge)

    return solver


def _name(find: object) -> str:
    return str(getattr(find, "__name__", type(find).__name__))
