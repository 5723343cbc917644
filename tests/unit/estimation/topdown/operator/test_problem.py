"""What the exact sums decide alone is decided rightly, and what is left has the optimum of the whole."""

import numpy as np
import pytest

from censafe.errors import CheckError
from censafe.estimation.topdown.least_squares.solve import solve_l2
from censafe.estimation.topdown.operator.problem import Observed, pass_problem
from support.operator_problems import climbed, small_pass
from support.parents import best_by_enumeration, objective


def decided(seed, case):
    """A parent of which an exact sum has a single column, or a single child, or a root of the first kind."""
    group = np.array({"child": [0, 0, 1, 1], "column": [0, 1, 1], "root": [0, 1, 1, 2, 2]}[case], np.int32)
    given = small_pass(
        seed, children=1 if case == "root" else 2, columns=len(group), sums=1, root=case == "root"
    )
    truth = given.truth.copy()
    truth[:, 0] += 1
    if case == "child":
        truth[1, :2] = 0
    right = np.stack([truth[:, group == g].sum(axis=1) for g in range(group.max() + 1)], axis=1)
    return type(given)(
        truth, group, right, None if case == "root" else truth.sum(axis=0), given.observed, None
    )


@pytest.mark.parametrize("case", ["child", "column", "root"])
@pytest.mark.parametrize("seed", range(3))
def test_fixed_entries_leave_the_optimum_as_it_is(seed, case):
    given = decided(seed, case)
    problem = given.problem()
    fixed = slice(0, 2 if case == "child" else 1)
    assert problem.fixed[:, fixed].tolist() == given.truth[:, fixed].tolist()
    whole = objective(given.dense(), climbed(problem).x)
    assert whole == pytest.approx(best_by_enumeration(given.dense()), abs=1e-6)


@pytest.mark.parametrize("seed", range(6))
def test_the_same_point_with_and_without_presolve(seed):
    given = small_pass(seed, children=4, columns=12, sums=7, mean=1.0)
    whole = type(given)(
        given.truth, given.group, given.right, given.column, given.observed, np.ones(given.truth.shape, bool)
    )
    few, many = given.problem(), whole.problem()
    assert (few.fixed.sum() > 0, many.fixed.sum()) == (True, 0)
    np.testing.assert_allclose(climbed(few).x, climbed(many).x, atol=1e-6)
    np.testing.assert_allclose(climbed(few).x, solve_l2(given.dense()).x, atol=2e-6)


def test_worked_example():
    group, right = np.array([0, 1, 1], np.int32), np.array([[3, 4], [2, 0]], np.int64)
    detailed = Observed(
        np.arange(3, dtype=np.int32), np.array([[9, 1, 2], [0, 5, 5]], np.int64), np.array([0.5, 1.0])
    )
    problem = pass_problem(group, right, np.array([5, 3, 1], np.int64), [detailed])
    assert problem.fixed.tolist() == [[3, 3, 1], [2, 0, 0]]
    assert (len(problem.free), len(problem.entries.child)) == (0, 0)
    at_root = pass_problem(
        group, right[:1], None, [Observed(detailed.group, detailed.values[:1], np.ones(1))]
    )
    assert at_root.fixed.tolist() == [[3, 0, 0]]
    assert (at_root.free.tolist(), at_root.entries.target.tolist()) == ([1, 2], [1.0, 2.0])
    assert at_root.sums.right.tolist() == [4.0]


def test_an_answer_about_one_open_column_moves_to_its_entries():
    group, right = np.array([0, 1, 1], np.int32), np.array([[3, 4]], np.int64)
    detailed = Observed(np.arange(3, dtype=np.int32), np.array([[3, 1, 2]], np.int64), np.array([1.0]))
    pair = Observed(np.array([0, 0, 1], np.int32), np.array([[10, 6]], np.int64), np.array([3.0]))
    problem = pass_problem(group, right, None, [detailed, pair])
    # 10 less the 3 that are fixed is an answer about the second column, 6 one about the third
    np.testing.assert_allclose(problem.entries.target, [(1 + 3 * 7) / 4, (2 + 3 * 6) / 4])
    assert (len(problem.sums.size), problem.scale) == (1, 4.0)


def test_cells_without_an_answer_of_their_own_are_refused():
    given = small_pass(0)
    with pytest.raises(CheckError, match="needs a measured answer of its own"):
        pass_problem(given.group, given.right, given.column, given.observed[1:])


def test_children_that_are_measured_in_part_are_refused():
    given = small_pass(0)
    given.observed[2].weight[0] = 0.0
    with pytest.raises(CheckError, match="measured alike"):
        given.problem()
