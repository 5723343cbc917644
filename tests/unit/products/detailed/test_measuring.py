"""From sorted records and a configuration to measurements, for both products."""

import random
from fractions import Fraction
from typing import Literal

import numpy as np
import pytest

from censafe.errors import CheckError
from censafe.model import GroupMeasurements, PartPlan
from censafe.population.detailed import encode
from censafe.population.detailed.public_data import PopGroupTotals
from censafe.privacy.keys import TestKey, derive_part_key
from censafe.privacy.measure.adaptive import suppression_threshold
from censafe.privacy.measure.groups import ListedGroups, count_listed_groups
from censafe.products.detailed.codes.parameters import read_universe
from censafe.products.detailed.codes.universe import PopulationGroupLevel
from censafe.products.detailed.config import SafetabConfig, load_h_config, load_p_config
from censafe.products.detailed.intake import GroupCounter
from censafe.products.detailed.plan import P_QUERIES, plan_release, stabilities
from censafe.products.detailed.recipe import (
    PartTask,
    adaptive_tables,
    measure_households,
    measure_persons,
    private_path,
    true_households,
)
from censafe.products.detailed.tables import (
    TABLE_CLASSES,
    joint_cell,
    most_detailed_cells,
    stat_levels,
    tables_of,
    variants_of,
)
from support.safetab_reference import (
    AGES,
    HOUSEHOLD_BASIS,
    Household,
    Person,
    World,
    counter_of,
    key_domain,
    random_blocks,
)

UNIVERSE = read_universe()


@pytest.fixture(scope="module")
def world() -> World:
    """Three hundred persons of production codes in two states and Puerto Rico."""
    rng = random.Random(5)
    codes = sorted(UNIVERSE.codes)
    few = rng.sample(codes, 6)
    blocks = random_blocks(rng)

    def races() -> tuple[int, ...]:
        return tuple(rng.sample(few if rng.random() < 0.8 else codes, rng.choice((1, 1, 2, 5))))

    persons = [
        Person(rng.randrange(len(blocks)), rng.randint(1, 2), rng.randint(0, 115), races(), rng.choice(codes))
        for _ in range(300)
    ]
    return World(blocks, UNIVERSE, tuple(persons))


@pytest.fixture(scope="module")
def persons(world: World) -> GroupCounter:
    return counter_of(world)


@pytest.fixture(scope="module")
def households(world: World) -> GroupCounter:
    rng = random.Random(6)
    return counter_of(
        world.having(
            Household(one.block, rng.randint(1, 5), rng.randint(1, 4), one.races, one.span)
            for one in world.records
        )
    )


def part_of(config: SafetabConfig, name: str) -> PartPlan:
    return next(part for part in plan_release(config, UNIVERSE).parts if part.name == name)


def level_of(name: str) -> PopulationGroupLevel:
    region_type, level = name.rsplit("_", 1)
    return PopulationGroupLevel(region_type.upper().replace("_", "-"), int(level))


def measure(counter: GroupCounter, config: SafetabConfig, name: str, *, stable: int = 9) -> GroupMeasurements:
    key = derive_part_key(TestKey(3), "0" * 64, b"", name)
    task = PartTask(config, counter, None, level_of(name), part_of(config, name), stable)
    return measure_persons(task, key)


def test_the_variants_are_those_that_are_published() -> None:
    variants = variants_of("t1t2")
    (table,) = tables_of("safetab-p").tables
    assert table.sizes == tuple(len(variant.cells) for variant in variants)
    assert variants[0].cells == ("Total",)
    assert most_detailed_cells("safetab-p") == len(variants[3].cells) == 46
    for level, shell in table.layouts[1].shells.items():
        measured = {cell.members[0]: cell.label for cell in shell.cells if len(cell.members) == 1}
        assert tuple(measured[slot] for slot in range(shell.basis)) == variants[level].cells


