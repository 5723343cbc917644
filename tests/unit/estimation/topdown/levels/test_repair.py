from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import linprog

from censafe.errors import CheckError
from censafe.estimation.topdown.least_squares.problem import L2Status, ParentProblem
from censafe.estimation.topdown.least_squares.solve import solve_l2
from censafe.estimation.topdown.levels.passes import repair_parent
from support.parents import free_parent


def persons_moved(repair) -> int:
    return sum(abs(change.after - change.before) for change in repair.changes) // 2


def parent(p, allowed, rows, lo, hi):
    allowed = np.array(allowed, bool)
    children, cells = allowed.shape
    return ParentProblem(
        np.eye(cells), np.ones((children, cells)), np.array(p), allowed,
        np.array(rows, np.uint8).reshape(-1, cells), np.array(lo, float), np.array(hi, float),
    )  # fmt: skip


def test_persons_of_a_masked_cell_move_within_their_type():
    problem = parent(
        [3, 2, 4], [[1, 0, 1], [1, 0, 1]], [[1, 1, 0], [0, 0, 1]], np.zeros((2, 2)), np.full((2, 2), 9)
    )
    assert solve_l2(problem).status is L2Status.INFEASIBLE
    repair = repair_parent(problem)
    assert (repair.p.tolist(), persons_moved(repair)) == ([5, 0, 4], 2)
    assert [(c.cell, c.before, c.after) for c in repair.changes] == [(0, 3, 5), (1, 2, 0)]
    fixed = ParentProblem(
        problem.H, problem.B, repair.p, problem.allowed, problem.rows, problem.lo, problem.hi
    )
    assert solve_l2(fixed).status.exact


def test_a_feasible_parent_is_not_changed():
    problem = parent([3, 2, 4], np.ones((2, 3)), [[1, 1, 1]], [[4], [5]], [[4], [5]])
    assert repair_parent(problem).changes == ()


def test_types_that_do_not_add_up_cannot_be_repaired():
    problem = parent([3, 2, 4], np.ones((2, 3)), [[1, 1, 0]], [[3], [3]], [[9], [9]])
    with pytest.raises(CheckError, match=r"in \{row 0\} the parent has fewer persons than its children need"):
        repair_parent(problem)


def test_rows_that_cross_are_repaired_by_a_program():
    rows = [[1, 1, 0, 0], [0, 1, 1, 0]]
    allowed = [[1, 0, 1, 1], [1, 0, 1, 1]]
    problem = parent([3, 0, 4, 2], allowed, rows, [[1, 1], [1, 1]], [[9, 9], [9, 9]])
    assert repair_parent(problem).changes == ()
    moved = replace(problem, rows=np.array([[1, 1, 0, 0], [1, 1, 1, 0]], np.uint8), p=np.array([2, 1, 4, 2]))
    repair = repair_parent(moved)
    assert (repair.p.tolist(), persons_moved(repair)) == ([3, 0, 4, 2], 1)
    assert solve_l2(replace(moved, p=repair.p)).status.exact


def test_crossing_rows_without_a_repair_are_refused():
    problem = parent([3, 2, 4], np.ones((2, 3)), [[1, 1, 0], [0, 1, 1]], np.zeros((2, 2)), np.ones((2, 2)))
    with pytest.raises(CheckError, match="no change of cells"):
        repair_parent(problem)


def test_known_totals_of_groups_are_kept():
    problem = parent([3, 2, 4, 2], [[1, 0, 1, 1]] * 2, [[1, 1, 0, 0]], [[0], [0]], [[9], [9]])
    given = replace(problem, group=np.array([0, -1], np.int32), group_totals=np.array([6.0]))
    repair = repair_parent(given)
    assert repair.p.tolist() == [5, 0, 4, 2]
    result = solve_l2(replace(given, p=repair.p))
    assert (result.status.exact, result.x[0].sum()) == (True, pytest.approx(6))


def test_a_root_is_refused():
    problem = free_parent(np.eye(2), np.ones((1, 2)), None)
    with pytest.raises(CheckError, match="a root has no parent counts"):
        repair_parent(problem)


def least_change(problem, types):
    """Least L1 change by a linear program over children's cells, and None where there is no point."""
    children, cells = problem.B.shape
    n = children * cells
    over = np.kron(np.ones((1, children)), np.eye(cells))
    member = np.array([types == g for g in np.unique(types)], float)
    rows = np.kron(np.eye(children), problem.rows.astype(float))
    pad = np.zeros((len(rows), 2 * cells))
    answer = linprog(
        np.concatenate([np.zeros(n), np.ones(2 * cells)]),
        A_eq=np.vstack(
            [
                np.hstack([over, -np.eye(cells), np.eye(cells)]),
                np.hstack([member @ over, np.zeros((len(member), 2 * cells))]),
            ]
        ),
        b_eq=np.concatenate([problem.p, member @ problem.p]),
        A_ub=np.vstack([np.hstack([rows, pad]), np.hstack([-rows, pad])]),
        b_ub=np.concatenate([problem.hi.ravel(), -problem.lo.ravel()]),
        bounds=[(0, None if free else 0) for free in problem.allowed.ravel()] + [(0, None)] * (2 * cells),
        method="highs",
    )
    return None if answer.status == 2 else round(answer.fun)


@pytest.mark.parametrize("seed", range(25))
def test_change_is_as_small_as_the_linear_program_says(seed):
    rng = np.random.default_rng(seed)
    types = np.array([0, 0, 0, 1, 1, 2])
    truth = rng.poisson(1.0, (3, 6))
    rows = np.array([types == 0, types == 1, np.ones(6)], np.uint8)
    have = truth @ rows.T.astype(int)
    p = rng.permuted(truth.sum(axis=0)[:3]).tolist() + truth.sum(axis=0)[3:].tolist()
    slack = rng.integers(0, 2, have.shape)
    problem = parent(p, (truth > 0) | (rng.random(truth.shape) < 0.2), rows, have - slack, have + slack)
    expected = least_change(problem, types)
    if expected is None:
        with pytest.raises(CheckError, match="no change of cells"):
            repair_parent(problem)
    else:
        repair = repair_parent(problem)
        assert int(np.abs(repair.p - problem.p).sum()) == expected
        assert [int(repair.p[types == g].sum()) for g in range(3)] == [
            int(problem.p[types == g].sum()) for g in range(3)
        ]
