from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import nnls

from censafe.errors import CheckError
from censafe.estimation.topdown.least_squares.feasibility import side_matrix
from censafe.estimation.topdown.least_squares.objective import LevelObjective
from censafe.estimation.topdown.least_squares.ordinary import fit_family
from censafe.estimation.topdown.least_squares.problem import L2Status, ParentProblem
from censafe.estimation.topdown.least_squares.solve import solve_l2
from censafe.estimation.topdown.least_squares.start import fit_two_cells, share_total
from censafe.estimation.topdown.least_squares.structures import ParentEquations, sides_without_groups
from support.parents import best_by_enumeration, free_parent, objective, parent_of_halves, small_parent

H = 2 * np.eye(3) + 1
B = np.array([[13.0, 3, 5], [7, 9, 11]])
P = np.array([5, 1, 4])


def with_rows(rows, lo, hi, *, p=P, b=B, allowed=None):
    allowed = np.ones(b.shape, bool) if allowed is None else np.array(allowed, bool)
    return ParentProblem(H, b, p, allowed, np.array(rows, np.uint8), np.array(lo, float), np.array(hi, float))


def test_worked_example():
    result = solve_l2(free_parent(H, B, P))
    assert result.x == pytest.approx(np.array([[4.125, 0, 0.625], [0.875, 1, 3.375]]), abs=1e-9)
    assert objective(free_parent(H, B, P), result.x) == pytest.approx(-53.375, abs=1e-9)
    assert (result.status, abs(result.gap) < 1e-9, result.violation < 1e-12) == (L2Status.OK, True, True)


def test_worked_example_with_a_row():
    result = solve_l2(with_rows([[0, 0, 1]], [[2], [-np.inf]], [[np.inf], [np.inf]]))
    assert result.x == pytest.approx(np.array([[11 / 3, 0, 2], [4 / 3, 1, 2]]), abs=1e-9)
    assert result.row_multipliers == pytest.approx(np.array([[22 / 3], [0]]), abs=1e-9)
    assert abs(result.gap) < 1e-9


@pytest.mark.parametrize("seed", range(6))
def test_equal_to_the_best_of_all_faces(seed):
    problem = small_parent(seed, children=2, cells=3)
    result = solve_l2(problem)
    best = best_by_enumeration(problem)
    assert result.status.exact
    assert objective(problem, result.x) == pytest.approx(best, abs=1e-8)
    assert abs(result.gap) <= 1e-8


@pytest.mark.parametrize("seed", range(4))
def test_root_equal_to_the_best_of_all_faces(seed):
    problem = small_parent(seed, children=1, cells=5, root=True)
    result = solve_l2(problem)
    assert result.status.exact
    assert objective(problem, result.x) == pytest.approx(best_by_enumeration(problem), abs=1e-8)


def test_root_with_a_fixed_total():
    problem = ParentProblem(
        H, B[:1], None, np.ones((1, 3), bool), np.ones((1, 3), np.uint8), np.array([[9.0]]), np.array([[9.0]])
    )
    result = solve_l2(problem)
    assert result.x.sum() == pytest.approx(9)
    assert objective(problem, result.x) == pytest.approx(best_by_enumeration(problem), abs=1e-9)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("closeness", [1.0, 0.05, 1e-4])
def test_gap_bounds_the_distance_to_the_optimum_at_any_point(seed, closeness):
    from censafe.estimation.topdown.least_squares.certificate import certify
    from censafe.estimation.topdown.least_squares.structures import ParentEquations, sides_without_groups

    problem = small_parent(seed, children=3, cells=5, rows=False, masks=False)
    best = objective(problem, solve_l2(problem).x)
    rng = np.random.default_rng(seed)
    x = np.ascontiguousarray(rng.dirichlet(np.ones(3), 5).T * problem.p)
    x = closeness * x + (1 - closeness) * solve_l2(problem).x
    equations = ParentEquations(problem.H, problem.h_of, problem.B, problem.p.astype(float), True)
    sides = sides_without_groups(problem.allowed, problem.rows, problem.lo, problem.hi)
    curvature = np.linalg.eigvalsh(problem.H)[:, 0].copy()
    _, gap = certify(equations, sides, x, np.zeros((3, 0)), np.zeros(0), curvature)
    assert gap >= objective(problem, x) - best - 1e-12


