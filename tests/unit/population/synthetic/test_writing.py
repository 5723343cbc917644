"""The people drawn: published marginals, plausible families, and kernels that do what their source says."""

from __future__ import annotations

import errno
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import censafe
from censafe.errors import StorageError
from censafe.population.synthetic import kernels, population, writing
from censafe.population.synthetic import structures as words
from censafe.population.synthetic import writing as text
from censafe.population.synthetic.mark import MARK
from censafe.population.synthetic.plan import make_plan, share_out
from censafe.population.synthetic.population import draw_people
from censafe.population.synthetic.shipped import chances, counties, marginals, race_codes, synthetic_states
from censafe.population.synthetic.structures import DrawnPersons, DrawnUnits
from censafe.population.synthetic.writing import Coded

SAMPLE = 2_000_000
FACTS = marginals()["published"]


@pytest.fixture(scope="module")
def sample() -> tuple[DrawnPersons, DrawnUnits]:
    """Two million people of the nation; one fixed seed, so these tests have no false alarms."""
    return draw_people(make_plan(SAMPLE, None, seed=20200401))


def shares(values: NDArray[Any], first: int, last: int) -> NDArray[np.float64]:
    counted = np.bincount(np.clip(values, first, last), minlength=last + 1)[first : last + 1]
    return counted / len(values)


def near(fact: str, key: str = "shares") -> Any:
    return pytest.approx(np.array(FACTS[fact][key]), abs=FACTS[fact]["tolerance"])


def test_household_sizes(sample: tuple[DrawnPersons, DrawnUnits]) -> None:
    size = sample[1].pop[sample[1].hht > 0]
    assert shares(size, 1, 7) == near("household_size")
    assert size.mean() == pytest.approx(
        FACTS["household_size"]["average"], abs=FACTS["household_size"]["average_tolerance"]
    )
    assert (size > 10).sum() > 500  # truncation at 10 must bite
    assert 16 <= size.max() <= 24


def test_household_types(sample: tuple[DrawnPersons, DrawnUnits]) -> None:
    units = sample[1]
    assert shares(units.hht2[units.hht > 0], 1, 12) == near("household_type")
    assert (units.cplt == 2).sum() / (units.hht == 1).sum() == near("same_sex", "married")
    assert (units.cplt == 4).sum() / ((units.cplt == 3) | (units.cplt == 4)).sum() == near(
        "same_sex", "unmarried"
    )


def test_tenure(sample: tuple[DrawnPersons, DrawnUnits]) -> None:
    mortgage, free, rented, no_payment = shares(sample[1].tenure[sample[1].hht > 0], 1, 4)
    assert mortgage == near("tenure", "with_mortgage")
    assert free == near("tenure", "free_and_clear")
    assert rented + no_payment == near("tenure", "rented_or_no_payment")
    assert no_payment > 0.01


def test_ages(sample: tuple[DrawnPersons, DrawnUnits]) -> None:
    age = sample[0].age
    assert (age < 18).mean() == near("age", "under_18")
    assert (age >= 65).mean() == near("age", "over_64")
    assert age.min() == 0
    assert 100 < age.max() <= 115


def test_race_and_origin(sample: tuple[DrawnPersons, DrawnUnits]) -> None:
    people = sample[0]
    group = np.where(people.hispanic == 2, 8, np.minimum(people.race, 7))
    assert shares(group, 1, 8) == near("race")
    assert shares(people.race[people.hispanic == 2], 1, 7) == near("hispanic_race", "nation")
    assert len(np.unique(people.race)) >= 60
    assert (people.race.min(), people.race.max()) == (1, 63)


def test_states_differ_as_published() -> None:
    for code, group, percent in (("15", 3, 36.5), ("35", 7, 47.7), ("50", 0, 89.1), ("72", 7, 98.9)):
        people, _ = draw_people(make_plan(200_000, (code,), seed=1))
        drawn = np.where(people.hispanic == 2, 7, np.minimum(people.race, 7) - 1)
        assert 100 * (drawn == group).mean() == pytest.approx(percent, abs=3.0)


