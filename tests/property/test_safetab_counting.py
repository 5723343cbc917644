"""Counting and table choice of SafeTab against a reading of the specification in plain Python."""

from __future__ import annotations

import random
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from censafe.evaluation.tables.phsafe import truth_tables
from censafe.model import ExactCounts
from censafe.model import GroupLevel as PublicLevel
from censafe.population.detailed.public_data import PopGroupTotals
from censafe.privacy.measure.adaptive import AdaptiveTables, count_adaptive
from censafe.privacy.measure.groups import count_listed_groups
from censafe.privacy.measure.rows import GroupRows
from censafe.products.detailed.codes.universe import PopulationGroupLevel, group_levels
from censafe.products.detailed.intake import GroupCounter
from censafe.products.detailed.recipe import listed_groups, true_persons
from censafe.products.detailed.tables import variants_of
from censafe.products.phsafe.definitions import phsafe_definitions
from censafe.tabulation.tables.counting import CountAccumulator
from support.reference_counts import reference_release, reference_truth
from support.safetab_reference import (
    PR_TYPES,
    US_TYPES,
    World,
    counter_of,
    key_domain,
    members,
    noiseless_households,
    noiseless_persons,
    person_cells,
    random_world,
    typed_records,
)
from support.typed_tables import Records, typed, with_facts

SEEDS = range(6)
Published = dict[tuple[str, str], tuple[int, list[int]]]


def worlds(seed: int, *, households: bool = False) -> tuple[World, GroupCounter]:
    rng = random.Random(f"{seed} {households}")
    world = random_world(rng, rng.choice((1, 40, 150)), households=households)
    return world, counter_of(world, batches=rng.choice((1, 3)))


def as_dict(rows: GroupRows, level: PublicLevel) -> Published:
    return {
        (str(level.regions[region]), level.iterations[iteration]): (
            stat_level,
            rows.values[start:stop].tolist(),
        )
        for region, iteration, stat_level, start, stop in zip(
            rows.region.tolist(),
            rows.iteration.tolist(),
            rows.stat_level.tolist(),
            rows.indptr[:-1].tolist(),
            rows.indptr[1:].tolist(),
            strict=True,
        )
    }


def test_the_levels_are_those_of_the_reference() -> None:
    assert [(level.region_type, level.level) for level in group_levels()] == [
        (region_type, level) for region_type in US_TYPES + PR_TYPES for level in (1, 2)
    ]


@pytest.mark.parametrize("seed", SEEDS)
def test_all_cells_of_all_groups_equal_the_reference(seed: int) -> None:
    world, counter = worlds(seed)
    for level in group_levels():
        source = counter.groups(level, None)
        public = source.level
        regions, iterations = public.regions.tolist(), public.iterations
        assert {(region, code) for region in regions for code in iterations} == key_domain(
            world, level.level, level.region_type
        )
        if not public.groups:
            continue
        expected = np.zeros((len(regions), len(iterations), 46), np.int64)
        for (region, code), records in members(world, level.level, level.region_type).items():
            expected[regions.index(region), iterations.index(code)] = person_cells(records, 3)  # type: ignore[arg-type]
        np.testing.assert_array_equal(expected, source.block(0, len(regions)).dense)
        for step in (1, 3):  # the same whatever the blocks of work
            pieces = [
                source.block(first, min(first + step, len(regions))).dense
                for first in range(0, len(regions), step)
            ]
            np.testing.assert_array_equal(expected, np.concatenate(pieces))


