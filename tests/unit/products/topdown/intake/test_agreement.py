"""What is compared before a run measures: published results, facilities and declared totals, and nothing else of the records."""

import numpy as np
import pytest

from censafe.errors import DataError
from censafe.estimation.topdown.operator.facilities import FacilityRule
from censafe.geography.spines.choice import build_run_spine
from censafe.geography.spines.paths import RunSpine
from censafe.geography.spines.sums import reordered, sum_histograms
from censafe.geography.spines.tree import PL94_US, build_spine
from censafe.model import SparseLevel
from censafe.model.topdown.histograms import MeasuredHistogram
from censafe.products.topdown.configuration.config import load_config
from censafe.products.topdown.intake.constraint_sums import require_loose_bound, require_totals
from censafe.products.topdown.intake.equations import KnownBlocks
from censafe.products.topdown.intake.facts import declared_totals
from censafe.products.topdown.intake.spines import gq_patterns, spine_choice
from censafe.products.topdown.plan import exact_levels
from support.histograms import exact_level, sparse_level
from support.topdown_areas import block_codes, random_areas

CELLS = 2016
PERSONS = load_config("pl94-us").histogram("persons")


class World:
    """Two states whose records and whose published result are given block by block."""

    def __init__(self, spine: str) -> None:
        rng = np.random.default_rng(7)
        codes = block_codes((4, 44), rng)
        config = load_config("pl94-us", {"measure": "persons", "spine": spine})
        standard = build_spine(codes, PL94_US)
        units = np.ones((len(codes), 8), np.int64)
        areas = random_areas(codes, rng)
        self.run: RunSpine = build_run_spine(
            standard, spine_choice(config), areas, gq_patterns(config, units)
        )
        self.states = self.run.standard.ancestors(1)
        self.records = rng.integers(0, 3, (len(codes), CELLS)) * (rng.random((len(codes), CELLS)) < 0.01)
        self.records[:, 0] += 1

    def known(self, histogram: MeasuredHistogram) -> KnownBlocks:
        own = exact_level(self.run.standard.leaf.geounits, self.records)
        if self.run.order is not None:
            own = reordered(own, self.run.order, self.run.spine.leaf.geounits)
        levels = sum_histograms(self.run.spine, own, CELLS)
        declared = declared_totals(self.run, levels, exact_levels(histogram))
        facilities = np.ones((len(self.records), 8), np.int64)
        return KnownBlocks(self.run, facilities, declared={histogram.name: declared})

    def published(self, dense: np.ndarray) -> SparseLevel:
        level = sparse_level(self.run.standard.leaf.geounits, dense)
        if self.run.order is None:
            return level
        return reordered(level, self.run.order, self.run.spine.leaf.geounits)


@pytest.mark.parametrize("spine", ["standard", "aian"])
def test_other_totals_are_told_by_the_code_of_their_state(spine: str) -> None:
    world = World(spine)
    known = world.known(PERSONS)
    other = world.records.copy()
    other[np.flatnonzero(world.states == 1)[0], 0] += 1
    with pytest.raises(
        DataError, match="other totals of persons in 1 geounits of level State, such as 44, than"
    ):
        require_totals(PERSONS, known, world.published(other))
    other[np.flatnonzero(world.states == 0)[0], 0] += 1
    with pytest.raises(DataError, match="in 2 geounits of level State, such as 04, 44, than"):
        require_totals(PERSONS, known, world.published(other))


@pytest.mark.parametrize("spine", ["standard", "aian"])
def test_no_other_count_of_the_records_plays_a_part(spine: str) -> None:
    world = World(spine)
    result = world.published(world.records)
    require_totals(PERSONS, world.known(PERSONS), result)
    rng = np.random.default_rng(1)
    for state in (0, 1):  # any other records of the same states pass as well
        inside = np.flatnonzero(world.states == state)
        total = int(world.records[inside].sum())
        world.records[inside] = 0
        np.add.at(world.records, (rng.choice(inside, total), rng.integers(CELLS, size=total)), 1)
    require_totals(PERSONS, world.known(PERSONS), result)


def test_a_bound_that_published_sums_meet_is_not_read_further() -> None:
    world = World("standard")
    known, blocks = world.known(PERSONS), world.published(world.records)
    kind = (np.arange(CELLS) // 252).astype(np.int32)
    rule = FacilityRule(np.arange(CELLS, dtype=np.int32), kind, (0,) * 8)
    most = world.records.reshape(len(world.records), 8, 252).sum(axis=2).max(axis=0)
    require_loose_bound(PERSONS, "above", most, rule, blocks, known)
    most[5] -= 1
    with pytest.raises(
        DataError, match=r"constraint above of persons could be exceeded in [0-9]+ blocks by kind 5, such as"
    ):
        require_loose_bound(PERSONS, "above", most, rule, blocks, known)
