import math
from fractions import Fraction

import numpy as np
import pytest

from censafe.evaluation.tables.groups.cells import (
    SIZES,
    ErrorTally,
    add_errors,
    cell_kinds,
    group_size_class,
    key_of,
    split_key,
)
from censafe.products.detailed.tables import measured_table


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
        assert found.bias == pytest.approx(theirs.mean(), abs=1e-12)
        for confidence in (Fraction(9, 10), Fraction(19, 20)):
            expected = np.quantile(np.abs(theirs), float(confidence), method="inverted_cdf")
            assert found.margin(confidence) == expected
        assert found.share_within(20) == np.mean(np.abs(theirs) <= 20)


def test_without_errors_nothing_is_known() -> None:
    found = ErrorTally().of([4])
    assert found.number == 0
    assert math.isnan(found.bias)
    assert math.isnan(found.margin(Fraction(9, 10)))
    assert math.isnan(found.share_within(1))


def test_an_error_that_would_be_mistaken_for_another_key_is_refused() -> None:
    tally = ErrorTally()
    for key, error in ((0, 1 << 40), (-1, 0), (1 << 22, 0)):
        with pytest.raises(OverflowError):
            tally.add(np.array([key]), np.array([error]))
