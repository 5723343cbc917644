from dataclasses import replace

import numpy as np
import pytest

from censafe.errors import CheckError
from censafe.estimation.topdown.least_squares.problem import L2Status, ParentProblem
from censafe.estimation.topdown.least_squares.solve import solve_l2
from censafe.estimation.topdown.levels.passes import Fit, OuterPass, coarsen, estimate_parent
from support.parents import best_by_enumeration, objective, small_parent

KINDS = np.array([0, 0, 1, 1, 1, 2], np.int32)
TOTAL, CELLS = np.zeros(6, np.int32), np.arange(6, dtype=np.int32)
PAIRS = CELLS // 2


def equations_of(labels, answers, weights):
    """Normal equations of queries with the same weight for all children."""

    def on(cells):
        h = np.zeros((1, len(cells), len(cells)))
        b = np.zeros((len(answers[0]), len(cells)))
        for label, y, weight in zip(labels, answers, weights, strict=True):
            chosen = label[cells]
            h[0] += weight * (chosen[:, None] == chosen)
            b += weight * y[:, chosen]
        return h, np.zeros(len(b), np.int32), b

    return on


def fit(labels, truth, rng, *, held=(), scale=1.0):
    answers = []
    for label in labels:
        member = np.eye(int(label.max()) + 1)[label]
        answers.append(truth @ member + np.rint(rng.normal(0, 3, (len(truth), member.shape[1]))))
    return Fit(tuple(labels), equations_of(labels, answers, [scale] * len(labels)), held), answers


def parent(truth, *, slack=1):
    rows = np.array([g == KINDS for g in range(3)], np.uint8)
    have = (truth @ rows.T).astype(float)
    nothing = np.zeros((6, 6)), np.zeros(truth.shape)
    return ParentProblem(
        *nothing,
        truth.sum(axis=0),
        np.ones(truth.shape, bool),
        rows,
        np.maximum(have - slack, 0),
        have + slack,
    )


@pytest.mark.parametrize("seed", range(4))
def test_the_total_alone_is_solved_on_kinds_and_then_held(seed):
    rng = np.random.default_rng(seed)
    truth = rng.poisson(3.0, (4, 6))
    problem = parent(truth)
    first, (measured,) = fit((TOTAL,), truth, rng, held=(TOTAL,))
    rest, _ = fit((PAIRS, CELLS), truth, rng)
    found = estimate_parent(problem, (OuterPass((first, rest), ((TOTAL,), (PAIRS, CELLS))),))
    assert [solve.x.shape for solve in found.solves] == [(4, 3), (4, 6)]
    totals = found.solves[0].x.sum(axis=1)
    assert found.solves[1].x.sum(axis=1) == pytest.approx(totals, abs=1e-7)
    coarse, _ = coarsen(problem, first, [TOTAL])
    best = best_by_enumeration(coarse) if len(truth) < 3 else objective(coarse, found.solves[0].x)
    other = solve_l2(coarse)
    assert objective(coarse, other.x) == pytest.approx(best, abs=1e-6)
    assert float((0.5 * (totals - measured[:, 0]) ** 2).sum()) <= float(
        (0.5 * (truth.sum(axis=1) - measured[:, 0]) ** 2).sum() + 1e-6
    )
    assert np.array_equal(found.counts.sum(axis=0), problem.p)
    assert np.abs(found.counts.sum(axis=1) - totals).max() < 2


def test_a_singular_objective_is_solved_to_its_optimum():
    rng = np.random.default_rng(3)
    truth = rng.poisson(4.0, (2, 6))[:, [0, 2, 5]]
    h, b = np.ones((3, 3)), np.repeat(truth.sum(axis=1)[:, None] + rng.normal(0, 4, (2, 1)), 3, axis=1)
    rows = np.array([[1, 0, 0]], np.uint8)
    have = truth[:, :1].astype(float)
    problem = ParentProblem(h, b, truth.sum(axis=0), np.ones((2, 3), bool), rows, have, have + 1)
    result = solve_l2(problem)
    assert (result.status, result.ridge > 0) == (L2Status.OK, True)
    assert objective(problem, result.x) == pytest.approx(best_by_enumeration(problem), abs=1e-4)


def test_answers_of_an_outer_pass_are_equality_rows_of_the_next():
    rng = np.random.default_rng(5)
    truth = rng.poisson(3.0, (3, 6))
    coarse, _ = fit((TOTAL, PAIRS), truth, rng)
    fine, _ = fit((CELLS,), truth, rng)
    passes = (OuterPass((coarse,), ((TOTAL, PAIRS),)), OuterPass((fine,), ((CELLS,),)))
    found = estimate_parent(parent(truth), passes)
    assert (found.solves[0].x.shape[1] < 6, found.roundings) == (True, ("flow", "flow"))
    alone = estimate_parent(parent(truth), (OuterPass((coarse, fine), ((CELLS,),)),))
    assert np.array_equal(found.counts.sum(axis=0), alone.counts.sum(axis=0))
    second = found.solves[1].x
    for pair in range(3):
        held = second[:, pair == PAIRS].sum(axis=1)
        assert held == pytest.approx(found.counts[:, pair == PAIRS].sum(axis=1), abs=1e-6)


