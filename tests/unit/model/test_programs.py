"""An error of the solver is tried again and never taken for a program without a point."""

from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.optimize

from censafe.model.programs import Outcome, Program, solve_program
from support.solver import failing_solver

ERROR, LIMIT, INFEASIBLE = 4, 1, 2


def knapsack(low: float, *, integral: bool = True) -> Program:
    """The fewest of three kinds of 3, 5 and 7 that weigh between low and low + 0.5."""
    weights = np.array([[3.0, 5.0, 7.0]])
    return Program(
        np.ones(3), weights, np.array([low]), np.array([low + 0.5]), 0.0, np.full(3, 4.0), integral
    )


def weighed(weight: int) -> int | None:
    """The fewest by trying all."""
    counts = [sum(one) for one in product(range(5), repeat=3) if np.dot(one, (3, 5, 7)) == weight]
    return min(counts, default=None)


@pytest.mark.parametrize("weight", [1, 4, 8, 15, 36, 59, 60, 61])
def test_equal_to_trying_all(weight):
    solution, fewest = solve_program(knapsack(weight)), weighed(weight)
    if fewest is None:
        assert (solution.outcome, solution.x) == (Outcome.INFEASIBLE, None)
    else:
        assert solution.outcome is Outcome.OPTIMAL
        assert solution.x.sum() == fewest


def answers(monkeypatch, *given):
    """A solver that answers with these statuses one after another, and with its own one where None is said."""
    solver, left = scipy.optimize.milp, list(given)

    def planted(*arguments, **options):
        answer = solver(*arguments, **options)
        status = left.pop(0) if left else None
        return answer if status is None else SimpleNamespace(status=status, x=None)

    monkeypatch.setattr(scipy.optimize, "milp", planted)


@pytest.mark.parametrize("before", [(ERROR,), (ERROR, ERROR), (INFEASIBLE,), (LIMIT,)])
def test_an_error_or_one_way_that_says_infeasible_is_no_answer(monkeypatch, before):
    answers(monkeypatch, *before)
    solution = solve_program(knapsack(8))
    assert (solution.outcome, solution.x.tolist()) == (Outcome.OPTIMAL, [1, 1, 0])


def test_a_solver_that_fails_in_every_way_is_told_from_an_infeasible_program(monkeypatch):
    answers(monkeypatch, *[ERROR] * 9)
    assert solve_program(knapsack(8)).outcome is Outcome.FAILED
    answers(monkeypatch, INFEASIBLE, *[ERROR] * 9)
    solution = solve_program(knapsack(8))
    assert (solution.outcome, solution.x) == (Outcome.FAILED, None)


def test_where_the_best_point_is_not_to_be_had_any_point_is_taken(monkeypatch):
    answers(monkeypatch, ERROR, ERROR, ERROR)
    solution = solve_program(knapsack(8))
    assert (solution.outcome, solution.x @ [3, 5, 7]) == (Outcome.FAILED, 8)


def test_a_point_that_misses_a_row_is_not_taken(monkeypatch):
    wrong, solver = np.array([1.0, 1.0, 1.0]), scipy.optimize.milp
    monkeypatch.setattr(
        scipy.optimize, "milp",
        lambda *arguments, options, **more: SimpleNamespace(status=0, x=wrong)
        if options["presolve"] else solver(*arguments, options=options, **more),
    )  # fmt: skip
    assert solve_program(knapsack(8)).x.tolist() == [1, 1, 0]


def test_a_limit_of_time_ends_the_search(monkeypatch):
    calls = failing_solver(monkeypatch, 0, share=1.0, statuses=(LIMIT,))
    assert solve_program(knapsack(8), seconds=1.0).outcome is Outcome.FAILED
    assert calls == [LIMIT]


def test_linear_programs_have_vertices():
    program = knapsack(8, integral=False)
    assert solve_program(program).x @ [3, 5, 7] == pytest.approx(8)
    assert (
        solve_program(program._replace(low=np.array([99.0]), high=np.array([99.0]))).outcome
        is Outcome.INFEASIBLE
    )
