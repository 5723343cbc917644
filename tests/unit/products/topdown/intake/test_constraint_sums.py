"""Exact sums of the listed constraints, also of those that the schema's facilities mean."""

from dataclasses import replace

import numpy as np
import pytest

from censafe.errors import DataError
from censafe.estimation.topdown.operator.facilities import FacilityRule
from censafe.geography.spines.choice import build_run_spine
from censafe.geography.spines.paths import RunSpine
from censafe.geography.spines.sums import reordered, sum_histograms
from censafe.geography.spines.tree import PL94_US, build_spine
from censafe.model import SparseLevel
from censafe.model.topdown.histograms import (
    CellGroups,
    LinearConstraint,
    MeasuredHistogram,
    PublishedAnswers,
    own_constraints,
)
from censafe.products.topdown.configuration.config import load_config
from censafe.products.topdown.intake.constraint_sums import (
    constraint_sums,
    require_loose_bound,
    require_totals,
)
from censafe.products.topdown.intake.equations import KnownBlocks, has_exact_sums
from censafe.products.topdown.intake.facts import declared_totals
from censafe.products.topdown.intake.spines import gq_patterns, spine_choice
from censafe.products.topdown.plan import exact_levels
from support.histograms import exact_level, sparse_level
from support.topdown_areas import block_codes, random_areas

CODES = np.array([440010001001000, 440010001001001, 440010001002000])
PERSONS = replace(load_config("pl94-us").histogram("persons"), exact_totals=None)
AGES = CellGroups("votingage * hispanic")
UNITS = np.array([[2, 1, 0, 0, 0, 0, 0, 0], [3, 0, 0, 0, 0, 0, 0, 0], [0, 1, 1, 0, 0, 0, 0, 0]])


def known() -> KnownBlocks:
    """Nine adults, and five more who are Hispanic, in every block."""
    spine = build_spine(CODES, PL94_US)
    cells, counts = np.tile([126, 189], 3).astype(np.int32), np.tile([9, 5], 3).astype(np.int32)
    level = SparseLevel(spine.leaf.geounits, np.array([0, 2, 4, 6]), cells, counts)
    return KnownBlocks(
        RunSpine("standard", spine, spine, None, {}), UNITS, {("before", "persons"): (PERSONS.schema, level)}
    )


def states_of(histogram: MeasuredHistogram) -> list[tuple[list[int], ...]]:
    """What is decided and what is open at every level."""
    found = constraint_sums(histogram, known())
    opened = ((one.kinds.tolist(), one.count.tolist(), one.least.tolist()) for one in found.open)
    return [*((one.cell.tolist(), one.count.tolist()) for one in found.levels), *opened]


def test_bounds_by_the_facilities_of_a_schema_are_held_beside_equations() -> None:
    published = LinearConstraint("ages", AGES, "=", PublishedAnswers("before", "persons", AGES))
    by_schema = replace(PERSONS, constraints=(published,))
    bare = replace(PERSONS.schema, facilities=None)
    listed = replace(PERSONS, schema=bare, constraints=(published, *own_constraints(PERSONS.schema, None)))
    assert has_exact_sums(by_schema)
    assert has_exact_sums(listed)
    assert not has_exact_sums(PERSONS)
    found = states_of(by_schema)
    assert found == states_of(listed)
    assert len(found) == 2 * len(PL94_US)
    assert states_of(replace(listed, constraints=(published,))) != found


# What is compared before a run measures: published results, facilities and declared totals, and nothing else of the records.


CELLS = 2016
REDISTRICTING = load_config("pl94-us").histogram("persons")


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
    known = world.known(REDISTRICTING)
    other = world.records.copy()
    other[np.flatnonzero(world.states == 1)[0], 0] += 1
    with pytest.raises(
        DataError, match="other totals of persons in 1 geounits of level State, such as 44, than"
    ):
        require_totals(REDISTRICTING, known, world.published(other))
    other[np.flatnonzero(world.states == 0)[0], 0] += 1
    with pytest.raises(DataError, match="in 2 geounits of level State, such as 04, 44, than"):
        require_totals(REDISTRICTING, known, world.published(other))


@pytest.mark.parametrize("spine", ["standard", "aian"])
def test_no_other_count_of_the_records_plays_a_part(spine: str) -> None:
    world = World(spine)
    result = world.published(world.records)
    require_totals(REDISTRICTING, world.known(REDISTRICTING), result)
    rng = np.random.default_rng(1)
    for state in (0, 1):  # any other records of the same states pass as well
        inside = np.flatnonzero(world.states == state)
        total = int(world.records[inside].sum())
        world.records[inside] = 0
        np.add.at(world.records, (rng.choice(inside, total), rng.integers(CELLS, size=total)), 1)
    require_totals(REDISTRICTING, world.known(REDISTRICTING), result)


def test_a_bound_that_published_sums_meet_is_not_read_further() -> None:
    world = World("standard")
    known, blocks = world.known(REDISTRICTING), world.published(world.records)
    kind = (np.arange(CELLS) // 252).astype(np.int32)
    rule = FacilityRule(np.arange(CELLS, dtype=np.int32), kind, (0,) * 8)
    most = world.records.reshape(len(world.records), 8, 252).sum(axis=2).max(axis=0)
    require_loose_bound(REDISTRICTING, "above", most, rule, blocks, known)
    most[5] -= 1
    with pytest.raises(
        DataError, match=r"constraint above of persons could be exceeded in [0-9]+ blocks by kind 5, such as"
    ):
        require_loose_bound(REDISTRICTING, "above", most, rule, blocks, known)
