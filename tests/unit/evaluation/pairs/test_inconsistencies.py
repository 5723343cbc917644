from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from censafe.evaluation.areas import Strata, level_areas
from censafe.evaluation.counts.pairing import Pair, PublishedRun, pair_histograms
from censafe.evaluation.pairs.inconsistencies import (
    CONTRADICTIONS,
    COUNTED,
    INCONSISTENCIES,
    NOT_MEASURED,
    UNMEASURED,
    count_contradictions,
    inconsistencies,
)
from censafe.evaluation.summary.counts import SummarySources
from censafe.geography.spines.tree import LevelRule, Spine, build_spine
from censafe.model import Attribute, ExactHistograms, ProtectedUnit, Schema, SparseLevel
from censafe.model.topdown.histograms import HistogramSchema
from censafe.products.topdown.configuration.shipped import shipped_schemas
from support.histograms import level_of_records
from support.pairs import UNITS, pair_of

CHILD, ADULT, IN_QUARTERS = 0, 6, 18  # cells of hhgq 2, votingage 2, hispanic 2, race 3
YEARS = HistogramSchema(
    Schema(
        "years",
        (Attribute("relgq", 42), Attribute("sex", 2), Attribute("age", 116), Attribute("hispanic", 2)),
    ),
    ProtectedUnit.PERSON,
)
HOUSEHOLDS = HistogramSchema(
    Schema(
        "households",
        (Attribute("sex", 2), Attribute("hhage", 9), Attribute("hisp", 2), Attribute("hhtype", 522)),
    ),
    ProtectedUnit.HOUSEHOLD,
)
MALE, FEMALE = 0, 1


def grids() -> tuple[NDArray[np.int64], ...]:
    """Five possible blocks, and the same made impossible one kind each."""
    true = np.zeros((5, 24), np.int64)
    true[:, ADULT], true[:, CHILD] = 4, 2
    true[4, IN_QUARTERS] = 5
    units = np.zeros((5, 2), np.int64)
    units[:] = [1, 3]  # one vacant, three occupied
    published, occupancy = true.copy(), units.copy()
    published[0] = 0
    published[0, ADULT] = 2  # two persons in three occupied units
    occupancy[1] = [4, 0]  # six persons, no occupied unit: none is occupied
    published[2] = 0  # nobody in three occupied units
    published[3] = 0
    published[3, CHILD] = 31  # only children, more than ten a household
    occupancy[4] = [0, 4]  # every unit occupied
    published[4, ADULT] = published[4, CHILD] = 0  # nobody in households, five in group quarters
    return true, units, published, occupancy


def rows(pairs: tuple[Pair, ...], level: str = "Block", **choices: Any) -> list[dict[str, Any]]:
    areas = level_areas(pairs[0].spine, level)
    found: list[dict[str, Any]] = inconsistencies(SummarySources(pairs), [areas], **choices).to_pylist()
    return found


def counts(found: list[dict[str, Any]], run_id: str) -> dict[tuple[str, str], tuple[int, int]]:
    return {
        (row["kind"], row["group"]): (row["universe"], row["n"])
        for row in found
        if row["status"] == COUNTED and row["run_id"] == run_id and row["size_class"] == "all"
    }


def test_the_kinds_are_the_23_of_the_bureau_in_their_order() -> None:
    numbers = [one.number for one in INCONSISTENCIES]
    assert sorted(set(numbers)) == list(range(1, 24))
    assert numbers == sorted(numbers)
    assert all(one.words.split(":")[0].split()[0] in ("areas", "all") for one in INCONSISTENCIES)


def test_every_kind_of_persons_and_units_is_counted_once_more_than_in_the_truth() -> None:
    true, units, published, occupancy = grids()
    found = rows((pair_of(true, [published]), pair_of(units, [occupancy], UNITS)))
    counted = counts(found, "1")
    assert {hits for _, hits in counts(found, "truth").values()} == {0}
    assert {kind: one for (kind, _), one in counted.items()} == {
        "total_differs": (5, 4),
        "households_above_persons": (5, 3),
        "everybody_under_18": (3, 1),
        "persons_below_occupied": (4, 3),
        "persons_without_occupied": (3, 1),
        "occupied_without_persons": (4, 2),
        "above_10_per_household": (4, 1),
        "full_only_published": (5, 1),
        "none_only_published": (5, 1),
    }


def test_what_cannot_be_told_is_a_row_with_the_reason() -> None:
    true, _, published, _ = grids()
    found = rows((pair_of(true, [published]),))
    unmeasured = {(row["number"], row["kind"]): row["reason"] for row in found if row["status"] == UNMEASURED}
    assert unmeasured[16, "one_sex"] == "needs SEX"
    assert unmeasured[20, "median_ages_apart"] == "needs AGE, SEX"
    assert unmeasured[5, "occupied_without_persons"] == "needs housing units"
    assert unmeasured[21, "minors_in_adult_quarters"] == "needs HHGQ"
    seen = {row["number"] for row in found}
    assert seen == set(range(1, 24))  # nothing is passed over in silence
    assert all(row["universe"] is None and row["n"] is None for row in found if row["status"] == UNMEASURED)


