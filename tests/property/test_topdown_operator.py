"""Whatever the schema, the passes, the spine, the population and the noise: everything that is exact stays exact."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from support.facilities import housed
from support.operator_worlds import broken, estimate, housed_world, random_world

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
