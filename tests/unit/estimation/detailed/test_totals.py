"""Totals and cells of population groups, and flags of groups whose counts contradict each other."""

from dataclasses import replace
from fractions import Fraction
from typing import Literal

import numpy as np
import pytest

from censafe.estimation.detailed import totals as estimation
from censafe.estimation.detailed.additive import spread
from censafe.estimation.detailed.totals import flag_contradictions, nonnegative
from censafe.model import NoiseLaw
from censafe.model.groups import GroupEstimates, GroupNoise
from censafe.privacy.noise.variance import variance_of_cells
from support.group_measurements import TABLES, THRESHOLDS, households, level, persons, totals

STATES = level("state_2", [f"{n:02}" for n in range(1, 41)], detailed_only=["2002"])


def test_stage2_totals_are_sums_of_the_measured_cells() -> None:
    measured = persons(STATES)
    found = totals(measured, conditional=False)
    assert np.array_equal(measured.values, found.values)
    assert np.array_equal(measured.sums, found.totals)
    assert not found.conditional.any()
    assert found.cost == Fraction(1, 2)


def test_detailed_only_groups_have_their_own_law_and_no_table() -> None:
    measured = persons(STATES)
    for option in ("stage2", "pooled"):
        found = totals(measured, t1=option, thresholds=THRESHOLDS)  # type: ignore[arg-type]
        only = measured.level.detailed_only[found.iteration]
        assert only.any()
        assert {measured.laws["detailed_only"]} == {
            found.noises[i].law for i in found.noise[only] if found.noises[i].plain
        }
        assert np.array_equal(measured.sums[only], found.totals[only])
        assert not found.near[only].any()


def test_conditional_marks_totals_of_stat_level_0_only() -> None:
    found = totals(persons(STATES), conditional=True)
    assert np.array_equal(found.stat_level == 0, found.conditional)


def test_variances_are_those_of_the_specification() -> None:
    """Section 10.2: T1 of stat level 0 to 3 has v, 8 v, 18 v, 46 v; sex marginals 4 v, 9 v, 23 v; H as the table says."""
    v = 625.0
    sizes = TABLES["t1t2"].sizes
    law = NoiseLaw.gaussian(Fraction(625))
    noises = [GroupNoise(law, size) for size in sizes]
    assert [v, 8 * v, 18 * v, 46 * v] == [variance_of_cells(noise, noise.cells) for noise in noises]
    draws = [
        [sorted({len(cell.members) for cell in shell.cells}) for shell in layout.shells.values()]
        for layout in TABLES["t1t2"].layouts
    ]
    expected = [[[1], [8], [18], [46]], [[1, 4], [1, 9], [1, 23]]]
    assert expected == draws
    by_cell = {
        layout.name: {
            cell.code: len(cell.members) for shell in layout.shells.values() for cell in shell.cells
        }
        for table in ("t3", "t4")
        for layout in TABLES[table].layouts
    }
    written = {
        "T03001": {"0": 1},
        "T03002": {"0": 2, "1": 1, "6": 1},
        "T03003": {"0": 4, "1": 2, "2": 1, "3": 1, "6": 2, "7": 1, "8": 1},
        "T03004": {"0": 5, "1": 3, "2": 1, "3": 2, "4": 1, "5": 1, "6": 2, "7": 1, "8": 1},
        "T04001": {"0": 1},
        "T04002": {"0": 3, "1": 1, "2": 1, "3": 1},
    }
    assert written == by_cell


def test_pooled_variances_are_those_of_the_specification() -> None:
    """Section 10.3, f = 0.1 and s = 9: 4.5, 21.2, 30, 37.6 times 1 / rho; a cell has v - v^2 / (v1 + K v)."""
    measured = persons(STATES, Fraction(1, 100))
    found = totals(measured, t1="pooled", thresholds=THRESHOLDS)
    v1, v = 9 / (2 * 0.001), 9 / (2 * 0.009)
    for stat_level, size in enumerate(TABLES["t1t2"].sizes):
        chosen = (found.stat_level == stat_level) & ~measured.level.detailed_only[found.iteration]
        noise = found.noises[found.noise[chosen][0]]
        assert variance_of_cells(noise, size) == pytest.approx(v1 * size * v / (v1 + size * v))
        assert variance_of_cells(noise, 1) == pytest.approx(v - v**2 / (v1 + size * v))
        assert [4.5, 21.2, 30.0, 37.6][stat_level] == pytest.approx(
            variance_of_cells(noise, size) / 100, abs=0.06
        )


def test_pooled_cells_add_up_to_the_pooled_total_and_move_by_equal_amounts() -> None:
    measured = persons(STATES)
    found = totals(measured, t1="pooled", thresholds=THRESHOLDS)
    v1, v = 9 / (2 * 0.05), 9 / (2 * 0.45)
    size = np.diff(measured.indptr)
    exact = (size * v * measured.stage1 + v1 * measured.sums) / (v1 + size * v)
    assert np.abs(found.totals - exact)[~measured.level.detailed_only[found.iteration]].max() <= 0.5 + 1e-9
    change = found.values - measured.values
    starts = measured.indptr[:-1]
    assert (np.maximum.reduceat(change, starts) - np.minimum.reduceat(change, starts)).max() <= 1
    near = np.abs(exact[:, None] - np.array(THRESHOLDS)).min(axis=1) <= 3 * np.sqrt(v1)
    near &= ~measured.level.detailed_only[found.iteration]
    assert near.any()
    assert np.array_equal(near, found.near)
    back = totals(measured, t1="pooled", thresholds=THRESHOLDS, near="fallback")
    assert np.array_equal(np.where(near, measured.sums, found.totals), back.totals)
    assert all(back.noises[i].plain for i in back.noise[near])