def test_published_facilities_say_where_group_quarters_are() -> None:
    true, _, published, _ = grids()
    pair = pair_of(true, [published])
    facilities = np.zeros((5, 8), np.int32)
    facilities[:, 0], facilities[3, 1] = 4, 1  # the block of children has group quarters after all
    sources = SummarySources((pair,), facilities=facilities)
    found = inconsistencies(sources, [level_areas(pair.spine, "Block")]).to_pylist()
    assert counts(found, "1")["everybody_under_18", ""] == (3, 0)


def test_classes_of_areas_add_up_and_an_empty_universe_has_no_percent() -> None:
    true, units, published, occupancy = grids()
    pairs = (pair_of(true, [published]), pair_of(units, [occupancy], UNITS))
    areas = level_areas(pairs[0].spine, "Block")
    strata = Strata("half", ("first", "none", "last"), np.array([0, 0, 0, 2, 2], np.int32))
    found = inconsistencies(SummarySources(pairs), [areas], [strata]).to_pylist()
    parts = [row for row in found if row["kind"] == "total_differs" and row["run_id"] == "1"]
    assert {row["size_class"]: (row["universe"], row["n"]) for row in parts} == {
        "all": (5, 4), "first": (3, 2), "last": (2, 2),
    }  # fmt: skip
    empty = rows((pair_of(true * 0, [true * 0]), pair_of(units * 0, [units * 0], UNITS)), "County")
    percent = {row["kind"]: row["percent"] for row in empty if row["status"] == COUNTED}
    assert np.isnan(percent["persons_below_occupied"])
    assert percent["total_differs"] == 0


def test_minors_among_adults_of_quarters_are_found_where_the_schema_tells_kinds() -> None:
    true = np.zeros((5, 8, 2), np.int64)
    true[:4, 1, 1] = 7  # adults in prison
    true[4, 0, 1] = 7  # adults at home
    published = true.copy()
    published[1, 1, 0] = 2  # minors in prison
    published[2, 2, 0] = 2  # minors in a home for juveniles beside it: no longer an area of adults alone
    schema = HistogramSchema(
        Schema("kinds", (Attribute("hhgq", 8), Attribute("votingage", 2))), ProtectedUnit.PERSON
    )
    found = rows((pair_of(true.reshape(5, 16), [published.reshape(5, 16)], schema),))
    assert counts(found, "truth")["minors_in_adult_quarters", ""] == (4, 0)
    assert counts(found, "1")["minors_in_adult_quarters", ""] == (3, 1)


def person(relgq: int, sex: int, age: int, hispanic: int = 0) -> int:
    return int(np.ravel_multi_index((relgq, sex, age, hispanic), YEARS.schema.shape))


def household(sex: int, hhage: int, hisp: int, hhtype: int) -> int:
    return int(np.ravel_multi_index((sex, hhage, hisp, hhtype), HOUSEHOLDS.schema.shape))


def detailed() -> tuple[Pair, Pair]:
    """Counties of five blocks with single years of age and householders: the second county's published file contradicts itself."""
    true = np.zeros((10, YEARS.schema.cells), np.int32)
    homes = np.zeros((10, HOUSEHOLDS.schema.cells), np.int32)
    for age in range(18):
        true[:, person(6, MALE, age)] = true[:, person(6, FEMALE, age)] = 3
    true[:, person(1, FEMALE, 30)] = 2
    true[:, person(2, MALE, 31)] = 3
    homes[:, household(FEMALE, 1, 0, 0)] = 2  # married, of opposite sex, a child under 6, size 3
    published, kinds = true.copy(), homes.copy()
    published[5:, person(1, FEMALE, 30)] = 0  # no women of 18 to 44
    published[5:, person(1, FEMALE, 60)] = 9
    published[5:, person(6, MALE, 7)] = 0  # no boys of seven
    kinds[5:, household(MALE, 8, 1, 0)] = 4  # Hispanic householders of 85 and over, married: nobody is
    pairs = pair_of(true, [published], YEARS), pair_of(homes, [kinds], HOUSEHOLDS)
    return pairs[0], pairs[1]


def test_single_years_of_age_and_householders_are_counted_where_the_schemas_carry_them() -> None:
    pairs = detailed()
    found = counts(rows(pairs, "County"), "1")
    counted = {kind: one for (kind, group), one in found.items() if not group}
    assert found["children_without_women", "hispanic"] == (0, 0)  # nobody is
    assert {hits for _, hits in list(counts(rows(pairs, "County"), "truth").values())} == {0}
    expected = {
        "children_without_women": (2, 1), "hispanic_householders": (2, 1), "householders_of_age": (2, 1),
        "female_householders": (2, 0), "households_with_children": (2, 0), "missing_child_ages": (2, 1), "one_sex": (2, 0),
        "couples_above_15": (2, 0), "everybody_under_18": (2, 0), "minimum_above_persons": (2, 0),
    }  # fmt: skip
    assert {kind: counted[kind] for kind in expected} == expected


