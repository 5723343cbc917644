"""Bounds from facility counts: the reference's cases, and what they mean."""

from __future__ import annotations

import json

import numpy as np
import pytest

from censafe.estimation.topdown.levels.limits import contradictions, facility_bounds
from censafe.model.topdown.histograms import Facilities
from censafe.products.topdown.configuration.shipped import shipped_schemas
from support.shared import shared_data

PL94 = shipped_schemas()["pl94-persons"].facilities
SCHEMAS = {"pl94_persons": "pl94-persons", "e2e_1940": "e2e-1940"}


def test_the_references_cases() -> None:
    cases = json.loads(shared_data("topdown/constraint_examples.json").read_text())["gq_bounds"]
    assert len(cases) == 10
    for case in cases:
        rule = shipped_schemas()[SCHEMAS[case["product"]]].facilities
        assert rule is not None
        assert case["minimum_per_unit"] == list(rule.minimum)
        assert case["cap_per_unit"] == list(rule.largest)
        totals = None if case["total"] is None else np.array([case["total"]])
        low, high = facility_bounds(rule, np.array([case["units_by_hhgq"]]), totals)
        assert case["hhgq_total_lb"] == low[0].tolist(), case["case"]
        assert case["hhgq_total_ub"] == high[0].tolist(), case["case"]


def test_bounds_without_totals_add_up() -> None:
    document = json.loads(shared_data("topdown/constraint_examples.json").read_text())
    expected = document["gq_bounds_sum"]
    units = np.array([case["units_by_hhgq"] for case in document["gq_bounds"][:2]])
    assert PL94 is not None
    low, high = facility_bounds(PL94, units)
    assert expected["hhgq_total_lb"] == low.sum(axis=0).tolist()
    assert expected["hhgq_total_ub"] == high.sum(axis=0).tolist()


@pytest.mark.parametrize("beside", [True, False])
def test_bounds_with_a_total_hold_every_feasible_split(beside: bool) -> None:
    """Against all splits of a total over three kinds of unit."""
    rule = Facilities("kind", (0, 1, 2), (4, 6, 3), largest_beside_total=beside)
    cap = np.array(rule.largest if beside else (99, 99, 99))
    for units in np.ndindex(3, 3, 3):
        for total in range(8):
            splits = [
                split
                for split in np.ndindex(total + 1, total + 1, total + 1)
                if sum(split) == total
                and all(
                    u * m <= s <= u * c for u, m, s, c in zip(units, rule.minimum, split, cap, strict=True)
                )
            ]
            low, high = facility_bounds(rule, np.array([units]), np.array([total]))
            for split in splits:
                assert (low[0] <= split).all()
                assert (split <= high[0]).all()
            if splits:
                assert not contradictions(low, high, np.array([total]))[0]


def test_contradictions_are_found() -> None:
    assert PL94 is not None
    units = np.array([[0, 0, 0, 0, 0, 0, 0, 0], [3, 2, 0, 0, 0, 0, 0, 0], [3, 2, 0, 0, 0, 0, 0, 0]])
    totals = np.array([5, 1, 2])
    low, high = facility_bounds(PL94, units, totals)
    np.testing.assert_array_equal([True, True, False], contradictions(low, high, totals))
    np.testing.assert_array_equal([False] * 3, contradictions(*facility_bounds(PL94, units)))


def test_wrong_shapes_and_negative_counts_are_refused() -> None:
    assert PL94 is not None
    with pytest.raises(ValueError, match="8 columns"):
        facility_bounds(PL94, np.zeros((2, 7), np.int64))
    with pytest.raises(ValueError, match="one value a geounit"):
        facility_bounds(PL94, np.zeros((2, 8), np.int64), np.zeros(3, np.int64))
    with pytest.raises(ValueError, match="negative"):
        facility_bounds(PL94, np.full((1, 8), -1))