def test_reader_tables_and_layouts_have_the_same_ages() -> None:
    assert AGES[3] == encode.AGE_CUTS
    starts = (0, *encode.AGE_CUTS)
    (table,) = tables_of("safetab-p").tables
    for level, shell in table.layouts[1].shells.items():
        slots = variants_of("t1t2")[level].slots.reshape(2, len(starts))
        ages = {(int(cell.sex), cell.members[0]): cell.ages for cell in shell.cells if cell.ages is not None}
        assert tuple(sorted({first for first, _ in ages.values()})[1:]) == AGES[level]
        for sex, row in enumerate(slots, start=1):
            for start, slot in zip(starts, row.tolist(), strict=True):
                first, last = ages[sex, slot]
                assert first <= start <= last


def test_the_most_detailed_variant_keeps_every_cell() -> None:
    assert variants_of("t1t2")[3].slots.tolist() == list(range(46))


@pytest.mark.parametrize("table_class", TABLE_CLASSES)
def test_household_tables_are_those_of_the_specification(table_class: Literal["t3", "t4"]) -> None:
    tables = variants_of(table_class)
    published = tables_of("safetab-h").table(table_class)
    assert published.sizes == tuple(len(table.cells) for table in tables)
    assert [table.name for table in tables] == [layout.name for layout in published.layouts]
    for table, layout, basis in zip(tables, published.layouts, HOUSEHOLD_BASIS[table_class], strict=True):
        (shell,) = layout.shells.values()
        measured = {cell.members[0]: cell.label for cell in shell.cells if len(cell.members) == 1}
        assert tuple(measured[slot] for slot in range(shell.basis)) == table.cells
        for slot, codes in enumerate(basis):
            cells = [
                joint_cell(kind, tenure)
                for kind in range(1, 6)
                for tenure in range(1, 5)
                if (kind if table_class == "t3" else tenure) in codes
            ]
            assert sorted(cells) == np.flatnonzero(table.slots == slot).tolist()
    assert most_detailed_cells("safetab-h") == 20


def test_a_total_equal_to_a_threshold_earns_the_larger_table() -> None:
    totals = np.array([-5, 9, 10, 19, 20, 30])
    assert stat_levels(totals, (10, 20, 30), "t3").tolist() == [0, 0, 1, 1, 2, 3]
    assert stat_levels(totals, (10, 20, 30, 30), "t3").tolist() == [0, 0, 1, 1, 2, 3]
    assert stat_levels(totals, (10,), "t4").tolist() == [0, 0, 1, 1, 1, 1]
    for wrong in ((10, 20), (10, 5, 30)):
        with pytest.raises(ValueError, match="needs 3 thresholds"):
            stat_levels(totals, wrong, "t3")


def test_suppression_stops_at_the_states() -> None:
    config = load_p_config("ddhca")
    for level in config.levels:
        tables = adaptive_tables(config, level)
        whole = level.region_type in ("USA", "STATE", "PR-STATE")
        assert tables.zero_suppression == (0 if whole else Fraction(9999, 10000))
        assert tables.thresholds == config.thresholds["p", level.key]


@pytest.mark.parametrize(
    "name", ["usa_2", "state_1", "county_2", "tract_1", "place_2", "aiannh_2", "pr_tract_2"]
)
def test_without_suppression_all_regions_times_candidates_are_measured(
    world: World, persons: GroupCounter, name: str
) -> None:
    config = load_p_config("ddhca", {"zero_suppression_chance": "0"})
    found, level = measure(persons, config, name), level_of(name)
    groups = {
        (str(found.level.regions[region]), found.level.iterations[iteration])
        for region, iteration in zip(found.region, found.iteration, strict=True)
    }
    assert groups == key_domain(world, level.level, level.region_type)
    assert tuple(found.laws) == P_QUERIES
    listed = ListedGroups(found.region, found.iteration, found.stat_level, variants_of("t1t2"))
    truth = count_listed_groups(persons.groups(level, None), listed, threads=1)
    np.testing.assert_array_equal(found.indptr, truth.indptr)
    error = found.values - truth.values
    spread = max(float(law.parameter) for law in found.laws.values()) ** 0.5
    assert 0 < np.abs(error).max() < 12 * spread


