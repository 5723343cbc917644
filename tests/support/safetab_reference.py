"""SafeTab-P and SafeTab-H without noise in plain Python, from the specification (sections 4, 5 and 6) and nothing else.

A world is a list of records, a geography and the facts about iterations; the package is used only to turn a world into
the typed arrays that its counting reads.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from censafe.geography.grfc import Areas
from censafe.products.detailed.codes.universe import CharacteristicIteration, Universe
from censafe.products.detailed.intake import GroupCounter
from censafe.tabulation.groups.counting import Batch, GroupedRecords, sort_by_block

AGES = {
    1: (18, 45, 65),
    2: (5, 18, 25, 35, 45, 55, 65, 75),
    3: (5, 10, 15, 18, 20, 21, 22, 25, 30, 35, 40, 45, 50, 55, 60, 62, 65, 67, 70, 75, 80, 85),
}
HOUSEHOLD_BASIS = {
    "t3": (
        ((1, 2, 3, 4, 5),),
        ((1, 2, 3), (4, 5)),
        ((1,), (2, 3), (4,), (5,)),
        ((1,), (2,), (3,), (4,), (5,)),
    ),
    "t4": (((1, 2, 3, 4),), ((1,), (2,), (3, 4))),
}
US_TYPES = ("USA", "STATE", "COUNTY", "TRACT", "PLACE", "AIANNH")
PR_TYPES = ("PR-STATE", "PR-COUNTY", "PR-TRACT", "PR-PLACE")
DETAILED_TYPES = ("USA", "STATE", "PR-STATE")


@dataclass(frozen=True)
class Block:
    """A block: state, county, tract and block digits, place and AIANNH area; None for none."""

    state: str
    county: str
    tract: str
    block: str
    place: str | None = None
    aiannh: str | None = None


@dataclass(frozen=True)
class Person:
    block: int  # position in the world's blocks
    sex: int
    age: int
    races: tuple[int, ...]
    span: int


@dataclass(frozen=True)
class Household:
    block: int
    household_type: int
    tenure: int
    races: tuple[int, ...]
    span: int


@dataclass(frozen=True)
class World:
    blocks: tuple[Block, ...]  # sorted
    universe: Universe
    records: tuple[Person | Household, ...]
    max_race_codes: int = 8

    def having(self, records: Iterable[Person | Household]) -> World:
        return replace(self, records=tuple(records))


def region_of(block: Block, region_type: str) -> str | None:
    """Identifier of the region of a type that a block lies in."""
    if region_type.startswith("PR-") != (block.state == "72"):
        return None
    kind = region_type.removeprefix("PR-")
    return {
        "USA": "1",
        "STATE": block.state,
        "COUNTY": block.state + block.county,
        "TRACT": block.state + block.county + block.tract,
        "PLACE": None if block.place is None else block.state + block.place,
        "AIANNH": block.aiannh,
    }[kind]


def candidates(universe: Universe, level: int, region_type: str) -> list[CharacteristicIteration]:
    """Iterations that exist at a level and type of region."""
    detailed = region_type in DETAILED_TYPES
    return [
        one
        for one in universe.iterations
        if one.level == level and not (one.coarse_only if detailed else one.detailed_only)
    ]


def iterations_of(
    universe: Universe, level: int, region_type: str, races: Iterable[int], span: int
) -> set[str]:
    """Iterations of one record."""
    some = candidates(universe, level, region_type)

    def holding(kind: str, code: int) -> set[str]:
        return {one.code for one in some if one.kind == kind and code in universe.members[one.code]}

    codes = set(races)
    alone = set.intersection(*(holding("alone", code) for code in codes)) if codes else set()
    return alone.union(*(holding("combination", code) for code in codes), holding("ethnicity", span))


def key_domain(world: World, level: int, region_type: str) -> set[tuple[str, str]]:
    """All population groups of a level, populated or not."""
    regions = {region_of(block, region_type) for block in world.blocks} - {None}
    codes = [one.code for one in candidates(world.universe, level, region_type)]
    return {(region, code) for region in regions if region is not None for code in codes}


def members(world: World, level: int, region_type: str) -> dict[tuple[str, str], list[Person | Household]]:
    """Records of every group that is not empty."""
    found: dict[tuple[str, str], list[Person | Household]] = defaultdict(list)
    for record in world.records:
        region = region_of(world.blocks[record.block], region_type)
        if region is not None:
            for code in iterations_of(world.universe, level, region_type, record.races, record.span):
                found[region, code].append(record)
    return found


def person_cells(persons: Sequence[Person], stat_level: int) -> list[int]:
    """The measured cells of a group: the total, or sex by age."""
    if stat_level == 0:
        return [len(persons)]
    starts = (0, *AGES[stat_level])
    stops = (*AGES[stat_level], 200)
    return [
        sum(person.sex == sex and start <= person.age < stop for person in persons)
        for sex in (1, 2)
        for start, stop in zip(starts, stops, strict=True)
    ]


def noiseless_persons(
    world: World, level: int, region_type: str, thresholds: Sequence[int], *, suppress: bool
) -> dict[tuple[str, str], tuple[int, list[int]]]:
    """Stat level and cells of every group that a release of infinite budget publishes."""
    flags = {one.code: one.detailed_only for one in world.universe.iterations}
    records = members(world, level, region_type)
    published = {}
    for group in key_domain(world, level, region_type):
        persons = [record for record in records.get(group, []) if isinstance(record, Person)]
        only_total = flags[group[1]] and region_type in DETAILED_TYPES
        stat_level = 0 if only_total else sum(len(persons) >= threshold for threshold in thresholds)
        dropped = suppress and region_type not in DETAILED_TYPES and stat_level == 0 and len(persons) <= 0
        if not dropped:
            published[group] = stat_level, person_cells(persons, stat_level)
    return published


def noiseless_households(
    world: World,
    level: int,
    region_type: str,
    totals: Mapping[tuple[str, str], int],
    table_class: str,
    thresholds: Sequence[int],
) -> dict[tuple[str, str], tuple[int, list[int]]]:
    """Stat level and measured cells of every group that has a published total and is a candidate."""
    records = members(world, level, region_type)
    used = thresholds[: len(HOUSEHOLD_BASIS[table_class]) - 1]
    published = {}
    for group in key_domain(world, level, region_type) & set(totals):
        stat_level = sum(totals[group] >= threshold for threshold in used)
        column = "household_type" if table_class == "t3" else "tenure"
        codes = [getattr(record, column) for record in records.get(group, [])]
        basis = HOUSEHOLD_BASIS[table_class][stat_level]
        published[group] = stat_level, [sum(code in cell for code in codes) for cell in basis]
    return published


def areas_of(world: World) -> Areas:
    keys = [int(block.state + block.county + block.tract + block.block) for block in world.blocks]
    return Areas(
        np.array(keys, np.int64),
        np.array([int(block.place or 99999) for block in world.blocks], np.int32),
        np.array([int(block.aiannh or 9999) for block in world.blocks], np.int32),
        tuple(sorted({block.state for block in world.blocks})),
    )


def typed_records(world: World, *, batches: int = 1) -> tuple[GroupedRecords, np.ndarray]:
    codes: dict[tuple[int, ...], int] = {}
    rows = []
    for record in world.records:
        padded = (*record.races, *[0] * (world.max_race_codes - len(record.races)), record.span)
        combo = codes.setdefault(padded, len(codes))
        if isinstance(record, Person):
            cell, cells = 23 * (record.sex - 1) + sum(record.age >= cut for cut in AGES[3]), 46
        else:
            cell, cells = 4 * (record.household_type - 1) + record.tenure - 1, 20
        rows.append((record.block, combo, cell))
    cells = 46 if not world.records or isinstance(world.records[0], Person) else 20
    table = np.array(rows, np.int64).reshape(-1, 3)
    parts = [
        Batch(part[:, 0].astype(np.int32), part[:, 1].astype(np.int32), part[:, 2].astype(np.uint8))
        for part in np.array_split(table, batches)
    ]
    combos = np.array(list(codes), np.int16).reshape(-1, world.max_race_codes + 1)
    places = [part.block for part in parts]
    sorted_ = sort_by_block(places, parts, blocks=len(world.blocks), cells=cells, combos=len(combos))
    return sorted_, combos


def counter_of(world: World, *, batches: int = 1) -> GroupCounter:
    records, combos = typed_records(world, batches=batches)
    return GroupCounter(areas_of(world), world.universe, combos, records)


def random_universe(rng: random.Random, codes: int = 10) -> Universe:
    """Twelve-odd iterations: every kind at both levels, a code in one of a kind at most, flags at random."""
    numbers = [1000 + 10 * number for number in range(codes)]
    iterations: list[CharacteristicIteration] = []
    sets: dict[str, frozenset[int]] = {}
    for level in (1, 2):
        for first, kind in ((2, "alone"), (5, "combination"), (8, "ethnicity")):
            group_of = {number: rng.randrange(4 if level == 1 else 6) for number in numbers}
            for group in range(3 if level == 1 else 5):  # the last group has no iteration
                flags = rng.choice(((False, False), (False, False), (True, False), (False, True)))
                code = f"{first}{level}{group:02d}"
                iterations.append(CharacteristicIteration(code, f"{kind} {code}", kind, level, *flags))  # type: ignore[arg-type]
                sets[code] = frozenset(number for number in numbers if group_of[number] == group)
    rng.shuffle(iterations)
    return Universe({number: f"code {number}" for number in numbers}, tuple(iterations), sets, "random")


def random_blocks(rng: random.Random, states: Sequence[str] = ("01", "44", "72")) -> tuple[Block, ...]:
    """Two counties of two tracts of two blocks a state, with places and with AIANNH areas that cross states."""
    return tuple(
        Block(
            state,
            county,
            tract,
            block,
            rng.choice((None, "00001", "00002")),
            rng.choice((None, None, "0005", "0006")) if state != "72" else None,
        )
        for state in states
        for county in ("001", "003")
        for tract in ("000100", "000200")
        for block in ("1000", "1001")
    )


def random_world(rng: random.Random, records: int, *, households: bool = False) -> World:
    """A small world; half of its records are alike, so that groups of some size occur."""
    universe, blocks = random_universe(rng), random_blocks(rng)
    codes = list(universe.codes)
    most = rng.choice((1, 3, 8))

    def record() -> Person | Household:
        races = tuple(rng.sample(codes, rng.randint(1, most)))
        where, span = rng.randrange(len(blocks)), rng.choice(codes)
        if households:
            return Household(where, rng.randint(1, 5), rng.randint(1, 4), races, span)
        return Person(where, rng.randint(1, 2), rng.choice((*range(116), 0, 17, 18, 115)), races, span)

    common = record()
    found = [
        replace(record(), races=common.races, span=common.span) if rng.random() < 0.5 else record()
        for _ in range(records)
    ]
    return World(blocks, universe, tuple(found), most)
