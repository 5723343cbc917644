import numpy as np
import pytest
from scipy.optimize import linprog

from censafe.estimation.topdown.least_squares.feasibility import has_point, parent_cuts, violated_cut
from censafe.estimation.topdown.least_squares.problem import ParentProblem
from support.parents import free_parent


def random_sides(rng, children, types, *, fixed):
    truth = rng.poisson(1.2, (children, types))
    lower = np.maximum(truth - rng.integers(0, 3, truth.shape), 0)
    upper = truth + rng.integers(0, 3, truth.shape)
    down, up = (0, 0) if fixed else rng.integers(0, 2, (2, children))
    total = truth.sum(axis=1)
    have = truth.sum(axis=0)
    shift = rng.integers(0, types, 2)
    have[shift[0]] += 1
    have[shift[1]] = max(have[shift[1]] - 1, 0)
    return lower, upper, total - down, total + up, have


def possible(lower, upper, least, most, have):
    children, types = lower.shape
    over_types = np.kron(np.eye(children), np.ones((1, types)))
    answer = linprog(
        np.zeros(children * types),
        A_eq=np.kron(np.ones((1, children)), np.eye(types)),
        b_eq=have,
        A_ub=np.vstack([over_types, -over_types]),
        b_ub=np.concatenate([most, -least]),
        bounds=np.column_stack([lower.ravel(), upper.ravel()]),
        method="highs",
    )
    return answer.status == 0


@pytest.mark.parametrize("fixed", [True, False])
def test_cuts_agree_with_a_linear_program(fixed):
    rng = np.random.default_rng(20 + fixed)
    agreed = {True: 0, False: 0}
    for _ in range(300):
        lower, upper, least, most, have = random_sides(rng, 3, 3, fixed=fixed)
        cuts = parent_cuts(lower, upper, least, most)
        holds = cuts.sets.astype(int) @ have
        by_cuts = bool(((holds >= cuts.lo) & (holds <= cuts.hi)).all())
        assert by_cuts == possible(lower, upper, least, most, have)
        agreed[by_cuts] += 1
    assert min(agreed.values()) > 30


def test_without_totals_single_types_are_enough():
    cuts = parent_cuts(np.array([[1, 2], [0, 3]]), np.array([[4, np.inf], [5, 6]]))
    assert cuts.sets.tolist() == [[1, 0], [0, 1], [1, 1]]
    assert (cuts.lo.tolist(), cuts.hi.tolist()) == ([1, 5, 6], [9, np.inf, np.inf])


def test_a_violated_cut_is_named_without_counts():
    problem = ParentProblem(
        np.eye(3), np.ones((2, 3)), np.array([917, 0, 0]), np.ones((2, 3), bool),
        np.array([[1, 0, 0], [0, 1, 0]], np.uint8), np.array([[0, 613], [0, 0]]), np.full((2, 2), 9999),
    )  # fmt: skip
    message = violated_cut(problem)
    assert message == "in {row 1} the parent has fewer persons than its children need; 1 of 4 sets are broken"


def test_a_possible_parent_has_a_point_and_no_cut():
    problem = free_parent(np.eye(2), np.ones((2, 2)), np.array([3, 4]))
    assert (has_point(problem), violated_cut(problem)) == (True, "")


def test_a_root_has_no_cuts_of_its_own():
    assert violated_cut(free_parent(np.eye(2), np.ones((1, 2)), None)) == ""