@pytest.mark.parametrize("name", ["state_2", "county_1", "tract_2"])
def test_with_suppression_small_totals_are_missing_below_the_states_only(
    persons: GroupCounter, name: str
) -> None:
    everything = measure(persons, load_p_config("ddhca", {"zero_suppression_chance": "0"}), name)
    config = load_p_config("ddhca")
    found = measure(persons, config, name)
    if name == "state_2":
        assert len(found.region) == found.level.groups
        return
    bound = suppression_threshold(found.laws["stage2"], config.zero_suppression_chance)
    passing = (everything.stat_level > 0) | (everything.sums > bound)
    np.testing.assert_array_equal(everything.sums[passing], found.sums)
    np.testing.assert_array_equal(everything.iteration[passing], found.iteration)


def test_detailed_only_groups_have_a_total_and_no_ages(persons: GroupCounter) -> None:
    config = load_p_config("ddhca", {"zero_suppression_chance": "0"})
    found = measure(persons, config, "state_2")
    only = found.level.detailed_only[found.iteration]
    assert 0 < only.sum() < len(only)
    assert not found.stat_level[only].any()
    np.testing.assert_array_equal(found.stage1[only], found.sums[only])  # type: ignore[index]
    assert not measure(persons, config, "county_2").level.detailed_only.any()


def test_the_private_path_has_the_tables_of_the_true_totals(persons: GroupCounter) -> None:
    config = load_p_config("ddhca")
    level = level_of("state_2")
    rows = private_path(persons, config, level)
    assert len(rows.region) == persons.groups(level, None).level.groups
    np.testing.assert_array_equal(rows.stage1, np.add.reduceat(rows.values, rows.indptr[:-1]))
    below = private_path(persons, config, level_of("county_2"))
    assert np.all(below.stage1 > 0)


def test_a_record_in_more_groups_than_the_plan_says_stops(persons: GroupCounter) -> None:
    with pytest.raises(CheckError, match="nothing was measured"):
        measure(persons, load_p_config("ddhca"), "state_2", stable=2)


def test_both_classes_of_tables_share_the_counts_of_a_level(households: GroupCounter) -> None:
    county, state = level_of("county_2"), level_of("state_2")
    first = households.groups(county, None)
    assert households.groups(county, 9) is first
    assert households.groups(state, None).level.name == "state_2"
    assert households.groups(county, None) is not first  # of one level at a time
    with pytest.raises(CheckError, match="nothing was measured"):
        households.groups(county, 1)


@pytest.mark.parametrize("table_class", TABLE_CLASSES)
def test_households_are_measured_where_a_total_was_published(
    households: GroupCounter, table_class: Literal["t3", "t4"]
) -> None:
    config = load_h_config("ddhcb")
    level = level_of("county_2")
    public = households.groups(level, None).level
    rng = np.random.default_rng(1)
    region, iteration = np.nonzero(rng.random((len(public.regions), len(public.iterations))) < 0.02)
    codes = np.array([int(code) for code in public.iterations], np.int32)[iteration]
    totals = PopGroupTotals(
        np.full(len(region) + 1, 2, np.int8),
        np.append(region, 0).astype(np.int32),
        np.append(codes, 9998).astype(np.int32),
        np.append(rng.integers(-50, 30_000, len(region)), 5),
    )
    stable = stabilities(config, UNIVERSE)[level]
    key = derive_part_key(TestKey(3), "0" * 64, b"", "county_2")
    part = part_of(config, f"county_2_{table_class}")
    task = PartTask(config, households, totals, level, part, stable)
    found = measure_households(task, key)
    np.testing.assert_array_equal(region, found.region)
    np.testing.assert_array_equal(iteration, found.iteration)
    assert set(found.stat_level.tolist()) == set(range(len(variants_of(table_class))))
    truth = true_households(households, config.thresholds[table_class, level.key], totals, level, table_class)
    np.testing.assert_array_equal(found.indptr, truth.indptr)
    assert 0 < np.abs(found.values - truth.values).max() < 12 * float(part.queries[0].law.parameter) ** 0.5
