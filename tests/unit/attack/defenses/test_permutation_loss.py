"""The accountant of permutation swapping against the table of the specification."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from censafe.attack.defenses.permutation import largest_log_ratio, permutation_loss
from censafe.errors import ConfigError

TABLE = """
2 .05 2.9444 4.0431
3 .05 2.9444 4.3307
3 .5 .3466 1.3863
4 .05 4.0431 4.5539
5 .05 4.4900 4.7362
6 .05 4.6357 4.8903
6 .5 1.6913 1.9459
6 .7 .8473 1.0986
10 .05 5.194 5.342
100 .05 7.545 7.560
100 .5 4.600 4.615
1000 .02 10.799 10.801
1000 .05 9.852 9.853
1000 .5 6.907 6.909
"""
ROWS = [line.split() for line in TABLE.strip().splitlines()]


def derangements(n: int) -> Fraction:
    return sum((Fraction((-1) ** k, math.factorial(k)) for k in range(n + 1)), Fraction(0)) * math.factorial(
        n
    )


@pytest.mark.parametrize("row", ROWS, ids=[" ".join(row[:2]) for row in ROWS])
def test_the_table_of_the_specification(row: list[str]) -> None:
    loss = permutation_loss(int(row[0]), Fraction(row[1]))
    for found, printed in ((loss.record, row[2]), (loss.bound, row[3])):
        digits = len(printed.split(".")[1])
        assert f"{found:.{digits}f}" == f"{float(printed):.{digits}f}"
    assert loss.exchange == 2 * loss.record


@given(st.integers(2, 60), st.fractions(Fraction(1, 1000), Fraction(999, 1000), max_denominator=1000))
def test_ends_are_enough(largest: int, rate: Fraction) -> None:
    # Every step, from exact probabilities and the closed form of the derangement numbers.
    chance = {
        k: rate**k * (1 - rate) ** (largest - k) / derangements(k) for k in range(largest + 1) if k != 1
    }
    steps = [
        chance[k] / chance[k + step]
        for step in (1, 2)
        for k in chance
        if k + step in chance and not (step == 1 and k == 0)
    ]
    exact = max(abs(math.log(one.numerator) - math.log(one.denominator)) for one in steps)
    assert largest_log_ratio(largest, rate) == pytest.approx(exact, rel=1e-9, abs=1e-12)


@given(
    st.integers(2, 10**6), st.fractions(Fraction(1, 10**6), Fraction(999_999, 10**6), max_denominator=10**6)
)
def test_the_bound_is_never_below_and_larger_strata_cost_more(largest: int, rate: Fraction) -> None:
    loss = permutation_loss(largest, rate)
    assert loss.record <= loss.bound * (1 + 1e-12)
    assert permutation_loss(largest + 1, rate).record >= loss.record * (1 - 1e-12)


def test_nothing_to_swap_costs_nothing() -> None:
    assert [permutation_loss(one, Fraction(1, 2)).record for one in (0, 1)] == [0, 0]


@pytest.mark.parametrize("rate", [Fraction(0), Fraction(1), Fraction(-1, 2), Fraction(1, 3**60)])
def test_rates_out_of_range_are_refused(rate: Fraction) -> None:
    with pytest.raises(ConfigError, match="above 0 and below 1"):
        permutation_loss(3, rate)


def test_words_name_what_is_not_protected() -> None:
    words = permutation_loss(1000, Fraction(1, 20)).words()
    assert "9.852 for a record, 19.704 for the exchange" in words
    assert "Not protected" in words
    assert "cannot be compared" in words
