"""Whatever the schema, the passes, the spine, the population and the noise: everything that is exact stays exact."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from censafe.estimation.topdown.least_squares.feasibility import has_point
from censafe.estimation.topdown.least_squares.problem import L2Status, ParentProblem
from censafe.estimation.topdown.least_squares.solve import solve_l2
from censafe.estimation.topdown.rounding.controlled import round_parent
from support.facilities import housed
from support.operator_worlds import broken, estimate, housed_world, random_world
from support.parents import objective, small_parent
from support.solver import failing_solver

SEEDS = st.integers(0, 2**32 - 1)
SPREADS = st.sampled_from([1e-3, 0.5, 3.0, 30.0, 1000.0])


@settings(max_examples=40)
@given(seed=SEEDS, spread=SPREADS, mean=st.sampled_from([0.02, 0.3, 5.0]))
def test_schemas_spines_and_passes(seed, spread, mean):
    world = random_world(seed, mean=mean)
    found = estimate(world, spread, seed)
    assert broken(world, found) == []
    if spread < 0.1:
        assert all(np.array_equal(a, b) for a, b in zip(found.levels, world.exact, strict=True))


@settings(max_examples=30)
@given(
    seed=SEEDS,
    spread=SPREADS,
    shape=st.sampled_from([(3,), (2, 2), (2, 3, 2), (1, 2, 1, 2)]),
    most=st.integers(1, 6),
    passes=st.integers(1, 2),
)
def test_facilities(seed, spread, shape, most, passes):
    world = housed_world(housed(seed, shape, most=most, rare=0.85), passes=passes)
    found = estimate(world, spread, seed)
    assert broken(world, found) == []
    if spread < 0.1:
        assert all(np.array_equal(a, b) for a, b in zip(found.levels, world.exact, strict=True))


@pytest.mark.parametrize("share", [0.5, 1.0])
def test_a_solver_that_fails_changes_nothing_of_what_is_exact(monkeypatch, share):
    """It also says infeasible where that is not so."""
    planted = failing_solver(monkeypatch, 0, share=share)
    for seed in range(8):
        world = housed_world(housed(seed, (2, 3, 2), most=4, rare=0.9))
        assert broken(world, estimate(world, 3.0, seed)) == []
    assert len(planted) > 20


SHAPES = ((3,), (2, 2), (2, 3, 2), (1, 2, 1, 2))
WORLDS = 20_000


@pytest.mark.long
@pytest.mark.parametrize("part", range(20))
def test_no_world_with_facilities_stops(part):
    for seed in range(part * WORLDS // 20, (part + 1) * WORLDS // 20):
        rng = np.random.default_rng(seed)
        shape, most = SHAPES[rng.integers(4)], int(rng.integers(1, 7))
        world = housed_world(housed(seed, shape, most=most, rare=0.85), passes=int(rng.integers(1, 3)))
        spread = (1e-3, 0.5, 3.0, 30.0)[rng.integers(4)]
        found = estimate(world, spread, seed)
        assert (seed, broken(world, found)) == (seed, [])
        if spread < 0.1:
            assert all(np.array_equal(a, b) for a, b in zip(found.levels, world.exact, strict=True)), seed


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
