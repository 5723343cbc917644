"""One parent at a time, with the edges of what a parent can be.

The gap bounds the distance to the optimum at any multipliers, and shows defects that are planted.
"""

from dataclasses import replace

import numpy as np
import pytest

from censafe.errors import CheckError
from censafe.estimation.topdown.operator import parent
from censafe.estimation.topdown.operator.newton import climb, evaluate
from censafe.estimation.topdown.operator.parent import (
    FurtherAnswers,
    OperatorFamily,
    answer_weights,
    estimate_operator_parent,
    judge,
    with_query,
)
from censafe.estimation.topdown.operator.passes import OperatorPass, OperatorRules
from censafe.model import SparseLevel
from support.operator_problems import climbed, optimum, small_pass, start, value

CELL = np.arange(8, dtype=np.int32)
PAIR, FOUR, ALL = CELL // 2, CELL // 4, CELL * 0
LABELS = (CELL, PAIR, CELL % 2, ALL)
RULES = OperatorRules(
    np.ones(8, bool), (OperatorPass(PAIR, (1, 3), FOUR), OperatorPass(CELL, (0, 2), PAIR)), LABELS
)


def family(truth, *, rules=RULES, root=False, noise=0.0, seed=0):
    """A parent with the cells that its children have, and noisy answers."""
    truth, rng = np.asarray(truth, np.int64), np.random.default_rng(seed)
    cell = np.flatnonzero(truth.sum(axis=0)) if not root else CELL
    groups = np.unique(rules.passes[0].group[np.flatnonzero(truth.sum(axis=0))]).astype(np.int64)
    right = np.stack([truth[:, rules.passes[0].group == g].sum(axis=1) for g in groups], axis=1)
    answers = {q: np.unique(LABELS[q][cell]).astype(np.int64) for q in rules.queries}
    values = {
        q: np.stack([truth[:, LABELS[q] == one].sum(axis=1) for one in answers[q]], axis=1)
        + np.rint(rng.normal(0, noise, (len(truth), len(answers[q])))).astype(np.int64)
        for q in rules.queries
    }
    return OperatorFamily(
        "County 1", cell.astype(np.int32), None if root else truth.sum(axis=0)[cell], groups, right, None,
        answers, values, np.ones((len(truth), 4)),
    )  # fmt: skip


def check(given, truth, found):
    counts, (estimate, result) = np.zeros((len(truth), 8), np.int64), found
    counts[:, given.cell] = estimate
    for g in (0, 1):
        assert (
            counts[:, g == FOUR].sum(axis=1).tolist() == np.asarray(truth)[:, g == FOUR].sum(axis=1).tolist()
        )
    if given.count is not None:
        assert counts.sum(axis=0).tolist() == np.asarray(truth).sum(axis=0).tolist()
    assert (counts.min(), result.uncertified) == (0, 0)
    return counts


@pytest.mark.parametrize(
    "truth",
    [
        [[3, 0, 2, 1, 0, 0, 4, 1], [1, 1, 0, 2, 5, 0, 0, 1], [0, 2, 2, 0, 1, 1, 1, 0]],
        [[3, 0, 2, 1, 0, 0, 0, 0], [1, 1, 0, 2, 0, 0, 0, 0]],  # all cells in one exact sum
        [[3, 0, 2, 1, 0, 0, 0, 0], [0, 0, 0, 0, 5, 0, 0, 1]],  # each child in its own exact sum
        [[3, 0, 2, 1, 0, 2, 4, 0], [0] * 8, [1, 0, 0, 1, 2, 2, 2, 0]],  # a child without records
        [[3, 0, 2, 1, 0, 2, 4, 0]],  # an only child
        [[0, 0, 0, 1, 0, 0, 0, 0], [0, 0, 0, 2, 0, 0, 0, 0]],  # one cell
    ],
)
def test_exact_sums_hold_and_exact_answers_come_back(truth):
    given = family(truth)
    assert check(given, truth, estimate_operator_parent(RULES, given)).tolist() == truth
    for seed in range(3):
        given = family(truth, noise=5.0, seed=seed)
        check(given, truth, estimate_operator_parent(RULES, given))


