"""Households of persons and the areas they live in."""

import numpy as np
import pytest

from censafe.attack.defenses.households import Households, SwappedPeople, rank_in_run
from censafe.attack.people import People, area_of_blocks
from censafe.errors import DataError
from support.swapping import drawn_people, size_gap, within


def test_sizes_and_adults_are_those_of_the_persons() -> None:
    people = drawn_people(60, seed=3)
    found = Households.of(people)
    for place, number in enumerate(found.number.tolist()):
        members = people.household == number
        assert found.size[place] == members.sum()
        assert found.adults[place] == (people.age[members] >= 18).sum()
        assert set(people.block[members].tolist()) == {int(found.block[place])}
        assert (found.of_person[members] == place).all()
    assert (found.of_person[people.household < 0] == -1).all()


def test_persons_without_households_are_refused() -> None:
    people = drawn_people(10).take(drawn_people(10).household < 0)
    with pytest.raises(DataError, match="no person has one"):
        Households.of(people)


def test_a_household_in_two_blocks_is_refused() -> None:
    one = np.zeros(3, np.int8)
    home = np.array(["440010001001001", "440010001001002", "440010001001002"])
    people = People.of(home, sex=one, age=one, race=one, hispanic=one, household=np.array([5, 5, 6]))
    with pytest.raises(DataError, match="1 households have persons in more than one area"):
        Households.of(people)


def test_no_persons_have_no_households() -> None:
    people = drawn_people(5)
    assert len(Households.of(people.take(people.age < 0))) == 0


def test_areas_follow_the_codes() -> None:
    people = drawn_people(states=("44", "50"))
    for level, digits in (("state", 2), ("county", 5), ("tract", 11), ("block group", 12)):
        area = area_of_blocks(people.blocks, level)
        prefixes = sorted({code[:digits] for code in people.blocks.tolist()})
        assert [prefixes[one] for one in area] == [code[:digits] for code in people.blocks.tolist()]


def test_ranks_of_equal_neighbors() -> None:
    assert rank_in_run(np.array([], np.int64)).tolist() == []
    assert rank_in_run(np.array([2, 2, 2, 1])).tolist() == [0, 1, 2, 0]


def test_what_a_swap_says_of_itself() -> None:
    people = drawn_people(40)
    households = Households.of(people)
    partner = np.arange(40)
    assert not SwappedPeople.of(people, households, partner).swapped.any()
    partner[[0, 1]] = [1, 0]
    swapped = SwappedPeople.of(people, households, partner)
    assert swapped.swapped.sum() == 2
    assert size_gap(swapped) == abs(int(households.size[0] - households.size[1]))
    same = people.blocks[households.block[0]][:5] == people.blocks[households.block[1]][:5]
    assert within(swapped, "county") == float(same)
    moved = Households.of(swapped.people)
    assert moved.block[:2].tolist() == households.block[[1, 0]].tolist()
    assert (moved.block[2:] == households.block[2:]).all()
