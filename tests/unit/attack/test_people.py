"""Persons as the attack sees them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from censafe.attack.people import AGE_BINS, RACE_BITS, People
from censafe.errors import DataError


def people(block: str = "500070001001001", **changed: object) -> People:
    columns = {"sex": 0, "age": 30, "race": 0, "hispanic": 0} | changed
    return People.of(np.array([block]), **{name: np.array([value]) for name, value in columns.items()})


def test_races_are_in_the_order_of_the_tables() -> None:
    assert RACE_BITS.shape == (63, 6)
    assert RACE_BITS.sum(axis=1).tolist() == [1] * 6 + [2] * 15 + [3] * 20 + [4] * 15 + [5] * 6 + [6]
    assert [np.flatnonzero(bits).tolist() for bits in RACE_BITS[6:9]] == [[0, 1], [0, 2], [0, 3]]
    assert np.flatnonzero(RACE_BITS[61]).tolist() == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("changed", [{"age": 111}, {"sex": 2}, {"race": 63}, {"hispanic": -1}])
def test_values_out_of_range_are_refused_without_showing_them(changed: dict[str, int]) -> None:
    with pytest.raises(DataError, match="1 persons have a value out of range") as error:
        people(**changed)
    assert not any(
        str(value) in str(error.value).split(";")[0].split(":")[1] for value in changed.values() if value > 2
    )


def test_a_lost_leading_zero_is_refused() -> None:
    with pytest.raises(DataError, match="lost leading zero"):
        people("10070001001001")


@given(st.integers(0, 110))
def test_classes_of_age(age: int) -> None:
    found = int(people(age=age).age_bin[0])
    assert AGE_BINS[found] <= age
    assert found == len(AGE_BINS) - 1 or age < AGE_BINS[found + 1]


def test_people_of_some_blocks() -> None:
    codes = np.array(["500070001001003", "500070001001001", "500070001001003"])
    one = np.zeros(3, np.int8)
    every = People.of(codes, sex=one, age=one, race=one, hispanic=one, person=np.array([7, 8, 9]))
    wanted = np.array(["500070001001002", "500070001001003"])
    found = every.within(wanted)
    assert found.person.tolist() == [7, 9]
    assert found.blocks[found.block].tolist() == ["500070001001003"] * 2
    assert found.population.tolist() == [0, 2]
    assert every.take(np.array([True, False, False])).person.tolist() == [7]
