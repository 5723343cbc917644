"""Rounded cells that add up to their rounded sums."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from censafe.estimation.sdhc.counts import GroupedCells, adding_up, estimate_counts, largest_remainder
from censafe.estimation.sdhc.settings import CountRules, parse_estimate_settings

PH3 = CountRules("PH3", {3: (4, 5, 6, 7), 8: (9, 10), 1: (2, 4, 5, 6, 7, 9, 10)})


@settings(max_examples=60)
@given(st.lists(st.floats(0, 1e5), min_size=7, max_size=7))
def test_every_sum_adds_up_and_nothing_moves_by_a_whole_person(values: list[float]) -> None:
    means = {cell: np.array([value]) for cell, value in zip(PH3.basis, values, strict=True)}
    means |= {number: sum(means[cell] for cell in of) for number, of in PH3.margins.items()}
    found = adding_up(means, PH3)
    for number, of in PH3.margins.items():
        assert found[number] == sum(found[cell] for cell in of)
    assert found[1] == np.rint(means[1])
    assert all(abs(found[number] - means[number]) < 1 + 1e-9 for number in found)


def test_remainders_decide_and_exact_counts_stay() -> None:
    assert largest_remainder(np.array([[0.2, 3.0, 1.9, 0.9]]), np.array([6])).tolist() == [[0, 3, 2, 1]]


def test_sums_that_overlap_are_refused() -> None:
    rules = CountRules("X", {1: (2, 3), 4: (3, 5)})
    with pytest.raises(ValueError, match="sum 1 shares some cells"):
        adding_up({number: np.ones(1) for number in (1, 2, 3, 4, 5)}, rules)


def test_estimates_add_up_where_it_is_asked_for() -> None:
    rng = np.random.default_rng(2)
    shape = (40, 7)
    keys = tuple(("STATE", str(row), "A") for row in range(40))
    cells = GroupedCells(
        "PH3", keys, PH3.basis, rng.integers(-20, 40, shape), np.full(shape, 147.8), np.full(shape, False)
    )
    found = estimate_counts(cells, PH3, parse_estimate_settings({"marginals": "largest-remainder"}))
    column = {cell: found.pred[:, place] for place, cell in enumerate(found.cells)}
    for number, of in PH3.margins.items():
        assert (column[number] == sum(column[cell] for cell in of)).all()
    assert (np.abs(found.pred - found.mean) < 1).all()
    plain = estimate_counts(cells, PH3, parse_estimate_settings({}))
    assert (np.abs(found.pred - found.mean)[:, 2] <= 0.5).all()
    assert not (np.abs(plain.pred - plain.mean)[:, 2] <= 0.5).all()
    assert (found.low == plain.low).all()
