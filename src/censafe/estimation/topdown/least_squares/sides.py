"""The sides of one parent: which cells its children may have, which rows limit them, and what these imply."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import boolean, float64, int32, int64, uint8, void
from numpy.typing import NDArray

from censafe.estimation.topdown.least_squares.problem import ParentProblem
from censafe.model.arrays import Floats
from censafe.model.compiled import compiled

__all__ = ["Tightened", "drop_implied", "kind_sides", "tighten", "tighten_sides"]


@compiled(boolean(int32[::1], int64, int64[::1], int64[:, ::1], int64[:, ::1], int64[::1], boolean))
def _may_bind(kind_of, kind, child, lower, upper, p, coupled):  # type: ignore[no-untyped-def]
    """Whether bounds of a kind say more than the counts of the parent and the masks do."""
    held = 0
    for k in range(kind_of.shape[0]):
        if kind_of[k] == kind:
            held += p[k]
    for c in range(child.shape[0]):
        most = upper[child[c], kind]
        if lower[child[c], kind] > 0 or not coupled or 0 < most < held:
            return True
    return False


@compiled(
    int64(
        int32[::1], int64[::1], int64[::1], boolean, int64[:, ::1], int64[:, ::1], int64[::1],
        uint8[:, ::1], float64[:, ::1], float64[:, ::1],
        boolean[:, ::1], uint8[:, ::1], float64[:, ::1], float64[:, ::1],
    )
)  # fmt: skip
def kind_sides(  # type: ignore[no-untyped-def]  # noqa: C901
    kind_of, child, p, coupled, lower, upper, totals, sets, least, most, allowed, rows, lo, hi
):
    """Write masks and side rows: the exact total, the kinds whose bounds may bind, the sets of kinds.

    Args:
        kind_of: kind of unit of each cell of the parent, shape (K,); all 0 where nothing bounds them.
        child: geounits of the children, shape (C,).
        p: the parent's counts, shape (K,).
        coupled: false at the root, which has no parent.
        lower: fewest records of every geounit and kind; no columns where nothing bounds them.
        upper: most records.
        totals: exact totals of the geounits; empty where they are not known.
        sets: 0/1 membership of the kinds in further limited sets, shape (S, kinds).
        least: of the geounits in every set, shape (geounits, S).
        most: of the geounits in every set.
        allowed: receives the mask, shape (C, K).
        rows: receives the rows, shape (1 + kinds + S or more, K).
        lo: receives their lower sides, shape (C, as many).
        hi: receives their upper sides.

    Returns:
        Number of rows.
    """
    children, cells = allowed.shape
    kinds, used = lower.shape[1], 0
    allowed[:] = True
    if totals.shape[0] > 0:
        rows[0] = 1
        for c in range(children):
            lo[c, 0] = hi[c, 0] = totals[child[c]]
        used = 1
    for c in range(children if kinds > 0 else 0):
        for k in range(cells):
            allowed[c, k] = upper[child[c], kind_of[k]] > 0
    for kind in range(kinds):
        members = 0
        for k in range(cells):
            members += kind_of[k] == kind
        whole = members == cells and totals.shape[0] > 0
        if members > 0 and not whole and _may_bind(kind_of, kind, child, lower, upper, p, coupled):
            for k in range(cells):
                rows[used, k] = kind_of[k] == kind
            for c in range(children):
                lo[c, used] = lower[child[c], kind]
                hi[c, used] = upper[child[c], kind]
            used += 1
    for s in range(sets.shape[0]):
        for k in range(cells):
            rows[used, k] = sets[s, kind_of[k]]
        for c in range(children):
            lo[c, used] = least[child[c], s]
            hi[c, used] = most[child[c], s]
        used += 1
    return used


@compiled(void(uint8[:, ::1], boolean[:, ::1], float64[:, ::1], float64[:, ::1]))
def drop_implied(rows, allowed, lo, hi):  # type: ignore[no-untyped-def]
    """Drop lower sides of 0, and upper sides that the child's total implies: they make steps of the solvers degenerate."""
    for c in range(allowed.shape[0]):
        total = np.inf
        for r in range(rows.shape[0]):
            every = lo[c, r] == hi[c, r]
            for k in range(allowed.shape[1]):
                every &= rows[r, k] != 0 or not allowed[c, k]
            if every:
                total = min(total, hi[c, r])
        for r in range(rows.shape[0]):
            if lo[c, r] < hi[c, r]:
                if lo[c, r] <= 0.0:
                    lo[c, r] = -np.inf
                if hi[c, r] >= total:
                    hi[c, r] = np.inf


@compiled(boolean(float64[::1], boolean, uint8[:, ::1], boolean[:, ::1], float64[:, ::1], float64[:, ::1]))
def tighten_sides(p, coupled, rows, allowed, lo, hi):  # type: ignore[no-untyped-def]  # noqa: C901
    """Mask, drop and equate in place what the sides of single rows imply.

    A row with upper side 0 masks its cells; a row that reaches no cell is dropped; where the lower (upper) sides of all
    children add up to what the parent has in the row, every child has its lower (upper) side.

    Args:
        p: the parent's counts, shape (K,).
        coupled: false at the root.
        rows: shape (R, K).
        allowed: shape (C, K).
        lo: shape (C, R).
        hi: shape (C, R).

    Returns:
        Whether no condition was found that forbids every point.
    """
    children, cells = allowed.shape
    for r in range(rows.shape[0]):
        for c in range(children):
            if lo[c, r] > hi[c, r] or hi[c, r] < 0.0:
                return False
            if hi[c, r] == 0.0:
                for k in range(cells):
                    if rows[r, k]:
                        allowed[c, k] = False
    reach = np.zeros(children, dtype=np.bool_)
    for r in range(rows.shape[0]):
        have, lowest, highest = 0.0, 0.0, 0.0
        for k in range(cells):
            if rows[r, k]:
                have += p[k]
        for c in range(children):
            reach[c] = False
            for k in range(cells):
                reach[c] |= allowed[c, k] and rows[r, k] != 0
            if reach[c]:
                lowest += max(lo[c, r], 0.0)
                highest += hi[c, r]
            elif lo[c, r] > 0.0:
                return False
            else:
                lo[c, r], hi[c, r] = -np.inf, np.inf
        for c in range(children if coupled else 0):
            if reach[c]:
                floor = max(lo[c, r], 0.0)
                if highest == have:
                    lo[c, r] = hi[c, r]
                elif lowest == have:
                    lo[c, r] = floor
                if lowest == have:
                    hi[c, r] = floor
    uncovered = 0
    for k in range(cells if coupled else 0):
        free = 0
        for c in range(children):
            free += allowed[c, k]
        uncovered += p[k] > 0.0 and free == 0
    return uncovered == 0


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
