"""Brute force over neighbors: one record more moves the exact answers of a level no further than the noise is made for.

The answers are those of the counting code that a release uses, before noise; the claims are the stability of
``products/detailed/codes/stability.py`` and the costs of ``products/detailed/plan.py``. Nothing here trusts the written proofs.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations_with_replacement

import numpy as np
import pytest
from numpy.typing import NDArray

from censafe.errors import CheckError
from censafe.model import Definition, PartPlan, QueryPlan, TableVariant
from censafe.privacy.loss.accountant import part_cost
from censafe.products.detailed.codes.parameters import read_universe
from censafe.products.detailed.codes.stability import group_noise_law, stability
from censafe.products.detailed.codes.universe import (
    CharacteristicIteration,
    PopulationGroupLevel,
    Universe,
    group_levels,
)
from censafe.products.detailed.config import load_p_config
from censafe.products.detailed.counting import GroupCounter
from censafe.products.detailed.households.variants import household_tables
from censafe.products.detailed.persons.tables import table_variants
from censafe.products.detailed.plan import P_DISJOINT, plan_release, stabilities
from support.safetab_reference import (
    Block,
    Household,
    Person,
    World,
    counter_of,
    random_blocks,
    random_world,
)

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
    only = before.level.detailed_only & (before.cells == len(table_variants()[3].slots))
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
                    most = max(most, check(difference, stable, table_variants(), rng))
                    pairs += 1
        assert (pairs, most) == (1092, stable)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("households", [False, True])
def test_random_worlds_at_all_levels(seed: int, households: bool) -> None:
    rng = random.Random(f"{seed} {households}")
    world = random_world(rng, 25, households=households)
    variants = (
        table_variants()
        if not households
        else tuple(table for kind in ("t3", "t4") for table in household_tables(kind))  # type: ignore[arg-type]
    )
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
    variants = table_variants() if kind == "person" else household_tables("t3")
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