def test_few_persons_of_an_age_are_not_asked_for_at_the_lowest_level() -> None:
    found = rows(detailed(), "Block", lowest="Block")
    asked = {row["kind"]: row["status"] for row in found if row["level"] == "Block"}
    assert asked["one_sex"] == asked["median_ages_apart"] == NOT_MEASURED
    assert asked["everybody_under_18"] == COUNTED


def test_an_order_of_kinds_and_columns_that_does_not_depend_on_what_is_there() -> None:
    true, _, published, _ = grids()
    frame = inconsistencies(SummarySources((pair_of(true, [published]),)), [])
    assert pa.types.is_integer(frame.schema.field("universe").type)
    assert frame.column("number").to_pylist() == sorted(frame.column("number").to_pylist())


# Relations of persons and households, on blocks that were made by hand.


RULES = (LevelRule("State", 1), LevelRule("Block", 2))
Records = dict[str, list[tuple[int, ...]]]
# relgq, sex, age, hispanic, cenrace: a man of 70 and his wife of 66 with a grandson of 4; a woman of 30 alone
PERSONS: Records = {"11": [(1, 0, 70, 0, 0), (2, 1, 66, 0, 0), (11, 0, 4, 0, 0)], "12": [(0, 1, 30, 1, 6)]}
# sex, hhage, hisp, race, elderly, tenure, type: a married couple of three with a child; a woman alone
HOMES: Records = {"11": [(0, 6, 0, 0, 2, 0, 41)], "12": [(1, 1, 1, 6, 0, 2, 392)]}


def columns(spine: Spine, name: str, records: Records) -> SparseLevel:
    shape = shipped_schemas()[name].schema.shape
    cells = [
        [int(np.ravel_multi_index(one, shape)) for one in records.get(code, [])]
        for code in spine.leaf.geounits.tolist()
    ]
    return level_of_records(spine.leaf.geounits, cells)


def found(persons: Records, households: Records) -> dict[tuple[str, str], tuple[int, int]]:
    """By kind and run, blocks that break a rule, and by how many records."""
    spine = build_spine(np.array(["11", "12"]), RULES)
    pairs: list[Pair] = []
    for name, true, public in (
        ("dhc-persons", PERSONS, persons),
        ("dhc-households", HOMES, households),
    ):
        run = PublishedRun("run", columns(spine, name, public))
        counts = columns(spine, name, true)
        exact = ExactHistograms(counts.geounits, counts.node_ptr, counts.cell, counts.count)
        pairs.append(pair_histograms(shipped_schemas()[name], spine, exact, [run]))
    frame = count_contradictions(SummarySources(tuple(pairs)), [level_areas(spine, "Block")])
    return {(row["kind"], row["run_id"]): (row["n"], row["records"]) for row in frame.to_pylist()}


def broken(persons: Records, households: Records) -> dict[str, tuple[int, int]]:
    return {
        kind: value for (kind, run), value in found(persons, households).items() if run == "run" and value[0]
    }


def test_records_of_the_same_homes_agree() -> None:
    rows = found(PERSONS, HOMES)
    assert {(0, 0)} == set(rows.values())
    # occupied housing units are told by no histogram here
    assert {one.name for one in CONTRADICTIONS} - {"occupied_units"} == {kind for kind, _ in rows}


@pytest.mark.parametrize(
    ("block", "persons", "expected"),
    [
        ("12", [], {"householders", "living_alone", "householders_female", "householders_hispanic", "householders_25-34",
                    "householders_two_or_more_races", "persons_of_sizes", "persons_of_exact_sizes"}),
        ("12", [(0, 1, 30, 1, 6), (15, 0, 61, 0, 0)], {"persons_of_exact_sizes", "any_60_and_over"}),
        ("11", [(1, 0, 70, 0, 0), (4, 1, 66, 0, 0), (11, 0, 4, 0, 0)],
         {"opposite_sex_married_couples", "same_sex_married_couples"}),
        ("11", [(1, 0, 70, 0, 0), (2, 1, 66, 0, 0), (14, 0, 24, 0, 0)], {"under_18", "any_under_18"}),
        ("11", [(1, 0, 66, 0, 0), (2, 1, 76, 0, 0), (11, 0, 4, 0, 0)], {"any_75_and_over"}),
    ],
)  # fmt: skip
def test_a_changed_block_breaks_what_it_should(
    block: str, persons: list[tuple[int, ...]], expected: set[str]
) -> None:
    assert expected == set(broken({**PERSONS, block: persons}, HOMES))


def test_a_household_of_seven_or_more_is_of_no_exact_size() -> None:
    # a couple with a child that is not its own, seven persons or more
    homes = {**HOMES, "11": [(0, 6, 0, 0, 2, 0, 45)]}
    changed = broken(PERSONS, homes)
    assert changed["persons_of_sizes"] == (1, 4)
    assert "persons_of_exact_sizes" not in changed
