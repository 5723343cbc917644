"""Tables of summary metrics filled from small pairs, against numbers worked out by hand or by brute force."""

import math
from statistics import median_grouped

import numpy as np
import pytest

from censafe.evaluation.counts.frames import LONG
from censafe.evaluation.summary.counts import SummarySources
from censafe.evaluation.summary.filling import fill_book, summary_frame, summary_long
from censafe.evaluation.summary.tables import SummaryRequest, shipped_book
from censafe.model import ProtectedUnit
from support.pairs import pair_of
from support.summary import (
    BLOCKS,
    PERSONS,
    PUBLISHED,
    TRUE,
    UNITS,
    Filled,
    adults,
    filled_of,
    grid_of,
    lists_of,
    numbers_of,
    pl94_pair,
    row_of,
    schema_of,
    spine_of,
)

HAND = [5.0, 3.0, 4.753946, 45.0, 7.667654, 43.0]
"""N, MAE, RMSE, MAPE, CV and MALPE of the fixture with true counts 0, 0, 10, 200, 100."""


def every_list() -> SummarySources:
    """The fixture with a list of every kind."""
    spine = spine_of()
    lists = lists_of(
        spine,
        place=["01", "02", "03", "04", "05", "72"],
        cousub=["a", "b", "c", "d", "e", ""],
        aiannh=["0010", "0011R", "5600", "5950", "6100", ""],
        sdelm=["1", "2", "3", "3", "", ""],
        sdsec=["", "", "", "", "9", ""],
        sduni=["7", "7", "7", "7", "7", ""],
        Urban_Rural=["U", "R", "U", "U", "R", "U"],
    )
    return SummarySources((pl94_pair(adults(TRUE), adults(PUBLISHED)),), lists)


@pytest.fixture(scope="module")
def filled() -> Filled:
    return filled_of(every_list())


@pytest.mark.parametrize(
    ("number", "label", "expected"),
    [
        ("Table 1.a", "All counties", [*HAND, 1, 2, 0]),
        ("Table 1.b", "All incorporated places", [*HAND, 1, 2, 0]),
        ("Table 1.c", "All tracts", [5, 3.0, 4.753946, 1, 2, 0]),
        ("Table 1.h", "All Minor Civil Divisions", [*HAND, 1, 2, 0]),
        ("Table 1.e", "All municipios in Puerto Rico", [1, 1.0, 1.0, 2.0, 2.0, -2.0, 1, 0, 0]),
        ("Table 1.f", "All tracts in Puerto Rico", [1, 1.0, 1.0, 1, 0, 0]),
        ("Table 1.d", 'Blocks classified as "urban" in the 2010 Census', [3, 4.0, 5.887841, 25 / 3, 8.411201, 5.0, 1, 1, 0]),
        ("Table 1.d", 'Blocks classified as "rural" in the 2010 Census', [2, 1.5, 2.121320, 100, 4.242641, 100, 0, 1, 0]),
        ("Table 1.i", "All Federal American Indian Reservations/Off-Reservation Trust Lands",
         [2, 1.5, 2.121320, 100, None, 100, 0, 1, 0]),
        ("Table 1.j", "All Oklahoma Tribal Statistical Areas", [2, 6.0, 7.211103, 12.5, 6.867717, 7.5, 1, 1, 0]),
        ("Table 1.k", "All Alaska Native Village Statistical Areas", [1, 0, 0, 0, 0, 0, 0, 0, 0]),
        ("Table 1.g", "All Elementary School Districts", [3, 11 / 3, 4.932883, 67.936508, 7.046976, 65.396825, 1, 1, 0]),
        ("Table 1.g", "All Secondary School Districts", [1, 0, 0, 0, 0, 0, 0, 0, 0]),
        ("Table 1.g", "All Unified School Districts", [1, 5, 5, 1.612903, 1.612903, -1.612903, 0, 0, 0]),
        ("Table 2.a", "All counties", [*HAND, 1, 2, 0]),
        ("Use Case Table 12", "All counties", [5, 0, 0]),
    ],
)  # fmt: skip
def test_every_geography_class_gives_the_hand_computed_errors(
    filled: Filled, number: str, label: str, expected: list[float | None]
) -> None:
    found = numbers_of(filled[number], label)
    assert [one is None for one in expected] == [one is None for one in found]
    assert [one for one in expected if one is not None] == pytest.approx(
        [one for one in found if one is not None], rel=1e-6
    )


