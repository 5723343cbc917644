"""Whatever the schema, the passes, the spine, the population and the noise: everything that is exact stays exact."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.facilities import housed
from support.operator_worlds import broken, estimate, housed_world, random_world
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