@pytest.mark.parametrize("thresholds", [(0, 1, 2), (2, 4, 6), (-3, 5, 5)])
@pytest.mark.parametrize("seed", SEEDS)
def test_without_noise_every_group_gets_the_table_its_total_earns(
    seed: int, thresholds: tuple[int, int, int]
) -> None:
    world, counter = worlds(seed)
    chance = Fraction(9, 10) if seed % 2 else Fraction(0)
    for level in group_levels():
        source = counter.groups(level, None)
        suppress = chance if level.granularity == "coarse" else Fraction(0)
        rows = count_adaptive(
            source, AdaptiveTables(thresholds, variants_of("t1t2"), suppress), groups_at_once=seed + 1
        )
        expected = noiseless_persons(world, level.level, level.region_type, thresholds, suppress=chance > 0)
        assert expected == as_dict(rows, source.level)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_truth_is_the_most_detailed_table_of_every_group_with_a_person(seed: int) -> None:
    world, counter = worlds(seed)
    flags = {one.code: one.detailed_only for one in world.universe.iterations}
    for level in group_levels():
        expected = {}
        for group, records in members(world, level.level, level.region_type).items():
            stat_level = 0 if flags[group[1]] else 3
            expected[group] = stat_level, person_cells(records, stat_level)  # type: ignore[arg-type]
        assert expected == as_dict(true_persons(counter, level), counter.groups(level, None).level)


@pytest.mark.parametrize("seed", SEEDS)
def test_parts_and_order_do_not_matter(seed: int) -> None:
    world, counter = worlds(seed)
    level = PopulationGroupLevel("TRACT", 2)
    source = counter.groups(level, None)
    regions = len(source.level.regions)
    expected = source.block(0, regions).dense
    shuffled = list(world.records)
    random.Random(seed).shuffle(shuffled)
    repeated = counter_of(world.having(shuffled), batches=4).groups(level, None)
    np.testing.assert_array_equal(expected, repeated.block(0, regions).dense)
    middle = len(shuffled) // 2
    halves = [counter_of(world.having(half)) for half in (shuffled[:middle], shuffled[middle:]) if half]
    np.testing.assert_array_equal(
        expected, sum(half.groups(level, None).block(0, regions).dense for half in halves)
    )


@pytest.mark.parametrize("table_class", ["t3", "t4"])
@pytest.mark.parametrize("seed", SEEDS)
def test_households_get_the_tables_that_published_totals_earn(seed: int, table_class: str) -> None:
    world, counter = worlds(seed, households=True)
    rng = random.Random(seed)
    thresholds = (0, 5, 50) if seed % 2 else (-999_999, 999_999, 999_999)
    for level in group_levels():
        source = counter.groups(level, None)
        domain = sorted(key_domain(world, level.level, level.region_type))
        totals = {group: rng.randint(-9, 99) for group in domain if rng.random() < 0.6}
        if domain:
            totals[domain[0][0], "9999"] = 7  # an iteration that is not a candidate
        rows = count_listed_groups(
            source,
            listed_groups(as_totals(totals, level, source.level), source.level, table_class, thresholds),  # type: ignore[arg-type]
            groups_at_once=seed + 1,
        )
        expected = noiseless_households(
            world, level.level, level.region_type, totals, table_class, thresholds
        )
        assert expected == as_dict(rows, source.level)


def as_totals(
    totals: Mapping[tuple[str, str], int], level: PopulationGroupLevel, public: PublicLevel
) -> PopGroupTotals:
    """The totals in any order, as the reader gives them."""
    listed = list(totals.items())
    random.Random(1).shuffle(listed)
    regions = public.regions.tolist()
    region_type = (*US_TYPES, *PR_TYPES).index(level.region_type)
    return PopGroupTotals(
        np.full(len(listed), region_type, np.int8),
        np.array([regions.index(region) for (region, _), _ in listed], np.int32),
        np.array([int(code) for (_, code), _ in listed], np.int32),
        np.array([count for _, count in listed], np.int64),
    )


def test_a_world_without_records_has_all_groups_and_no_counts() -> None:
    world, _ = worlds(0)
    counter = counter_of(world.having(()))
    for level in group_levels():
        source = counter.groups(level, 0)
        rows = count_adaptive(source, AdaptiveTables((1, 2, 3), variants_of("t1t2")))
        assert len(rows.region) == len(key_domain(world, level.level, level.region_type))
        assert not rows.values.any()


def test_the_same_record_twice_counts_twice() -> None:
    world, _ = worlds(1)
    once, _ = typed_records(world)
    twice, _ = typed_records(world.having(world.records * 2))
    np.testing.assert_array_equal(2 * np.diff(once.starts), np.diff(twice.starts))


