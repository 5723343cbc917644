"""The closed form of two cells with exact totals against the active set."""

import numpy as np
import pytest

from censafe.estimation.topdown.least_squares.ordinary import fit_family
from censafe.estimation.topdown.least_squares.problem import ParentProblem
from censafe.estimation.topdown.least_squares.solve import solve_l2
from censafe.estimation.topdown.least_squares.start import fit_two_cells, share_total
from censafe.estimation.topdown.least_squares.structures import ParentEquations, sides_without_groups


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
