"""Integers keep what is exact, cost no more than the best ones, and failures are counted."""

from itertools import product

import numpy as np
import pytest

from censafe.estimation.topdown import rounding_cost
from censafe.estimation.topdown.operator.rounding import round_pass
from support.operator_problems import climbed, small_pass


def rounded(given, chain, x=None):
    """Integers of the open columns, their fractional point, the columns that are open, the cost and the failures."""
    problem = given.problem()
    end = climbed(problem).dual if x is None else None
    point = end.x if end is not None else x
    counts = np.zeros((len(given.right), len(problem.free)), np.int64)
    links = np.ascontiguousarray([link[problem.free] for link in chain], np.int32).reshape(
        len(chain), len(problem.free)
    )
    cost, failed = round_pass(
        problem.entries,
        point,
        problem.held,
        problem.right,
        problem.sums.column.astype(np.int64),
        links,
        counts,
    )
    full = np.zeros(counts.shape)
    full[problem.entries.child, problem.entries.column] = point
    return counts, full, problem, cost, failed


def chain_of(given):
    """Two links inside the exact sums."""
    k = np.arange(len(given.held))
    coarse = given.held * 2 + (k // 4) % 2
    return (coarse.astype(np.int32), (coarse * 2 + (k // 2) % 2).astype(np.int32))


@pytest.mark.parametrize("links", [0, 1, 2])
@pytest.mark.parametrize("root", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_integers_keep_exact_sums_columns_and_signs(seed, root, links):
    given = small_pass(
        seed, children=1 if root else 7, columns=24, sums=4, root=root, noise=5.0, mean=0.8, masks=False
    )
    counts, x, problem, _, failed = rounded(given, chain_of(given)[:links])
    assert (failed, counts.min(initial=0)) == (0, 0)
    whole = problem.fixed.copy()
    whole[:, problem.free] = counts
    have = np.stack([whole[:, given.held == g].sum(axis=1) for g in range(4)], axis=1)
    assert np.array_equal(have, given.right)
    if not root:
        assert np.array_equal(whole.sum(axis=0), given.column)
    assert not whole[~given.allowed].any()
    assert np.abs(counts - x).max(initial=0) < 1 + 1e-6


@pytest.mark.parametrize("seed", range(5))
def test_masks_are_kept(seed):
    given = small_pass(seed, children=4, columns=8, sums=2, masks=True, noise=4.0)
    counts, _, problem, _, failed = rounded(given, ())
    assert failed == 0
    assert not counts[~given.allowed[:, problem.free]].any()
    assert np.array_equal(counts.sum(axis=0), given.column[problem.free])


def least_cost(x, right, column, chain):
    """Least cost of one exact sum over all units on fractional entries, by trying them all."""
    whole = np.floor(x + 1e-6)
    places = np.flatnonzero((x - whole).ravel() > 1e-6)
    best = np.inf
    for units in product((0, 1), repeat=len(places)):
        up = np.zeros(x.size)
        up[places] = units
        counts = whole + up.reshape(x.shape)
        if (counts.sum(axis=1) == right).all() and (len(column) == 0 or (counts.sum(axis=0) == column).all()):
            best = min(best, rounding_cost(x, counts, chain))
    return best


@pytest.mark.parametrize("links", [0, 1, 2])
@pytest.mark.parametrize("root", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_cost_is_that_of_the_best_integers(seed, root, links):
    given = small_pass(
        seed, children=1 if root else 2, columns=14 if root else 8, sums=2, root=root, noise=3.0, mean=1.0
    )
    chain = chain_of(given)[:links]
    _, x, problem, cost, _ = rounded(given, chain)
    best = 0.0
    for g in np.unique(problem.held):
        member = np.flatnonzero(problem.held == g)
        own = np.flatnonzero(problem.right[:, g] > 0)
        labels = tuple(np.unique(link[problem.free[member]], return_inverse=True)[1] for link in chain)
        column = problem.sums.column[member] if not root else np.zeros(0)
        best += least_cost(
            x[np.ix_(own, member)],
            problem.right[own, g],
            column,
            tuple(label.astype(np.int32) for label in labels),
        )
    assert cost == pytest.approx(best, abs=1e-4)


def test_integers_come_back_unchanged():
    given = small_pass(2, children=4, columns=10, sums=2)
    problem = given.problem()
    x = given.truth[problem.entries.child, problem.free[problem.entries.column]].astype(float)
    counts, _, _, cost, failed = rounded(given, (), x)
    assert (cost, failed) == (0.0, 0)
    assert np.array_equal(counts, given.truth[:, problem.free] - problem.fixed[:, problem.free])


@pytest.mark.parametrize("root", [False, True])
@pytest.mark.parametrize("factor", [0.0, 0.3, 4.0])
def test_points_that_are_far_off_are_failures_or_still_meet_everything(factor, root):
    given = small_pass(2, children=1 if root else 4, columns=10, sums=2, root=root, mean=5.0)
    problem = given.problem()
    x = factor * given.truth[problem.entries.child, problem.free[problem.entries.column]]
    counts, _, _, _, failed = rounded(given, (), x)
    right = np.stack([counts[:, problem.held == g].sum(axis=1) for g in np.unique(problem.held)], axis=1)
    assert (failed == 0) == np.array_equal(right, problem.right[:, np.unique(problem.held)])


def test_an_exact_sum_that_masks_forbid_is_counted():
    given = small_pass(2, children=3, columns=6, sums=2, masks=True, mean=4.0)
    given.possible[0, given.held == 0] = False
    given.possible[0, np.flatnonzero(given.held == 0)[0]] = True
    given.right[0, 0] += 50
    assert rounded(given, ())[4] > 0