def test_an_empty_class_says_so_and_has_no_numbers(filled: Filled) -> None:
    table = filled["Table 1.a"]
    row = row_of(table, "Counties with total population of 100,000 or more")
    assert (row.units, row.reason) == (0, "no areas of this class")
    assert numbers_of(table, row.line.label) == [0.0] + [None] * 8
    assert numbers_of(table, "Counties with total population less than 1,000")[:2] == [5.0, 3.0]


def test_classes_by_the_rows_own_count_hold_other_areas_for_every_row() -> None:
    white, hispanic_black = (0, 1, 0, 0), (0, 0, 1, 1)
    true = [{white: 9, hispanic_black: 100}, {white: 99}, {white: 100, hispanic_black: 10}, {}, {}, {}]
    public = [{white: 12, hispanic_black: 99}, {white: 97}, {white: 100, hispanic_black: 12}, {}, {}, {}]
    pair = pl94_pair(grid_of(PERSONS, true), grid_of(PERSONS, public))
    found = filled_of(SummarySources((pair,)))
    table = found["Table 6.b"]
    assert numbers_of(table, "White alone", "Counties with population 0 to 9")[:2] == [3, 1.0]
    assert numbers_of(table, "White alone", "Counties with population 10 to 99")[:2] == [1, 2.0]
    assert numbers_of(table, "White alone", "Counties with population of 100 or more")[:2] == [1, 0.0]
    assert numbers_of(table, "Black alone", "Counties with population of 100 or more")[:2] == [1, 1.0]
    assert [5, 0.6, math.sqrt(5 / 5)] == pytest.approx(
        numbers_of(
            found["Table 9.b"],
            "Black alone or in combination with one or more other races",
            "Hispanic or Latino",
        )[:3]
    )
    assert numbers_of(found["Table 5.b"], "Hispanic or Latino", "All counties")[:2] == [5, 3 / 5]
    assert numbers_of(found["Table 12.a"], "Black alone", "Hispanic or Latino")[:2] == [5, 0.0]
    assert numbers_of(found["Table 14.b"], "One race", "Not Hispanic or Latino")[:2] == [5, 1.0]


def test_group_quarters_are_told_by_kind_and_size_of_the_area() -> None:
    nursing, college = (3, 1, 0, 0), (5, 1, 0, 0)
    true = grid_of(PERSONS, [{nursing: 10, college: 2000}, {college: 5}, {}, {}, {}, {}])
    public = grid_of(PERSONS, [{nursing: 12, college: 1990}, {college: 5}, {}, {}, {}, {}])
    table = filled_of(SummarySources((pl94_pair(true, public),)))["Table 18.b"]
    assert numbers_of(
        table, "Institutionalized population:", "Counties with total population 1,000 to 4,999"
    )[:2] == [1, 2.0]
    assert numbers_of(table, "Nursing facilities/Skilled-nursing facilities", "All counties")[:2] == [5, 0.4]
    assert numbers_of(table, "Noninstitutionalized population:", "All counties")[:2] == [5, 2.0]


