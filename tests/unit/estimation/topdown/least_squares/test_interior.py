from dataclasses import replace

import numpy as np
import pytest

from censafe.estimation.topdown.least_squares import solve as l2
from censafe.estimation.topdown.least_squares.interior import interior_point
from censafe.estimation.topdown.least_squares.problem import L2Status
from censafe.estimation.topdown.least_squares.sides import tighten
from censafe.estimation.topdown.least_squares.solve import solve_l2
from support.parents import objective, parent_of_halves, small_parent

SHAPES = (
    lambda seed: small_parent(seed, children=4, cells=6),
    lambda seed: small_parent(seed, children=1, cells=6, root=True),
    lambda seed: parent_of_halves(seed, children=4, cells=5),
)


@pytest.mark.parametrize("seed", range(9))
def test_comes_to_the_exact_point(seed):
    problem = SHAPES[seed % 3](seed)
    point = interior_point(problem, problem.H, tighten(problem))
    exact = solve_l2(problem)
    assert point.x == pytest.approx(exact.x, abs=1e-5)
    assert objective(problem, point.x) == pytest.approx(objective(problem, exact.x), abs=1e-5)
    assert np.array_equal(point.free & (exact.x > 1e-4), exact.x > 1e-4)


def failing_first(monkeypatch, failures):
    """Let the first runs of the active set end without a point."""
    run, calls = l2._run, []

    def failing(setting, status):
        calls.append(status)
        return None if len(calls) <= failures else run(setting, status)

    monkeypatch.setattr(l2, "_run", failing)
    return small_parent(3, children=4, cells=6)


def test_the_active_set_finishes_from_its_state(monkeypatch):
    exact = solve_l2(small_parent(3, children=4, cells=6)).x
    result = solve_l2(failing_first(monkeypatch, 1))
    assert (result.status, result.x) == (L2Status.OK_AFTER_INTERIOR, pytest.approx(exact, abs=1e-9))


def test_its_own_point_is_certified_or_called_approximate(monkeypatch):
    result = solve_l2(failing_first(monkeypatch, 2))
    assert (result.status, result.gap <= 1e-4, result.violation <= 1e-6) == (
        L2Status.OK_AFTER_INTERIOR,
        True,
        True,
    )
    monkeypatch.setattr(l2, "GAP_TOLERANCE", -1.0)
    result = solve_l2(failing_first(monkeypatch, 2))
    assert (result.status, result.status.exact) == (L2Status.APPROXIMATE, False)


def nearly_empty_blocks(seed):
    """Many near-empty children whose totals may move by a tenth of a person."""
    rng = np.random.default_rng(seed)
    children, cells = 30, 20
    truth = rng.poisson(0.15, (children, cells)) * (rng.random((children, 1)) < 0.6)
    truth[0] += 1
    a = np.ones((1, cells))
    y = truth + np.rint(rng.normal(0, 1.5, truth.shape))
    h = np.eye(cells) + 0.02 * a.T @ a
    problem = small_parent(0, children=children, cells=cells, rows=False, masks=False)
    b = y + 0.02 * (truth.sum(axis=1, keepdims=True) + np.rint(rng.normal(0, 7, (children, 1)))) * a
    problem = replace(problem, H=h, B=b, h_of=problem.h_of, p=truth.sum(axis=0))
    totals = solve_l2(problem).x.sum(axis=1, keepdims=True)
    sides = np.maximum(totals - 0.1, 0.0), totals + 0.1
    return replace(
        problem, B=b + rng.normal(0, 1, b.shape), rows=np.ones((1, cells), np.uint8), lo=sides[0], hi=sides[1]
    )


@pytest.mark.parametrize("seed", range(6))
def test_crowded_intervals_of_totals_are_solved_with_a_certificate(seed):
    result = solve_l2(nearly_empty_blocks(seed))
    assert result.status.exact
    assert (result.gap <= 1e-4, result.violation <= 1e-6) == (True, True)


def root_of_millions(seed):
    """A root like a nation's: cells from none to 200 million persons, noise of a few, the total fixed."""
    rng = np.random.default_rng(seed)
    cells = 120
    truth = np.floor(10 ** rng.uniform(-1, 8.3, cells)).astype(np.int64)
    h, b = np.zeros((cells, cells)), np.zeros((1, cells))
    for label, weight in (
        (np.zeros(cells, int), 40.0),
        (np.arange(cells) // 10, 3.0),
        (np.arange(cells) % 2, 5.0),
        (np.arange(cells), 0.2),
    ):
        a = np.zeros((label.max() + 1, cells))
        a[label, np.arange(cells)] = 1
        h += weight * a.T @ a
        b += weight * (truth @ a.T + np.rint(rng.normal(0, weight**-0.5, len(a)))) @ a
    total = np.full((1, 1), float(truth.sum()))
    given = small_parent(seed, children=1, cells=4, root=True, rows=False, masks=False)
    return replace(
        given,
        H=h,
        B=b,
        allowed=np.ones((1, cells), bool),
        rows=np.ones((1, cells), np.uint8),
        lo=total,
        hi=total,
    )


@pytest.mark.parametrize("seed", range(3))
def test_a_root_of_millions_does_not_go_round_in_circles(seed):
    problem = root_of_millions(seed)
    result = solve_l2(problem)
    assert (result.status, result.iterations < 60, result.gap <= 1e-4) == (L2Status.OK, True, True)
    assert result.x.sum() == pytest.approx(problem.lo[0, 0], rel=1e-12)
