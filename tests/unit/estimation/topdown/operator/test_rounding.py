"""Integers keep what is exact, cost no more than the best ones, and failures are counted.

Exchanges keep everything that rounding keeps, lower the squares, and stop where no exchange helps.
"""

from itertools import product

import numpy as np
import pytest

from censafe.estimation.topdown.operator.rounding import exchange_units, round_pass
from support.operator_problems import climbed, small_pass
from support.rounding import rounding_cost


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
        problem.group,
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
    k = np.arange(len(given.group))
    coarse = given.group * 2 + (k // 4) % 2
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
    have = np.stack([whole[:, given.group == g].sum(axis=1) for g in range(4)], axis=1)
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
    for g in np.unique(problem.group):
        member = np.flatnonzero(problem.group == g)
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
    right = np.stack([counts[:, problem.group == g].sum(axis=1) for g in np.unique(problem.group)], axis=1)
    assert (failed == 0) == np.array_equal(right, problem.right[:, np.unique(problem.group)])


def test_an_exact_sum_that_masks_forbid_is_counted():
    given = small_pass(2, children=3, columns=6, sums=2, masks=True, mean=4.0)
    given.possible[0, given.group == 0] = False
    given.possible[0, np.flatnonzero(given.group == 0)[0]] = True
    given.right[0, 0] += 50
    assert rounded(given, ())[4] > 0


LEAST_GAIN = 0.02


class Rounded:
    """A pass that is rounded, with what its answers about several exact sums have gathered."""

    def __init__(self, given):
        self.problem = given.problem()
        problem, shape = self.problem, (len(given.right), 0)
        self.x = climbed(problem).dual.x
        self.counts = np.zeros((shape[0], len(problem.free)), np.int64)
        chain = np.zeros((0, len(problem.free)), np.int32)
        column = problem.sums.column.astype(np.int64)
        _, failed = round_pass(
            problem.entries, self.x, problem.group, problem.right, column, chain, self.counts
        )
        assert failed == 0
        self.point = np.zeros(self.counts.shape)
        self.point[problem.entries.child, problem.entries.column] = self.x
        self.families = [
            family
            for family in range(1, len(problem.sums.size))
            if any(
                len(np.unique(problem.group[problem.sums.label[family] == a])) > 1
                for a in range(problem.sums.size[family])
            )
        ]

    def squares(self, counts):
        """Weighted squares of what rounding has added to the answers about several exact sums."""
        sums, found = self.problem.sums, 0.0
        for family in self.families:
            for a in range(sums.size[family]):
                error = (counts - self.point)[:, sums.label[family] == a].sum(axis=1)
                rows = sums.first[family] + np.arange(len(counts)) * sums.size[family] + a
                found += float(self.problem.scale * sums.weight[rows] @ error**2)
        return found

    def exchanged(self):
        problem, counts = self.problem, self.counts.copy()
        made = exchange_units(problem.entries, self.x, problem.group, problem.sums, problem.scale, counts)
        return counts, made

    def neighbors(self, counts):
        """All counts one exchange away, between columns that share none of the answers."""
        group, coupled = self.problem.group, len(self.problem.sums.column) > 0
        labels = self.problem.sums.label
        up = (counts > self.point + 1e-6) & (counts < self.point + 1 - 1e-6)
        down = (counts < self.point - 1e-6) & (counts > self.point - 1 + 1e-6)
        children, columns = counts.shape
        others = range(children) if coupled else [None]
        for child, other, give, take in product(range(children), others, range(columns), range(columns)):
            if group[give] != group[take] or not (up[child, give] and down[child, take]) or child == other:
                continue
            if any(labels[family, give] == labels[family, take] >= 0 for family in self.families):
                continue
            if other is not None and not (down[other, give] and up[other, take]):
                continue
            moved = counts.copy()
            moved[child, [give, take]] += [-1, 1]
            if other is not None:
                moved[other, [give, take]] += [1, -1]
            yield moved


def given_pass(seed, root):
    return small_pass(
        seed, children=1 if root else 6, columns=30, sums=4, crossing=3, root=root, noise=5.0, mean=1.0
    )


@pytest.mark.parametrize("root", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_exact_sums_columns_and_neighboring_integers_stay(seed, root):
    rounded = Rounded(given_pass(seed, root))
    counts, _ = rounded.exchanged()
    group = rounded.problem.group
    for g in np.unique(group):
        assert np.array_equal(counts[:, group == g].sum(axis=1), rounded.counts[:, group == g].sum(axis=1))
    if not root:
        assert np.array_equal(counts.sum(axis=0), rounded.counts.sum(axis=0))
    assert counts.min() >= 0
    assert (counts >= np.floor(rounded.point + 1e-6)).all()
    assert (counts <= np.ceil(rounded.point - 1e-6)).all()


@pytest.mark.parametrize("root", [False, True])
def test_squares_fall_by_the_least_amount_at_every_exchange(root):
    made = 0
    for seed in range(8):
        rounded = Rounded(given_pass(seed, root))
        counts, exchanges = rounded.exchanged()
        assert rounded.squares(counts) <= rounded.squares(rounded.counts) - LEAST_GAIN * exchanges + 1e-9
        made += exchanges
    assert made > 5


@pytest.mark.parametrize("root", [False, True])
def test_in_the_end_no_exchange_between_columns_without_a_common_answer_helps(root):
    tried = 0
    for seed in range(4):
        rounded = Rounded(given_pass(seed, root))
        counts, _ = rounded.exchanged()
        now = rounded.squares(counts)
        for moved in rounded.neighbors(counts):
            assert rounded.squares(moved) > now - LEAST_GAIN - 1e-9
            tried += 1
    assert tried > 10


def test_answers_inside_exact_sums_are_left_to_the_chain():
    given = small_pass(3, children=1, columns=30, sums=4, crossing=0, root=True, noise=5.0, mean=1.0)
    given.observed.pop()  # the one that is not measured lies across exact sums
    rounded = Rounded(given)
    counts, made = rounded.exchanged()
    assert (made, rounded.families) == (0, [])
    assert np.array_equal(counts, rounded.counts)


def test_noise_that_is_large_beside_a_unit_leaves_everything():
    given = given_pass(1, root=True)
    for query in given.observed:
        query.weight[:] *= 1e-6
    rounded = Rounded(given)
    assert rounded.squares(rounded.counts) > 0
    assert rounded.exchanged()[1] == 0
