"""What the side rows of a parent already imply: masked cells, rows that cannot bind, sides that must be equal."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from censafe.estimation.topdown.problem import ParentProblem
from censafe.estimation.topdown.side_kernels import tighten_sides

__all__ = ["Tightened", "tighten"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Tightened:
    """The mask and the sides after presolve, which allow exactly the same points.

    Args:
        allowed: shape (C, K).
        lo: shape (C, R).
        hi: shape (C, R).
        reason: the first condition that no point can meet, empty if none was found.
    """

    allowed: NDArray[np.bool_]
    lo: Floats
    hi: Floats
    reason: str = ""


def tighten(problem: ParentProblem) -> Tightened:
    """Find what follows from the sides of single rows and from the parent's counts.

    A row with upper side 0 masks its cells; a row that reaches no cell is dropped; where the lower (upper) sides
    of all children add up to what the parent has in the row, every child has its lower (upper) side.
    """
    coupled = problem.p is not None
    p = np.zeros(problem.cells) if problem.p is None else problem.p.astype(np.float64)
    allowed = problem.allowed & (p > 0) if coupled and not p.all() else problem.allowed
    made = Tightened(allowed.copy(), problem.lo.copy(), problem.hi.copy())
    if tighten_sides(p, coupled, problem.rows, made.allowed, made.lo, made.hi):
        return made
    return _named(problem, allowed)


def _named(problem: ParentProblem, allowed: NDArray[np.bool_]) -> Tightened:
    """The first condition that no point can meet."""
    if not len(problem.rows):
        return Tightened(allowed, problem.lo, problem.hi, _uncovered(problem, allowed))
    rows = problem.rows.astype(np.float64)
    lo, hi = problem.lo, problem.hi
    if (lo > hi).any():
        return Tightened(allowed, lo, hi, f"{int((lo > hi).sum())} rows have a lower side above the upper")
    if (hi < 0).any():
        return Tightened(allowed, lo, hi, f"{int((hi < 0).sum())} rows have an upper side below 0")
    allowed = allowed & ~((hi == 0).astype(np.float64) @ rows > 0)
    reach = allowed.astype(np.float64) @ rows.T > 0
    if ((lo > 0) & ~reach).any():
        return Tightened(
            allowed, lo, hi, f"{int(((lo > 0) & ~reach).sum())} rows need persons and have no cell"
        )
    return Tightened(allowed, lo, hi, _uncovered(problem, allowed) or "its side rows contradict each other")


def _uncovered(problem: ParentProblem, allowed: NDArray[np.bool_]) -> str:
    if problem.p is None:
        return ""
    bad = int(((problem.p > 0) & ~allowed.any(axis=0)).sum())
    return f"{bad} cells of the parent are allowed in no child" if bad else ""
