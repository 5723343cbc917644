"""Persons and households drawn together for the DHC, against slow counts of the same records and the rules as the sheets give them."""

import csv
import json
from collections import Counter
from functools import cache

import numpy as np
import pytest

from censafe.population.blocks.dhc.counts import DhcData
from censafe.population.blocks.dhc.tables import HOUSEHOLD_SHAPE, PERSON_SHAPE, PL94_SHAPE, quarters
from censafe.population.synthetic.areas import block_geocodes
from censafe.population.synthetic.dhc import (
    DhcDraw,
    draw_dhc,
    person_numbers,
    unit_numbers,
)
from censafe.population.synthetic.plan import make_plan
from censafe.population.synthetic.shipped import marginals, rows_of_data
from support.drawn_histograms import draw_histograms
from support.shared import shared_data

PERSONS = 60_000
SEVEN = ("size", "couple", "own_child_class", "child_class", "multigen", "relatives", "child_present")
HHAGE = (15, 25, 35, 45, 55, 60, 65, 75, 85)


@pytest.fixture(scope="module")
def draw() -> DhcDraw:
    return draw_dhc(make_plan(PERSONS, ("44",), 3))


@pytest.fixture(scope="module")
def data() -> DhcData:
    return draw_histograms(PERSONS, ("44",), 3)


def rows(name: str) -> list[dict[str, str]]:
    return list(csv.DictReader(shared_data(f"topdown/{name}").read_text().splitlines()))


def counted(data: DhcData, name: str, shape: tuple[int, ...]) -> Counter[tuple[int, ...]]:
    """Entries of a histogram as (position of the block, level, level, ...)."""
    held = data.histograms[name]
    block = np.repeat(np.arange(held.nodes), np.diff(held.node_ptr))
    levels = np.unravel_index(held.cell, shape)
    found = zip(block.tolist(), *(level.tolist() for level in levels), strict=True)
    return Counter(dict(zip(found, held.count.tolist(), strict=True)))


def members(draw: DhcDraw) -> list[list[dict[str, int]]]:
    """Persons of every unit."""
    people = person_numbers(draw)
    columns = {name: getattr(people, name).tolist() for name in people._fields}
    each = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    ends = np.cumsum(draw.units.pop).tolist()
    return [each[end - size : end] for end, size in zip(ends, draw.units.pop.tolist(), strict=True)]


def children(ages: list[int]) -> str:
    young, older = any(age < 6 for age in ages), any(6 <= age < 18 for age in ages)
    return "both" if young and older else "u6" if young else "6_17" if older else "none"


def household(unit: list[dict[str, int]]) -> dict[str, int]:
    """Levels of a household without its tenure, from its members."""
    head = unit[0]
    codes = [one["relship"] for one in unit]
    names = {21: "married_opposite", 23: "married_same", 22: "cohabiting_opposite", 24: "cohabiting_same"}
    couple = next((names[code] for code in codes if code in names), "none")
    child = any(25 <= code <= 27 for code in codes)
    third = any(code in (29, 30, 31) for code in codes)
    key = (
        str(min(len(unit), 7)),
        couple,
        children([one["age"] for one in unit if 25 <= one["relship"] <= 27]),
        children([one["age"] for one in unit if one["relship"] > 24]),
        str(int(child and third)),
        str(int(any(code in (21, 23) or 25 <= code <= 33 for code in codes))),
        str(int(any(one["age"] < 18 for one in unit))),
    )
    oldest = max(one["age"] for one in unit)
    return {
        "sex": head["sex"] - 1,
        "hhage": sum(head["age"] >= start for start in HHAGE) - 1,
        "hisp": head["hispanic"] - 1,
        "race": min(head["race"], 7) - 1,
        "elderly": 3 if oldest >= 75 else 2 if oldest >= 65 else 1 if oldest >= 60 else 0,
        "hhtype_dhch": types()[key],
    }


@cache
def types() -> dict[tuple[str, ...], int]:
    return {tuple(row[name] for name in SEVEN): int(row["level"]) for row in rows("dhch_hhtype_levels.csv")}


