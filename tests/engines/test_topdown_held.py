"""Levels under exact sums (the DHC) on the workers of every engine: the integers of one thread, reports included."""

import numpy as np
import pytest

from censafe.tabulation.engine.tasks import EngineTasks
from support.facilities import housed
from support.operator_worlds import World, estimate, housed_world, random_world


def both(world: World, workers: EngineTasks, spread: float, seed: int) -> None:
    expected = estimate(world, spread, seed)
    found = estimate(world, spread, seed, workers=workers)
    for one, other in zip(expected.found, found.found, strict=True):
        assert np.array_equal(one, other)
    assert [one.document() for one in expected.reports] == [one.document() for one in found.reports]


@pytest.mark.parametrize("seed", [2, 3])
def test_levels_under_exact_sums(workers: EngineTasks, seed: int) -> None:
    both(random_world(seed), workers, 1.5, seed)


@pytest.mark.parametrize(("seed", "most", "rare"), [(5, 4, 0.8), (0, 1, 0.9), (1, 1, 0.9)])
def test_facilities(workers: EngineTasks, seed: int, most: int, rare: float) -> None:
    both(housed_world(housed(seed, (2, 2, 2), most=most, rare=rare)), workers, 3.0, seed)