def test_occupancy_and_persons_per_household() -> None:
    true_units = np.array([[10, 90], [0, 10], [5, 0], [0, 0], [1, 1], [0, 0]])
    public_units = np.array([[15, 85], [1, 9], [0, 5], [0, 0], [0, 2], [0, 0]])
    persons = adults((200, 10, 3, 0, 4, 0)), adults((210, 18, 3, 0, 4, 0))
    spine = spine_of()
    units = pair_of(true_units, [public_units], UNITS, spine)
    found = filled_of(SummarySources((pl94_pair(*persons), units)))
    changes = np.array([-5.0, -10.0, 100.0, 0.0, 50.0])
    expected = [5, np.abs(changes).mean(), math.sqrt((changes**2).mean()), changes.mean(), 2, 0, 1, 3]
    assert expected == pytest.approx(numbers_of(found["Table 3.a"], "All counties"))
    assert numbers_of(found["Use Case Table 11"], "All counties") == [5, 2, 1, 3]
    # areas without occupied units on a side have no persons per household: the third and the fourth
    per_home = np.array([210 / 85 - 200 / 90, 18 / 9 - 1.0, 2.0 - 4.0])
    expected = [5, np.abs(per_home).mean(), math.sqrt((per_home**2).mean()), per_home.mean(), 0, 3]
    assert expected == pytest.approx(numbers_of(found["Table 4.a"], "All counties"))
    long = summary_long([found["Table 4.a"]], ("1",)).to_pylist()
    assert [row["value"] for row in long if row["metric"] == "n_undefined"] == [2.0]


def test_occupied_units_without_persons_are_counted_on_both_sides() -> None:
    units = np.array([[0, 1]] * 5 + [[1, 0]])
    homes = pair_of(units, [units], UNITS, spine_of())
    persons = pl94_pair(adults((0, 0, 9, 9, 9, 0)), adults((0, 0, 0, 9, 9, 0)))
    table = filled_of(SummarySources((persons, homes)))["Inconsistency Table 5"]
    assert numbers_of(table, table.rows[0].line.label) == [5, 2, 40.0, 5, 3, 60.0]


def test_shares_of_states_and_of_the_nation() -> None:
    found = filled_of(every_list())
    true, public = np.array(TRUE[:5]) / sum(TRUE[:5]), np.array(PUBLISHED[:5]) / sum(PUBLISHED[:5])
    expected = np.abs(true - public).sum()
    assert [5, expected] == pytest.approx(
        numbers_of(found["Use Case Table 2"], "Counties as a Share of Rhode Island")
    )
    assert [5, expected] == pytest.approx(
        numbers_of(found["Use Case Table 4"], "Minor Civil Divisions as a Share of Rhode Island")
    )
    assert numbers_of(found["Use Case Table 2"], "Counties as a Share of Texas") == [0, None]
    aian = (0, 1, 0, 2)
    pair = pl94_pair(adults((10, 10, 0, 0, 0, 50), aian), adults((10, 30, 0, 0, 0, 0), aian))
    nation = filled_of(SummarySources((pair,)))["Use Case Table 6"]
    assert pytest.approx(numbers_of(nation, "Counties as a Share of the Nation")) == [5, 0.5]


def test_thresholds_and_reductions() -> None:
    aian = (0, 1, 0, 2)
    pair = pl94_pair(
        adults((120, 19, 50_000, 49_999, 10, 0), aian), adults((19, 100, 49_999, 50_000, 4, 0), aian)
    )
    found = filled_of(SummarySources((pair,)))
    assert numbers_of(found["Use Case Table 12"], "All counties") == [5, 1, 1]
    assert numbers_of(found["Use Case Table 9"], "All tracts") == [5, 1, 1]
    changes = [-100 * 101 / 120, -100 / 50_000, -60.0]
    assert [5, 3, np.median(changes)] == pytest.approx(
        numbers_of(found["Use Case Table 7.a"], "All counties")
    )
    assert numbers_of(found["Inconsistency Table 1"], "All states") == [1, 1]