@cache
def kinds() -> dict[str, dict[str, str]]:
    return {code: row for row in rows("hhgq_levels.csv")[1:] for code in row["input_gqtype"].split()}


def relgq(person: dict[str, int], size: int) -> int:
    if person["relship"] >= 37:
        return int(kinds()[str(person["quarters"])]["relgq"])
    return int(size > 1) if person["relship"] == 20 else person["relship"] - 19


def test_histograms_are_those_of_the_records_counted_one_by_one(draw, data):
    assert (
        block_geocodes(draw.plan, draw.blocks.tract, draw.blocks.block).tolist()
        == data.spine.leaf.codes.tolist()
    )
    persons: Counter[tuple[int, ...]] = Counter()
    redistricting: Counter[tuple[int, ...]] = Counter()
    households: Counter[tuple[int, ...]] = Counter()
    for unit, block, tenure in zip(
        members(draw), draw.units.place.tolist(), draw.units.tenure.tolist(), strict=True
    ):
        for one in unit:
            race = (one["hispanic"] - 1, one["race"] - 1)
            level = relgq(one, len(unit))
            persons[(block, level, one["sex"] - 1, one["age"], *race)] += 1
            hhgq = int(kinds()[str(one["quarters"])]["hhgq8"]) if one["quarters"] else 0
            redistricting[(block, hhgq, int(one["age"] >= 18), *race)] += 1
        if unit and not unit[0]["quarters"]:
            found = household(unit)
            kind = found.pop("hhtype_dhch")
            households[(block, *found.values(), {1: 0, 2: 1, 3: 2, 4: 2}[tenure], kind)] += 1
    assert persons == counted(data, "dhc-persons", PERSON_SHAPE)
    assert redistricting == counted(data, "pl94-persons", PL94_SHAPE)
    assert households == counted(data, "dhc-households", HOUSEHOLD_SHAPE)


def test_units_are_counted_by_block(draw, data):
    fields = unit_numbers(draw)
    units: Counter[tuple[int, ...]] = Counter()
    facilities = np.zeros((data.spine.leaf.nodes, 25), np.int32)
    for block, tenure, vacs, code in zip(
        draw.units.place.tolist(),
        fields.tenure.tolist(),
        fields.vacs.tolist(),
        fields.quarters.tolist(),
        strict=True,
    ):
        level = int(kinds()[str(code)]["tenvacgq"]) if code else vacs + 3 if vacs else tenure - 1
        units[(block, level)] += 1
        facilities[block, int(kinds()[str(code)]["hhgq25"]) if code else 0] += 1
    assert units == counted(data, "dhc-units", (35,))
    assert facilities.tolist() == data.facilities.tolist()
    occupancy: Counter[tuple[int, ...]] = Counter()
    for (block, level), count in units.items():
        if level < 11:
            occupancy[(block, int(level < 4))] += count
    assert occupancy == counted(data, "pl94-units", (2,))


def test_every_edit_rule_holds(data):
    rules = json.loads(shared_data("topdown/edit_rules.json").read_text())
    persons = [cell[1:] for cell in counted(data, "dhc-persons", PERSON_SHAPE)]
    for rule in rules["dhcp"]["rules"]:
        ages = [cell[2] for cell in persons if cell[0] == rule["relgq"]]
        assert all(rule["age_min_allowed"] <= age <= rule["age_max_allowed"] for age in ages), rule
    names = ("sex", "hhage", "hisp", "race", "elderly", "hhtenshort_3lev", "hhtype_dhch")
    households = [
        dict(zip(names, cell[1:], strict=True)) for cell in counted(data, "dhc-households", HOUSEHOLD_SHAPE)
    ]
    for rule in rules["dhch"]["rules"]:
        zero = {name: set(levels) for name, levels in rule["zero_when"].items()}
        assert not any(all(one[name] in zero[name] for name in zero) for one in households), rule["rule"]


