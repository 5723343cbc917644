"""Passes, spines and histograms that no run could go through are refused by the plan."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from censafe.errors import ConfigError
from censafe.geography.spines.tree import LevelRule, build_spine
from censafe.products.configuration.shipped import shipped_configs
from censafe.products.topdown.configuration.config import TopdownConfig, load_config
from censafe.products.topdown.intake import lone_state
from censafe.products.topdown.plan import plan_release

SMALL = """
levels = [{ name = "State", prefix = 2 }, { name = "Block", prefix = 6 }]
rho = 1
[schemas.small]
attributes = [{ name = "adult", levels = 2 }, { name = "group", levels = 3 }, { name = "kind", levels = 2 }]
[histograms.persons]
schema = "small"
PASSES
[level_shares.persons]
State = "1/2"
Block = "1/2"
[query_shares.persons.State]
detailed = 1
[query_shares.persons.Block]
adult = "1/2"
detailed = "1/2"
"""
BOUNDED = '[schemas.small.facilities]\nattribute = "kind"\nminimum = [0, 1]\nlargest = [9, 9]\n'


def small(
    folder: Path, rounding: str, change: tuple[str, str] = ("", ""), level: str = "Block"
) -> TopdownConfig:
    path = folder / "small.toml"
    l2 = '[[["adult", "detailed"]]]' if level == "Block" else '[[["detailed"]]]'
    passes = f'[[histograms.persons.passes]]\nlevels = ["{level}"]\nl2 = {l2}\nrounding = {rounding}\n'
    path.write_text(SMALL.replace("PASSES", passes).replace(*change), encoding="utf-8")
    return load_config(path)


@pytest.mark.parametrize(
    ("rounding", "message"),
    [
        ('[[["adult", "group"]]]', r"level Block: .* group does not split the groups of adult.* name adult \* group in place"),
        ('[[["adult * group", "adult"]]]', "adult does not split"),
        ('[[["total"], ["adult"], ["detailed"]]]', "3 inner passes of rounding"),
        ('[[["adult"], ["detailed"]]]', "2 inner passes of rounding"),
    ],
)  # fmt: skip
def test_rounding_that_cannot_work_is_refused_by_the_plan(
    tmp_path: Path, rounding: str, message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        plan_release(small(tmp_path, rounding))


@pytest.mark.parametrize(
    "rounding", ['[[["adult", "adult * group", "detailed"]]]', '[[["total"], ["detailed"]]]']
)
def test_rounding_from_coarse_to_fine_is_planned(tmp_path: Path, rounding: str) -> None:
    assert len(plan_release(small(tmp_path, rounding)).parts) == 2


def test_the_kinds_of_units_come_first(tmp_path: Path) -> None:
    bounded = ("[histograms.persons]", BOUNDED + "[histograms.persons]")
    with pytest.raises(ConfigError, match="adult does not split the groups of kind"):
        plan_release(small(tmp_path, '[[["adult"]]]', bounded))
    assert plan_release(small(tmp_path, '[[["kind * adult"]]]', bounded)).parts


def test_a_root_must_tell_its_cells_apart(tmp_path: Path) -> None:
    coarse = ("[query_shares.persons.State]\ndetailed = 1", "[query_shares.persons.State]\nadult = 1")
    path = tmp_path / "small.toml"
    path.write_text(SMALL.replace("PASSES", "").replace(*coarse), encoding="utf-8")
    with pytest.raises(ConfigError, match="level State: the last pass does not tell all cells apart"):
        plan_release(load_config(path))


def test_shipped_configurations_have_passes_that_work() -> None:
    names = [one.name for one in shipped_configs() if one.product == "topdown"]
    for name in names:
        for passes in ("production", "one"):
            assert plan_release(load_config(name, {"passes": passes})).parts
    assert len(names) >= 4


def test_totals_that_a_parted_spine_cannot_keep_are_refused_by_the_plan() -> None:
    def planned(spine: str, exact: str, root: str = "US") -> int:
        settings = {
            "spine": spine,
            "root": root,
            "measure": "persons",
            "histograms.persons.exact_totals": exact,
        }
        config = load_config("pl94-us", settings)
        return len(plan_release(config).parts)

    for spine, exact, root in (
        ("aian", "County", "US"),
        ("optimised", "Tract", "State"),
        ("optimised", "Block_Group", "Block_Group"),
    ):
        with pytest.raises(ConfigError, match="between parents"):
            planned(spine, exact, root)
    assert (planned("aian", "State"), planned("optimised", "Block"), planned("aian", "County", "County")) == (
        6,
        6,
        4,
    )
    assert planned("standard", "Tract") == 6


def test_two_histograms_of_persons_are_refused_by_the_plan(tmp_path: Path) -> None:
    path = tmp_path / "two.toml"
    text = SMALL.replace("PASSES", "")
    more = text[text.index("[histograms.persons]") :].replace("persons", "more")
    path.write_text(text.replace("rho = 1", "rho = { persons = 1, more = 1 }") + more, encoding="utf-8")
    with pytest.raises(ConfigError, match="2 histograms of persons"):
        plan_release(load_config(path))


def test_the_data_of_one_state_ask_for_a_run_of_one_state() -> None:
    def warned(blocks: list[str], settings: dict[str, str]) -> list[str]:
        config = load_config("pl94-us", settings)
        rules = [LevelRule(level.name, level.prefix, level.code) for level in config.run_levels]
        return [one.fix for one in lone_state(config, build_spine(np.array(blocks), rules))]

    one, two = ["4400010001001000", "4400010001001001"], ["4400010001001000", "5000010001001000"]
    assert warned(one, {}) == ["--set root=State, which costs less"]
    assert warned(two, {}) == warned(one, {"root": "State"}) == warned(one, {"bypass": "true"}) == []
