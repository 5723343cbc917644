"""Swapping with the published settings: rates, partners, and what does not change."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from censafe.attack.defenses.households import Households, SwappedPeople
from censafe.attack.defenses.swapping import SWAP_SETTINGS, SwapSetting, swap_households
from censafe.attack.people import People, area_of_blocks
from censafe.errors import ConfigError
from support.swapping import drawn_people, size_gap, within

LO, HI = SWAP_SETTINGS["LO"], SWAP_SETTINGS["HI"]
settings = st.sampled_from([LO, HI, replace(HI, rate=1.0), replace(LO, rate=0.7)])


def households_of_blocks(people: People) -> list[int]:
    return np.bincount(Households.of(people).block, minlength=len(people.blocks)).tolist()


def state_counts(people: People) -> list[list[int]]:
    """Persons by state and every attribute."""
    state = area_of_blocks(people.blocks, "state")[people.block]
    cells = np.stack([state, people.sex, people.age, people.race, people.hispanic], axis=1)
    return sorted(cells.tolist())


def pairs_of(swapped: SwappedPeople[People]) -> np.ndarray:
    return np.flatnonzero(swapped.swapped)


def test_the_settings_are_the_published_ones() -> None:
    assert SwapSetting(0.05, (0, 1, 0), (1, 0, 0)) == LO
    assert SwapSetting(0.5, (0.25, 0.5, 0.25), (0.3, 0.4, 0.3)) == HI


@given(st.integers(0, 50), settings)
def test_what_every_swap_keeps(seed: int, setting: SwapSetting) -> None:
    people = drawn_people(200, seed, states=("44", "50"))
    swapped = swap_households(people, setting, seed)
    partner = swapped.partner
    assert (partner[partner] == np.arange(len(partner))).all()
    assert households_of_blocks(people) == households_of_blocks(swapped.people)
    quarters = people.household < 0
    assert (people.block[quarters] == swapped.people.block[quarters]).all()
    assert state_counts(people) == state_counts(swapped.people)
    for name in ("sex", "age", "race", "hispanic", "person", "household"):
        assert (getattr(people, name) == getattr(swapped.people, name)).all()
    assert (Households.of(swapped.people).block == swapped.households.block[partner]).all()


@given(st.integers(0, 50))
def test_without_noise_every_block_keeps_its_population(seed: int) -> None:
    people = drawn_people(200, seed)
    swapped = swap_households(people, replace(LO, rate=0.6), seed)
    assert size_gap(swapped) == 0
    assert people.population.tolist() == swapped.people.population.tolist()


@given(st.integers(0, 50))
def test_with_noise_sizes_of_partners_differ_by_two_at_most(seed: int) -> None:
    people = drawn_people(200, seed)
    swapped = swap_households(people, HI, seed)
    assert size_gap(swapped) <= 2
    county = area_of_blocks(people.blocks, "county")
    before, after = (np.bincount(county[one.block]) for one in (people, swapped.people))
    sizes = swapped.households.size
    home = county[swapped.households.block]
    moved = np.bincount(home[swapped.partner], weights=sizes) - np.bincount(home, weights=sizes)
    assert (after - before).tolist() == moved.tolist()


def test_shares_are_those_of_the_port() -> None:
    # 20,000 households, 40 tracts in 5 counties, 1,000 blocks. With tracts drawn anew, pairs of group 2 stay in their tract in an eighth of the cases:
    # 0.09 + 2 * 0.3 * 0.4 / 8 + 0.16 / 8 + 0.51 / 40 = 0.153; within the county 0.49 + 0.51 / 5 = 0.592. Standard errors are below 0.004.
    people = drawn_people(20_000, 7, tracts=40, counties=5, blocks=25, quarters=1000)
    low, high = (swap_households(people, setting, 11) for setting in (LO, HI))
    assert low.swapped.mean() == pytest.approx(0.05, abs=0.002)
    assert within(low, "tract") > 0.99
    assert high.swapped.mean() == pytest.approx(0.5, abs=0.004)
    assert within(high, "tract") == pytest.approx(0.153, abs=0.02)
    assert within(high, "county") == pytest.approx(0.592, abs=0.02)
    changed = (people.population != high.people.population).mean()
    assert 0.75 < changed < 0.92
    assert size_gap(high) == 2


def test_streams_are_independent() -> None:
    # The released program uses one sequence for noise, geography and order. Then partners of unequal size would all come from one end of the draws.
    people = drawn_people(20_000, 7, tracts=40, counties=5, blocks=25)
    setting = SwapSetting(1.0, (0.5, 0.0, 0.5), (0.5, 0.5, 0.0))
    swapped = swap_households(people, setting, 2)
    one = pairs_of(swapped)
    other = swapped.partner[one]
    home = area_of_blocks(people.blocks, "tract")[swapped.households.block]
    gap = swapped.households.size[one] != swapped.households.size[other]
    apart = home[one] != home[other]
    assert abs(np.corrcoef(gap, apart)[0, 1]) < 0.04
    first, second = (swap_households(people, replace(setting, rate=0.5), seed).swapped for seed in (2, 3))
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.04


def test_order_of_records_does_not_matter() -> None:
    people = drawn_people(300, 5)
    order = np.random.default_rng(1).permutation(len(people))
    first = swap_households(people, HI, 9).people.take(order)
    second = swap_households(people.take(order), HI, 9).people
    assert (first.block == second.block).all()
    assert (swap_households(people, HI, 10).people.take(order).block != second.block).any()


def test_a_household_alone_in_its_tract_is_paired_with_the_next_of_its_size() -> None:
    codes = np.array(["440010001001001", "440010002001001", "500010001001001"])
    one = np.zeros(3, np.int8)
    people = People.of(codes, sex=one, age=one, race=one, hispanic=one, household=np.arange(3))
    swapped = swap_households(people, replace(LO, rate=1.0), 1)
    assert swapped.partner.tolist() == [1, 0, 2]


@pytest.mark.parametrize("rate", [-0.1, 1.1])
def test_rates_out_of_range_are_refused(rate: float) -> None:
    with pytest.raises(ConfigError, match="between 0 and 1"):
        SwapSetting(rate)


@pytest.mark.parametrize("chances", [(0.5, 0.5, 0.5), (-0.5, 1.0, 0.5)])
def test_chances_have_to_sum_to_one(chances: tuple[float, float, float]) -> None:
    with pytest.raises(ConfigError, match="geography: three chances"):
        SwapSetting(0.1, geography=chances)


def test_rate_zero_and_no_persons_change_nothing() -> None:
    people = drawn_people(50)
    assert not swap_households(people, replace(HI, rate=0.0), 1).swapped.any()
    assert len(swap_households(people.take(people.age < 0), HI, 1).people) == 0
