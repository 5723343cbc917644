"""Brute force over neighbors: one record more moves the exact answers of a level no further than the noise is made for.

The answers are those of the counting code that a release uses, before noise; the claims are the stability of
``products/detailed/codes/universe.py`` and the costs of ``products/detailed/plan.py``. Nothing here trusts the written proofs.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations_with_replacement

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from censafe.errors import CheckError
from censafe.model import Definition, PartPlan, QueryPlan, TableVariant
from censafe.privacy.loss.accountant import part_cost
from censafe.products.detailed.codes.parameters import read_universe
from censafe.products.detailed.codes.universe import (
    CharacteristicIteration,
    PopulationGroupLevel,
    Universe,
    bureau_stability,
    exact_stability,
    group_levels,
    group_noise_law,
    iteration_rows,
    require_stable,
    stability,
)
from censafe.products.detailed.config import load_p_config
from censafe.products.detailed.intake import GroupCounter
from censafe.products.detailed.plan import P_DISJOINT, plan_release, stabilities
from censafe.products.detailed.tables import variants_of
from support.safetab_reference import (
    Block,
    Household,
    Person,
    World,
    counter_of,
    random_blocks,
    random_world,
)
from support.safetab_universes import groups_of, make_universe

BLOCK = Block("01", "001", "000100", "1000", "00001", "0005")
FAR = Block("44", "003", "000200", "1001")


@dataclass(frozen=True)
class Change:
    """What one record changes at one level: exact answers with it less those without it."""

    totals: NDArray[np.int64]  # (regions, iterations)
    cells: NDArray[np.int64]  # (regions, iterations, most detailed cells)
    only: NDArray[np.bool_]  # detailed-only iterations

    def rows(self) -> tuple[int, int]:
        """How many detailed-only groups change, and how many others."""
        return int(np.abs(self.totals[:, self.only]).sum()), int(np.abs(self.totals[:, ~self.only]).sum())


def change(without: GroupCounter, with_it: GroupCounter, level: PopulationGroupLevel) -> Change | None:
    before, after = (counter.groups(level, None) for counter in (without, with_it))
    regions = len(before.level.regions)
    if not before.level.groups:
        return None
    one, other = before.block(0, regions), after.block(0, regions)
    # SafeTab-H has no detailed-only totals: all its groups are measured in one query.
    only = before.level.detailed_only & (before.cells == len(variants_of("t1t2")[3].slots))
    return Change(other.totals - one.totals, other.dense.astype(np.int64) - one.dense, only)


def check(found: Change, stable: int, variants: Sequence[TableVariant], rng: random.Random) -> int:
    """Compare a change with the claims for both definitions; returns the number of groups that changed."""
    only, others = found.rows()
    assert only + others <= stable
    assert set(np.unique(found.totals).tolist()) <= {-1, 0, 1}
    # Fixed stage-1 answers choose any table for any group; every choice changes one cell of a group by one.
    for _ in range(3):
        l1 = squared = 0
        for region, iteration in zip(*np.nonzero(np.abs(found.cells).any(axis=2)), strict=True):
            if found.only[iteration]:
                continue
            variant = rng.choice(list(variants))
            moved = np.bincount(variant.slots, found.cells[region, iteration], len(variant.cells))
            l1 += int(np.abs(moved).sum())
            squared += int((moved**2).sum())
        assert l1 == squared == others
    for definition in Definition:
        part = _part(definition, stable)
        scales = [(2 if definition is Definition.ZCDP else 1) * query.law.parameter for query in part.queries]
        loss = sum(
            (Fraction(n) / scale for n, scale in zip((only, others, others), scales, strict=True)),
            Fraction(0),
        )
        assert loss <= part.cost == part_cost(part)
    return only + others


def _part(definition: Definition, stable: int) -> PartPlan:
    rho = Fraction(159, 1000)
    queries = [
        QueryPlan("t1t2", name, group_noise_law(definition, stable, cost), cost)
        for name, cost in (("detailed_only", rho), ("stage1", rho / 10), ("stage2", rho * 9 / 10))
    ]
    return PartPlan("level", tuple(queries), P_DISJOINT)


def tiny_universe() -> Universe:
    """Two codes; the second is detailed-only as race alone, and one group exists below the states only."""
    iterations = (
        CharacteristicIteration("2001", "a alone", "alone", 2, False, False),
        CharacteristicIteration("2002", "b alone", "alone", 2, True, False),
        CharacteristicIteration("5001", "a", "combination", 2, False, False),
        CharacteristicIteration("5002", "b", "combination", 2, False, True),
        CharacteristicIteration("8001", "c", "ethnicity", 2, False, False),
    )
    members = dict(
        zip((one.code for one in iterations), map(frozenset, ({10}, {20}, {10}, {20}, {30})), strict=True)
    )
    return Universe({10: "a", 20: "b", 30: "c"}, iterations, members, "tiny")


def test_all_neighbors_of_all_small_populations() -> None:
    """Every multiset of up to two of twelve kinds of persons, and every person that can be added to it."""
    kinds = [
        Person(block, sex, 40, races, span)
        for block in (0, 1)
        for sex in (1, 2)
        for races, span in (((10,), 30), ((20,), 10), ((10, 20), 30))
    ]
    world = World((BLOCK, FAR), tiny_universe(), (), 2)
    counters = {
        chosen: counter_of(world.having(kinds[kind] for kind in chosen))
        for size in range(4)
        for chosen in combinations_with_replacement(range(len(kinds)), size)
    }
    rng = random.Random(1)
    for region_type in ("USA", "TRACT"):
        level = PopulationGroupLevel(region_type, 2)
        stable = stability(world.universe, 2, level.granularity, 2, "exact")
        most = 0
        blocks = {
            chosen: counter.groups(level, stable).block(0, 1 if region_type == "USA" else 2)
            for chosen, counter in counters.items()
        }
        only = counters[()].groups(level, stable).level.detailed_only
        pairs = 0
        for chosen, block in blocks.items():
            for kind in range(len(kinds)):
                more = tuple(sorted((*chosen, kind)))
                if len(chosen) < 3:
                    difference = Change(
                        blocks[more].totals - block.totals,
                        blocks[more].dense.astype(np.int64) - block.dense,
                        only,
                    )
                    most = max(most, check(difference, stable, variants_of("t1t2"), rng))
                    pairs += 1
        assert (pairs, most) == (1092, stable)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("households", [False, True])
def test_random_worlds_at_all_levels(seed: int, households: bool) -> None:
    rng = random.Random(f"{seed} {households}")
    world = random_world(rng, 25, households=households)
    keys = ("t3", "t4") if households else ("t1t2",)
    variants = tuple(table for key in keys for table in variants_of(key))
    with_all = counter_of(world)
    for place in rng.sample(range(len(world.records)), 4):
        without = counter_of(world.having(world.records[:place] + world.records[place + 1 :]))
        for level in group_levels():
            found = change(without, with_all, level)
            stable = stability(world.universe, level.level, level.granularity, world.max_race_codes, "exact")
            if found is not None:
                check(found, stable, variants, rng)


def worst_codes(universe: Universe, level: PopulationGroupLevel) -> tuple[tuple[int, ...], int]:
    """Eight codes of eight groups alone or in any combination, and a code of an ethnicity group."""
    some = universe.candidates(level.level, level.granularity).iterations
    races = [
        min(universe.members[one.code])
        for one in some
        if one.kind == "combination" and universe.members[one.code]
    ]
    span = [
        min(universe.members[one.code])
        for one in some
        if one.kind == "ethnicity" and universe.members[one.code]
    ]
    return tuple(races[:8]), span[0]


@pytest.mark.parametrize("level", group_levels(), ids=lambda level: level.key)
@pytest.mark.parametrize("kind", ["person", "household"])
def test_the_worst_codes_attain_the_stability_of_the_production_universe(
    level: PopulationGroupLevel, kind: str
) -> None:
    universe = read_universe()
    races, span = worst_codes(universe, level)
    block = replace(BLOCK, state="72", aiannh=None) if level.region_type.startswith("PR-") else BLOCK
    world = World((block,), universe, ())
    record: Person | Household = (
        Person(0, 1, 40, races, span) if kind == "person" else Household(0, 2, 3, races, span)
    )
    others = [replace(record, races=(races[0],)), replace(record, races=races[3:5])]
    found = change(counter_of(world.having(others)), counter_of(world.having([*others, record])), level)
    assert found is not None
    stable = stability(universe, level.level, level.granularity, 8, "bureau")
    variants = variants_of("t1t2" if kind == "person" else "t3")
    assert (stable, check(found, stable, variants, random.Random(1))) == (9, 9)


def test_a_record_in_too_many_groups_stops_before_noise() -> None:
    universe = read_universe()
    level = PopulationGroupLevel("TRACT", 2)
    races, span = worst_codes(universe, level)
    counter = counter_of(World((BLOCK,), universe, (Person(0, 1, 40, races, span),)))
    counter.groups(level, 9)
    with pytest.raises(CheckError, match="1 combinations of codes are in more than 8 groups"):
        counter.groups(level, 8)


def test_the_plan_pays_what_the_worst_record_costs() -> None:
    """With f rho, (1 - f) rho and rho, nine changed groups of either kind cost exactly rho."""
    config = load_p_config("ddhca")
    universe = read_universe()
    stable = stabilities(config, universe)
    for part in plan_release(config, universe).parts:
        level = next(level for level in config.levels if level.key == part.name)
        bound = stable[level]
        parameters = [query.law.parameter for query in part.queries]
        for only in range(bound + 1):
            changes = (only, bound - only, bound - only)
            loss = sum(
                (
                    Fraction(changed) / (2 * sigma2)
                    for changed, sigma2 in zip(changes, parameters, strict=True)
                ),
                Fraction(0),
            )
            assert loss == part.cost


@pytest.mark.parametrize("seed", range(3))
def test_what_is_public_does_not_depend_on_the_records(seed: int) -> None:
    """Neighbors have the same regions, iterations, detailed-only groups and key domain."""
    rng = random.Random(seed)
    world = random_world(rng, 10)
    for level in group_levels():
        with_all, without = (
            counter_of(some).groups(level, None).level for some in (world, world.having(world.records[1:]))
        )
        np.testing.assert_array_equal(with_all.regions, without.regions)
        np.testing.assert_array_equal(with_all.detailed_only, without.detailed_only)
        assert with_all.iterations == without.iterations


def test_a_block_in_two_areas_of_one_type_cannot_be_said() -> None:
    """The geography holds one place and one AIANNH area a block, so a record is in one region of a type at most."""
    blocks = random_blocks(random.Random(1))
    world = World(blocks, tiny_universe(), (Person(3, 1, 40, (10,), 30),), 2)
    for level in group_levels():
        source = counter_of(world).groups(level, None)
        if source.level.groups:
            nonzero = np.flatnonzero(source.block(0, len(source.level.regions)).totals.any(axis=1))
            assert len(nonzero) <= 1


# Stability attacked by enumeration: no record exceeds it, and some record attains the exact one.


CODES = list(range(1000, 1006))


def partial_partition(label):
    """Disjoint sets of some of the codes: a number per code, 0 for none."""
    return st.lists(st.integers(0, 4), min_size=len(CODES), max_size=len(CODES)).map(
        lambda marks: [
            (label, {code for code, mark in zip(CODES, marks, strict=True) if mark == number})
            for number in sorted(set(marks) - {0})
        ]
    )


UNIVERSES = st.builds(
    lambda alone, combination, ethnicity: make_universe(
        ("combination", set()), *alone, *combination, *ethnicity
    ),
    partial_partition("alone"),
    partial_partition("combination"),
    partial_partition("ethnicity"),
)


def every_record(universe, max_race_codes):
    """All combinations of up to m race codes with every ethnicity code, as rows of codes."""
    codes = list(universe.codes)
    rows = [
        [*races, *[0] * (max_race_codes - len(races)), ethnicity]
        for size in range(1, max_race_codes + 1)
        for races in combinations_with_replacement(codes, size)
        for ethnicity in codes
    ]
    return np.array(rows, dtype=np.int32).reshape(-1, max_race_codes + 1)


@settings(max_examples=60)
@given(universe=UNIVERSES, max_race_codes=st.integers(1, 3))
def test_no_record_exceeds_the_stability_and_one_attains_the_exact_one(universe, max_race_codes):
    records = every_record(universe, max_race_codes)
    rows = iteration_rows(universe, 2, "detailed", records)
    exact = stability(universe, 2, "detailed", max_race_codes, "exact")
    assert exact == rows.most
    assert exact <= stability(universe, 2, "detailed", max_race_codes, "bureau")


@settings(max_examples=60)
@given(universe=UNIVERSES, max_race_codes=st.integers(1, 3), data=st.data())
def test_the_map_is_the_rule_read_with_sets(universe, max_race_codes, data):
    records = every_record(universe, max_race_codes)
    if not len(records):
        return
    chosen = data.draw(st.lists(st.integers(0, len(records) - 1), min_size=1, max_size=20))
    rows = iteration_rows(universe, 2, "detailed", records[chosen])
    for position, record in enumerate(records[chosen].tolist()):
        ordinals = rows.ordinals[rows.indptr[position] : rows.indptr[position + 1]]
        found = [universe.candidates(2, "detailed").codes[ordinal] for ordinal in ordinals]
        assert sorted(groups_of(universe, 2, "detailed", record[:-1], record[-1])) == found


def test_a_universe_where_the_bureaus_formula_is_too_small():
    codes = list(range(1001, 1009))
    universe = make_universe(
        ("alone", set(codes)), *(("combination", {code}) for code in codes), ("ethnicity", {1001})
    )
    candidates = universe.candidates(2, "detailed")
    assert (bureau_stability(universe, candidates, 8), exact_stability(universe, candidates, 8)) == (9, 10)
    worst = np.array([[*codes, 1001]])
    assert iteration_rows(universe, 2, "detailed", worst).most == 10
    for rule in ("bureau", "exact"):
        assert stability(universe, 2, "detailed", 8, rule) == 10


def test_a_small_universe_where_the_exact_rule_needs_less():
    universe = make_universe(("alone", {1001}), ("combination", {1001}), ("ethnicity", {1002}))
    assert stability(universe, 2, "coarse", 8, "bureau") == 9
    assert stability(universe, 2, "coarse", 8, "exact") == 3
    assert stability(universe, 1, "coarse", 8, "exact") == 0


@pytest.mark.parametrize(
    ("level", "granularity"), [(1, "detailed"), (1, "coarse"), (2, "detailed"), (2, "coarse")]
)
def test_the_worst_production_record_attains_nine(level, granularity):
    universe = read_universe()
    candidates = universe.candidates(level, granularity)
    races = [min(universe.members[one.code]) for one in candidates.iterations if one.kind == "combination"][
        :8
    ]
    ethnic = next(min(universe.members[one.code]) for one in candidates.iterations if one.kind == "ethnicity")
    rows = iteration_rows(universe, level, granularity, np.array([[*races, ethnic]]))
    assert 9 == rows.most == stability(universe, level, granularity, 8, "exact")


def test_random_production_records_never_exceed_nine():
    universe = read_universe()
    draw = np.random.default_rng(5)
    records = draw.choice(np.array(list(universe.codes)), (20_000, 9))
    records[:, :8][np.arange(8) >= draw.integers(1, 9, 20_000)[:, None]] = 0
    for level in (1, 2):
        for granularity in ("detailed", "coarse"):
            assert iteration_rows(universe, level, granularity, records).most <= 9


def test_the_guard_stops_what_the_noise_is_not_made_for():
    indptr = np.array([0, 3, 12, 12, 22])
    level = PopulationGroupLevel("COUNTY", 2)
    require_stable(indptr, 10, level)
    with pytest.raises(CheckError, match=r"\(COUNTY, 2\): 1 combinations of codes are in more than 9 groups"):
        require_stable(indptr, 9, level)
