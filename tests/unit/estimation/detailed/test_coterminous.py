from dataclasses import replace
from fractions import Fraction
from typing import Literal

import numpy as np
import pytest

from censafe.estimation.detailed.area_classes import AreaClasses
from censafe.estimation.detailed.coterminous import coterminous
from censafe.model.groups import GroupEstimates
from censafe.privacy.noise.variance import variance_of_cells
from support.group_measurements import CODES, THRESHOLDS, level, persons, totals

Mode = Literal["donor", "combined"]
MODES: tuple[Mode, ...] = ("donor", "combined")

STATE = level("state_2", ["11", "44"], [*CODES, "3001"], detailed_only=["3001"])
COUNTY = level("county_2", ["11001", "44001", "44003"], CODES)
TRACT = level("tract_2", ["11001000100", "44001000100", "44003000100"], CODES)
PLACE = level("place_2", ["1150000", "4400010"], CODES)
CLASSES = AreaClasses(
    (
        (("STATE", "11"), ("COUNTY", "11001"), ("PLACE", "1150000")),
        (("COUNTY", "44001"), ("TRACT", "44001000100"), ("AIANNH", "0005")),
        (("TRACT", "44003000100"), ("PLACE", "4400010")),
    )
)
Cells = dict[tuple[str, str, str], tuple[int, list[int]]]


def _estimates(
    seed: int = 1, share: float = 0.7, t1: Literal["stage2", "pooled"] = "stage2"
) -> list[GroupEstimates]:
    costs = {STATE: 2, COUNTY: Fraction(1, 5), TRACT: Fraction(1, 10), PLACE: Fraction(1, 5)}
    return [
        totals(persons(where, Fraction(cost), seed=seed + i, share=share), t1=t1, thresholds=THRESHOLDS)
        for i, (where, cost) in enumerate(costs.items())
    ]


def _cells(estimates: list[GroupEstimates] | tuple[GroupEstimates, ...]) -> Cells:
    return {
        (found.level.region_type, str(found.level.regions[region]), found.level.iterations[iteration]): (
            int(stat_level),
            found.values[start:stop].tolist(),
        )
        for found in estimates
        for region, iteration, stat_level, start, stop in zip(
            found.region, found.iteration, found.stat_level, found.indptr, found.indptr[1:], strict=False
        )
    }


def _donors(before: Cells, iteration: str, members: tuple[tuple[str, str], ...]) -> list[tuple[str, str]]:
    order = ("STATE", "COUNTY", "PLACE", "TRACT")
    return sorted((m for m in members if (*m, iteration) in before), key=lambda m: order.index(m[0]))


@pytest.mark.parametrize("seed", range(5))
def test_every_area_of_a_class_gets_the_donors_cells(seed: int) -> None:
    """The expected result is made group by group with plain loops."""
    start = _estimates(seed)
    before = _cells(start)
    expected = dict(before)
    for members in CLASSES.classes:
        for iteration in CODES:
            donors = _donors(before, iteration, members)
            for member in members if donors else ():
                if member[0] != "AIANNH":
                    expected[(*member, iteration)] = before[(*donors[0], iteration)]
    found, report = coterminous(start, CLASSES)
    assert expected == _cells(found)
    changed = {
        (region, iteration)
        for change in report.changes
        for region, iteration in zip(change.region.tolist(), change.iteration.tolist(), strict=True)
    }
    assert {key[1:] for key in expected if expected[key] != before.get(key)} == changed
    assert report.document()["groups_changed"] == sum(len(change.region) for change in report.changes)
    for change in report.changes:
        kind = next(one.level.region_type for one in start if one.level.name == change.level)
        keys = zip(change.region.tolist(), change.iteration.tolist(), strict=True)
        for (region, iteration), old, new in zip(keys, change.before, change.after, strict=True):
            assert new == sum(expected[kind, region, iteration][1])
            was = before.get((kind, region, iteration))
            assert np.isnan(old) if was is None else old == sum(was[1])


def test_a_group_that_only_states_tabulate_goes_no_further() -> None:
    start = _estimates(share=1.0)
    found, _ = coterminous(start, CLASSES)
    assert ("STATE", "11", "3001") in _cells(found)
    assert ("COUNTY", "11001", "3001") not in _cells(found)


