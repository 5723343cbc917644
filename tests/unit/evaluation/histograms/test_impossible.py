from __future__ import annotations

import numpy as np
import pytest

from censafe.errors import UsageError
from censafe.evaluation.histograms.areas import level_areas
from censafe.evaluation.histograms.impossible import KINDS, impossible_areas, untold_kinds
from censafe.model import Attribute, ProtectedUnit, Schema
from censafe.products.topdown.schemas import HistogramSchema
from support.pairs import UNITS, pair_of, population, spine_of

CHILD, ADULT, IN_QUARTERS = 0, 6, 18  # cells of hhgq 2, votingage 2, hispanic 2, race 3


def grids() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
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


def test_every_kind_is_counted_once_more_than_in_the_truth() -> None:
    true, units, published, occupancy = grids()
    persons, homes = pair_of(true, [published]), pair_of(units, [occupancy], UNITS)
    frame = impossible_areas(persons, homes, level_areas(persons.spine, "Block"))
    found = {(row["run_id"], row["kind"]): (row["universe"], row["n"]) for row in frame.to_pylist()}
    told = set(KINDS) - {"adult_quarters_with_minors"}  # this schema does not tell kinds of quarters
    assert {found["truth", kind][1] for kind in told} == {0}
    assert {kind: found["1", kind] for kind in told} == {
        "total_differs": (5, 4),
        "everyone_under_18": (3, 1),
        "occupied_above_persons": (4, 3),
        "persons_without_occupied": (3, 1),
        "occupied_without_persons": (4, 2),
        "above_10_per_household": (4, 1),
        "all_occupied_only_published": (5, 1),
        "none_occupied_only_published": (5, 1),
    }


def test_published_facilities_say_where_group_quarters_are() -> None:
    true, _, published, _ = grids()
    persons = pair_of(true, [published])
    facilities = np.zeros((5, 8), np.int32)
    facilities[:, 0], facilities[3, 1] = 4, 1  # the block of children has group quarters after all
    frame = impossible_areas(persons, None, level_areas(persons.spine, "Block"), facilities=facilities)
    found = {(row["run_id"], row["kind"]): (row["universe"], row["n"]) for row in frame.to_pylist()}
    assert found["1", "everyone_under_18"] == (3, 0)
    assert {kind for _, kind in found} == {"total_differs", "everyone_under_18"}


def test_larger_areas_add_up_and_an_empty_universe_has_no_percent() -> None:
    true, units, _, _ = grids()
    persons, homes = pair_of(true * 0, [true * 0]), pair_of(units * 0, [units * 0], UNITS)
    frame = impossible_areas(persons, homes, level_areas(persons.spine, "County"))
    rows = {row["kind"]: row for row in frame.to_pylist()}
    assert rows["occupied_above_persons"]["universe"] == 0
    assert np.isnan(rows["occupied_above_persons"]["percent"])
    assert rows["total_differs"]["percent"] == 0


def test_persons_and_units_must_belong_together() -> None:
    persons = pair_of(population(5, 1), [population(5, 2)])
    units = pair_of(population(6, 1, cells=2), [population(6, 2, cells=2)], UNITS, spine_of(6))
    with pytest.raises(UsageError, match="the same blocks and runs"):
        impossible_areas(persons, units, level_areas(persons.spine, "Block"))


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
    persons = pair_of(true.reshape(5, 16), [published.reshape(5, 16)], schema)
    frame = impossible_areas(persons, None, level_areas(persons.spine, "Block"))
    found = {(row["run_id"], row["kind"]): (row["universe"], row["n"]) for row in frame.to_pylist()}
    assert found["truth", "adult_quarters_with_minors"] == (4, 0)
    assert found["1", "adult_quarters_with_minors"] == (3, 1)
    untold = {row["kind"]: row["reason"] for row in untold_kinds(frame).to_pylist()}
    assert untold["everybody is of one sex"] == "needs sex"
    assert untold[KINDS["occupied_without_persons"]] == "needs counts of occupied and vacant units"
    assert KINDS["everyone_under_18"] not in untold