def test_ages_in_years_and_sexes_fill_the_tables_of_the_demographic_file() -> None:
    schema = schema_of(ProtectedUnit.PERSON, sex=2, age=116)
    rng = np.random.default_rng(5)
    true = rng.poisson(0.7, (6, 232)).astype(np.int64)
    public = np.maximum(true + rng.integers(-1, 2, true.shape), 0)
    found = filled_of(SummarySources((pair_of(true, [public], schema, spine_of()),)))
    ages = np.tile(np.arange(116), 2)
    chosen = (ages >= 20) & (ages <= 24) & (np.arange(232) >= 116)
    errors = public[:5, chosen].sum(axis=1) - true[:5, chosen].sum(axis=1)
    assert [5, np.abs(errors).mean(), math.sqrt((errors**2).mean())] == pytest.approx(
        numbers_of(found["Table 16.a"], "20 to 24 years", "Female")[:3]
    )
    medians = [
        [median_grouped(np.repeat(ages + 0.5, row).tolist(), interval=1) for row in side[:5]]
        for side in (true, public)
    ]
    ratios = [100 * side[:5, :116].sum(axis=1) / side[:5, 116:].sum(axis=1) for side in (true, public)]
    assert [5, np.abs(np.subtract(*medians)).mean(), np.abs(np.subtract(*ratios)).mean()] == pytest.approx(
        numbers_of(found["Table 17"], "All counties")
    )
    assert "" == found["Table 16.a"].note == found["Use Case Table 5.a"].note
    minors = (ages == 3)[None, :] * (public - true)[:5]
    assert (
        np.abs(minors.sum(axis=1)).mean()
        == numbers_of(found["Use Case Table 5.a"], "3 years old", "All counties")[1]
    )


def test_households_fill_tenure_by_race_and_leave_vacancy_empty() -> None:
    schema = schema_of(ProtectedUnit.HOUSEHOLD, race=7, hhtenshort_3lev=3)
    true = grid_of(schema, [{(0, 0): 10, (1, 2): 4}] * 6)
    public = grid_of(schema, [{(0, 1): 10, (1, 2): 5}] * 6)
    households = pair_of(true, [public], schema, spine_of())
    found = filled_of(SummarySources((pl94_pair(adults(TRUE), adults(PUBLISHED)), households)))
    assert numbers_of(found["DHC Use Case Table 1.b"], "Owned with a mortgage", "All counties")[:2] == [
        5,
        10.0,
    ]
    assert numbers_of(found["DHC Use Case Table 4.a"], "Householder who is White alone", "Owner occupied")[
        :2
    ] == [1, 0.0]
    black = "Householder who is Black or African American alone"
    assert numbers_of(found["DHC Use Case Table 4.a"], black, "Renter occupied")[:2] == [1, 5.0]
    assert found["DHC Use Case Table 5.a"].note == "Not in this product: needs TENVACGQ."
    assert found["DHC Use Case Table 3.a"].note == "Not in this product: needs HISP of householders."


def test_the_largest_kind_of_vacant_units_changes_where_another_one_is_largest() -> None:
    schema = schema_of(ProtectedUnit.HOUSEHOLD, tenvacgq=35)
    rent, sale, other = (4,), (6,), (10,)
    true = [{rent: 3, sale: 1}, {rent: 3, sale: 1}, {rent: 2, sale: 2}, {}, {rent: 1}, {rent: 1}]
    public = [{rent: 2, sale: 1}, {rent: 1, sale: 2}, {rent: 1, sale: 2}, {other: 5}, {other: 1}, {other: 1}]
    units = pair_of(grid_of(schema, true), [grid_of(schema, public)], schema, spine_of())
    found = filled_of(SummarySources((pl94_pair(adults(TRUE), adults(PUBLISHED)), units)))
    assert numbers_of(found["DHC Use Case Table 6"], "All tracts") == [5, 2]
    assert numbers_of(found["DHC Use Case Table 5.b"], "For rent", "All counties")[:2] == [5, 1.0]


def test_facilities_say_where_there_are_no_group_quarters() -> None:
    minors = (0, 0, 0, 0)
    pair = pl94_pair(adults((0,) * 6), grid_of(PERSONS, [{minors: 3}] * 6))
    facilities = np.zeros((6, 8), np.int64)
    facilities[0, 5] = 1
    label = "Blocks with population all 17 or younger"
    known = filled_of(SummarySources((pair,), facilities=facilities))["Inconsistency Table 18"]
    assert numbers_of(known, label) == [0, 0, None, 4, 4, 100.0]
    unknown = filled_of(SummarySources((pair,)))["Inconsistency Table 18"]
    assert numbers_of(unknown, label) == [0, 0, None, 5, 5, 100.0]