def test_what_is_left_of_a_change_favors_no_cell() -> None:
    """100,000 groups of 8 cells: the mean of 0/1 units a cell is within 6 standard errors; every group keeps its sum."""
    groups, size = 100_000, 8
    seeds = np.random.default_rng(3).integers(0, 2**63, groups).astype(np.uint64)
    indptr = np.arange(0, groups * size + 1, size, dtype=np.int64)
    change = np.arange(groups, dtype=np.int64) % 17 - 8
    new = spread(np.zeros(groups * size, np.int64), indptr, change, seeds).reshape(groups, size)
    assert np.array_equal(change, new.sum(axis=1))
    assert np.abs(new.mean(axis=0) - change.mean() / size).max() < 6 * 0.5 / groups**0.5


def test_negative_cells_become_zero_before_totals_are_formed() -> None:
    found = nonnegative(totals(households(STATES)))
    plain = totals(households(STATES))
    assert (plain.values < 0).any()
    assert np.array_equal(np.maximum(plain.values, 0), found.values)
    assert np.array_equal(np.add.reduceat(found.values, found.indptr[:-1]), found.totals)


def test_households_have_nothing_to_pool() -> None:
    with pytest.raises(ValueError, match="nothing to pool"):
        totals(households(STATES), t1="pooled")


def test_measurements_of_another_table_are_refused() -> None:
    with pytest.raises(ValueError, match="measurements of t3 are not of the table t4"):
        estimation.totals(households(STATES), TABLES["t4"])


def test_a_level_without_groups_is_a_result() -> None:
    found = totals(persons(STATES, share=0.0), t1="pooled", thresholds=THRESHOLDS)
    assert found.rows == 0
    assert isinstance(nonnegative(found), GroupEstimates)


def test_a_group_with_the_cells_of_another_stat_level_is_refused() -> None:
    found = totals(persons(STATES))
    with pytest.raises(ValueError, match="cells of its stat level"):
        replace(found, stat_level=np.zeros(found.rows, np.int8))
    with pytest.raises(ValueError, match="one entry a group"):
        replace(found, near=found.near[:-1])


PAIRS = [("1001", "1002"), ("2001", "2002"), ("9998", "9999")]
COUNTIES = level("county_2", [f"{n:05}" for n in range(200)])


def _hidden(found: GroupEstimates, hidden: np.ndarray) -> set[tuple[int, str]]:
    return {
        (int(found.region[i]), found.level.iterations[found.iteration[i]]) for i in np.flatnonzero(hidden)
    }


def test_pairs_that_contradict_themselves_are_marked() -> None:
    found = totals(persons(COUNTIES))
    sums = {
        (int(region), found.level.iterations[iteration]): int(total)
        for region, iteration, total in zip(found.region, found.iteration, found.totals, strict=True)
    }
    expected = set()
    for region in range(200):
        for alone, other in PAIRS:
            if sums.get((region, alone), -(10**9)) > sums.get((region, other), 10**9):
                expected |= {(region, alone), (region, other)}
    flagged = flag_contradictions(found, PAIRS)
    assert len(expected) > 20
    assert expected == _hidden(found, flagged.hidden)
    assert (flagged.source, flagged.negative) == ("system", "zero")


@pytest.mark.parametrize(
    ("suppress", "hidden"),
    [
        ("both", {"1001", "1002", "2001", "2002"}),
        ("alone", {"1001", "2001"}),
        ("larger-variance", {"1001", "2001", "2002"}),
    ],
)
def test_one_count_of_a_pair_may_be_left(
    suppress: Literal["both", "alone", "larger-variance"], hidden: set[str]
) -> None:
    """1001 is a sum of 8 cells, 1002 one cell, 2001 and 2002 one cell each; both pairs contradict themselves (9 and 1, 5 and 4)."""
    found = totals(persons(level("county_2", ["00001"]), share=1.0))
    law = found.noises[0].law
    pairs = replace(
        found,
        stat_level=np.array([1, 0, 0, 0], np.int8),
        indptr=np.array([0, 8, 9, 10, 11]),
        values=np.array([9, *[0] * 7, 1, 5, 4], np.int64),
        noises=(GroupNoise(law, 8), GroupNoise(law, 1)),
        noise=np.array([0, 1, 1, 1], np.int32),
    )
    flagged = flag_contradictions(pairs, PAIRS, suppress=suppress)
    assert _hidden(pairs, flagged.hidden) == {(0, code) for code in hidden}


def test_equal_totals_are_not_a_contradiction() -> None:
    found = totals(persons(COUNTIES, share=1.0))
    same = replace(found, values=np.zeros_like(found.values))
    assert not flag_contradictions(same, PAIRS).hidden.any()


def test_a_level_without_groups_has_no_marks() -> None:
    found = totals(persons(COUNTIES, Fraction(1), share=0.0))
    assert not len(flag_contradictions(found, PAIRS).hidden)
