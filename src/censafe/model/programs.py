"""Linear and integer programs: the one place that calls a solver, reads its status before its point, and checks the point."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from censafe.model.arrays import Floats


class Outcome(Enum):
    """How a program ended."""

    OPTIMAL = "optimal"
    INFEASIBLE = "infeasible"
    FAILED = "failed"


class Program(NamedTuple):
    """Minimize cost x under low <= matrix x <= high and lower <= x <= upper; some x are whole numbers."""

    cost: Floats
    matrix: Any  # sparse or dense, shape (rows, unknowns)
    low: Floats
    high: Floats
    lower: Floats | float
    upper: Floats | float
    integral: NDArray[np.generic] | bool  # which unknowns are whole numbers


@dataclass(frozen=True, eq=False)
class Solution:
    """The outcome of a program, and a point that meets its rows and bounds where one is known.

    A program that failed may have a point, which is not known to be the best; one that is infeasible has none.
    """

    outcome: Outcome
    x: Floats | None = field(default=None, repr=False)


class _Way(NamedTuple):
    """One way to run a program."""

    presolve: bool
    relaxed: bool = False  # without whole numbers: shows only whether the program is infeasible
    costless: bool = False  # any point


_OPTIMAL, _LIMIT, _INFEASIBLE = 0, 1, 2  # of scipy.optimize.milp
_CLOSE = 1e-5  # of a side, the largest share by which a point may miss it


def solve_program(
    program: Program, *, seconds: float | None = None, nodes: int | None = None, gap: float | None = None
) -> Solution:
    """Solve a program; an error of the solver is tried again in other ways and is never taken for an infeasible program.

    Infeasible is what two ways say and no way contradicts. HiGHS (scipy 1.17) ends in an error for about one of five hundred
    small programs, whose optimum it withdraws after presolving, and solves all of these without presolving.
    """
    integral = np.broadcast_to(np.asarray(program.integral, np.bool_), program.cost.shape)
    votes, point = 0, None
    relaxed = [_Way(False, relaxed=True)] if integral.any() else []
    for way in (_Way(True), *relaxed, _Way(False), _Way(True, costless=True), _Way(False, costless=True)):
        options: dict[str, Any] = {"presolve": way.presolve}
        limits = {"time_limit": seconds, "node_limit": nodes, "mip_rel_gap": gap}
        options |= {key: value for key, value in limits.items() if value is not None}
        status, x = _run(program, integral & (not way.relaxed), way.costless, options)
        if status == _INFEASIBLE:
            votes += 1
            if votes == 2 and point is None:
                return Solution(Outcome.INFEASIBLE)
        x = None if x is None or way.relaxed else _point(program, integral, x)
        if x is not None:
            if status == _OPTIMAL and not way.costless:
                return Solution(Outcome.OPTIMAL, x)
            point = x
        if status == _LIMIT and not way.relaxed and (seconds, nodes) != (None, None):
            break
        if way.costless and point is not None:
            break
    return Solution(Outcome.FAILED, point)


def _run(
    program: Program, integral: NDArray[np.bool_], costless: bool, options: dict[str, Any]
) -> tuple[int, Floats | None]:
    """Status and point of one run of the solver."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    rows = LinearConstraint(program.matrix, program.low, program.high) if len(program.low) else ()
    answer = milp(
        np.zeros(len(program.cost)) if costless else program.cost,
        integrality=integral.astype(np.int64),
        bounds=Bounds(program.lower, program.upper),
        constraints=rows,
        options=options,
    )
    return int(answer.status), answer.x


def _point(program: Program, integral: NDArray[np.bool_], x: Floats) -> Floats | None:
    """A point with its whole numbers rounded; None where it misses a row or a bound."""
    x = np.where(integral, np.rint(x), x)
    for value, low, high in (
        (program.matrix @ x if len(program.low) else np.zeros(0), program.low, program.high),
        (x, np.asarray(program.lower, float), np.asarray(program.upper, float)),
    ):
        below = value < low - _CLOSE * (1 + np.abs(np.where(np.isfinite(low), low, 0)))
        above = value > high + _CLOSE * (1 + np.abs(np.where(np.isfinite(high), high, 0)))
        if below.any() or above.any():
            return None
    return x
