"""Permutation swapping: strata, invariants and the law of the permutation."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from censafe.attack.defenses.households import Households
from censafe.attack.defenses.permutation import deranged, permutation_loss, swap_by_permutation
from censafe.attack.defenses.registry import parse_defense
from censafe.attack.people import AREA_DIGITS, People, area_of_blocks
from censafe.errors import ConfigError
from support.swapping import drawn_people

HALF = Fraction(1, 2)


@given(
    st.integers(0, 50),
    st.sampled_from(sorted(AREA_DIGITS)),
    st.sampled_from([Fraction(1, 20), HALF, Fraction(9, 10)]),
)
def test_what_every_permutation_keeps(seed: int, level: str, rate: Fraction) -> None:
    people = drawn_people(200, seed, states=("44", "50"))
    swapped, _ = swap_by_permutation(people, rate, seed, level)
    households, partner = swapped.households, swapped.partner
    assert sorted(partner.tolist()) == list(range(len(partner)))
    area = area_of_blocks(people.blocks, level)[households.block]
    for key in (area, households.size, households.adults):
        assert (key == key[partner]).all()
    after = Households.of(swapped.people)
    tables = [
        Counter(zip(one.block.tolist(), one.size.tolist(), one.adults.tolist(), strict=True))
        for one in (households, after)
    ]
    assert tables[0] == tables[1]
    quarters = people.household < 0
    assert (people.block[quarters] == swapped.people.block[quarters]).all()


def test_the_loss_is_that_of_the_largest_stratum() -> None:
    people = drawn_people(400)
    swapped, loss = swap_by_permutation(people, HALF, 1, "county")
    strata = np.unique(swapped.households.alike(people.around("county")), return_counts=True)[1]
    assert loss == permutation_loss(int(strata.max()), HALF)


def test_the_rate_is_the_one_asked_for_in_large_strata() -> None:
    # Standard error 0.0011 for 40,000 records.
    partner = deranged(np.zeros(40_000, np.int64), Fraction(1, 20), np.random.default_rng(1))
    assert (partner != np.arange(40_000)).mean() == pytest.approx(0.05, abs=0.007)


def test_a_record_alone_stays() -> None:
    partner = deranged(np.array([0, 1, 1, 2]), Fraction(999_999, 1_000_000), np.random.default_rng(1))
    assert partner.tolist() == [0, 2, 1, 3]


def test_no_records() -> None:
    assert deranged(np.zeros(0, np.int64), HALF, np.random.default_rng(1)).tolist() == []
    people = drawn_people(5)
    assert swap_by_permutation(people.take(people.age < 0), HALF, 1, "county")[1].record == 0


def test_order_of_records_does_not_matter() -> None:
    people = drawn_people(300, 5)
    order = np.random.default_rng(1).permutation(len(people))
    first = swap_by_permutation(people, HALF, 9, "county")[0].people.take(order)
    second = swap_by_permutation(people.take(order), HALF, 9, "county")[0].people
    assert (first.block == second.block).all()
    assert (first.block != people.take(order).block).any()


def test_levels_and_rates_out_of_range_are_refused() -> None:
    people: People = drawn_people(10)
    with pytest.raises(ConfigError, match="no level 'nation'; allowed: state, county, tract, block group"):
        parse_defense("swap:permutation:p=1/2:within=nation")
    with pytest.raises(ConfigError, match="above 0 and below 1"):
        swap_by_permutation(people, Fraction(1), 1, "county")