def test_householders_and_facilities(draw, data):
    for unit, pop, code in zip(
        members(draw), draw.units.pop.tolist(), unit_numbers(draw).quarters.tolist(), strict=True
    ):
        assert [one["relship"] == 20 for one in unit] == [not code and place == 0 for place in range(pop)]
        assert pop > 0 or not code
        assert {one["quarters"] for one in unit} <= {code}
    inside = np.zeros((data.spine.leaf.nodes, 42), np.int64)
    for (block, level, *_), count in counted(data, "dhc-persons", PERSON_SHAPE).items():
        inside[block, level] += count
    assert bool((inside[:, 18:] >= data.facilities[:, 1:]).all())
    assert bool(((data.facilities[:, 1:] > 0) >= (inside[:, 18:] > 0)).all())


def test_shares_are_near_the_published_ones():
    data = draw_histograms(400_000, ("44", "50"), 5)
    published = marginals()["published"]
    held = data.histograms["dhc-persons"]
    relgq_of, sex, age, hispanic, race = np.unravel_index(held.cell, PERSON_SHAPE)
    weight = held.count / held.count.sum()
    assert weight[age < 18].sum() == pytest.approx(published["age"]["under_18"], abs=0.02)
    assert weight[age > 64].sum() == pytest.approx(published["age"]["over_64"], abs=0.02)
    assert weight[relgq_of > 17].sum() == pytest.approx(published["group_quarters"]["person_share"], abs=0.01)
    assert weight[sex == 0].sum() == pytest.approx(0.49, abs=0.02)
    assert set(np.unique(relgq_of).tolist()) >= set(range(18))
    assert len(np.unique(race)) > 30
    assert weight[hispanic == 1].sum() == pytest.approx(0.11, abs=0.03)  # Rhode Island 16.6 %, Vermont 2.4 %
    empty = np.diff(held.node_ptr) == 0
    assert 0.2 < empty.mean() < 0.4
    vacant, occupied = np.bincount(data.histograms["pl94-units"].cell, data.histograms["pl94-units"].count, 2)
    assert vacant / (vacant + occupied) == pytest.approx(published["vacancy"]["vacant_share"], abs=0.02)


def test_all_kinds_of_quarters_are_drawn():
    data = draw_histograms(4_000_000, ("48",), 1)
    assert (data.facilities[:, 1:].sum(axis=0) > 0).tolist() == [True] * 24
    levels = np.unique(np.unravel_index(data.histograms["dhc-persons"].cell, PERSON_SHAPE)[0])
    assert levels.tolist() == list(range(42))
    assert int(data.histograms["dhc-persons"].count.sum()) == 4_000_000


def test_race_clusters_in_blocks(data):
    held = data.histograms["dhc-persons"]
    race = np.unravel_index(held.cell, PERSON_SHAPE)[4]
    block = np.repeat(np.arange(held.nodes), np.diff(held.node_ptr))
    white = np.bincount(block, held.count * (race == 0), held.nodes)
    persons = np.bincount(block, held.count, held.nodes)
    known = persons > 20
    share = white[known] / persons[known]
    independent = np.sqrt(share.mean() * (1 - share.mean()) / persons[known]).mean()
    assert share.std() > 1.5 * independent


def test_the_same_seed_gives_the_same_histograms(data):
    again, other = draw_histograms(PERSONS, ("44",), 3), draw_histograms(PERSONS, ("44",), 4)
    cells = [one.histograms["dhc-persons"].cell.tolist() for one in (data, again, other)]
    assert cells[0] == cells[1] != cells[2]


def test_tables_are_those_of_the_sheets():
    given = [(row["hhgq25"], row["mdf_gqtype"], row["hhgq8"]) for row in rows("hhgq_levels.csv")[1:]]
    assert given == [(str(one.level), f"{one.code:03d}", str(one.hhgq8)) for one in quarters()]
    drawn = rows_of_data("group_quarters.csv")
    assert [int(row["code"]) for row in drawn] == [one.code for one in quarters()]
