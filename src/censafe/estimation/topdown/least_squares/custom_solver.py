"""A solver of somebody else in the place of ours: what it is given, what it returns, and how its points are judged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from censafe.errors import CheckError
from censafe.estimation.topdown.least_squares.certificate import GAP_TOLERANCE, VIOLATION_TOLERANCE
from censafe.estimation.topdown.least_squares.problem import L2Result, L2Status, ParentProblem
from censafe.estimation.topdown.least_squares.solve import result_without_choice, uncertified

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
        >>> parent = ParentProblem.without_rows(np.eye(2), np.zeros((2, 2)), np.array([4, 2]))
        >>> judged_solver(lambda problem: np.tile(problem.p / problem.children, (problem.children, 1)))(parent).x
        array([[2., 1.],
               [2., 1.]])
    """

    def solver(problem: ParentProblem) -> L2Result:
        known = result_without_choice(problem)
        if known is not None:
            return known
        x = np.array(find(problem), dtype=np.float64)
        if x.shape != problem.B.shape or not np.isfinite(x).all():
            raise CheckError(
                f"a point of {_name(find)} has the shape {x.shape} or is not finite; it must be finite and {problem.B.shape}"
            )
        found = uncertified(problem, np.ascontiguousarray(np.maximum(x, 0.0)))
        violation = max(found.violation, float(-x.min(initial=0.0)))
        if violation > VIOLATION_TOLERANCE:
            raise CheckError(
                f"a point of {_name(find)} breaks a sum, a bound or a row of its parent by a relative {violation:.1e}; "
                f"at most {VIOLATION_TOLERANCE:.0e} is accepted"
            )
        status = L2Status.OK if found.gap <= GAP_TOLERANCE else L2Status.APPROXIMATE
        return replace(found, status=status)

    return solver


def _name(find: object) -> str:
    return str(getattr(find, "__name__", type(find).__name__))