def test_a_root_finds_its_cells():
    truth = [[3, 0, 2, 1, 0, 2, 4, 0]]
    given = family(truth, root=True)
    assert check(given, truth, estimate_operator_parent(RULES, given)).tolist() == truth


def test_what_is_decided_needs_no_fit():
    truth = [[3, 0, 2, 1, 0, 0, 0, 0], [0, 0, 0, 0, 5, 0, 0, 1]]
    counts, found = estimate_operator_parent(RULES, family(truth, noise=9.0))
    assert (found.steps, found.entries, counts.tolist()) == (0, 0, [[3, 2, 1, 0, 0], [0, 0, 0, 5, 1]])


def test_the_report_of_a_parent():
    truth = np.random.default_rng(0).poisson(3, (4, 8))
    _, found = estimate_operator_parent(RULES, family(truth, noise=4.0))
    assert found.steps > 0
    assert found.entries == 32
    assert (found.violation <= 1e-7, found.gap <= 1e-6, found.cost > 0) == (True, True, True)


def test_children_that_do_not_add_up_to_their_parent_are_refused():
    given = family([[3, 0, 2, 1, 0, 0, 4, 1], [1, 1, 0, 2, 5, 0, 0, 1]])
    more = given.count.copy()
    more[0] += 1
    other = more.copy()
    other[-1] -= 1  # as many in all, in other exact sums
    for count in (more, other):
        with pytest.raises(CheckError, match="County 1: the exact sums of its children do not add up"):
            estimate_operator_parent(RULES, replace(given, count=count))


def test_a_parent_that_stopped_before_its_tolerance_is_not_certified(monkeypatch):
    """Whether sums are missed at a small gap, or the gap is large where they are met."""
    given = family(np.random.default_rng(0).poisson(3, (4, 8)), noise=4.0)
    passes = len(RULES.passes)
    for missed, gap, expected in ((0.0, 0.0, 0), (1.0, 0.0, passes), (0.0, 1.0, passes), (1.0, 1.0, passes)):
        monkeypatch.setattr(parent, "judge", lambda sums, dual, gap=gap: (0.0, gap))
        monkeypatch.setattr(parent, "climb", lambda *more, missed=missed: (*climb(*more)[:2], missed))
        assert estimate_operator_parent(RULES, given)[1].uncertified == expected


def test_records_without_a_cell_are_refused_at_a_root():
    given = family([[3, 0, 2, 1, 0, 2, 4, 0]], root=True)
    few = replace(given, cell=given.cell[:4])
    with pytest.raises(CheckError, match="records are published where no cell may hold any"):
        estimate_operator_parent(RULES, few)


@pytest.mark.parametrize("kept", [0, 1])
def test_cells_that_no_child_may_have_are_refused(kept):
    given = family([[3, 0, 2, 1, 0, 0, 4, 1], [1, 1, 0, 2, 5, 0, 0, 1]])
    less = replace(given, groups=given.groups[:kept], right=given.right[:, :kept])
    with pytest.raises(CheckError, match="where none of its children may have records"):
        estimate_operator_parent(RULES, less)


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


# Answers of another estimate beside the measurements of a histogram.


CELLS = 6
TENURE = np.array([0, 0, 0, 1, 1, 1], np.int32)
NOTHING = np.zeros(CELLS, np.int32)
EVERY_CELL = np.arange(CELLS, dtype=np.int32)


def rules() -> OperatorRules:
    """One pass over all cells, which hold one exact sum."""
    return OperatorRules(np.ones(CELLS, np.bool_), (OperatorPass(EVERY_CELL, (0,), NOTHING),), (EVERY_CELL,))


