from itertools import product

import numpy as np
import pytest

from censafe.errors import CheckError
from censafe.estimation.topdown.least_squares.problem import ParentProblem
from censafe.estimation.topdown.rounding.controlled import _integral, round_parent, round_point
from censafe.model.programs import Program
from support.rounding import rounding_cost

TREE = (np.array([0, 0, 1, 1], np.int32),)
CROSSING = np.array([[0, 1, 1, 0], [1, 1, 1, 0]], np.uint8)


def crossing_parent(seed, *, width=0.0):
    """A fractional point of two children whose crossing rows hold whole numbers."""
    rng = np.random.default_rng(seed)
    whole = rng.integers(0, 4, (3, 4)).astype(float)
    x, pair = whole.copy(), rng.uniform(0.1, 0.9, 2)
    x[0] += np.array([0, pair[0], -pair[0], 0]) * (whole[0, 2] > 0)
    x[1] -= np.array([0, pair[0], -pair[0], 0]) * (whole[0, 2] > 0)
    x += np.array([[pair[1]], [-pair[1]], [0]]) * np.array([1, 0, 0, 1]) * (whole[1, [0, 3]].min() > 0)
    x = np.abs(x)
    have = np.rint(x @ CROSSING.T)
    lo, hi = np.floor(x @ CROSSING.T - width + 1e-9), np.ceil(x @ CROSSING.T + width - 1e-9)
    assert (lo <= have).all()
    return x, ParentProblem(
        np.eye(4), x, np.rint(x.sum(axis=0)).astype(np.int64), np.ones((3, 4), bool), CROSSING, lo, hi
    )


def least_cost(x, problem):
    """By trying all ways to round the fractional entries."""
    whole = np.floor(x + 1e-6)
    leaf = np.argwhere(x - whole > 1e-6)
    best = np.inf
    for chosen in product((0, 1), repeat=len(leaf)):
        counts = whole.copy()
        counts[tuple(leaf.T)] += chosen
        totals = counts @ problem.rows.T
        if (
            (counts.sum(axis=0) == problem.p).all()
            and (totals >= problem.lo).all()
            and (totals <= problem.hi).all()
        ):
            best = min(best, rounding_cost(x, counts.astype(np.int64), TREE))
    return best


@pytest.mark.parametrize("seed", range(12))
def test_cost_equal_to_trying_all_roundings(seed):
    x, problem = crossing_parent(seed)
    found = round_point(x, problem, TREE)
    totals = found.counts @ problem.rows.T
    assert ((totals >= problem.lo) & (totals <= problem.hi)).all()
    assert np.array_equal(found.counts.sum(axis=0), problem.p)
    if found.method == "linear program":
        assert rounding_cost(x, found.counts, TREE) == pytest.approx(least_cost(x, problem), abs=1e-6)


def test_the_flow_is_kept_where_it_meets_all_rows():
    x, problem = crossing_parent(0, width=9.0)
    found = round_point(x, problem, TREE)
    assert (found.method, np.array_equal(found.counts, round_parent(x, problem, TREE))) == ("flow", True)


def odd_cycle():
    """Three cells that pairwise must hold exactly one: a half each is the only fractional way."""
    pairs = np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1]], np.uint8)
    x = np.full((2, 3), 0.5)
    return x, ParentProblem(
        np.eye(3), x, np.ones(3, np.int64), np.ones((2, 3), bool), pairs, np.ones((2, 3)), np.ones((2, 3))
    )


def test_sides_that_no_integers_meet_are_refused():
    with pytest.raises(CheckError, match="no integers next to the fractional point"):
        round_point(*odd_cycle(), ())


def test_a_fractional_vertex_goes_to_the_mixed_integer_program():
    pairs = np.array([[1.0, 1, 0], [0, 1, 1], [1, 0, 1]])
    most_of_pairs = Program(-np.ones(3), pairs, np.zeros(3), np.ones(3), 0.0, np.ones(3), False)
    units, method = _integral(most_of_pairs, 3)
    assert (int(units.sum()), method) == (1, "mixed-integer program")


def test_totals_first_keeps_them_nearest():
    x = np.array([[0.6, 0.6, 0.6, 0.7], [0.4, 0.4, 0.4, 0.3]])
    rows = np.array([[0, 1, 1, 0]], np.uint8)
    problem = ParentProblem(
        np.eye(4),
        x,
        np.ones(4, np.int64),
        np.ones((2, 4), bool),
        rows,
        np.array([[1.0], [1.0]]),
        np.array([[1.0], [1.0]]),
    )
    found = round_point(x, problem, TREE, total_first=True)
    assert (found.method, found.counts.sum(axis=1).tolist()) == ("linear program", [2, 2])
    assert found.counts[:, 1:3].sum(axis=1).tolist() == [1, 1]