# The engine against the record-by-record reference, on random populations full of faults.


HOUSEHOLDS = list(range(100000001, 100000011))
PERSON_TABLES = ("PH1_num", "PH2", "PH3", "PH4", "PH6", "PH7")


def code(*values: int) -> st.SearchStrategy[int | None]:
    """One of the values, or now and then a value that could not be read."""
    return st.one_of(st.sampled_from(values), st.sampled_from(values), st.sampled_from([*values, None]))


MAFID = st.sampled_from([*HOUSEHOLDS, HOUSEHOLDS[0], HOUSEHOLDS[0], None])
PERSONS = st.tuples(
    code(3, 3, 3, 5),
    MAFID,
    code(0, 3, 4, 5, 6, 11, 12, 17, 18, 90),
    code(1, 2),
    code(1, 1, 2, 3, 4, 5, 6, 7, 63),
    code(20, 21, 22, 23, 24, 25, 25, 26, 27, 28, 30, 33, 34, 36, 37),
)
UNITS = st.tuples(
    code(2, 2, 4),
    MAFID,
    code(0, 1, 12),
    code(0, 2),
    code(0, 1, 2),
    code(0, 1, 1, 2, 6, 7, 40),
    code(0, 1, 2, 3, 4),
    code(*range(8)),
    code(*range(13)),
    code(*range(6)),
)
GEO = st.tuples(code(2, 2, 2, 4), MAFID, st.sampled_from(["01", "06", "44"]))
TAU = st.fixed_dictionaries({name: st.sampled_from([1, 2, 3, 6]) for name in PERSON_TABLES})


@st.composite
def populations(draw: st.DrawFn) -> Records:
    """Mostly one unit and one place a household, with repeats, gaps and missing values on top."""
    others = draw(st.sampled_from([0, 2]))
    units = [(2, mafid, *draw(UNITS)[2:]) for mafid in HOUSEHOLDS] + draw(st.lists(UNITS, max_size=others))
    geo = [(2, mafid, draw(GEO)[2]) for mafid in HOUSEHOLDS] + draw(st.lists(GEO, max_size=others))
    persons = draw(st.lists(PERSONS, max_size=60))
    repeated = draw(st.lists(st.sampled_from(persons), max_size=10)) if persons else []
    return Records([*persons, *repeated], units, geo)


def rows(counts: ExactCounts) -> dict[tuple[str, ...], int]:
    """Keys (region, iteration, cell) and values in the order of the domain."""
    columns = [counts.domain.column(name).tolist() for name in counts.domain.names]
    if len(columns) == 2:
        columns.insert(1, ["*"] * counts.domain.size)
    keys = zip(*columns, strict=True)
    return dict(zip(keys, counts.values.tolist(), strict=True))


@settings(max_examples=10)
@given(records=populations(), tau=TAU, facts=st.booleans())
def test_release_counts_agree_with_the_reference(
    backend: Any, records: Records, tau: dict[str, int], facts: bool
) -> None:
    counted = CountAccumulator(phsafe_definitions(), tau=tau)
    tables = typed(records, backend)
    counted.add(with_facts(tables, records) if facts else tables)
    expected, unmatched = reference_release(records, tau)
    actual = {key: rows(exact) for key, exact in counted.finish().items()}
    assert expected.keys() == actual.keys()
    for key, table in expected.items():
        assert list(table) == list(actual[key]), key
        assert table == actual[key], key
    assert unmatched == counted.unmatched


@settings(max_examples=8)
@given(records=populations())
def test_truth_agrees_with_the_reference(backend: Any, records: Records) -> None:
    expected = reference_truth(records)
    counts = CountAccumulator(phsafe_definitions(), mode="truth")
    counts.add(typed(records, backend))
    for name, true_rows in truth_tables(counts).items():
        actual = [(row.region_type, row.region_id, row.iteration, row.cell, row.count) for row in true_rows]
        assert len(set(actual)) == len(actual)
        assert expected.get(name, set()) == set(actual), name
