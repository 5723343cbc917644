"""The layout that a configuration asks of its files is the one that the readers know."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from censafe.errors import ConfigError
from censafe.geography.spines.tree import E2E_1940, PL94_PR, PL94_US, LevelRule
from censafe.population.blocks.layout import HistogramLayout
from censafe.products.topdown.configuration.config import load_config
from censafe.products.topdown.configuration.layout import histogram_layout, level_rules
from support.block_layouts import e2e_layout, pl94_layout


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
    assert units.schema is None
    assert units.unit_columns == tuple(f"gq{kind}" for kind in range(8))
    assert (LevelRule("Tract", 11), LevelRule("Block_Group", 12), LevelRule("Block", 16)) == units.rules


def test_levels_are_those_of_the_spine() -> None:
    assert level_rules(load_config("pl94-us")) == PL94_US
    assert level_rules(load_config("pl94-pr")) == PL94_PR
    assert level_rules(load_config("e2e-1940")) == E2E_1940


def test_levels_start_at_the_root() -> None:
    rules = level_rules(load_config("pl94-us", {"root": "State"}))
    np.testing.assert_array_equal([2, 5, 11, 12, 16], [rule.digits for rule in rules])


MINE = """
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
"""
MORE = """
[histograms.more]
schema = "mine"
[level_shares.more]
Block = 1
[query_shares.more.Block]
detailed = 1
"""


def layout_of(tmp_path: Path, text: str, settings: dict[str, str] | None = None) -> HistogramLayout:
    path = tmp_path / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return histogram_layout(load_config(path, settings or {}))


def test_schemas_without_facilities_need_no_counts_of_units(tmp_path: Path) -> None:
    layout = layout_of(tmp_path, MINE)
    assert layout.schema is not None
    assert layout.schema.shape == (2,)
    assert (layout.unit_columns, layout.least, layout.most, layout.occupied) == ((), (), (), False)


def test_kinds_of_units_may_be_the_levels_of_any_attribute(tmp_path: Path) -> None:
    bounds = '[schemas.mine.facilities]\nattribute = "adult"\nminimum = [0, 1]\nlargest = [5, 6]\n'
    layout = layout_of(tmp_path, MINE.replace("[histograms.persons]", bounds + "[histograms.persons]"))
    assert (layout.kind, layout.unit_columns, layout.most) == ("adult", ("gq0", "gq1"), (5, 6))
    assert layout.kind_of_cell.tolist() == [0, 1]


def test_kinds_of_units_may_be_the_groups_of_a_recode(tmp_path: Path) -> None:
    recode = '[schemas.mine.recodes.kinds]\nattribute = "adult"\ngroups = [GROUPS]\n'
    bounds = '[schemas.mine.facilities]\nattribute = "kinds"\nminimum = [0, 1]\nlargest = [5, 6]\n'
    mine = MINE.replace("levels = 2", "levels = 3").replace(
        "[histograms.persons]", recode + bounds + "[histograms.persons]"
    )
    layout = layout_of(tmp_path, mine.replace("GROUPS", '"1-2", "0"'))
    assert (layout.kind, layout.unit_columns) == ("kinds", ("gq0", "gq1"))
    assert layout.kind_of_cell.tolist() == [1, 0, 0]
    with pytest.raises(ConfigError, match=r"facilities\.attribute"):  # a level would have no kind
        layout_of(tmp_path, mine.replace("GROUPS", '"1", "0"'))


def test_other_histograms_have_files_of_their_own(tmp_path: Path) -> None:
    two = MINE.replace("rho = 1", "[rho]\npersons = 1\nmore = 1\n", 1)
    two = two.replace('levels = [{ name = "Block", prefix = 16 }]\n', "")
    two = 'levels = [{ name = "Block", prefix = 16 }]\n' + two + MORE
    layout = layout_of(tmp_path, two)
    assert layout.schema is None
    assert [(one.name, one.schema.cells) for one in layout.others] == [("persons", 2), ("more", 2)]
    homes = MINE.replace("levels = 2 }]", 'levels = 5 }]\nrecord = "household"')
    assert [one.name for one in layout_of(tmp_path, homes).others] == ["persons"]
    for name in ("units", "histogram"):
        with pytest.raises(ConfigError, match=f"the file {name} holds the counts"):
            layout_of(tmp_path, homes.replace("persons", name))


def test_two_histograms_of_persons_and_other_households_are_refused(tmp_path: Path) -> None:
    two = MINE.replace("rho = 1", "[rho]\npersons = 1\nmore = 1\n", 1)
    two = two.replace('levels = [{ name = "Block", prefix = 16 }]\n', "")
    two = 'levels = [{ name = "Block", prefix = 16 }]\n' + two + MORE
    with pytest.raises(ConfigError, match="2 histograms of persons, but the files hold one"):
        layout_of(tmp_path, two, {"reader": "cef"})
    assert layout_of(tmp_path, two, {"measure": "more"}).schema is not None
    homes = MINE.replace("levels = 2 }]", 'levels = 5 }]\nrecord = "household"')
    with pytest.raises(ConfigError, match="vacant or occupied"):
        layout_of(tmp_path, homes, {"reader": "cef"})