def test_parent_without_persons():
    result = solve_l2(free_parent(H, B, np.zeros(3, np.int64)))
    assert (result.status, float(result.x.sum())) == (L2Status.OK, 0.0)


def test_only_child_is_a_copy():
    assert solve_l2(free_parent(H, B[:1], P)).x.tolist() == [[5, 1, 4]]


def test_one_cell():
    problem = free_parent(np.array([[2.0]]), np.array([[8.0], [2.0]]), np.array([7]))
    assert solve_l2(problem).x == pytest.approx(np.array([[5.0], [2.0]]))


def test_cell_of_the_parent_without_persons_stays_empty():
    result = solve_l2(free_parent(H, B, np.array([5, 0, 4])))
    assert (result.status, result.x[:, 1].tolist()) == (L2Status.OK, [0, 0])


def test_types_and_totals_that_depend_on_each_other():
    rows = [[1, 1, 0], [0, 0, 1], [1, 1, 1]]
    sides = [[4, 1, 5], [2, 3, 5]]
    result = solve_l2(with_rows(rows, sides, sides))
    assert result.status.exact
    assert result.x @ np.array(rows).T == pytest.approx(np.array(sides, float))


@pytest.mark.parametrize(
    ("rows", "lo", "hi", "allowed", "reason"),
    [
        ([[1, 1, 0]], [[4], [4]], [[9], [9]], None, "fewer persons than its children need"),
        ([[0, 0, 1]], [[0], [0]], [[1], [2]], None, "more than they may have"),
        ([[1, 1, 0], [1, 1, 1]], [[0, 9], [0, 0]], [[3, 9], [9, 9]], None, "cells of no row"),
        ([[0, 1, 0]], [[1], [0]], [[9], [9]], [[1, 0, 1], [1, 1, 1]], "have no cell"),
        ([[0, 1, 0]], [[0], [0]], [[9], [9]], [[1, 0, 1], [1, 0, 1]], "allowed in no child"),
        ([[1, 1, 0], [0, 1, 1]], [[4, 0], [0, 0]], [[9, 0], [9, 4]], None, "no point meets"),
        ([[1, 0, 0]], [[3], [0]], [[2], [9]], None, "lower side above the upper"),
        ([[1, 0, 0]], [[-3], [0]], [[-1], [9]], None, "upper side below 0"),
    ],
)
def test_infeasible_parents_are_recognized(rows, lo, hi, allowed, reason):
    result = solve_l2(with_rows(rows, lo, hi, allowed=allowed))
    assert (result.status, reason in result.reason or result.reason) == (L2Status.INFEASIBLE, True)


def test_only_child_that_breaks_a_row():
    assert solve_l2(with_rows([[1, 0, 0]], [[6]], [[9]], b=B[:1])).status is L2Status.INFEASIBLE


def test_singular_weights_get_a_ridge_and_say_so():
    problem = free_parent(np.ones((3, 3)), np.array([[5.0] * 3, [4.0] * 3]), P)
    result = solve_l2(problem)
    assert (result.ridge > 0, result.x.sum(axis=0)) == (True, pytest.approx(P))


def test_counts_that_are_not_final_are_refused():
    with pytest.raises(CheckError, match="not integers"):
        free_parent(H, B, P + 0.5)
    with pytest.raises(CheckError, match="negative count"):
        free_parent(H, B, P - 2)


def test_arrays_that_do_not_fit_are_refused():
    with pytest.raises(CheckError, match=r"H is \(3, 3\), must be \(2, 2\)"):
        free_parent(H, B[:, :2], P[:2])
    with pytest.raises(CheckError, match="exactly one child"):
        free_parent(H, B, None)
    with pytest.raises(CheckError, match="not finite"):
        free_parent(H * np.nan, B, P)


@pytest.mark.parametrize("seed", range(6))
def test_halves_with_their_own_curvatures_equal_to_the_best_of_all_faces(seed):
    problem = parent_of_halves(seed, children=2 + seed % 2, cells=3 - seed % 2)
    result = solve_l2(problem)
    assert result.status.exact
    assert objective(problem, result.x) == pytest.approx(best_by_enumeration(problem), abs=1e-8)
    assert abs(result.gap) <= 1e-8
    for g, total in enumerate(problem.group_totals):
        assert result.x[problem.group == g].sum() == pytest.approx(total, abs=1e-9)


