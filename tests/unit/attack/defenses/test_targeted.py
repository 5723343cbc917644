"""Swapping of households at risk: who is chosen, with whom, and what does not change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from censafe.attack.defenses.households import Households
from censafe.attack.defenses.targeted import BlockPoints, TargetedSetting, household_risk, swap_targeted
from censafe.attack.people import ADULT, People, area_of_blocks
from censafe.errors import ConfigError, DataError
from support.swapping import drawn_people, within


def drawn_points(people: People) -> BlockPoints:
    places = np.random.default_rng(3).normal(size=(len(people.blocks), 3))
    return BlockPoints(
        Path("p.csv"), "", people.blocks.astype(np.int64), places / np.linalg.norm(places, axis=1)[:, None]
    )


@given(st.integers(0, 50), st.sampled_from([0.05, 0.4, 1.0]), st.booleans())
def test_what_every_targeted_swap_keeps(seed: int, rate: float, near: bool) -> None:
    people = drawn_people(200, seed, states=("44", "50"))
    swapped = swap_targeted(people, TargetedSetting(rate), seed, drawn_points(people) if near else None)
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


def points_file(path: Path, places: Mapping[str, tuple[float, float]]) -> BlockPoints:
    rows = [f"{block},{latitude},{longitude}" for block, (latitude, longitude) in places.items()]
    path.write_text("\n".join(["GEOID,INTPTLAT,INTPTLON", *rows]) + "\n", encoding="utf-8")
    return BlockPoints.read(path)


def test_with_points_the_partner_is_the_nearest_over_ground(tmp_path: Path) -> None:
    """At 60 degrees north a degree of longitude is half a degree of latitude long: 1.5 degrees to the east are nearer than 1 degree to the north.

    The household at risk lives in the first block. The second block has no household like it; the third is 1 degree north, the fourth 1.5 degrees east, the fifth,
    of the same block group, 10 degrees east, and the sixth in another state at the same point.
    """
    within = ("440010001001001", "440010001001002", "440010002001001", "440030003001001", "440010001001003")
    blocks = np.array([*within, "500010001001001"])
    degrees = ((60.0, -150.0), (60.0, -150.1), (61.0, -150.0), (60.0, -148.5), (60.0, -140.0), (60.0, -150.0))
    file = points_file(tmp_path / "p.csv", dict(zip(blocks[::-1], degrees[::-1], strict=True)))
    # persons in group quarters make all other blocks larger
    household = np.array([0, 1, 1, 2, 3, 4, 5, *[-1] * 5])
    codes = np.concatenate([blocks[household[:7]], blocks[1:]])
    none = np.zeros(12, np.int8)
    race = np.where(household == 0, 3, 0)
    people = People.of(codes, sex=none, age=none, race=race, hispanic=none, household=household)

    def partners(candidates: int, points: BlockPoints | None) -> set[int]:
        setting = TargetedSetting(0.34, (0.1, 0.9), (1e9, 1e-9), candidates=candidates)
        return {int(swap_targeted(people, setting, seed, points).partner[0]) for seed in range(20)}

    assert partners(1, file) == {3}
    assert partners(2, file) == {2, 3}
    assert partners(3, file) == {2, 3, 4}
    assert partners(1, None) == {4}


@pytest.mark.parametrize(
    ("places", "message"),
    [
        ({"440010001001001": (41.5, -71.5)}, "1 of 2 blocks of the records have no point"),
        ({}, "there is no block with a point"),
        ({"440010001001001": (41.5, -71.5), "440010001001002": (91.0, 0.0)}, "1 of 2 blocks have no point on earth"),
        ({"440010001001001": (41.5, -71.5), "440010001001002": (float("nan"), 0.0)}, "1 of 2 blocks have no point on earth"),
    ],
)  # fmt: skip
def test_points_that_cannot_be_used_are_refused(
    tmp_path: Path, places: Mapping[str, tuple[float, float]], message: str
) -> None:
    none = np.zeros(2, np.int8)
    codes = np.array(["440010001001001", "440010001001002"])
    people = People.of(codes, sex=none, age=none, race=none, hispanic=none, household=np.arange(2))
    with pytest.raises(DataError, match=message):
        swap_targeted(people, TargetedSetting(1.0), 1, points_file(tmp_path / "p.csv", places))


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


@pytest.mark.parametrize("near", [False, True])
def test_order_of_records_does_not_matter(near: bool) -> None:
    people = drawn_people(300, 5)
    points = drawn_points(people) if near else None
    order = np.random.default_rng(1).permutation(len(people))
    first, second = (
        swap_targeted(one, TargetedSetting(0.3), 9, points).people for one in (people, people.take(order))
    )
    assert (first.take(order).block == second.block).all()


def test_a_household_without_its_like_stays() -> None:
    people = drawn_people(1, quarters=0)
    assert not swap_targeted(people, TargetedSetting(1.0), 1).swapped.any()
    apart = drawn_people(30, 2, blocks=1, tracts=1)
    for points in (None, drawn_points(apart)):
        assert not swap_targeted(apart, TargetedSetting(1.0), 1, points).swapped.any()


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
