"""Levels under exact sums (the DHC) on the workers of every engine: the integers of one thread, repairs and reports included."""

from __future__ import annotations

import numpy as np
import pytest

from censafe.tabulation.engine.tasks import EngineTasks
from support.facilities import housed
from support.operator_worlds import World, estimate, housed_world, random_world


def both(world: World, workers: EngineTasks, spread: float, seed: int) -> int:
    expected = estimate(world, spread, seed)
    found = estimate(world, spread, seed, workers=workers)
    for one, other in zip(expected.found, found.found, strict=True):
        assert np.array_equal(one, other)
    assert [one.document() for one in expected.reports] == [one.document() for one in found.reports]
    return sum(len(one.repairs) for one in expected.reports)


@pytest.mark.parametrize("seed", [2, 3])
def test_levels_under_exact_sums(workers: EngineTasks, seed: int) -> None:
    both(random_world(seed), workers, 1.5, seed)


def test_facilities_and_repairs(workers: EngineTasks) -> None:
    both(housed_world(housed(5, (2, 2, 2), most=4, rare=0.8)), workers, 3.0, 5)
    crowded = (housed_world(housed(seed, (2, 2, 2), most=1, rare=0.9), most_rows=0) for seed in range(40))
    repairs = 0
    for seed, world in enumerate(crowded):
        repairs += both(world, workers, 3.0, seed)
        if repairs:
            break
    assert repairs > 0
