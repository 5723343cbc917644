"""Matching, guessers and vulnerable persons."""

import numpy as np
import pytest

from censafe.attack.matching import (
    GUESSER,
    AttackTarget,
    agreement,
    attacker_of_file,
    drawn_matches,
    exact_attacker,
    expected_matches,
    guesses,
    modal_values,
    noisy_attacker,
    reidentification_rows,
    unique_flags,
    unique_rows,
)
from censafe.attack.people import AGE_BINS, OLDEST, People
from censafe.errors import DataError

BLOCKS = np.array([f"50007000100{1000 + one}" for one in range(8)])


def some_people(seed: int, persons: int = 300) -> People:
    draw = np.random.default_rng(seed)
    block = np.append(np.arange(len(BLOCKS)), draw.integers(0, len(BLOCKS), persons - len(BLOCKS)))
    return People.of(
        BLOCKS[block], sex=draw.integers(0, 2, persons), age=draw.integers(0, 60, persons), race=draw.integers(0, 3, persons),
        hispanic=draw.random(persons) < 0.3, person=draw.permutation(persons),
    )  # fmt: skip


def test_expected_matches_are_the_mean_of_draws() -> None:
    left, right = some_people(1), some_people(2, 260)
    value = right.target
    expected = expected_matches(left, right, value)
    drawn = [drawn_matches(left, right, value, seed) for seed in range(400)]
    putative = np.array([one.putative.sum() for one in drawn])
    confirmed = np.array([one.right.sum() for one in drawn])
    assert np.ptp(putative) == 0
    assert expected.putative.sum() == pytest.approx(putative[0])
    assert abs(confirmed.mean() - expected.right.sum()) < 4 * confirmed.std() / 20
    mean = np.mean([one.right for one in drawn], axis=0)
    assert np.abs(mean - expected.right).max() < 0.12


def test_no_record_is_used_twice_and_pairs_have_a_key_in_common() -> None:
    left, right = some_people(3, 40), some_people(4, 200)
    found = drawn_matches(left, right, np.full(len(right), -1), 5)
    assert found.putative.sum() <= len(left)
    assert found.right.sum() == 0
    key = (right.block * 2 + right.sex) * len(AGE_BINS) + right.age_bin
    offered = np.bincount((left.block * 2 + left.sex) * len(AGE_BINS) + left.age_bin, minlength=key.max() + 1)
    assert (np.bincount(key, found.putative, minlength=len(offered)) <= offered).all()


def test_agreement() -> None:
    left, right = some_people(5), some_people(6, 280)
    exact, binned = agreement(left, left)
    assert exact.sum() == binned.sum() == len(left)
    exact, binned = agreement(left, right)
    assert (exact <= binned).all()
    assert binned.sum() > exact.sum() > 0
    back = agreement(right, left)
    assert np.array_equal(back[0], exact)
    assert np.array_equal(back[1], binned)
    shuffled = left.take(np.random.default_rng(0).permutation(len(left)))
    assert np.array_equal(agreement(shuffled, right)[1], binned)
    with pytest.raises(ValueError, match="same blocks"):
        agreement(left.within(BLOCKS[:2]), right)


def slow_agreement(left: People, right: People) -> tuple[int, int]:
    rows = [
        [(p.block[i], p.sex[i], p.age[i], p.age_bin[i], p.target[i]) for i in range(len(p))]
        for p in (left, right)
    ]
    spare, counts = [list(one) for one in rows], []
    for key in (lambda row: (row[0], row[1], row[2], row[4]), lambda row: (row[0], row[1], row[3], row[4])):
        matched, here = 0, list(spare[0])
        left_over = []
        for row in spare[1]:
            partner = next((one for one in here if key(one) == key(row)), None)
            if partner is None:
                left_over.append(row)
            else:
                here.remove(partner)
                matched += 1
        spare = [here, left_over]
        counts.append(matched)
    return counts[0], sum(counts)


@pytest.mark.parametrize("seed", range(4))
def test_agreement_is_that_of_walking_the_records(seed: int) -> None:
    left, right = some_people(seed, 80), some_people(seed + 50, 90)
    exact, binned = agreement(left, right)
    assert (exact.sum(), binned.sum()) == slow_agreement(left, right)