def test_ordinals_of_curvatures_and_groups_are_checked():
    given = free_parent(H, B, P)
    with pytest.raises(CheckError, match="h_of of a parent points outside"):
        replace(given, h_of=np.array([0, 1], np.int32))
    with pytest.raises(CheckError, match="group of a parent points outside"):
        replace(given, group=np.array([0, 0], np.int32))


def test_an_only_child_that_misses_the_total_of_its_group():
    problem = replace(free_parent(H, B[:1], P), group=np.array([0], np.int32), group_totals=np.array([9.0]))
    assert solve_l2(problem).status is L2Status.INFEASIBLE


def least_by_clarabel(problem):
    """Least objective by an interior point of others, on the cells of all children at once."""
    clarabel = pytest.importorskip("clarabel")
    children, cells = problem.B.shape
    n = children * cells
    sides, low, high = side_matrix(problem)
    sums = sparse.kron(np.ones((1, children)), sparse.eye(cells))
    matrix = sparse.vstack([sums, sides, sparse.eye(n)], format="csc")
    low = np.concatenate([problem.p, low, np.zeros(n)])
    high = np.concatenate([problem.p, high, np.where(problem.allowed.ravel(), np.inf, 0.0)])
    equal, up, down = low == high, (low != high) & np.isfinite(high), (low != high) & np.isfinite(low)
    a = sparse.vstack([matrix[equal], matrix[up], -matrix[down]], format="csc")
    cones = [clarabel.ZeroConeT(int(equal.sum())), clarabel.NonnegativeConeT(int(up.sum() + down.sum()))]
    chosen = clarabel.DefaultSettings()
    chosen.verbose = False
    quadratic = sparse.triu(sparse.block_diag(list(problem.H[problem.h_of])), format="csc")
    sides = np.concatenate([low[equal], high[up], -low[down]])
    answer = clarabel.DefaultSolver(quadratic, -problem.B.ravel(), a, sides, cones, chosen).solve()
    return answer.obj_val


@pytest.mark.parametrize("seed", range(12))
def test_equal_to_an_interior_point_of_others(seed):
    if seed % 2:
        problem = parent_of_halves(seed, children=9, cells=14, kinds=3, pairs=3)
    else:
        problem = small_parent(seed, children=12, cells=20)
    result = solve_l2(problem)
    assert (result.status.exact, result.gap <= 1e-4) == (True, True)
    assert objective(problem, result.x) == pytest.approx(least_by_clarabel(problem), rel=1e-6)


def test_singular_objectives_of_unequal_weights_are_solved_to_the_optimum():
    weights = np.array([0.01, 0.5, 2.0, 0.3])
    wanted = np.array([30.0, 2.0, 11.0, 7.0])
    p = np.array([20, 15, 25])
    problem = free_parent(
        weights[:, None, None] * np.ones((4, 3, 3)), (weights * wanted)[:, None] * np.ones(3), p
    )
    result = solve_l2(replace(problem, h_of=np.arange(4, dtype=np.int32)))
    assert result.status.exact
    rest = p.sum() - wanted.sum()
    np.testing.assert_allclose(result.x.sum(axis=1), wanted + rest / weights / (1 / weights).sum(), atol=1e-4)


# One level alone: the fit of a root is non-negative least squares, here by scipy's solver of another kind.


SHAPE = (3, 2, 4)


def labels() -> list[np.ndarray]:
    cell = np.arange(np.prod(SHAPE))
    kind, _, race = np.unravel_index(cell, SHAPE)
    return [np.zeros_like(cell), kind, race, kind * SHAPE[2] + race, cell]


