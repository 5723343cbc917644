"""Rounding, ranges, suppression, cell keys and recodes: what is published, and that the truth lies within."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from censafe.attack.defenses.named import TableAreas
from censafe.attack.defenses.recoding import age_bands, grouped_races, merge_small_areas, top_code
from censafe.attack.defenses.registry import parse_defense
from censafe.attack.defenses.rounding import (
    CellKeyLaw,
    perturb_by_cell_key,
    record_keys,
    round_counts,
    round_randomly,
    sums_of_keys,
)
from censafe.attack.defenses.suppression import (
    race_tables,
    shares_suppressed,
    suppress_cells,
    suppress_tables_of_small_groups,
)
from censafe.attack.people import People
from censafe.attack.tables import tabulate_lines
from support.block_tables import block_workload

COUNTS = np.arange(400).reshape(20, 20)


def some_people(seed: int = 0, persons: int = 500) -> People:
    draw = np.random.default_rng(seed)
    code = np.array(
        [f"50007000{100 + one // 10}00{1000 + one}"[:15] for one in draw.integers(0, 30, persons)]
    )
    return People.of(
        code,
        sex=draw.integers(0, 2, persons),
        age=draw.integers(0, 100, persons),
        race=draw.integers(0, 63, persons),
        hispanic=draw.random(persons) < 0.2,
    )


@given(st.integers(2, 12), st.booleans())
def test_rounding_holds_the_truth_and_is_multiples(base: int, apart: bool) -> None:
    found = round_counts(COUNTS, base, apart)
    assert ((found.low <= COUNTS) & (found.high >= COUNTS)).all()
    assert (found.value % base == 0).all()
    assert (found.high - found.low < 2 * base).all()
    if apart:
        assert np.array_equal(found.value == 0, COUNTS == 0)


def test_random_rounding_is_unbiased_and_leaves_multiples() -> None:
    found = [round_randomly(COUNTS, 5, seed) for seed in range(400)]
    assert all(((one.low <= COUNTS) & (one.high >= COUNTS)).all() for one in found)
    assert np.array_equal(found[0].value[COUNTS % 5 == 0], COUNTS[COUNTS % 5 == 0])
    mean = np.mean([one.value for one in found], axis=0)
    assert np.abs(mean - COUNTS).max() < 5 * 2.5 / 20
    assert abs((mean - COUNTS).mean()) < 0.03


@pytest.mark.parametrize(
    "spec",
    [
        "round:3", "round:5:zero=apart", "random-round:3", "ranges", "suppress:1980", "cellkey",
        "cellkey:bound=3:variance=1",
    ],
)  # fmt: skip
def test_published_tables_of_a_population_hold_the_truth(spec: str) -> None:
    people, workload = some_people(), block_workload()
    counts = tabulate_lines(workload, people)
    defense = parse_defense(spec)
    assert defense.tables is not None
    found = defense.tables(TableAreas(workload.types(people), people.block, workload, counts), 1)
    assert ((found.low <= counts) & (counts <= found.high)).all()
    assert not np.array_equal(found.value, counts)
    same = defense.tables(TableAreas(workload.types(people), people.block, workload, counts), 1)
    assert np.array_equal(found.value, same.value)


def test_cell_keys_give_one_count_the_same_noise_everywhere() -> None:
    people, workload = some_people(3), block_workload()
    counts = tabulate_lines(workload, people)
    keys = sums_of_keys(
        record_keys(len(people), 5), people.block, workload.space.types(people), workload.matrix, len(counts)
    )
    found = perturb_by_cell_key(counts, keys, CellKeyLaw.of())
    names = np.array(workload.names)
    first = {name: np.flatnonzero(names == name)[0] for name in ("P1", "P8", "P9", "P12")}
    assert len({found.value[:, place].tobytes() for place in first.values()}) == 1
    assert (found.value[counts == 0] == 0).all()
    assert np.abs(found.value - counts).max() <= 5


@pytest.mark.parametrize(("bound", "variance"), [(5, 2.0), (3, 1.0)])
def test_the_law_of_cell_keys_has_mean_0_its_variance_and_no_negative_counts(
    bound: int, variance: float
) -> None:
    law = CellKeyLaw.of(bound, variance)
    values = np.arange(-bound, bound + 1)
    assert np.allclose(law.chances.sum(axis=1), 1)
    assert np.allclose(law.chances @ values, 0)
    assert np.allclose((law.chances @ values**2)[1:], variance)
    assert all((law.chances[count, values < -count] == 0).all() for count in range(bound + 1))


def test_the_blocks_of_the_suppression_example() -> None:
    def shown(asians: int) -> tuple[list[int], bool]:
        race = np.array([0] * 15 + [3] * asians)
        people = People.of(
            np.full(len(race), "500070001001001"),
            sex=0 * race,
            age=40 + 0 * race,
            race=race,
            hispanic=0 * race,
        )
        tables = race_tables(people, np.zeros(1, np.int64), 1)
        cells = suppress_cells(tables["P1"]).value[0]
        return cells[[0, 3]].tolist(), bool(
            suppress_tables_of_small_groups(tables["P3"], tables["P1"]).published.any()
        )

    assert shown(3) == ([15, 3], False)
    assert shown(2) == ([15, 0], False)
    assert shown(0) == ([15, 0], True)


def test_shares_suppressed_are_shares() -> None:
    for row in shares_suppressed(some_people()).to_pylist():
        assert 0 <= row["suppressed"] <= row["tables"]
        assert 0 <= row["zeroed"] <= max(row["cells"], 0)


@pytest.mark.parametrize(
    "recode", [top_code(75), age_bands(10), age_bands(5), grouped_races(2), grouped_races(7)]
)
def test_tables_of_recoded_persons_are_rows_on_the_types_there_were(recode: object) -> None:
    people, workload = some_people(7), block_workload()
    rows = recode.rows(workload.space.edges)  # type: ignore[attr-defined]
    recoded = tabulate_lines(workload, recode.people(people))  # type: ignore[attr-defined]
    histogram = np.zeros((len(people.blocks), workload.space.size))
    np.add.at(histogram, (people.block, workload.space.types(people)), 1)
    assert np.array_equal(recoded, histogram @ workload.matrix[rows].toarray())


def test_merged_areas_have_enough_persons_and_all_of_them() -> None:
    people = some_people(9)
    merged = merge_small_areas(people, 40).people(people)
    assert len(merged) == len(people)
    assert merged.population.min() >= 40
    assert set(merged.blocks) <= set(people.blocks)
