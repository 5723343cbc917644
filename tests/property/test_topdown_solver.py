import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from censafe.estimation.topdown.least_squares.feasibility import has_point
from censafe.estimation.topdown.least_squares.problem import L2Status, ParentProblem
from censafe.estimation.topdown.least_squares.solve import solve_l2
from censafe.estimation.topdown.rounding.controlled import round_parent
from support.parents import objective, small_parent

SEEDS = st.integers(0, 2**32 - 1)


@settings(max_examples=60)
@given(
    seed=SEEDS, children=st.integers(2, 6), cells=st.integers(2, 9), rows=st.booleans(), masks=st.booleans()
)
def test_a_parent_with_a_point_is_solved_certified_and_rounded(seed, children, cells, rows, masks):
    problem = small_parent(seed, children=children, cells=cells, rows=rows, masks=masks)
    result = solve_l2(problem)
    assert result.status.exact
    assert max(abs(result.gap) / 1e-6, result.violation / 1e-6) <= 1
    tree = ((np.arange(cells) >= 2).astype(np.int32),)
    counts = round_parent(result.x, problem, tree)
    assert (counts.sum(axis=0) == problem.p).all()
    assert np.abs(counts - result.x).max() < 1 + 1e-6


@settings(max_examples=40)
@given(seed=SEEDS, shift=st.integers(-3, 3))
def test_infeasible_exactly_where_the_linear_program_says(seed, shift):
    good = small_parent(seed, children=3, cells=4)
    p = good.p.copy()
    p[0] = max(p[0] + shift, 0)
    problem = ParentProblem(good.H, good.B, p, good.allowed, good.rows, good.lo, good.hi)
    assert (solve_l2(problem).status is L2Status.INFEASIBLE) == (not has_point(problem))


@settings(max_examples=40)
@given(seed=SEEDS, step=st.floats(0.01, 1.0))
def test_no_step_towards_another_point_lowers_the_objective(seed, step):
    problem = small_parent(seed, children=4, cells=5, rows=False, masks=False)
    x = solve_l2(problem).x
    other = np.random.default_rng(seed).dirichlet(np.ones(4), 5).T * problem.p
    assert objective(problem, (1 - step) * x + step * other) >= objective(problem, x) - 1e-9