def test_a_rate_without_any_area_that_has_it_is_empty() -> None:
    units = pair_of(np.array([[1, 0]] * 6), [np.array([[1, 0]] * 6)], UNITS, spine_of())
    table = filled_of(SummarySources((pl94_pair(adults(TRUE), adults(PUBLISHED)), units)))["Table 4.a"]
    assert numbers_of(table, "All counties") == [5.0] + [None] * 5


def test_what_the_product_lacks_keeps_its_shape_and_says_what_it_needs() -> None:
    book = shipped_book()
    found = fill_book(book, SummarySources((pl94_pair(adults(TRUE), adults(PUBLISHED)),)))
    assert [len(one.lines) for one in book.tables] == [len(one.lines) for one in found]
    notes = {one.table.number: one.note for one in found}
    assert notes["Table 16.a"] == "Not in this product: needs AGE, SEX."
    assert notes["Table 15.a"] == "Not in this product, where empty: needs AGE, SEX."
    assert notes["Table 1.b"] == "Not in this product: needs a list of areas place."
    assert notes["Table 3.a"] == "Not in this product: needs housing units."
    assert notes["Use Case Table 12"] == "Not in this product, where empty: needs a list of areas place."
    assert notes["Table 1.a"] == ""


def test_equal_files_have_no_errors_anywhere() -> None:
    rng = np.random.default_rng(7)
    true = rng.poisson(0.05, (6, PERSONS.schema.cells)).astype(np.int64)
    homes = np.tile([30, 1], (6, 1))
    units = pair_of(homes, [homes], UNITS, spine_of())
    tables = fill_book(shipped_book(), SummarySources((pl94_pair(true, true), units), every_list().lists))
    same = ("met_true", "universe_true", "percent_met_true")
    seen = 0
    for row in (row for row in summary_frame(tables).to_pylist() if row["value"] is not None):
        if row["metric"] == "n_units" or row["metric"] in same or row["metric"].endswith("_published"):
            continue
        assert row["value"] == 0, row
        seen += 1
    assert seen > 3_000
    for table in tables:
        for one in table.rows:
            for name in same:
                assert one.value(name) == one.value(name.replace("true", "published"))


def test_several_runs_show_their_mean_in_tables_and_each_in_the_long_frame() -> None:
    pair = pl94_pair(adults(TRUE), adults(PUBLISHED), adults(TRUE))
    tables = fill_book(shipped_book(), SummarySources((pair,)))
    assert numbers_of(tables[0], "All counties")[:2] == [5, 1.5]
    long = summary_long(tables, ("1", "2"))
    assert LONG.names == long.column_names
    found = {
        (row["run_id"], row["metric"]): row["value"]
        for row in long.to_pylist()
        if (row["level"], row["size_class"], row["characteristic"]) == ("county", "all", "total")
    }
    assert [
        found["1", "mean_ae"],
        found["2", "mean_ae"],
        found["pooled", "mean_ae_run_mean"],
    ] == [3.0, 0.0, 1.5]
    assert math.sqrt(4.5) == pytest.approx(found["pooled", "mean_ae_run_sd"])


def test_every_number_stands_once_in_the_long_frame() -> None:
    long = summary_long(fill_book(shipped_book(), every_list()), ("1",)).to_pylist()
    keys = [
        tuple(row[name] for name in ("level", "area_class", "size_class", "characteristic", "metric"))
        for row in long
    ]
    assert len(keys) == len(set(keys)) > 500
    by_list = {row["level"]: row["area_class"] for row in long}
    assert {name: by_list[name] for name in ("county", "place", "otsa", "urban-block")} == {
        "county": "",
        "place": "place",
        "otsa": "aiannh",
        "urban-block": "",
    }


def test_requests_that_nothing_can_answer_are_refused_where_they_are_counted() -> None:
    sources = every_list()
    areas = sources.state_areas()
    with pytest.raises(ValueError, match="needs SEX"):
        sources.count(areas, [SummaryRequest("person", ("female",))])
    assert len(BLOCKS) - 1 == int((sources.states == 44).sum())