@pytest.mark.parametrize("seed", range(6))
def test_a_level_alone_is_nonnegative_least_squares(seed: int) -> None:
    rng = np.random.default_rng(seed)
    truth = rng.poisson(0.8, np.prod(SHAPE))
    variances = rng.uniform(0.5, 40, 5)
    noisy = []
    for label, variance in zip(labels(), variances, strict=True):
        exact = np.bincount(label, weights=truth).astype(np.int64)
        noisy.append((exact + np.rint(rng.normal(0, variance**0.5, exact.shape)).astype(np.int64))[None])
    queries = [label.astype(np.int32) for label in labels()]
    h, _, b = LevelObjective.of(queries, variances, noisy).equations(0, 1, np.arange(truth.size))
    found = solve_l2(free_parent(h, b, None))
    rows = [
        (label == answer) / variance**0.5
        for label, variance in zip(labels(), variances, strict=True)
        for answer in range(label.max() + 1)
    ]
    sides = np.concatenate([one[0] / v**0.5 for one, v in zip(noisy, variances, strict=True)])
    expected, _ = nnls(np.array(rows, float), sides)
    assert found.status is L2Status.OK
    assert (expected == 0).any()  # so that the bounds are at work
    assert found.x[0] == pytest.approx(expected, abs=1e-7)


# The closed form of two cells with exact totals against the active set.


@pytest.mark.parametrize("seed", range(20))
def test_the_closed_form_is_the_optimum_of_the_active_set(seed):
    rng = np.random.default_rng(seed)
    children = int(rng.integers(2, 9))
    truth = rng.poisson(rng.choice([0.5, 4.0]), (children, 2))
    truth[0] += 1
    kinds = rng.integers(0, 2, children).astype(np.int32)
    weights = rng.uniform(0.2, 3.0, (2, 2))
    h = np.stack([np.eye(2) * one + other for one, other in weights])
    b = np.einsum("ckl,cl->ck", h[kinds], truth + rng.normal(0, 3, truth.shape))
    totals, rows = truth.sum(axis=1, keepdims=True).astype(float), np.ones((1, 2), np.uint8)
    allowed = np.repeat(totals > 0, 2, axis=1)
    problem = ParentProblem(h, b, truth.sum(axis=0), allowed, rows, totals, totals, h_of=kinds)
    x, p = np.empty((children, 2)), truth.sum(axis=0).astype(float)
    lo, hi = np.where(totals > 0, totals, -np.inf), np.where(totals > 0, totals, np.inf)
    equations, sides = (
        ParentEquations(h.copy(), kinds, b, p, True),
        sides_without_groups(allowed, rows, lo, hi),
    )
    made, violation, gap, good = fit_family(equations, sides, x)
    assert (made, good) == (1, True)
    assert violation <= 1e-9
    assert gap <= 1e-8
    assert np.allclose(solve_l2(problem).x, x, atol=1e-7)


def test_two_cells_of_another_kind_are_left_to_the_active_set():
    free, row, x = np.ones((2, 2), np.bool_), np.ones((1, 2), np.uint8), np.empty((2, 2))
    kinds, b, p = np.zeros(2, np.int32), np.ones((2, 2)), np.array([2.0, 2.0])
    nu, curvature = np.empty((2, 1)), np.empty(1)
    side = np.array([[1.0], [2.0]])
    regular, singular = np.eye(2)[None], np.ones((1, 2, 2))
    for h, upper in ((regular, side + 1), (singular, side)):
        equations = ParentEquations(h, kinds, b, p, True)
        assert not fit_two_cells(equations, sides_without_groups(free, row, side, upper), x, nu, curvature)


def test_nearest_totals_keep_bounds_and_the_sum():
    weight, out = np.array([1.0, 2.0, 1.0]), np.empty(3)
    measured = np.array([5.0, -3.0, 9.0])
    least, most = np.array([[0.0], [1.0], [0.0]]), np.array([[9.0], [9.0], [6.0]])
    assert share_total(weight, weight * measured, np.array([10.0]), least, most, out)
    assert out.tolist() == [3.0, 1.0, 6.0]


def test_totals_that_a_kind_cannot_meet_are_refused():
    weight, out = np.ones(3), np.empty(3)
    have, least = np.array([6.0, 4.0]), np.zeros((3, 2))
    most = np.array([[9.0, 0.0], [0.0, 9.0], [0.0, 9.0]])
    assert share_total(weight, np.array([6.0, 1.0, 3.0]), have, least, most, out)
    assert not share_total(weight, np.array([0.0, 5.0, 5.0]), have, least, most, out)
