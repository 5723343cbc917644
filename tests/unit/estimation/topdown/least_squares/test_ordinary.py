import numpy as np
import pytest

from censafe.estimation.topdown.least_squares.active_set import find_changes
from censafe.estimation.topdown.least_squares.ordinary import climb_dual, fit_family
from censafe.estimation.topdown.least_squares.problem import ParentProblem
from censafe.estimation.topdown.least_squares.solve import solve_l2
from censafe.estimation.topdown.least_squares.structures import (
    Changes,
    ParentEquations,
    PrimalDual,
    SignState,
    Tolerances,
    sides_without_groups,
)

KINDS = np.repeat(np.eye(4, dtype=np.uint8), 3, axis=1)  # twelve cells of four kinds


def crowded(seed, children=14):
    """A parent with hardly more records of most kinds than its children must have."""
    rng = np.random.default_rng(seed)
    truth = rng.poisson(0.3, (children, 12))
    lo = np.minimum(truth @ KINDS.T, rng.integers(0, 2, (children, 4))).astype(float)
    hi = lo + rng.integers(1, 9, lo.shape) * (truth @ KINDS.T > lo)
    hi = np.maximum(hi, truth @ KINDS.T)
    labels = np.arange(12)
    h = np.eye(12) * 0.2 + (labels[:, None] // 3 == labels // 3) * 0.5 + 0.1
    b = (truth + rng.normal(0, 3, truth.shape)) @ h
    allowed = (hi @ KINDS) > 0
    return h, b, truth.sum(axis=0), allowed, lo, hi


def equations_of(h, b, p):
    return ParentEquations(h[None], np.zeros(len(b), np.int32), b, p.astype(float), True)


def climb(h, b, p, allowed, lower, upper):
    """Steps of the climb from no multipliers, and its point."""
    active = np.where(lower == upper, 2, 0).astype(np.int8)
    point = PrimalDual(np.empty(b.shape), np.zeros(12), np.zeros(lower.shape), np.empty(b.shape))
    sides = sides_without_groups(allowed, KINDS, lower, upper)
    state = SignState(allowed.copy(), active)
    return climb_dual(equations_of(h, b, p), sides, state, point, Tolerances(1e-8, 1e-8)), point.x


def climbed(seed):
    h, b, p, allowed, lo, hi = crowded(seed)
    lower, upper = np.where(hi > 0, lo, -np.inf), np.where(hi > 0, hi, np.inf)
    steps, x = climb(h, b, p, allowed, lower, upper)
    return steps, x, (h, b, p, allowed, lo, hi)


def objective(h, b, x):
    return 0.5 * np.einsum("ck,kl,cl->", x, h, x) - (b * x).sum()


@pytest.mark.parametrize("seed", range(12))
def test_the_climb_ends_at_the_optimum(seed):
    steps, x, (h, b, p, allowed, lo, hi) = climbed(seed)
    best = solve_l2(ParentProblem(h, b, p, allowed, KINDS, lo, hi))
    assert best.status.exact
    assert steps > 0
    assert np.abs(x.sum(axis=0) - p).max() < 1e-8
    assert objective(h, b, np.maximum(x, 0)) == pytest.approx(objective(h, b, best.x), abs=1e-6)


@pytest.mark.parametrize("seed", range(12))
def test_ordinary_parents_stay_in_the_kernels(seed):
    h, b, p, allowed, lo, hi = crowded(seed, children=40)
    lower, upper = np.where(hi > 0, lo, -np.inf), np.where(hi > 0, hi, np.inf)
    x = np.empty(b.shape)
    sides = sides_without_groups(allowed, KINDS, lower, upper)
    _, violation, gap, good = fit_family(equations_of(h, b, p), sides, x)
    assert (good, violation < 1e-9, gap < 1e-9) == (True, True, True)


def test_no_point_is_not_reached():
    h, b, p, allowed, lo, hi = crowded(0)
    steps, _ = climb(h, b, p + 100.0, allowed, lo, np.minimum(hi, 3.0))
    assert steps < 0


@pytest.mark.parametrize(
    ("total", "state", "expected"), [(5.0, 1, 0), (9.0, 1, 9), (5.0, -1, 0), (1.0, -1, 9)]
)
def test_a_side_that_other_rows_imply_is_released_unless_it_is_met(total, state, expected):
    """The total holds the only cells of a kind, so that the kind's own row is left out and has no multiplier."""
    free = np.ones((1, 2), np.bool_)
    sides = sides_without_groups(
        free, np.ones((2, 2), np.uint8), np.array([[total, 1.0]]), np.array([[total, 9.0]])
    )
    state = SignState(free, np.array([[2, state]], np.int8))
    point = PrimalDual(np.full((1, 2), total / 2), np.zeros(2), np.array([[-3.0, 0.0]]), np.zeros((1, 2)))
    found = Changes(np.zeros((1, 2), np.bool_), np.zeros((1, 2), np.int8))
    changes = find_changes(sides, state, point, Tolerances(1e-8, 1e-8), found, 0)
    assert (expected, int(expected == 0)) == (found.move[0, 1], changes)


@pytest.mark.parametrize("seed", range(4))
def test_parents_whose_children_have_one_kind_alone_are_climbed(seed):
    rng = np.random.default_rng(seed)
    children, cells = 60, 12
    kinds = np.vstack([np.ones(cells, np.uint8), KINDS])
    home = rng.random(children) < 0.5  # these hold records of the first kind only
    truth = rng.poisson(2.0, (children, cells))
    truth[home, 3:] = 0
    totals = truth.sum(axis=1)
    lo = np.column_stack([totals, (truth @ KINDS.T > 0).astype(float)])
    hi = np.column_stack([totals, np.where(truth @ KINDS.T > 0, totals[:, None] + 3.0, 0.0)])
    h = np.eye(cells) * 0.2 + 0.1
    b = (truth + rng.normal(0, 8, truth.shape)) @ h
    allowed = (hi[:, 1:] @ KINDS) > 0
    lower, upper = np.where(hi > 0, lo, -np.inf), np.where(hi > 0, hi, np.inf)
    x = np.empty(b.shape)
    sides = sides_without_groups(allowed, kinds, lower, upper)
    _, violation, gap, good = fit_family(equations_of(h, b, truth.sum(axis=0)), sides, x)
    best = solve_l2(
        ParentProblem(h, b, truth.sum(axis=0), allowed, kinds, lo.astype(float), hi.astype(float))
    )
    assert (good, violation < 1e-8, gap < 1e-6) == (True, True, True)
    assert objective(h, b, x) == pytest.approx(objective(h, b, best.x), rel=1e-9)
