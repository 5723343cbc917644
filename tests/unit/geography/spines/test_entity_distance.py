"""Distances of areas from the spine, against every way to add and subtract geounits."""

from itertools import product

import numpy as np
import pytest

from censafe.geography.spines.choice import entity_distances
from censafe.geography.spines.tree import LevelRule, build_spine

RULES = (LevelRule("US", 0), LevelRule("State", 1), LevelRule("Tract", 2), LevelRule("Block", 3))
TREES = (
    ("111", "112", "113", "121", "122", "211", "212", "213"),
    ("111", "112", "113", "114", "115", "116"),
    ("111", "121", "131", "211", "311"),
    ("111",),
)


@pytest.mark.parametrize("codes", TREES)
def test_every_subset_has_the_least_sum_of_coefficients(codes):
    spine = build_spine(np.array(codes), RULES)
    chains = [spine.ancestors(depth) for depth in range(3)]
    sizes = [level.nodes for level in spine.levels[:-1]]
    # coefficients of the geounits above the blocks; those of the blocks follow from them
    grid = np.array(list(product((-1, 0, 1), repeat=sum(sizes))))
    edges = np.cumsum([0, *sizes])
    covered = sum(grid[:, edges[d] : edges[d + 1]][:, chains[d]] for d in range(3))
    price = np.abs(grid).sum(axis=1)
    for bits in range(1, 1 << len(codes)):
        members = bits >> np.arange(len(codes)) & 1
        least = int((price + np.abs(members - covered).sum(axis=1)).min())
        areas, distances = entity_distances(spine, np.where(members, 7, -1))
        assert areas.tolist() == [7]
        assert distances.tolist() == [least]


def test_several_areas_at_once_have_the_distances_that_they_have_alone():
    rng = np.random.default_rng(8)
    spine = build_spine(np.array([f"{code:03d}" for code in rng.choice(1000, 300, replace=False)]), RULES)
    entity = rng.integers(-1, 9, 300)
    areas, distances = entity_distances(spine, entity)
    for area, distance in zip(areas.tolist(), distances.tolist(), strict=True):
        assert entity_distances(spine, np.where(entity == area, 3, -1))[1].tolist() == [distance]


def test_no_area_has_no_distance():
    spine = build_spine(np.array(TREES[0]), RULES)
    areas, distances = entity_distances(spine, np.full(8, -1))
    assert len(areas) == len(distances) == 0
