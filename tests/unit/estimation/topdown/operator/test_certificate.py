"""The gap bounds the distance to the optimum at any multipliers, and shows defects that are planted."""

import numpy as np
import pytest

from censafe.estimation.topdown.operator.certificate import judge
from censafe.estimation.topdown.operator.newton import climb, evaluate
from support.operator_problems import climbed, optimum, small_pass, start, value


def medium(seed):
    return small_pass(seed, children=5, columns=24, sums=3, crossing=3, noise=4.0, mean=0.8)


def feasible_value(problem, dual):
    """Least value under the exact sums that the point has, and what these miss."""
    exact = problem.sums.weight == 0.0
    right = problem.sums.right - np.where(exact, dual.missed_row, 0.0)
    return optimum(problem, right, problem.sums.column - dual.missed_column)[0]


@pytest.mark.parametrize("tolerance", [10.0, 1.0, 0.1, 1e-3])
@pytest.mark.parametrize("seed", range(3))
def test_gap_of_a_climb_that_stopped_early(seed, tolerance):
    problem = medium(seed).problem()
    found = climbed(problem, tolerance)
    assert found.violation <= found.missed <= tolerance
    at_point = value(problem, found.dual.x)
    assert at_point - optimum(problem)[0] <= found.gap + 1e-7
    assert -1e-7 <= at_point - feasible_value(problem, found.dual) <= found.gap + 1e-7


@pytest.mark.parametrize("size", [1e-6, 1e-3, 0.1, 3.0])
@pytest.mark.parametrize("seed", range(3))
def test_gap_of_perturbed_multipliers(seed, size):
    problem = medium(seed).problem()
    dual, rng = climbed(problem).dual, np.random.default_rng(seed)
    dual.row[:] += rng.normal(0, size, len(dual.row))
    dual.column[:] += rng.normal(0, size, len(dual.column))
    evaluate(problem.entries, problem.sums, dual)
    violation, gap = judge(problem.sums, dual)
    at_point = value(problem, dual.x)
    exact = problem.sums.weight == 0.0
    missed = np.abs(np.concatenate([dual.missed_row[exact], dual.missed_column])).max()
    assert violation == pytest.approx(missed)
    assert at_point - optimum(problem)[0] <= gap + 1e-7
    assert -1e-7 <= at_point - feasible_value(problem, dual) <= gap + 1e-7


@pytest.mark.parametrize("seed", range(3))
def test_the_gap_closes_at_the_optimum(seed):
    found = climbed(medium(seed).problem())
    assert (found.violation <= 1e-9, found.gap <= 1e-7) == (True, True)


@pytest.mark.parametrize("seed", range(3))
def test_multipliers_of_a_wrong_weight_are_seen(seed):
    right = medium(seed).problem()
    wrong = right.sums._replace(weight=right.sums.weight.copy())
    wrong.weight[np.flatnonzero(wrong.weight)[0]] *= 1.5
    dual = start(right)
    climb(right.entries, wrong, dual, 1e-9)
    assert judge(wrong, dual)[1] < 1e-7
    evaluate(right.entries, right.sums, dual)
    gap = judge(right.sums, dual)[1]
    assert gap > 1e-4
    assert value(right, dual.x) - optimum(right)[0] <= gap + 1e-7


@pytest.mark.parametrize("seed", range(3))
def test_a_dropped_row_is_seen(seed):
    right = medium(seed).problem()
    label = right.sums.label.copy()
    label[0][label[0] == label[0].max()] = -1  # the last exact sum
    wrong = right.sums._replace(label=label, right=right.sums.right.copy())
    last = np.arange(5) * wrong.size[0] + wrong.size[0] - 1
    wrong.right[last] = 0.0
    dual = start(right)
    _, _, missed = climb(right.entries, wrong, dual, 1e-9)
    assert missed <= 1e-9
    evaluate(right.entries, right.sums, dual)
    assert judge(right.sums, dual)[0] > 1e-3