def test_one_pass_equals_the_plain_solve():
    rng = np.random.default_rng(7)
    truth = rng.poisson(3.0, (3, 6))
    whole, _ = fit((TOTAL, PAIRS, CELLS), truth, rng)
    found = estimate_parent(parent(truth), (OuterPass((whole,), ((PAIRS, CELLS),)),))
    coarse, _ = coarsen(parent(truth), whole, [CELLS])
    assert found.solves[0].x == pytest.approx(solve_l2(coarse).x, abs=1e-12)


def infeasible():
    truth = np.array([[3, 1, 2, 0, 1, 0], [2, 2, 0, 1, 0, 1]])
    problem = parent(truth, slack=0)
    moved = problem.p + np.array([1, 0, 0, 0, 0, -1])
    allowed = problem.allowed.copy()
    allowed[:, 1] = False
    return truth, problem, moved, allowed


def test_an_infeasible_parent_stops_or_is_repaired_with_a_log():
    truth, problem, _, allowed = infeasible()
    whole, _ = fit((CELLS,), truth, np.random.default_rng(8))
    passes = (OuterPass((whole,), ((CELLS,),)),)
    masked = replace(problem, allowed=allowed)
    with pytest.raises(CheckError, match="no histograms meet"):
        estimate_parent(masked, passes)
    found = estimate_parent(masked, passes, infeasible="repair")
    assert {(change.cell, change.after - change.before) for change in found.changes} == {(0, 3), (1, -3)}
    assert all(solve.status.exact for solve in found.solves)
    assert int(found.counts.sum()) == int(problem.p.sum())


def test_what_no_change_within_kinds_can_repair_stops():
    truth, problem, moved, _ = infeasible()
    whole, _ = fit((CELLS,), truth, np.random.default_rng(8))
    with pytest.raises(CheckError, match="no change of cells"):
        estimate_parent(replace(problem, p=moved), (OuterPass((whole,), ((CELLS,),)),), infeasible="repair")


def test_passes_that_leave_cells_together_are_refused():
    truth = np.ones((2, 6), np.int64)
    coarse, _ = fit((PAIRS,), truth, np.random.default_rng(9))
    with pytest.raises(CheckError, match="does not tell all cells apart"):
        estimate_parent(parent(truth), (OuterPass((coarse,), ((PAIRS,),)),))


def test_small_parents_of_all_shapes_keep_their_sides():
    for seed in range(8):
        given = small_parent(seed, children=4, cells=6)
        fits = Fit(
            (CELLS,),
            lambda cells, given=given: (given.H[:, cells][:, :, cells], given.h_of, given.B[:, cells]),
        )
        counts = estimate_parent(given, (OuterPass((fits,), ((CELLS,),)),)).counts
        assert np.array_equal(counts.sum(axis=0), given.p)


@pytest.mark.parametrize("scale", [10.0, 1e3, 1e4])
def test_totals_alone_are_certified_at_every_size(scale):
    rng = np.random.default_rng(1)
    truth = rng.poisson(scale * rng.pareto(1.2, (20, 1)) * rng.random((20, 6)))
    rows = np.array([g == KINDS for g in range(3)], np.uint8)
    have = (truth @ rows.T).astype(float)
    measured = truth.sum(axis=1, keepdims=True) + np.rint(rng.normal(0, 5, (20, 1)))
    units = rng.integers(1, 4, have.shape)
    problem = ParentProblem(
        2 * np.ones((6, 6)), 2 * measured * np.ones((1, 6)), truth.sum(axis=0), np.ones(truth.shape, bool), rows,
        np.minimum(have, units), np.full(have.shape, np.inf),
    )  # fmt: skip
    coarse, _ = coarsen(problem, fit((TOTAL,), truth, rng)[0], [TOTAL])
    coarse = replace(coarse, H=problem.H[:, :3, :3], B=problem.B[:, :3])
    result = solve_l2(coarse)
    assert result.status.exact
    assert result.gap <= max(1e-4, 1e-15 * float(np.abs(coarse.B * result.x).sum()))
    least, level = coarse.lo.sum(axis=1), (-1e6, 1e6)
    for _ in range(80):
        middle = (level[0] + level[1]) / 2
        many = np.maximum(measured[:, 0] + middle, least).sum() > truth.sum()
        level = (level[0], middle) if many else (middle, level[1])
    expected = np.maximum(measured[:, 0] + level[0], least)
    assert result.x.sum(axis=1) == pytest.approx(expected, abs=0.01)
