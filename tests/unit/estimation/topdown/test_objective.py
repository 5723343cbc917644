"""One grid of parents for both implementations of the objective: dense, operator, all faces, Clarabel and HiGHS agree."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from censafe.estimation.topdown.least_squares.solve import solve_l2
from censafe.estimation.topdown.objective import DenseObjective, Objective
from censafe.estimation.topdown.operator import parent as operator_parent
from support.operator_problems import SmallPass, climbed, matrices, optimum, small_pass
from support.parents import best_by_enumeration

SMALL = (
    {"children": 2, "columns": 4, "sums": 1},
    {"children": 2, "columns": 4, "sums": 2, "crossing": 3, "noise": 8.0},
    {"children": 1, "columns": 6, "sums": 2, "root": True},
)
MEDIUM = (
    {"children": 4, "columns": 24, "sums": 3, "crossing": 4, "noise": 6.0},
    {"children": 7, "columns": 20, "sums": 2, "noise": 30.0, "mean": 0.7},
    {"children": 1, "columns": 90, "sums": 4, "crossing": 3, "noise": 15.0, "root": True},
)


def open_pass(seed: int, **shape: object) -> SmallPass:
    """A random pass of which every pair of child and column is open, so that both forms have the same unknowns."""
    given = small_pass(seed, **shape)  # type: ignore[arg-type]
    truth = given.truth + 1
    right = np.stack([truth[:, given.group == g].sum(axis=1) for g in range(given.group.max() + 1)], axis=1)
    column = None if given.column is None else truth.sum(axis=0)
    return replace(given, truth=truth, right=right, column=column, possible=np.ones(truth.shape, bool))


def both(given: SmallPass) -> tuple[Objective, Objective]:
    dense = given.dense()
    return DenseObjective(dense.H, dense.h_of, dense.B), given.problem().objective


@pytest.mark.parametrize("shape", [*SMALL, *MEDIUM])
@pytest.mark.parametrize("seed", range(2))
def test_both_forms_are_one_function(seed: int, shape: dict[str, object]) -> None:
    given, rng = open_pass(seed, **shape), np.random.default_rng(seed)
    matrix, operator = both(given)
    x, y = (rng.normal(3, 5, matrix.linear.shape) for _ in range(2))
    np.testing.assert_allclose(operator.linear, matrix.linear, atol=1e-8)
    np.testing.assert_allclose(operator.apply(x), matrix.apply(x), atol=1e-8)
    np.testing.assert_allclose(operator.gradient(x), matrix.gradient(x), atol=1e-8)
    assert operator.value(x) - operator.value(y) == pytest.approx(matrix.value(x) - matrix.value(y), abs=1e-6)
    change = matrix.value(x + y) - matrix.value(x - y)  # of a quadratic function
    assert change == pytest.approx(2 * float((matrix.gradient(x) * y).sum()), rel=1e-9, abs=1e-6)


@pytest.mark.parametrize("shape", SMALL)
@pytest.mark.parametrize("seed", range(2))
def test_the_least_value_is_that_of_all_faces(seed: int, shape: dict[str, object]) -> None:
    given = open_pass(seed, **shape)
    matrix, operator = both(given)
    best = best_by_enumeration(given.dense())
    found, dense = climbed(given.problem()).x, solve_l2(given.dense()).x
    nothing = operator.value(np.zeros(found.shape))
    for one in (matrix.value(found), matrix.value(dense), operator.value(dense) - nothing):
        assert one == pytest.approx(best, abs=1e-6)


@pytest.mark.parametrize("shape", MEDIUM)
def test_the_least_value_is_that_of_clarabel_and_highs(shape: dict[str, object]) -> None:
    given = open_pass(5, **shape)
    problem = given.problem()
    objective = problem.objective
    found, dense = climbed(problem).x, solve_l2(given.dense()).x
    others = [problem.counts_of(x) for x in (optimum(problem)[1], by_highs(given))]
    least = objective.value(found)
    assert objective.value(dense) == pytest.approx(least, rel=1e-8)
    for x in others:
        assert objective.value(np.maximum(x, 0.0)) == pytest.approx(least, rel=1e-6)


def by_highs(given: SmallPass) -> np.ndarray:
    """The point by HiGHS, from the matrices of the dense form."""
    highspy = pytest.importorskip("highspy")
    problem, dense = given.problem(), given.dense()
    rows, columns = matrices(problem)
    exact = rows[problem.sums.weight == 0.0]
    a = sparse.csc_array(sparse.vstack([exact, columns]))
    right = np.concatenate([problem.sums.right[problem.sums.weight == 0.0], problem.sums.column])
    quadratic = sparse.csc_matrix(sparse.tril(sparse.block_diag(list(dense.H[dense.h_of]))))
    model, size = highspy.HighsModel(), dense.B.size
    lp, hessian = model.lp_, model.hessian_
    lp.num_col_, lp.num_row_, lp.col_cost_ = size, len(right), -dense.B.ravel()
    lp.col_lower_, lp.col_upper_ = np.zeros(size), np.full(size, highspy.kHighsInf)
    lp.row_lower_ = lp.row_upper_ = right
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = a.indptr, a.indices, a.data
    hessian.dim_, hessian.format_ = size, highspy.HessianFormat.kTriangular
    hessian.start_, hessian.index_, hessian.value_ = quadratic.indptr, quadratic.indices, quadratic.data
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.passModel(model)
    solver.run()
    return np.array(solver.getSolution().col_value)


def test_a_gap_above_its_mark_is_accepted_at_wide_levels_alone_and_as_a_share_of_the_objective(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    problem = open_pass(1, children=3, columns=20, sums=2, noise=9.0).problem()
    results = {}
    for mark in (1e-4, -1.0):
        monkeypatch.setattr(operator_parent, "GAP_TOLERANCE", mark)
        for wide in (False, True):
            results[mark, wide] = operator_parent.OperatorResult()
            operator_parent._fitted(problem, results[mark, wide], wide)
    assert {key: one.uncertified for key, one in results.items()} == {
        (1e-4, False): 0, (1e-4, True): 0, (-1.0, False): 1, (-1.0, True): 0,
    }  # fmt: skip
    least = problem.objective.value(climbed(problem).x)
    assert results[-1.0, True].share == pytest.approx(results[-1.0, True].gap / least, rel=1e-3)
    assert (results[1e-4, True].share, results[-1.0, True].share < 1e-6) == (0.0, True)
