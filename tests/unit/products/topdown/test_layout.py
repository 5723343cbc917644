"""The layout that a configuration asks of its files is the one that the readers know."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from censafe.errors import ConfigError
from censafe.geography.spine import E2E_1940, PL94_PR, PL94_US, LevelRule
from censafe.population.histograms import HistogramLayout, e2e_layout, pl94_layout
from censafe.products.topdown.config import load_config
from censafe.products.topdown.layout import histogram_layout, level_rules


def facts(layout: HistogramLayout) -> dict[str, Any]:
    return {**vars(layout), "schema": layout.schema.attributes, "empty": layout.empty.tolist()}


@pytest.mark.parametrize(
    ("name", "build"), [("pl94-us", pl94_layout), ("pl94-pr", pl94_layout), ("e2e-1940", e2e_layout)]
)
def test_layouts_are_those_of_the_readers(name: str, build: Any) -> None:
    found = histogram_layout(load_config(name))
    assert facts(build(found.schema, found.rules)) == facts(found)


def test_occupancy_is_read_only_when_it_is_measured() -> None:
    assert not histogram_layout(load_config("pl94-us", {"measure": "persons"})).occupied
    units = histogram_layout(load_config("pl94-us", {"measure": "units", "root": "Tract"}))
    assert units.occupied
    assert units.schema.cells == 2016
    assert (LevelRule("Tract", 11), LevelRule("Block_Group", 12), LevelRule("Block", 16)) == units.rules


def test_levels_are_those_of_the_spine() -> None:
    assert level_rules(load_config("pl94-us")) == PL94_US
    assert level_rules(load_config("pl94-pr")) == PL94_PR
    assert level_rules(load_config("e2e-1940")) == E2E_1940


def test_levels_start_at_the_root() -> None:
    rules = level_rules(load_config("pl94-us", {"root": "State"}))
    np.testing.assert_array_equal([2, 5, 11, 12, 16], [rule.digits for rule in rules])


def test_persons_need_facilities(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(
        """
rho = 1
levels = [{ name = "Block", prefix = 16 }]
[schemas.mine]
attributes = [{ name = "adult", levels = 2 }]
[histograms.persons]
schema = "mine"
[level_shares.persons]
Block = 1
[query_shares.persons.Block]
detailed = 1
""",
        encoding="utf-8",
    )
    with pytest.raises(ConfigError, match="the schema mine has no facilities by hhgq"):
        histogram_layout(load_config(path))