def test_without_granularity_all_areas_of_a_class_get_every_group() -> None:
    start = _estimates(share=1.0)
    narrow = _cells(coterminous(start, CLASSES)[0])
    found, report = coterminous(start, CLASSES, respect_granularity=False)
    wide = _cells(found)
    state = wide["STATE", "11", "3001"]
    new = {("COUNTY", "11001", "3001"): state, ("PLACE", "1150000", "3001"): state}
    assert wide == narrow | new  # tract 44003000100 and place 4400010 have no state in their class
    assert [estimates.level.iterations for estimates in found] == [
        STATE.iterations, STATE.iterations, (*CODES,), STATE.iterations
    ]  # fmt: skip
    assert [estimates.level.detailed_only.tolist() for estimates in found[:2]] == [
        [False] * 4 + [True],
        [False] * 5,
    ]
    added = [change for change in report.changes if "3001" in change.iteration.tolist()]
    assert [(change.level, change.donor[change.iteration == "3001"].tolist()) for change in added] == [
        ("county_2", ["STATE"]), ("place_2", ["STATE"])
    ]  # fmt: skip


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("t1", ["stage2", "pooled"])
def test_combined_totals_are_weighted_means_and_cells_add_up(
    seed: int, t1: Literal["stage2", "pooled"]
) -> None:
    start = _estimates(seed, 0.8, t1)
    before = _cells(start)
    noises = {
        (
            found.level.region_type,
            str(found.level.regions[region]),
            found.level.iterations[iteration],
        ): found.noises[i]
        for found in start
        for region, iteration, i in zip(found.region, found.iteration, found.noise, strict=True)
    }
    found, _ = coterminous(start, CLASSES, mode="combined")
    after = _cells(found)
    several = 0
    for members in CLASSES.classes:
        for iteration in CODES:
            donors = _donors(before, iteration, members)
            if not donors:
                continue
            several += len(donors) > 1
            keys = [(*donor, iteration) for donor in donors]
            weights = [1 / variance_of_cells(noises[key], noises[key].cells) for key in keys]
            sums = [sum(before[key][1]) for key in keys]
            mean = sum(w * s for w, s in zip(weights, sums, strict=True)) / sum(weights)
            results = {str(after[(*m, iteration)]) for m in members if m[0] != "AIANNH"}
            assert len(results) == 1
            stat_level, cells = after[keys[0]]
            assert (stat_level, round(mean)) == (before[keys[0]][0], sum(cells))
            moved = np.array(cells) - np.array(before[keys[0]][1])
            assert moved.max() - moved.min() <= 1
    assert several > 3


@pytest.mark.parametrize("respect", [True, False])
@pytest.mark.parametrize("mode", MODES)
def test_a_second_application_changes_nothing(mode: Mode, respect: bool) -> None:
    once, _ = coterminous(_estimates(), CLASSES, mode=mode, respect_granularity=respect)
    twice, report = coterminous(once, CLASSES, mode=mode, respect_granularity=respect)
    assert report.changes == ()
    assert _cells(once) == _cells(twice)
    for one, two in zip(once, twice, strict=True):
        assert [one.noises[i] for i in one.noise] == [two.noises[i] for i in two.noise]
        assert np.array_equal(one.shared, two.shared)


def test_combined_variances_are_right() -> None:
    """2,000 draws of one class: the variance of the total, of a cell and of a marginal, within six standard errors."""
    codes = [f"{n:04}" for n in range(2000)]
    where = [
        level("state_2", ["11"], codes),
        level("county_2", ["11001"], codes),
        level("place_2", ["1150000"], codes),
    ]
    costs = [Fraction(1, 50), Fraction(1, 100), Fraction(1, 200)]
    start = [
        totals(persons(one, cost, seed=i, share=1.0, truth=lambda n: np.full(n, 20_000)), t1="pooled")
        for i, (one, cost) in enumerate(zip(where, costs, strict=True))
    ]
    found, _ = coterminous(start, CLASSES, mode="combined")
    state = found[0]
    noise = state.noises[state.noise[0]]
    cells = state.values.reshape(2000, 46) - 20_000 // 46
    cells[:, 0] -= 20_000 % 46
    for count in (1, 23, 46):
        expected = variance_of_cells(noise, count)
        actual = np.var(cells[:, :count].sum(axis=1))
        rounding = 0.5 * count
        assert abs(actual - expected) < 6 * expected * (2 / 2000) ** 0.5 + rounding
    alone = 1 / sum(1 / variance_of_cells(one.noises[one.noise[0]], 46) for one in start)
    assert variance_of_cells(noise, 46) == pytest.approx(alone)


@pytest.mark.parametrize("mode", MODES)
def test_flags_travel_with_the_counts(mode: Mode) -> None:
    start = _estimates(share=1.0)
    marked = [replace(found, conditional=found.stat_level == 0) for found in start]
    found, _ = coterminous(marked, CLASSES, mode=mode)
    state = found[0]
    assert state.shared[state.region == 0].all()
    assert not state.shared[state.region == 1].any()
    county = found[1]
    assert county.shared[county.region < 2].all()
    assert not county.shared[county.region == 2].any()
    if mode == "donor":
        assert np.array_equal(state.conditional[:4], county.conditional[:4])


def test_without_classes_nothing_changes() -> None:
    start = _estimates()
    found, report = coterminous(start, AreaClasses(()))
    assert _cells(start) == _cells(found)
    assert report.document() == {"mode": "donor", "classes": 0, "areas": 0, "groups_changed": 0}


def test_a_level_without_groups_takes_part() -> None:
    start = _estimates()
    start[1] = totals(persons(COUNTY, share=0.0))
    found, _ = coterminous(start, CLASSES)
    assert found[1].rows > 0


def test_a_level_twice_is_refused() -> None:
    start = _estimates()
    with pytest.raises(ValueError, match="every level once"):
        coterminous([*start, start[0]], CLASSES)
