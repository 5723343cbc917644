"""The sides of one parent: which cells its children may have, which rows limit them, and what these imply."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba import boolean, float64, int32, int64, uint8, void
from numpy.typing import NDArray

from censafe.estimation.topdown.least_squares.problem import ParentProblem
from censafe.estimation.topdown.least_squares.structures import SIDES, Sides, sides_without_groups
from censafe.model.arrays import Floats, Integers
from censafe.model.compiled import compiled
from censafe.model.named_arrays import tuple_type


class KindLimits(NamedTuple):
    """Limits on the records of geounits by kind of unit, such as group quarters types."""

    lower: Integers  # (geounits, kinds) fewest records of every kind; no columns where nothing bounds them
    upper: Integers  # (geounits, kinds) most records
    totals: Integers  # (geounits,) exact totals; empty where they are not known
    sets: NDArray[np.uint8]  # (S, kinds) 0/1 membership of the kinds in further limited sets
    least: Floats  # (geounits, S) fewest records in every set
    most: Floats  # (geounits, S) most records


LIMITS = tuple_type(
    KindLimits, int64[:, ::1], int64[:, ::1], int64[::1], uint8[:, ::1], float64[:, ::1], float64[:, ::1]
)


@compiled(boolean(int32[::1], int64, int64[::1], int64[::1], boolean, int64[:, ::1], int64[:, ::1]))
def _may_bind(kind_of, kind, child, p, coupled, lower, upper):  # type: ignore[no-untyped-def]
    """Whether bounds of a kind say more than the counts of the parent and the masks do."""
    have = 0
    for k in range(kind_of.shape[0]):
        if kind_of[k] == kind:
            have += p[k]
    for c in range(child.shape[0]):
        most = upper[child[c], kind]
        if lower[child[c], kind] > 0 or not coupled or 0 < most < have:
            return True
    return False


@compiled(SIDES(int32[::1], int64[::1], int64[::1], boolean, LIMITS), apart=True)
def kind_sides(kind_of, child, p, coupled, limits):  # type: ignore[no-untyped-def]  # noqa: C901
    """Masks and side rows lo <= R x <= hi: the exact total, the kinds whose bounds may bind, the sets of kinds.

    Args:
        kind_of: kind of unit of each cell of the parent, shape (K,); all 0 where nothing bounds them.
        child: geounits of the children, shape (C,).
        p: the parent's counts, shape (K,).
    """
    lower, upper, known = limits.lower, limits.upper, limits.totals.shape[0] > 0
    children, cells, kinds = child.shape[0], kind_of.shape[0], lower.shape[1]
    space, used = 1 + kinds + limits.sets.shape[0], 0
    allowed, rows = np.ones((children, cells), dtype=np.bool_), np.zeros((space, cells), dtype=np.uint8)
    lo, hi = np.empty((children, space)), np.empty((children, space))
    if known:
        rows[0] = 1
        for c in range(children):
            lo[c, 0] = hi[c, 0] = limits.totals[child[c]]
        used = 1
    for c in range(children if kinds > 0 else 0):
        for k in range(cells):
            allowed[c, k] = upper[child[c], kind_of[k]] > 0
    for kind in range(kinds):
        members = 0
        for k in range(cells):
            members += kind_of[k] == kind
        all_cells = members == cells and known
        if members > 0 and not all_cells and _may_bind(kind_of, kind, child, p, coupled, lower, upper):
            for k in range(cells):
                rows[used, k] = kind_of[k] == kind
            for c in range(children):
                lo[c, used] = lower[child[c], kind]
                hi[c, used] = upper[child[c], kind]
            used += 1
    for s in range(limits.sets.shape[0]):
        for k in range(cells):
            rows[used, k] = limits.sets[s, kind_of[k]]
        for c in range(children):
            lo[c, used] = limits.least[child[c], s]
            hi[c, used] = limits.most[child[c], s]
        used += 1
    return sides_without_groups(allowed, rows[:used], lo[:, :used].copy(), hi[:, :used].copy())


@compiled(void(SIDES))
def drop_implied(sides):  # type: ignore[no-untyped-def]
    """Drop lower sides of 0, and upper sides that the child's total implies: they make steps of the solvers degenerate."""
    rows, allowed, lo, hi = sides.rows, sides.allowed, sides.lo, sides.hi
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


