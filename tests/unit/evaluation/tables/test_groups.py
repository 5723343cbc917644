"""Kinds of cells of population groups, and repeated noise draws against the truth."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from math import sqrt
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from censafe.evaluation.tables.group_accuracy import chance_above, error_rows, share_rows, zero_rows
from censafe.evaluation.tables.groups import (
    SIZES,
    ErrorTally,
    LevelTrials,
    add_errors,
    cell_kinds,
    group_size_class,
    key_of,
    level_trials,
    run_group_trials,
    sorted_input,
    split_key,
)
from censafe.model import NoiseLaw
from censafe.privacy.keys import TestKey, TestPartKey, derive_part_key
from censafe.privacy.loss.margins import exact_coverage
from censafe.privacy.measure.adaptive import suppression_threshold
from censafe.products.detailed.codes.parameters import read_universe
from censafe.products.detailed.config import SafetabConfig, load_h_config, load_p_config
from censafe.products.detailed.intake import public_level
from censafe.products.detailed.plan import plan_release
from censafe.products.detailed.tables import measured_table
from censafe.products.run.options import ReadOptions
from support.safetab_folders import SafetabFolders, write_folders


@pytest.mark.parametrize("key", ["t1t2", "t3", "t4"])
def test_every_written_cell_is_in_one_kind(key: str) -> None:
    table = measured_table(key)
    kinds = cell_kinds(table)
    for layout in table.layouts:
        for level, shell in layout.shells.items():
            written = sorted(cell.members for cell in shell.cells)
            ours = [kind for kind in kinds if (kind.table, kind.stat_level) == (shell.table, level)]
            assert written == sorted(tuple(row) for kind in ours for row in kind.members.tolist())


def test_kinds_of_persons_have_the_draws_of_the_specification() -> None:
    draws = {
        (kind.table, kind.cell, kind.stat_level): kind.draws for kind in cell_kinds(measured_table("t1t2"))
    }
    assert [draws["T01001", "Total", level] for level in range(4)] == [1, 8, 18, 46]
    assert [draws[f"T0200{level}", "Sex", level] for level in (1, 2, 3)] == [4, 9, 23]
    assert {draws[f"T0200{level}", "Sex by age", level] for level in (1, 2, 3)} == {1}


def test_keys_come_back() -> None:
    for kind, only, size in ((0, False, 0), (9, True, len(SIZES) - 1), (3, False, 4)):
        assert split_key(int(key_of(kind, np.array([only]), np.array([size]))[0])) == (kind, only, size)


def test_sizes_hold_their_numbers() -> None:
    for number in (0, 1, 9, 10, 99, 100, 5_000, 99_999_999, 100_000_000, 10**12):
        name = SIZES[int(group_size_class(np.array([number]))[0])]
        low, _, high = name.rstrip("+").partition("-")
        assert int(low) <= number <= (int(high) if high else (number if name.endswith("+") else int(low)))


def test_errors_of_sums_are_sums_of_errors() -> None:
    kinds = cell_kinds(measured_table("t4"))
    tally = ErrorTally()
    # one group with a total only, one with three cells
    errors = np.array([7, 1, -2, 4])
    add_errors(
        tally, kinds, np.array([0, 1], np.int8), np.array([0, 1, 4]), errors, np.array([False, True]), np.array([0, 2])
    )  # fmt: skip
    found = {
        (kinds[split_key(key)[0]].table, kinds[split_key(key)[0]].cell): tally.of([key]).values.tolist()
        for key in tally.keys
    }
    assert found == {
        ("T04001", "Occupied housing units"): [7],
        ("T04002", "Occupied housing units"): [3],
        ("T04002", "Owned with a mortgage or a loan"): [1],
        ("T04002", "Owned free and clear"): [-2],
        ("T04002", "Renter occupied"): [4],
    }


def test_a_tally_gives_what_all_errors_together_give() -> None:
    rng = np.random.default_rng(1)
    tally, added = ErrorTally(), []
    for _ in range(7):
        keys, errors = rng.integers(0, 3, 500), rng.integers(-40, 60, 500)
        tally.add(keys, errors)
        added.append((keys, errors))
    keys, errors = (np.concatenate(columns) for columns in zip(*added, strict=True))
    assert tally.keys == [0, 1, 2]
    for wanted in ([0], [1, 2], [0, 1, 2]):
        theirs, found = errors[np.isin(keys, wanted)], tally.of(wanted)
        assert found.number == len(theirs)
        assert found.mean == pytest.approx(theirs.mean(), abs=1e-12)
        for confidence in (Fraction(9, 10), Fraction(19, 20)):
            expected = np.quantile(np.abs(theirs), float(confidence), method="inverted_cdf")
            assert found.margin(confidence) == expected
        assert found.share_within(20) == np.mean(np.abs(theirs) <= 20)


def test_without_errors_nothing_is_known() -> None:
    found = ErrorTally().of([4])
    assert found.number == 0
    assert math.isnan(found.mean)
    assert math.isnan(found.margin(Fraction(9, 10)))
    assert math.isnan(found.share_within(1))


def test_an_error_that_would_be_mistaken_for_another_key_is_refused() -> None:
    tally = ErrorTally()
    for key, error in ((0, 1 << 40), (-1, 0), (1 << 22, 0)):
        with pytest.raises(OverflowError):
            tally.add(np.array([key]), np.array([error]))


LEVEL = Fraction(19, 20)


@pytest.fixture
def folders(tmp_path: Path) -> SafetabFolders:
    return write_folders(tmp_path)


@contextmanager
def trials_of(folders: SafetabFolders, config: SafetabConfig, trials: int) -> Iterator[list[LevelTrials]]:
    """All levels of a run after some draws."""
    plan = plan_release(config, read_universe(config.universe))
    with sorted_input(config, folders.data, folders.data.parent / "scratch", ReadOptions()) as records:
        levels = level_trials(records, config, plan)
        run_group_trials(levels, plan, trials=trials, seed=5)
        yield levels


def level_key(level: LevelTrials, run_key: TestKey) -> TestPartKey:
    key = derive_part_key(run_key, "0" * 64, b"", level.part.name)
    if not isinstance(key, TestPartKey):
        raise TypeError
    return key


def test_the_noise_of_left_out_groups_is_the_one_that_left_them_out(folders: SafetabFolders) -> None:
    config = load_p_config(str(folders.p))
    with trials_of(folders, config, 1) as levels:
        (county,) = (one for one in levels if one.part.name == "county_2")
        run_key = TestKey(2)
        measured = county.measure(level_key(county, run_key))
        hidden = county.hidden(measured)
        totals = county.census.values[hidden] + county.hidden_noise(
            measured, hidden, level_key(county, run_key)
        )
        bound = suppression_threshold(measured.laws["stage2"], config.zero_suppression_chance)
        assert len(hidden) > 3
        assert totals.max() <= bound
        whole = replace(county, config=replace(config, zero_suppression_chance=Fraction(0)))
        every = whole.measure(level_key(county, run_key))
        sums = dict(
            zip(zip(every.region.tolist(), every.iteration.tolist(), strict=True), every.sums, strict=True)
        )
        groups = zip(
            county.census.region[hidden].tolist(), county.census.iteration[hidden].tolist(), strict=True
        )
        assert totals.tolist() == [sums[group] for group in groups]


@pytest.mark.parametrize("definition", ["zcdp", "puredp"])
def test_without_noise_every_group_has_the_table_of_its_size(
    folders: SafetabFolders, definition: str
) -> None:
    folders.configure("p", budget=1000, definition=definition)
    with trials_of(folders, load_p_config(str(folders.p)), 2) as levels:
        for row in error_rows(levels, LEVEL):
            assert row.noise_moe == 0 if row.noise_cells else row.size == "0"
            assert row.published_moe == 0 if row.published_cells else row.region_type in ("COUNTY", "TRACT")
        shares = {
            (row.region_type, row.iteration_level, row.size, row.table): row.share
            for row in share_rows(levels, 2)
        }
    assert sum(shares["USA", 1, "10-99", f"T0200{level}"] for level in (1, 2, 3)) == pytest.approx(1.0)
    assert shares["USA", 2, "0", "T01001"] == 1.0
    assert shares["TRACT", 2, "0", "none"] == 1.0
    assert shares["TRACT", 2, "1-9", "T01001"] == 1.0


def test_shares_add_up_to_all_groups(folders: SafetabFolders) -> None:
    with trials_of(folders, load_p_config(str(folders.p)), 3) as levels:
        for level in levels:
            public = public_level(level.records.data.areas, level.records.universe, level.level)
            assert level.groups.sum() == public.groups
            assert np.array_equal(level.outcomes.sum(axis=2), 3 * level.groups)


def test_noise_and_suppression_are_as_planned(folders: SafetabFolders) -> None:
    trials = 100
    with trials_of(folders, load_p_config(str(folders.p)), trials) as levels:
        rows = [row for row in error_rows(levels, LEVEL) if row.size == "all" and row.draws_a_cell == 1]
        (zero, *_) = zeros = zero_rows(levels, trials)
        laws = {one.part.name: [query.law for query in one.part.queries] for one in levels}
    # Every share is binomial with a known chance; five standard deviations are exceeded once in 1.7 million rows. A
    # noise too wide or too narrow by a tenth would move the coverage of the larger rows by 10 of them.
    assert len(rows) > 10
    for row in rows:
        only, _, cells = laws[f"{row.region_type.lower().replace('-', '_')}_{row.iteration_level}"]
        chance = exact_coverage(only if row.detailed_only else cells, row.expected_moe_exact)
        assert row.noise_coverage == pytest.approx(
            chance, abs=5 * sqrt(chance * (1 - chance) / row.noise_cells)
        )
    assert {row.region_type for row in zeros} == {"COUNTY", "TRACT"}
    assert 0.05 < zero.expected_share < 0.5
    for one in zeros:
        assert abs(one.published - one.expected) < 5 * one.deviation


def test_margins_of_both_definitions_follow_from_the_stability(folders: SafetabFolders) -> None:
    with trials_of(folders, load_p_config(str(folders.p)), 1) as levels:
        for row in error_rows(levels, LEVEL):
            if row.table == "T01001" and row.draws_a_cell == 1 and not row.detailed_only:
                assert row.stability > 1
                assert row.expected_moe_zcdp == pytest.approx(1.96 * sqrt(row.stability / 1.8))
                assert row.expected_moe == row.expected_moe_zcdp
                assert row.expected_moe_puredp > row.expected_moe_zcdp


@pytest.mark.parametrize("respect_granularity", [True, False])
@pytest.mark.parametrize("coterminous", ["donor", "combined"])
def test_what_was_published_is_compared_group_by_group(
    folders: SafetabFolders, coterminous: Literal["donor", "combined"], respect_granularity: bool
) -> None:
    folders.configure("p", budget=1000)
    config = load_p_config(str(folders.p), {"zero_suppression_chance": "0"})
    config = replace(config, coterminous=coterminous, respect_granularity=respect_granularity)
    with trials_of(folders, config, 1) as levels:
        errors = error_rows(levels, LEVEL)
    assert all(row.published_moe == 0 for row in errors if row.published_cells)
    assert sum(row.published_cells for row in errors if row.size == "all") > 100


def test_clipping_biases_what_is_published_and_not_the_noise(folders: SafetabFolders) -> None:
    config = replace(load_p_config(str(folders.p)), negatives="zero")
    with trials_of(folders, config, 40) as levels:
        (row,) = (
            row
            for row in error_rows(levels, LEVEL)
            if (row.region_type, row.iteration_level, row.size) == ("USA", 2, "0")
            and row.table == "T01001" and row.stat_level == 0 and not row.detailed_only
        )  # fmt: skip
    assert row.published_bias > 0.3
    assert row.published_bias > row.noise_bias + 0.3


def test_households_have_the_tables_of_their_totals(folders: SafetabFolders) -> None:
    trials = 40
    config = load_h_config(str(folders.h), {"missing_blocks": "drop"})
    with trials_of(folders, config, trials) as levels:
        rows = [row for row in error_rows(levels, LEVEL) if row.size == "all"]
        shares = share_rows(levels, trials)
        assert not zero_rows(levels, trials)
    assert {row.table[:3] for row in rows} == {"T03", "T04"}
    for row in rows:
        if row.draws_a_cell == 1:
            chance = exact_coverage(NoiseLaw.gaussian(Fraction(row.stability, 2)), row.expected_moe_exact)
            deviation = sqrt(chance * (1 - chance) / row.noise_cells)
            assert row.noise_coverage == pytest.approx(chance, abs=5 * deviation)
    totals: dict[tuple[object, ...], float] = {}
    for one in shares:
        key = one.measured, one.region_type, one.iteration_level, one.detailed_only, one.size
        totals[key] = totals.get(key, 0.0) + one.share
    assert all(total == pytest.approx(1.0) for total in totals.values())
    assert any(one.table == "none" and one.share > 0 for one in shares)


@pytest.mark.parametrize("law", [NoiseLaw.gaussian(Fraction(7)), NoiseLaw.laplace(Fraction(3))])
def test_the_chance_of_larger_noise_is_a_tail(law: NoiseLaw) -> None:
    assert chance_above(law, -1) - chance_above(law, 0) == pytest.approx(exact_coverage(law, 0))
    for bound in (-5, -1, 0, 3, 40):
        assert chance_above(law, bound) + chance_above(law, -bound - 1) == pytest.approx(1.0)
        step = chance_above(law, bound - 1) - chance_above(law, bound)
        mass = exact_coverage(law, abs(bound)) - (exact_coverage(law, abs(bound) - 1) if bound else 0.0)
        assert step == pytest.approx(mass if bound == 0 else mass / 2, abs=1e-14)
