"""Persons and units kept possible together: the choice, its order, its bounds and what it says."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from censafe.errors import CheckError, ConfigError, DataError
from censafe.estimation.topdown.levels.joint import (
    bounded_facts,
    estimation_order,
    household_limits,
    impossible_blocks,
    joint_pair,
    joint_remarks,
    occupied_limits,
)
from censafe.estimation.topdown.levels.limits import LevelLimits
from censafe.geography.spines.tree import LevelRule, build_spine
from censafe.model import SparseLevel
from censafe.products.run.options import ReadOptions
from censafe.products.topdown.configuration.config import load_config
from censafe.products.topdown.intake.intake import BlockIntake
from censafe.products.topdown.plan import plan_release
from support.topdown_joint import write_joint_config, write_joint_data

JOINT = {"joint": "true"}


def published(*blocks: dict[int, int]) -> tuple[SparseLevel, ...]:
    """One level of blocks with these counts by cell."""
    pointer = np.cumsum([0, *map(len, blocks)])
    cell, count = (
        np.array([*(pair[i] for block in blocks for pair in block.items())], np.int32) for i in (0, 1)
    )
    return (SparseLevel(np.arange(len(blocks)).astype("U4"), pointer, cell, count),)


def test_units_come_first_and_the_plan_stays_as_it_is() -> None:
    plain, joint = (load_config("pl94-pr", keys) for keys in ({}, JOINT))
    assert [one.name for one in estimation_order(plain)] == ["persons", "units"]
    assert [one.name for one in estimation_order(joint)] == ["units", "persons"]
    other = load_config("pl94-pr", JOINT | {"joint_first": "persons"})
    assert [one.name for one in estimation_order(other)] == ["persons", "units"]
    assert "persons in households of every block bounded" in next(joint_remarks(other))
    assert plan_release(plain).digest() == plan_release(joint).digest()
    assert plain.digest != joint.digest
    assert (plain.choices.joint, plain.choices.joint_max_household_size) == (False, 99_999)
    assert list(joint_remarks(plain)) == []
    assert "spent no budget" in next(joint_remarks(joint))


@pytest.mark.parametrize(
    ("config", "keys", "message"),
    [
        ("pl94-us", {"measure": "persons"}, "joint: needs persons with bounds"),
        ("pl94-us", {"measure": "units"}, "joint: needs persons with bounds"),
        ("e2e-1940", {}, "joint: needs persons with bounds"),
        ("pl94-us", {"joint": "yes"}, "joint: 'yes' is not allowed"),
        ("pl94-us", {"joint_max_household_size": "0"}, "give a whole number from 1 to 99,999"),
        ("pl94-us", {"joint_max_household_size": "100000"}, "give a whole number from 1 to 99,999"),
    ],
)
def test_what_cannot_be_kept_together_is_refused(config: str, keys: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load_config(config, JOINT | keys)


def test_the_key_in_a_file_is_a_truth_value(tmp_path: Path) -> None:
    path = write_joint_config(tmp_path / "few.toml")
    text = path.read_text(encoding="utf-8").replace(
        "[rho]", "joint = true\njoint_max_household_size = 12\n[rho]"
    )
    path.write_text(text, encoding="utf-8")
    choices = load_config(path).choices
    assert (choices.joint, choices.joint_max_household_size) == (True, 12)


def test_persons_that_every_housing_unit_must_hold_do_not_go_with_occupancy(tmp_path: Path) -> None:
    path = write_joint_config(tmp_path / "few.toml")
    assert joint_pair(load_config(path).histograms) is not None
    path.write_text(path.read_text(encoding="utf-8").replace("[0, 1, 2]", "[1, 1, 2]"), encoding="utf-8")
    assert joint_pair(load_config(path).histograms) is None
    with pytest.raises(ConfigError, match="joint: needs persons"):
        load_config(path, JOINT)


def test_bounds_come_from_published_units_and_only_for_these_histograms(tmp_path: Path) -> None:
    config = load_config(write_joint_config(tmp_path / "few.toml"), JOINT)
    data = write_joint_data(tmp_path / "data", 5)
    with BlockIntake(data, config, ReadOptions()) as intake:
        facts = intake.load().facts
    persons = config.histogram("persons")
    housing = facts.facilities[:, 0].astype(int)
    counts = [{0: many - many // 2, 1: many // 2} if many // 2 else {0: many} for many in housing.tolist()]
    levels = {"units": published(*counts)}
    bounds = bounded_facts(config, persons, facts, levels).limits["persons"]
    assert (housing // 2).tolist() == bounds[-1].lower[:, 0].tolist()
    assert (housing // 2 * 99_999).tolist() == bounds[-1].upper[:, 0].tolist()
    assert facts.limits["persons"][-1].lower[:, 1:].tolist() == bounds[-1].lower[:, 1:].tolist()
    assert bounds[0].lower[0, 0] == (housing // 2).sum()
    assert facts is bounded_facts(load_config(tmp_path / "few.toml"), persons, facts, levels)
    other = replace(persons, name="others")
    assert facts is bounded_facts(config, other, facts, levels)


def test_published_persons_bound_the_occupied_units(tmp_path: Path) -> None:
    keys = JOINT | {"joint_first": "persons"}
    path = write_joint_config(tmp_path / "few.toml")
    config = load_config(path, keys)
    data = write_joint_data(tmp_path / "data", 5)
    with BlockIntake(data, config, ReadOptions()) as intake:
        facts = intake.load().facts
    persons, units = config.histograms
    assert facts.limits["persons"] is bounded_facts(config, persons, facts, {}).limits["persons"]
    capped = bounded_facts(load_config(path, keys | {"joint_max_household_size": "7"}), persons, facts, {})
    housing = facts.facilities[:, 0].astype(int)
    assert capped.limits["persons"][-1].upper[:, 0].tolist() == (7 * housing).tolist()
    assert capped.limits["persons"][-1].lower[:, 0].tolist() == [0] * len(housing)
    homes = np.where(np.arange(len(housing)) % 2, 3 * housing, 0)
    levels = {"persons": published(*({1: many} if many else {} for many in homes.tolist()))}
    for largest, needed in ((99_999, (homes > 0).astype(int)), (2, -(-homes // 2))):
        chosen = load_config(path, keys | {"joint_max_household_size": str(largest)})
        bounds = bounded_facts(chosen, units, facts, levels).limits["units"]
        assert bounds[-1].lower.tolist() == np.column_stack([0 * homes, needed]).tolist()
        assert bounds[-1].upper[:, 1].tolist() == np.minimum(homes, housing).tolist()
        assert bounds[0].lower[0, 1] == needed.sum()


def limits_of(*totals: list[int] | None) -> tuple[LevelLimits, ...]:
    none = np.zeros((0, 0), np.int64)
    return tuple(LevelLimits(None if one is None else np.array(one), none, none) for one in totals)


@pytest.mark.parametrize(
    ("persons", "quarters", "largest", "bounds"),
    [
        (20, 0, 99_999, [1, 9]),  # somebody must live somewhere
        (5, 2, 99_999, [0, 3]),  # two are in group quarters at least
        (200_000, 0, 99_999, [3, 9]),
        (20, 0, 4, [5, 9]),
        (20, 1, 4, None),  # group quarters have room for all
        (0, 0, 4, [0, 0]),
    ],
)
def test_exact_totals_bound_the_occupied_units(
    tmp_path: Path, persons: int, quarters: int, largest: int, bounds: list[int] | None
) -> None:
    rule = load_config("pl94-us").histogram("persons").schema.facilities
    spine = build_spine(np.array([440, 441]), (LevelRule("State", 2), LevelRule("Block", 3)))
    units = np.array([[6, 0, 0, 0, 0, 0, 0, quarters], [3, 0, 0, 0, 0, 0, 0, 0]])
    found = occupied_limits(spine, rule, units, limits_of([persons], None), limits_of([9], [6, 3]), largest)
    assert found[1].lower.shape[1] == 0
    if bounds is None:
        assert found[0].lower.shape[1] == 0
    else:
        assert bounds == [found[0].lower[0, 1], found[0].upper[0, 1]]
        assert found[0].lower[0, 0] == 0 and found[0].upper[0, 0] >= 9


def test_households_that_are_too_small_and_other_units_are_refused() -> None:
    schema = load_config("pl94-us").histogram("persons").schema
    spine = build_spine(np.array([440, 441]), (LevelRule("State", 2), LevelRule("Block", 3)))
    units = np.array([[6] + [0] * 7, [3] + [0] * 7])
    with pytest.raises(
        CheckError, match=r"joint_max_household_size: with 2 persons in every housing unit .* 44"
    ):
        occupied_limits(spine, schema.facilities, units, limits_of([20], None), limits_of([9], [6, 3]), 2)
    with pytest.raises(DataError, match=r"joint, level State: in 44 .* the exact total of units"):
        occupied_limits(spine, schema.facilities, units, limits_of([20], None), limits_of([8], [5, 3]), 9)
    plain = limits_of([9], [6, 3])
    assert plain == occupied_limits(spine, schema.facilities, units, limits_of(None, None), plain, 9)
    with pytest.raises(DataError, match="the exact total does not fit"):
        household_limits(spine, schema, units, limits_of([5], None), np.array([4, 3]), 99_999)
    with pytest.raises(ValueError, match="no bounds by kind of unit"):
        household_limits(spine, replace(schema, facilities=None), units, plain, np.array([4, 3]), 9)


def test_blocks_that_contradict_themselves_are_counted_or_stop_a_joint_run(tmp_path: Path) -> None:
    path = write_joint_config(tmp_path / "few.toml")
    levels = {  # persons in households are cells 0 and 1, occupied units are cell 1
        "persons": published({0: 1, 1: 1, 4: 9}, {1: 2}, {2: 7}, {0: 5}, {}),
        "units": published({1: 3}, {0: 4}, {1: 1}, {0: 1, 1: 5}, {0: 2}),
    }
    wanted = {
        "joint": False, "blocks": 5, "blocks_with_occupied": 3, "blocks_with_persons": 3, "occupied_above_persons": 2,
        "persons_without_occupied": 1, "occupied_without_persons": 1,
    }  # fmt: skip
    assert wanted == impossible_blocks(load_config(path), levels)
    with pytest.raises(CheckError, match="persons and units contradict each other"):
        impossible_blocks(load_config(path, JOINT), levels)
    assert impossible_blocks(load_config("e2e-1940"), {}) == {}