@compiled(boolean(SIDES))
def _mask_empty(sides):  # type: ignore[no-untyped-def]
    """Forbid the cells of rows with the upper side 0; false where a lower side is above its upper side."""
    rows, lo, hi = sides.rows, sides.lo, sides.hi
    for r in range(rows.shape[0]):
        for c in range(lo.shape[0]):
            if lo[c, r] > hi[c, r] or hi[c, r] < 0.0:
                return False
            if hi[c, r] == 0.0:
                for k in range(rows.shape[1]):
                    if rows[r, k]:
                        sides.allowed[c, k] = False
    return True


@compiled(boolean(float64[::1], boolean, SIDES))
def _tighten_rows(p, coupled, sides):  # type: ignore[no-untyped-def]  # noqa: C901
    """Drop rows without an allowed cell, equate those of which all children need their side; false without a point."""
    rows, allowed, lo, hi = sides.rows, sides.allowed, sides.lo, sides.hi
    children, cells = allowed.shape
    has_cell = np.empty(children, dtype=np.bool_)
    for r in range(rows.shape[0]):
        have, lowest, highest = 0.0, 0.0, 0.0
        for k in range(cells):
            if rows[r, k]:
                have += p[k]
        for c in range(children):
            has_cell[c] = False
            for k in range(cells):
                has_cell[c] |= allowed[c, k] and rows[r, k] != 0
            if has_cell[c]:
                lowest += max(lo[c, r], 0.0)
                highest += hi[c, r]
            elif lo[c, r] > 0.0:
                return False
            else:
                lo[c, r], hi[c, r] = -np.inf, np.inf
        for c in range(children if coupled else 0):
            if has_cell[c]:
                floor = max(lo[c, r], 0.0)
                if highest == have:
                    lo[c, r] = hi[c, r]
                elif lowest == have:
                    lo[c, r] = floor
                if lowest == have:
                    hi[c, r] = floor
    return True


@compiled(boolean(float64[::1], boolean, SIDES))
def tighten_sides(p, coupled, sides):  # type: ignore[no-untyped-def]
    """Mask, drop and equate in place what the sides of single rows imply.

    A row with upper side 0 masks its cells; a row that holds no allowed cell is dropped; where the lower (upper) sides of all
    children add up to what the parent has in the row, R p, every child has its lower (upper) side.

    Args:
        p: the parent's counts, shape (K,).
    """
    if not _mask_empty(sides) or not _tighten_rows(p, coupled, sides):
        return False
    allowed = sides.allowed
    for k in range(p.shape[0] if coupled else 0):
        possible = p[k] <= 0.0
        for c in range(allowed.shape[0]):
            possible |= allowed[c, k]
        if not possible:
            return False
    return True


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

    def sides(self, problem: ParentProblem) -> Sides:
        """With the rows and groups of the problem, in the types of the kernels."""
        return Sides(self.allowed, problem.rows, self.lo, self.hi, problem.group, problem.group_totals)


def tighten(problem: ParentProblem) -> Tightened:
    """Find what follows from the sides of single rows and from the parent's counts.

    A row with upper side 0 masks its cells; a row that holds no allowed cell is dropped; where the lower (upper) sides
    of all children add up to what the parent has in the row, every child has its lower (upper) side.
    """
    coupled = problem.p is not None
    p = np.zeros(problem.cells) if problem.p is None else problem.p.astype(np.float64)
    allowed = problem.allowed & (p > 0) if coupled and not p.all() else problem.allowed
    tightened = Tightened(allowed.copy(), problem.lo.copy(), problem.hi.copy())
    if tighten_sides(p, coupled, tightened.sides(problem)):
        return tightened
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
