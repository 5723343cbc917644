"""Impossible and improbable areas: each condition on counts made to meet it, and none on counts that are consistent."""

import numpy as np
import pytest

from censafe.evaluation.pairs.inconsistencies import CONDITIONS, INCONSISTENCIES, YEARS, Side
from censafe.evaluation.summary.tables import SummaryRequest, shipped_book

HAND: dict[str, tuple[dict[str, list[int]], list[bool], list[bool]]] = {
    # counts by request (households marked with +), universe and areas that meet the condition
    "households-above-persons": ({"+occupied": [3, 2], "household": [2, 2]}, [True, True], [True, False]),
    "persons-below-occupied": ({"+occupied": [3, 0, 2], "household": [2, 0, 2]}, [True, False, True], [True, False, False]),
    "persons-without-occupied": ({"+occupied": [0, 1, 0], "household": [4, 4, 0]}, [True, True, False], [True, False, False]),
    "occupied-without-persons": ({"+occupied": [1, 1, 0], "household": [0, 4, 0]}, [True, True, False], [True, False, False]),
    "above-10-per-household": ({"+occupied": [1, 1, 0], "household": [11, 10, 99]}, [True, True, False], [True, False, False]),
    "hispanic-householders": (
        {"+householder hispanic": [3, 3, 3], "hispanic": [2, 2, 3], "": [9, 9, 9], "group quarters": [0, 1, 0]},
        [True, False, True], [True, False, False],
    ),
    "female-householders": (
        {"+female householder": [3, 1], "female": [2, 1], "": [9, 0], "group quarters": [0, 0]}, [True, False], [True, False],
    ),
    "households-with-children": (
        {"+households with children": [2, 2], "age 0-17": [1, 2], "": [9, 9], "group quarters": [0, 0]},
        [True, True], [True, False],
    ),
    "couples-above-males": (
        {"+opposite-sex married couples": [2, 2], "male": [1, 2], "": [9, 9], "group quarters": [0, 0]},
        [True, True], [True, False],
    ),
    "couples-above-females": (
        {"+opposite-sex married couples": [2, 2], "female": [1, 2], "": [9, 9], "group quarters": [0, 0]},
        [True, True], [True, False],
    ),
    "couples-above-15": (
        {"+married couples": [2, 2], "age 15+": [3, 4], "": [9, 9], "group quarters": [0, 0]}, [True, True], [True, False],
    ),
    "children-without-women": (
        {"age 0-4": [5, 5, 4], "female & age 18-44": [0, 1, 0]}, [True, True, False], [True, False, False],
    ),
    "one-sex": ({"": [5, 5, 4], "male": [5, 4, 4], "female": [0, 1, 0]}, [True, True, False], [True, False, False]),
    "everybody-under-18": (
        {"": [3, 3, 3, 0], "group quarters": [0, 0, 1, 0], "age 18+": [0, 1, 0, 0]},
        [True, True, False, False], [True, False, False, False],
    ),
    "minors-in-adult-quarters": (
        {"": [5, 5, 5, 0], "adult quarters": [5, 5, 4, 0], "age 0-17": [1, 0, 1, 0]},
        [True, True, False, False], [True, False, False, False],
    ),
}  # fmt: skip


def side_of(counts: dict[str, list[int]], **more: object) -> Side:
    """Counts by the words of their request."""
    asked = {}
    for words, values in counts.items():
        terms = tuple(part for part in words.removeprefix("+").split(" & ") if part)
        asked[SummaryRequest("household" if words.startswith("+") else "person", terms)] = np.array(values)
    return Side(asked, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", HAND)
def test_a_condition_holds_where_it_was_planted_and_nowhere_else(name: str) -> None:
    counts, universe, met = HAND[name]
    side = side_of(counts)
    assert set(CONDITIONS[name].requests(())) == set(side.counts)
    found = CONDITIONS[name].test(side, side)
    assert [universe, met] == [one.tolist() for one in found]


def test_full_and_empty_areas_count_only_where_the_truth_is_otherwise() -> None:
    true = side_of({"+occupied": [5, 5, 0, 2, 0], "+vacant": [0, 5, 5, 2, 0]})
    side = side_of({"+occupied": [5, 10, 0, 0, 0], "+vacant": [0, 0, 5, 4, 0]})
    assert np.flatnonzero(CONDITIONS["full-only-published"].test(side, true)[1]).tolist() == [1]
    assert np.flatnonzero(CONDITIONS["none-only-published"].test(side, true)[1]).tolist() == [3]


def test_fewest_persons_of_households_by_size() -> None:
    counts = {f"+household of {size}": [0, 0] for size in range(1, 7)} | {"+household of 7 or more": [1, 1]}
    side = side_of(counts | {"+household of 2": [2, 2], "household": [10, 11]})
    assert CONDITIONS["minimum-above-persons"].test(side, side)[1].tolist() == [True, False]


def test_any_race_or_age_with_more_householders_than_persons_counts_once() -> None:
    for name, words in (("householders-of-race", "asian alone"), ("householders-of-age", "age 45-54")):
        needs = CONDITIONS[name].requests(())
        counts = {one: np.array([9, 9]) for one in needs}
        counts[SummaryRequest("person", ("group quarters",))] = np.array([0, 0])
        counts[SummaryRequest("person", (words,))] = np.array([9, 8])
        assert CONDITIONS[name].test(Side(counts), Side(counts))[1].tolist() == [False, True]


def test_a_missing_single_year_of_children_counts_from_200_children_on() -> None:
    condition = CONDITIONS["missing-child-ages"]
    counts = {one: np.array([7, 7, 7]) for one in condition.requests(())}
    counts[SummaryRequest("person", ("age 0-17",))] = np.array([252, 245, 199])
    counts[SummaryRequest("person", ("female", "age 17"))] = np.array([7, 0, 0])
    universe, met = condition.test(Side(counts), Side(counts))
    assert [universe.tolist(), met.tolist()] == [[True, True, False], [False, True, False]]


def test_median_ages_of_the_sexes_of_a_group_are_compared_where_both_have_five() -> None:
    condition, terms = CONDITIONS["median-ages-apart"], ("hispanic",)
    counts = {one: np.zeros(3, np.int64) for one in condition.requests(terms)}
    counts[SummaryRequest("person", ("male", YEARS[40], *terms))] = np.array([5, 5, 4])
    counts[SummaryRequest("person", ("female", YEARS[20], *terms))] = np.array([5, 0, 9])
    counts[SummaryRequest("person", ("female", YEARS[21], *terms))] = np.array([0, 5, 0])
    universe, met = condition.test(Side(counts, terms), Side(counts, terms))
    assert [universe.tolist(), met.tolist()] == [[True, True, False], [True, False, False]]


def test_known_facilities_replace_persons_in_quarters() -> None:
    counts = {"": [3, 3], "group quarters": [0, 1], "age 18+": [0, 0]}
    side = side_of(counts, no_quarters=np.array([False, True]))
    assert CONDITIONS["everybody-under-18"].test(side, side)[0].tolist() == [False, True]


def test_tables_and_inconsistencies_name_every_condition_and_no_other() -> None:
    named = {
        name
        for table in shipped_book().tables
        for line in table.lines
        if line.measure == "condition"
        for name in line.options
    }
    assert set(CONDITIONS) == named | {one.name for one in INCONSISTENCIES}