def two_children(values: np.ndarray, weight: float) -> OperatorFamily:
    """Two children of a parent with 60 records, with 21 and 39 of them."""
    return OperatorFamily(
        "parent",
        EVERY_CELL,
        np.full(CELLS, 10, np.int64),
        np.zeros(1, np.int64),
        np.array([[21], [39]], np.int64),
        None,
        {0: EVERY_CELL.astype(np.int64)},
        {0: values},
        np.full((2, 1), weight),
    )


def test_an_estimate_moves_to_further_answers_by_their_weight() -> None:
    """Cells that were measured with hardly any weight follow the sums that the other estimate tells."""
    values = np.array([[4, 4, 4, 3, 3, 3], [6, 6, 6, 7, 7, 7]], np.int64)
    other = SparseLevel(
        np.array(["a", "b"]),
        np.array([0, 2, 4]),
        np.array([0, 1, 0, 1], np.int32),
        np.array([15, 6, 15, 24], np.int32),
    )
    further = FurtherAnswers(TENURE, (other,), np.array([0, 1], np.int32), (np.full(2, 5.0),))
    both = further.at(0).added_to(two_children(values, 1e-6), 0, 2, 1)
    found = estimate_operator_parent(with_query(rules(), TENURE), both, wide=False)[0]
    alone = estimate_operator_parent(rules(), two_children(values, 1e-6), wide=False)[0]
    sums = np.array([[one[side == TENURE].sum() for side in (0, 1)] for one in found])
    assert sums.tolist() == [[15, 6], [15, 24]]
    assert [int(one[TENURE == 0].sum()) for one in alone] == [12, 18]
    assert np.array_equal(found.sum(axis=0), np.full(CELLS, 10))


def test_answers_of_a_level_are_the_sums_of_the_other_histograms() -> None:
    other = SparseLevel(
        np.array(["a", "b"]),
        np.array([0, 3, 4]),
        np.array([0, 1, 2, 1], np.int32),
        np.array([3, 4, 5, 6], np.int32),
    )
    further = FurtherAnswers(TENURE, (other,), np.array([1, 0, -1], np.int32), (np.array([0.5, 0.25]),))
    found = further.at(0)
    assert found.values.tolist() == [[4, 3], [6, 0]]
    assert found.weights.tolist() == [0.5, 0.25]


def test_a_query_is_fitted_where_the_columns_tell_it_and_weighs_as_the_first_inner_pass() -> None:
    coarse = np.array([0, 1, 0, 1, 0, 1], np.int32)
    first = OperatorPass(coarse, (0,), NOTHING, factors=(30.0,))
    second = OperatorPass(EVERY_CELL, (1,), coarse)
    two = OperatorRules(np.ones(CELLS, np.bool_), (first, second), (coarse, EVERY_CELL))
    found = with_query(two, TENURE)
    assert [one.fits for one in found.passes] == [(0,), (1, 2)]
    assert [one.fits for one in with_query(two, coarse).passes] == [(0, 2), (1,)]
    assert with_query(two, coarse).passes[0].factors == (30.0, 30.0)


@pytest.mark.parametrize(("kinds", "expected"), [([[0.5]], [0.25]), ([[0.5], [0.0]], [0.25, 0.0])])
def test_sums_weigh_what_their_answers_do_together(kinds: list[list[float]], expected: list[float]) -> None:
    groups = np.array([0, 0, 1, -1], np.int32)
    found = answer_weights(groups, np.ones(4, np.bool_), [np.arange(4, dtype=np.int32)], np.array(kinds))
    assert found.tolist() == expected


def test_a_query_across_groups_says_nothing_of_their_sums() -> None:
    groups = np.array([0, 1, 1, -1], np.int32)
    across = np.array([0, 0, 1, 1], np.int32)
    found = answer_weights(groups, np.ones(4, np.bool_), [across], np.array([[2.0]]))
    assert found.tolist() == [0.0]
