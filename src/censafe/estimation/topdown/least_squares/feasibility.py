"""Whether a parent's children can meet all constraints, which cut forbids it, and the mixed-integer program where rows overlap."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from censafe.errors import CheckError
from censafe.estimation.topdown.least_squares.problem import ParentProblem
from censafe.model.arrays import Floats, Integers
from censafe.model.programs import Outcome, Program, solve_program


def side_matrix(problem: ParentProblem) -> tuple[Any, Floats, Floats]:
    """Side rows of all children and totals of groups over the cells of all children, with their sides."""
    from scipy import sparse

    children, cells = problem.B.shape
    pair = np.zeros((len(problem.group_totals), children))
    inside = np.flatnonzero(problem.group >= 0)
    pair[problem.group[inside], inside] = 1.0
    rows = sparse.kron(sparse.eye(children), problem.rows.astype(np.float64), format="csr")
    groups = sparse.kron(pair, np.ones((1, cells)), format="csr")
    low = np.concatenate([problem.lo.ravel(), problem.group_totals])
    high = np.concatenate([problem.hi.ravel(), problem.group_totals])
    return sparse.vstack([rows, groups], format="csr"), low, high


def repaired_counts(problem: ParentProblem) -> Integers | None:
    """Counts with the least change that keep the sums of all sets of cells the side rows tell apart.

    Returns:
        The counts, shape (K,), which have integer children; None where there are none.
    """
    from scipy import sparse

    children, cells = problem.B.shape
    p = np.zeros(cells) if problem.p is None else problem.p.astype(np.float64)
    _, kind = np.unique(problem.rows, axis=1, return_inverse=True)
    member = np.zeros((int(kind.max(initial=0)) + 1, cells))
    member[kind.ravel(), np.arange(cells)] = 1.0
    over = sparse.kron(np.ones((1, children)), sparse.eye(cells), format="csr")
    identity = sparse.eye(cells, format="csr")
    sides, low, high = side_matrix(problem)
    matrix = sparse.bmat(
        [
            [over, -identity, identity],
            [sides, None, None],
            [None, sparse.csr_matrix(member), sparse.csr_matrix(-member)],
        ],
        format="csr",
    )
    same = np.zeros(len(member))
    solution = solve_program(
        Program(
            np.concatenate([np.zeros(children * cells), np.ones(2 * cells)]),
            matrix,
            np.concatenate([p, low, same]),
            np.concatenate([p, high, same]),
            0.0,
            np.concatenate([np.where(problem.allowed.ravel(), np.inf, 0.0), np.full(2 * cells, np.inf)]),
            True,
        )
    )
    if solution.outcome is Outcome.INFEASIBLE:
        return None
    if solution.x is None:
        raise CheckError(
            "the solver could not repair a parent whose side rows overlap; this says nothing about the data; please report this as a bug"
        )
    counts = np.rint(solution.x[: children * cells]).astype(np.int64).reshape(children, cells)
    return np.asarray(counts.sum(axis=0), dtype=np.int64)


_MARGIN, _RELATIVE = 1e-6, 1e-12


_MOST_TYPES = 12  # 4,096 sets


@dataclass(frozen=True, eq=False)
class Cuts:
    """Sums over sets of types that a parent must respect so that its children have a point.

    Args:
        sets: 0/1 membership of the types in each set, shape (S, T).
        lo: least persons of the parent in the set, shape (S,).
        hi: most persons of the parent in the set, shape (S,).
    """

    sets: NDArray[np.uint8]
    lo: Floats
    hi: Floats


def parent_cuts(
    lower: Floats, upper: Floats, total_lower: Floats | None = None, total_upper: Floats | None = None
) -> Cuts:
    """Bounds that a parent's solve must carry for every set of types, so that none of its children is infeasible.

    Args:
        lower: least persons of each type, shape (C, T).
        upper: most persons of each type, shape (C, T).
        total_lower: least persons of each child, shape (C,); none if not given.
        total_upper: most persons of each child, shape (C,); none if not given.

    Source: Hoffman's circulation theorem on types x children; a transportation argument without totals.

    Example:
        >>> cuts = parent_cuts(np.array([[1.0, 0]]), np.array([[9.0, 4]]), np.array([5.0]), np.array([5.0]))
        >>> cuts.sets.tolist(), cuts.lo.tolist(), cuts.hi.tolist()
        ([[1, 0], [0, 1], [1, 1]], [1.0, 0.0, 5.0], [5.0, 4.0, 5.0])
    """
    types = lower.shape[1]
    singles = (total_lower is None and total_upper is None) or types > _MOST_TYPES
    sizes = (1, types) if singles else range(1, types + 1)
    sets = np.array(
        [
            [t in chosen for t in range(types)]
            for size in sorted(set(sizes))
            for chosen in combinations(range(types), size)
        ],
        dtype=np.uint8,
    )
    inside: Floats = sets.astype(np.float64)
    outside: Floats = 1.0 - inside
    least, most = _over(lower, inside), _over(upper, inside)
    if total_lower is not None:
        least = np.maximum(least, total_lower[:, None] - _over(upper, outside))
    if total_upper is not None:
        most = np.minimum(most, total_upper[:, None] - _over(lower, outside))
    return Cuts(sets, least.sum(axis=0), most.sum(axis=0))


def _over(sides: Floats, members: Floats) -> Floats:
    """Sum of sides over the members of each set; infinite sides of others do not count."""
    finite = np.where(np.isfinite(sides), sides, 0.0) @ members.T
    infinite = (~np.isfinite(sides)).astype(np.float64) @ members.T > 0
    return np.where(infinite, np.inf, finite)


def type_rows(problem: ParentProblem) -> tuple[NDArray[np.int64], int | None]:
    """The side rows that split the cells into types, and the row of the total, if there is one."""
    full = np.flatnonzero(problem.rows.all(axis=1)) if problem.cells else np.zeros(0, dtype=np.int64)
    total = int(full[0]) if len(full) else None
    taken, chosen = np.zeros(problem.cells, dtype=bool), []
    for row in range(len(problem.rows)):
        cells = problem.rows[row] != 0
        if row not in full and cells.any() and not (taken & cells).any():
            chosen.append(row)
            taken |= cells
    return np.array(chosen, dtype=np.int64), total


def violated_cut(problem: ParentProblem) -> str:
    """Name the first condition on types and totals that the parent breaks; empty if there is none.

    The message holds row ordinals and no counts.
    """
    if problem.p is None:
        return ""
    chosen, total = type_rows(problem)
    rest = problem.rows[chosen].sum(axis=0) == 0
    lower, upper = np.maximum(problem.lo[:, chosen], 0.0), problem.hi[:, chosen]
    have = problem.rows[chosen].astype(np.int64) @ problem.p
    names = [f"row {row}" for row in chosen]
    if rest.any():
        children = problem.children
        lower = np.hstack([lower, np.zeros((children, 1))])
        upper = np.hstack([upper, np.full((children, 1), np.inf)])
        have = np.append(have, problem.p[rest].sum())
        names.append("cells of no row")
    sides = (None, None) if total is None else (problem.lo[:, total], problem.hi[:, total])
    cuts = parent_cuts(lower, upper, *sides)
    holds = cuts.sets.astype(np.int64) @ have
    margin = _MARGIN + _RELATIVE * holds  # kept answers of an earlier fit are sums of floats
    bad = np.flatnonzero((holds < cuts.lo - margin) | (holds > cuts.hi + margin))
    if not len(bad):
        return ""
    members = ", ".join(names[t] for t in np.flatnonzero(cuts.sets[bad[0]]))
    side = (
        "fewer persons than its children need"
        if holds[bad[0]] < cuts.lo[bad[0]]
        else "more than they may have"
    )
    return f"in {{{members}}} the parent has {side}; {len(bad)} of {len(cuts.sets)} sets are broken"


def has_point(problem: ParentProblem) -> bool:
    """Whether a point may meet sums, bounds and rows; false only where a linear program shows, in two ways, that none does."""
    from scipy import sparse

    if violated_cut(problem):
        return False
    children, cells = problem.B.shape
    rows, low, high = side_matrix(problem)
    if problem.p is not None:
        rows = sparse.vstack([rows, sparse.kron(np.ones((1, children)), sparse.eye(cells))], format="csr")
        low, high = np.concatenate([low, problem.p]), np.concatenate([high, problem.p])
    upper = np.where(problem.allowed.ravel(), np.inf, 0.0)
    solution = solve_program(Program(np.zeros(children * cells), rows, low, high, 0.0, upper, False))
    return solution.outcome is not Outcome.INFEASIBLE