def test_vacancy_and_group_quarters(sample: tuple[DrawnPersons, DrawnUnits]) -> None:
    units = sample[1]
    housing = units.rtype == 2
    assert (units.pop[housing] == 0).mean() == pytest.approx(FACTS["vacancy"]["vacant_share"], abs=0.01)
    assert set(units.quarters[~housing].tolist()) == {1, 2, 3, 4, 5}
    assert not units.quarters[housing].any()
    # tracts of full size, since quarters take at most half of a tract
    people, units = draw_people(make_plan(4_000_000, ("17",), seed=1))
    assert (people.relship >= 37).mean() == near("group_quarters", "person_share")
    assert (people.relship == 37).mean() == pytest.approx(0.011, abs=0.004)


def test_tracts_and_blocks_are_of_real_size() -> None:
    plan = make_plan(643_077, ("50",), seed=1)
    _, units = draw_people(plan)
    tracts = len(plan.tracts.persons)
    assert 643_077 / tracts == pytest.approx(4_000, rel=0.1)
    blocks = len(np.unique(units.tract * np.int64(10_000) + units.block))
    groups = len(np.unique(units.tract * np.int64(10) + units.block // 1000))
    assert groups / tracts == pytest.approx(3.0, abs=0.5)
    assert 15 < blocks / groups < 40
    _, homes = np.unique(units.tract * np.int64(10_000) + units.block, return_counts=True)
    assert homes.max() > 5 * homes.mean()


def test_both_sexes_in_the_relationships_that_say_so(sample: tuple[DrawnPersons, DrawnUnits]) -> None:
    people = sample[0]
    partner = np.flatnonzero((people.relship >= 21) & (people.relship <= 24))
    assert (people.relship[partner - 1] == 20).all()
    same = people.sex[partner] == people.sex[partner - 1]
    assert (same == (people.relship[partner] >= 23)).all()
    assert (people.sex == 1).mean() == pytest.approx(0.49, abs=0.01)


def test_children_are_younger_than_their_parents(sample: tuple[DrawnPersons, DrawnUnits]) -> None:
    people = sample[0]
    starts = np.flatnonzero(people.relship == 20)
    head = starts[np.searchsorted(starts, np.arange(SAMPLE), side="right") - 1]
    child = (people.relship >= 25) & (people.relship <= 27)
    assert (people.age[head[child]] - people.age[child] >= 15).all()
    coupled = np.zeros(SAMPLE, bool)
    coupled[starts[:-1]] = (people.relship[starts[:-1] + 1] >= 21) & (people.relship[starts[:-1] + 1] <= 24)
    of_couple = child & coupled[head]
    assert (people.age[head[of_couple] + 1] - people.age[of_couple] >= 15).all()
    assert people.age[starts].min() >= 15
    parent = people.relship == 29
    assert (people.age[parent] - people.age[head[parent]] >= 15).all()
    grandchild = people.relship == 30
    assert (people.age[head[grandchild]] - people.age[grandchild] >= 30).all()


def test_families_mostly_agree_in_race(sample: tuple[DrawnPersons, DrawnUnits]) -> None:
    people = sample[0]
    spouse = np.flatnonzero(people.relship == 21)
    agree = (people.race[spouse] == people.race[spouse - 1]).mean()
    assert 0.85 < agree < 0.97


@pytest.mark.parametrize("seed", [1, 2])
def test_interpreted_kernels_draw_the_same(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    plan = make_plan(9_000, ("35", "11"), seed)
    compiled = draw_people(plan)
    for name, kernel in list(vars(kernels).items()):
        if hasattr(kernel, "py_func") and name != "uniform":  # its words wrap around on purpose
            monkeypatch.setattr(kernels, name, kernel.py_func)
    monkeypatch.setattr(population, "draw_tracts", kernels.draw_tracts)
    for expected, actual in zip(compiled, draw_people(plan), strict=True):
        for name, column in expected._asdict().items():
            assert np.array_equal(column, getattr(actual, name)), name


def test_random_words_are_splitmix64() -> None:
    state, mask = 12345, 2**64 - 1
    compiled, interpreted = (np.array([state], np.uint64) for _ in range(2))
    for _ in range(200):
        state = (state + 0x9E3779B97F4A7C15) & mask
        z = state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        expected = ((z ^ (z >> 31)) >> 11) / 2**53
        assert expected == words.uniform(compiled)
        with np.errstate(over="ignore"):
            assert expected == words.uniform.py_func(interpreted)


def test_lines_of_text_do_not_depend_on_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = {
        "TEN": Coded(("1", "2"), np.array([0, 1, 1, 0], np.int8)),
        "MAFID": np.array([0, 9, 10, 100_000_001], np.int32),
        "CENRACE": Coded(("01", "63"), np.array([1, 0, 0, 1], np.int8)),
    }
    expected = b"1,0,63\n2,9,01\n2,10,01\n1,100000001,63\n"
    assert expected == text.csv_lines(columns).tobytes()
    monkeypatch.setattr(text, "_write_rows", text._write_rows.py_func)
    assert expected == text.csv_lines(columns).tobytes()
    assert text.csv_lines({"QAGE": np.array([], np.int16)}).tobytes() == b""


def test_race_codes_are_the_bureaus() -> None:
    codes = race_codes()
    assert len(codes) == 63
    assert [len(races) for races in codes] == [1] * 6 + [2] * 15 + [3] * 20 + [4] * 15 + [5] * 6 + [6]
    assert codes[7 - 1] == (1, 2)
    assert codes[22 - 1] == (1, 2, 3)
    assert codes[57 - 1] == (1, 2, 3, 4, 5)


def test_the_data_files_are_complete() -> None:
    by_state: dict[str, int] = {}
    for county in counties():
        by_state[county.state] = by_state.get(county.state, 0) + county.population
    assert set(by_state) == {state.code for state in synthetic_states()}
    assert len(counties()) == 3_143 + 78
    assert by_state["17"] == 12_812_508
    assert by_state["72"] == 3_285_874
    assert sum(by_state.values()) == 331_449_281 + 3_285_874
    for state in synthetic_states():
        assert sum(state.groups) == pytest.approx(100, abs=1.2)
    order = [(county.state, county.code) for county in counties()]
    assert all(left < right for left, right in pairwise(order))


def test_published_shares_add_up() -> None:
    for fact, key in (("household_size", "shares"), ("household_type", "shares"), ("race", "shares")):
        assert sum(FACTS[fact][key]) == pytest.approx(1.0, abs=0.005)
    table = chances()
    for cumulative in (table.kind, table.head_age, table.minors, table.relatives, table.group, table.races):
        assert np.allclose(cumulative[..., -1], 1.0)
        assert (np.diff(cumulative, axis=-1) >= 0).all()


@given(st.integers(0, 10**9), st.lists(st.floats(0.01, 1e6), min_size=1, max_size=50))
def test_share_out_adds_up_and_stays_near(total: int, weights: list[float]) -> None:
    parts = share_out(total, np.array(weights))
    exact = total * np.array(weights) / np.sum(weights)
    assert parts.sum() == total
    assert (parts >= 0).all()
    assert np.abs(parts - exact).max() <= 1.0 + 1e-6 * total


# The mark of a synthetic population is written before the folder has its name: there is no population without it.


@pytest.mark.parametrize("layout", ["phsafe", "pl94", "dhc", "cef"])
def test_a_population_whose_mark_cannot_be_written_is_not_there(
    layout: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    with monkeypatch.context() as patch:

        def full(folder: Path) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        patch.setattr(writing, "write_mark", full)
        with pytest.raises(StorageError, match="nothing was left under this name"):
            censafe.synthesize(out, persons=300, states=["44"], layout=layout)
        assert list(tmp_path.iterdir()) == []
    censafe.synthesize(out, persons=300, states=["44"], layout=layout)
    assert (out / MARK).is_file()