def alone(races: list[int]) -> People:
    values = np.array(races)
    return People.of(
        np.full(len(races), BLOCKS[0]), sex=0 * values, age=50 + 0 * values, race=values, hispanic=0 * values
    )


def test_nine_and_one() -> None:
    found = guesses(alone([0] * 9 + [3]))
    assert {name: chances.mean() for name, chances in found.items()} == pytest.approx(
        {
            "modal guesser": 0.9,
            "modal guesser, target left out": 0.9,
            "proportional guesser": 0.82,
            "proportional guesser, target left out": 0.8,
        }
    )


@pytest.mark.parametrize("seed", range(5))
def test_guessers_without_the_target_by_counting(seed: int) -> None:
    people = some_people(seed, 60)
    found = guesses(people)
    for one in range(len(people)):
        others = [v for k, v in enumerate(people.target) if k != one and people.block[k] == people.block[one]]
        if not others:
            continue
        counts = np.bincount(others, minlength=126)
        own = people.target[one]
        assert found[GUESSER][one] == pytest.approx(counts[own] / len(others))
        best = counts == counts.max()
        assert found["modal guesser, target left out"][one] == pytest.approx(best[own] / best.sum())


def test_modal_values_fall_back_to_the_block_group_and_to_everybody() -> None:
    code = (
        ["500070001001000"] * 3 + ["500070001001001"] * 2 + ["500070001002000"] * 2 + ["500070001003000"] * 4
    )
    race = np.array([1, 1, 0, 0, 3, 4, 5, 3, 3, 3, 3])
    people = People.of(np.array(code), sex=0 * race, age=0 * race, race=race, hispanic=0 * race)
    # own mode; tied, and tied in the block group (two of 0, two of 1): everybody's; tied in block and group: everybody's; own mode
    assert (modal_values(people) // 2).tolist() == [1, 3, 3, 3]


def test_uniques_are_those_of_a_direct_count() -> None:
    people = some_people(9)
    keys = list(zip(people.block, people.sex, people.age, strict=True))
    assert unique_flags(people, binned=False).tolist() == [keys.count(key) == 1 for key in keys]
    rows = unique_rows(people).to_pylist()
    assert rows[0]["persons"] == len(people) == sum(row["persons"] for row in rows[1:])
    assert rows[0]["unique_percent"] >= rows[0]["unique_in_class_percent"]


def test_the_truth_attacked_with_itself_is_certain_about_the_unique() -> None:
    people = some_people(10)
    rows = reidentification_rows(
        "truth", people, exact_attacker(people), AttackTarget.of(people), 1
    ).to_pylist()
    found = {(row["data"], row["population_attacked"], row["block_size"]): row for row in rows}
    assert found["truth", "unique", "all"]["precision"] == pytest.approx(100)
    assert found["truth", "all", "all"]["putative_percent"] == pytest.approx(100)
    assert found["modal guesser", "nonmodal", "all"]["precision"] == 0
    sizes = [row["records"] for key, row in found.items() if key[:2] == ("truth", "all") and key[2] != "all"]
    assert sum(sizes) == len(people)


def test_the_noisy_attacker_agrees_as_often_as_was_said() -> None:
    people = some_people(11, 5000)
    found = noisy_attacker(people, 0.371, 3)
    assert found.agrees.mean() == pytest.approx(0.371, abs=0.03)
    assert isinstance(found.people, People)
    assert found.people.age.max() <= OLDEST
    assert np.array_equal(found.truth, np.arange(len(people)))


def test_a_given_attacker_is_put_beside_the_truth_by_identifier() -> None:
    people = some_people(12)
    order = np.random.default_rng(1).permutation(len(people))[:100]
    found = attacker_of_file(people.take(order), people)
    assert np.array_equal(people.person[found.truth], people.person[order])
    assert found.agrees.all()
    with pytest.raises(DataError, match="no person_id of the attacker's file"):
        attacker_of_file(
            People.of(
                BLOCKS[:1],
                sex=np.zeros(1),
                age=np.zeros(1),
                race=np.zeros(1),
                hispanic=np.zeros(1),
                person=np.array([10**9]),
            ),
            people,
        )
    nameless = People(
        people.blocks, people.block, people.sex, people.age, people.race, people.hispanic,
        people.person * 0 - 1, people.household,
    )  # fmt: skip
    with pytest.raises(DataError, match="person_id for every person"):
        attacker_of_file(people, nameless)
