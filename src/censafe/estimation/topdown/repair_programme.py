"""Elastic repair where side rows overlap or totals of groups are known: a mixed-integer programme."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from censafe.estimation.topdown.problem import ParentProblem

__all__ = ["repaired_counts", "side_matrix"]

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


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

    Args:
        problem: a parent that is not a root.

    Returns:
        The counts, shape (K,), which have integer children; None where there are none.
    """
    from scipy import sparse
    from scipy.optimize import Bounds, LinearConstraint, milp

    children, cells = problem.B.shape
    p = np.zeros(cells) if problem.p is None else problem.p.astype(np.float64)
    _, kind = np.unique(problem.rows, axis=1, return_inverse=True)
    member = np.zeros((int(kind.max(initial=0)) + 1, cells))
    member[kind.ravel(), np.arange(cells)] = 1.0
    over = sparse.kron(np.ones((1, children)), sparse.eye(cells), format="csr")
    each = sparse.eye(cells, format="csr")
    sides, low, high = side_matrix(problem)
    matrix = sparse.bmat(
        [
            [over, -each, each],
            [sides, None, None],
            [None, sparse.csr_matrix(member), sparse.csr_matrix(-member)],
        ],
        format="csr",
    )
    same = np.zeros(len(member))
    answer = milp(
        np.concatenate([np.zeros(children * cells), np.ones(2 * cells)]),
        constraints=LinearConstraint(matrix, np.concatenate([p, low, same]), np.concatenate([p, high, same])),
        bounds=Bounds(
            0, np.concatenate([np.where(problem.allowed.ravel(), np.inf, 0.0), np.full(2 * cells, np.inf)])
        ),
        integrality=np.ones(children * cells + 2 * cells),
    )
    if answer.x is None:
        return None
    found = np.rint(answer.x[: children * cells]).astype(np.int64).reshape(children, cells)
    return np.asarray(found.sum(axis=0), dtype=np.int64)
