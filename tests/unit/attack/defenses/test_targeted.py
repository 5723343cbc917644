"""Swapping of households at risk: who is chosen, with whom, and what does not change."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from censafe.attack.defenses.households import ADULT, Households, area_of_blocks
from censafe.attack.defenses.targeted import TargetedSetting, household_risk, swap_targeted
from censafe.attack.people import People
from censafe.errors import ConfigError
from support.swapping import drawn_people, within


@given(st.integers(0, 50), st.sampled_from([0.05, 0.4, 1.0]))
def test_what_every_targeted_swap_keeps(seed: int, rate: float) -> None:
    people = drawn_people(200, seed, states=("44", "50"))
    swapped = swap_targeted(people, TargetedSetting(rate), seed)
    households, partner = swapped.households, swapped.partner
    one = swapped.swapped
    assert (partner[partner] == np.arange(len(partner))).all()
    assert (households.size == households.size[partner]).all()
    assert (households.adults == households.adults[partner]).all()
    assert (households.block[one] != households.block[partner][one]).all()
    state = area_of_blocks(people.blocks, "state")[households.block]
    assert (state == state[partner]).all()
    quarters = people.household < 0
    assert (people.block[quarters] == swapped.people.block[quarters]).all()
    for chosen in (people.age >= 0, people.age >= ADULT):
        before, after = (np.bincount(side.block[chosen], minlength=1) for side in (people, swapped.people))
        assert before.tolist() == after.tolist()
    assert swapped.swapped.mean() <= rate + 1 / len(partner)


def test_risk_counts_equal_compositions_in_the_tract() -> None:
    people = drawn_people(300, 4)
    households = Households.of(people)
    tract = area_of_blocks(people.blocks, "tract")[households.block]
    compositions = []
    for place in range(len(households)):
        members = households.of_person == place
        race = Counter(np.minimum(people.race[members], 6).tolist())
        compositions.append(
            (int(tract[place]), tuple(sorted(race.items())), int(people.hispanic[members].sum()))
        )
    often = Counter(compositions)
    assert household_risk(people, households).tolist() == [often[one] for one in compositions]


def test_the_rate_is_reached_and_households_at_risk_are_swapped_more_often() -> None:
    people = drawn_people(20_000, 7, tracts=40, counties=5, blocks=25)
    households = Households.of(people)
    risk = household_risk(people, households)
    for rate in (0.05, 0.3):
        swapped = swap_targeted(people, TargetedSetting(rate), 3)
        assert swapped.swapped.mean() == pytest.approx(rate, abs=1e-4)
        shares = [float(swapped.swapped[chosen].mean()) for chosen in (risk == 1, risk == 2, risk > 20)]
        assert shares[0] > 1.5 * shares[1] > 2 * shares[2] > 0
    assert within(swapped, "tract") > 0.6
    assert within(swapped, "block") == 0


def test_candidates_are_equally_likely() -> None:
    # One household at risk and three alike in two other blocks of the block group; two in the next tract are not candidates while there are three.
    codes = np.array(
        ["440010001001001"] + ["440010001001002"] * 2 + ["440010001001003"] + ["440010002001001"] * 2
    )
    none = np.zeros(6, np.int8)
    race = np.array([3, 0, 0, 0, 0, 0])
    people = People.of(codes, sex=none, age=none, race=race, hispanic=none, household=np.arange(6))
    setting = TargetedSetting(0.34, (0.1, 0.9), (1e9, 1e-9), candidates=3)
    partners = Counter(int(swap_targeted(people, setting, seed).partner[0]) for seed in range(900))
    assert set(partners) == {1, 2, 3}
    # Six standard deviations of a binomial with chance 1/3.
    assert all(abs(count - 300) < 6 * np.sqrt(200) for count in partners.values())


def test_order_of_records_does_not_matter() -> None:
    people = drawn_people(300, 5)
    order = np.random.default_rng(1).permutation(len(people))
    first = swap_targeted(people, TargetedSetting(0.3), 9).people.take(order)
    assert (first.block == swap_targeted(people.take(order), TargetedSetting(0.3), 9).people.block).all()


def test_a_household_without_its_like_stays() -> None:
    people = drawn_people(1, quarters=0)
    assert not swap_targeted(people, TargetedSetting(1.0), 1).swapped.any()
    apart = drawn_people(30, 2, blocks=1, tracts=1)
    assert not swap_targeted(apart, TargetedSetting(1.0), 1).swapped.any()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"rate": 1.5}, "rate between 0 and 1"),
        ({"candidates": 0}, "at least 1 candidate"),
        ({"shares": (0.5, 0.5)}, "one weight each"),
        ({"shares": (0.5, 0.5, 0.5, -0.5)}, "sum to 1"),
        ({"weights": (1.0, 1.0, 1.0, 0.0)}, "above 0"),
    ],
)
def test_settings_out_of_range_are_refused(changed: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        TargetedSetting(**changed)
