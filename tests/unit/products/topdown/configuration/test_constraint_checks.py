"""Constraints, stacks and published results as a configuration writes them; every breach is named."""

from pathlib import Path

import pytest

from censafe.errors import ConfigError, UsageError
from censafe.model.topdown.histograms import (
    AnswersInStack,
    CellGroups,
    FacilityCounts,
    OwnAnswers,
    PublishedAnswers,
    constraints_on,
)
from censafe.products.topdown.configuration.config import TopdownConfig, load_config, require_free
from censafe.products.topdown.plan import plan_release

MINE = """
levels = [{ name = "State", prefix = 2 }, { name = "Block", prefix = 15 }]
stacks = [["sites", "families"]]
rho = { families = 1, sites = 2 }
[published]
before = "pl94-us"
[schemas.families]
record = "household"
attributes = [{ name = "tenure", levels = 3 }, { name = "old", levels = 2 }]
[schemas.families.recodes.owned]
attribute = "tenure"
groups = ["0-1"]
[schemas.sites]
record = "household"
attributes = [{ name = "kind", levels = 6 }]
[schemas.sites.recodes.tenures]
attribute = "kind"
groups = ["each 0-2"]
[schemas.sites.recodes.kinds]
attribute = "kind"
groups = ["0-3", "4", "5"]

[histograms.families]
schema = "families"
[[histograms.families.constraints]]
name = "owners"
cells = "tenure"
relation = "="
right = { histogram = "sites", cells = "tenures" }
[[histograms.families.constraints]]
name = "occupied"
cells = "total"
relation = "="
right = { published = "before", histogram = "units", cells = "total", when = { h1 = 1 } }
[[histograms.families.constraints]]
name = "known"
cells = "old"
relation = ">="
right = { facilities = "two", each = { "0" = 0, "1" = 1 } }
[histograms.sites]
schema = "sites"
exact_totals = "Block"
[[histograms.sites.constraints]]
name = "counted"
cells = "kinds"
relation = "="
right = { facilities = "three", each = { "0-1" = 1, "2" = 7 } }
[level_shares.families]
State = "1/2"
Block = "1/2"
[level_shares.sites]
State = "1/2"
Block = "1/2"
[query_shares.families]
State = { detailed = 1 }
Block = { detailed = 1 }
[query_shares.sites]
State = { detailed = 1 }
Block = { detailed = 1 }
"""


def read(folder: Path, *changes: tuple[str, str], **settings: str) -> TopdownConfig:
    text = MINE
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path = folder / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return load_config(path, settings)


def test_constraints_of_every_kind_are_read(tmp_path: Path) -> None:
    config = read(tmp_path)
    owners, occupied, known = config.histogram("families").constraints
    assert owners.right == AnswersInStack("sites", CellGroups("tenures"))
    assert (occupied.relation, occupied.lowest) == ("=", None)
    assert occupied.right == PublishedAnswers("before", "units", CellGroups("total", {"h1": (1,)}))
    assert (known.groups, known.relation) == (CellGroups("old"), ">=")
    assert known.right == FacilityCounts("two", (0, 1))
    total, counted = constraints_on(config.histogram("sites"))
    assert (total.name, total.right, total.lowest) == ("total", OwnAnswers(), "Block")
    assert counted.right == FacilityCounts("three", (1, 1, 7))
    groups = config.histogram("families").schema.grouped(CellGroups("owned * old", {"old": (1,)}))
    assert groups.label.tolist() == [-1, 1, -1, 1, -1, -1]


def test_a_stack_counts_the_same_records(tmp_path: Path) -> None:
    config = read(tmp_path)
    (stack,) = config.stacks
    assert [histogram.name for histogram in stack.histograms] == ["sites", "families"]
    assert [one.record_totals for one in config.histograms] == ["Block", "Block"]
    words = plan_release(config).settings["neighbors.replace"]
    assert words.startswith("one person's record is replaced by another one")
    assert words.endswith("published counts of housing units and group quarters by kind by Block unchanged")
    owners = 'right = { published = "before", histogram = "persons", cells = "hhinstlevels" }'
    apart = read(
        tmp_path,
        ('stacks = [["sites", "families"]]', ""),
        ('right = { histogram = "sites", cells = "tenures" }', owners),
    )
    assert [stack.name for stack in apart.stacks] == ["families", "sites"]
    assert [one.record_totals for one in apart.histograms] == [None, "Block"]


def test_what_only_a_run_can_do_is_refused_with_its_reasons(tmp_path: Path) -> None:
    with pytest.raises(
        UsageError, match=r"the constraints owners, occupied, known of families; .*sites with families"
    ):
        require_free(read(tmp_path), "evaluate")
    require_free(load_config("pl94-us"), "evaluate")


def test_constraints_and_stacks_are_part_of_the_settings(tmp_path: Path) -> None:
    first = read(tmp_path)
    assert first.settings["stacks"] == "sites with families"
    assert first.settings["published.before"] == "pl94-us"
    assert first.digest != read(tmp_path, ('"2" = 7', '"2" = 8')).digest
    assert not [
        key
        for key in load_config("pl94-us").settings
        if key.startswith(("constraints", "stacks", "published"))
    ]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('cells = "tenures" }', 'cells = "kinds * tenures" }', "takes the attribute kind twice"),
        ('cells = "tenures" }', 'cells = "kind" }', "it has 6 numbers, and the cells are 3 groups"),
        ('histogram = "sites", cells', 'histogram = "families", cells', "give one of sites"),
        ('published = "before", histogram', 'published = "after", histogram', "give one of before"),
        ("when = { h1 = 1 }", "when = { h1 = 2 }", "whole numbers from 0 to 1"),
        ("when = { h1 = 1 }", "when = { h2 = 1 }", "unknown key"),
        ('relation = ">="', 'relation = ">"', "give one of =, <=, >="),
        ('relation = ">="', 'relation = "<="', "bounds are by one kind of facility, with one >="),
        ('[schemas.families.recodes.owned]', '[schemas.families.facilities]\nattribute = "old"\nminimum = [0, 1]\nlargest = [9, 9]\n[schemas.families.recodes.owned]', "the facilities of a schema are such bounds"),
        ('cells = "old"', 'cells = "old"\nwhen = { old = "1" }', "of a kind that every cell has"),
        ('relation = "="\nright = { published', 'relation = "<="\nright = { published', "<= is for counts of facilities"),
        ('name = "counted"\ncells = "kinds"\nrelation = "="', 'name = "counted"\ncells = "kinds"\nrelation = ">="', "bounds alone are not held"),
        ('"2" = 7', '"2" = -1', "whole number of 0 or more"),
        (', "2" = 7', "", "give a number for each of the 3 kinds"),
        ('right = { facilities = "two", each = { "0" = 0, "1" = 1 } }', "right = { exact = true }", "totals of the records themselves are exact_totals"),
        ('name = "known"', 'name = "owners"', "two constraints have one name"),
        ('before = "pl94-us"', 'before = "pl94-uss"', "Did you mean 'pl94-us'"),
        ('stacks = [["sites", "families"]]', 'stacks = ["sites"]', "give lists of histograms"),
        ('stacks = [["sites", "families"]]', 'stacks = [["sites"], ["sites"]]', "named more than once"),
        ('stacks = [["sites", "families"]]', 'stacks = [["sites", "families"]]\nmeasure = 0.5', "is not a list of histograms"),
        ('{ name = "Block", prefix = 15 }', '{ name = "Site" }, { name = "Block", prefix = 15 }', "only spine = prim makes levels"),
        ("levels = [", 'spine = "prim"\nlevels = [{ name = "Own" }, ', "Own without a prefix"),
    ],
)  # fmt: skip
def test_every_breach_is_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, (old, new))
    assert message in str(caught.value)


INFORMED = """[histograms.families.informed]
cells = "tenure"
right = { histogram = "sites", cells = "tenures" }
[histograms.sites]
"""


def test_a_histogram_that_another_informs_comes_after_it(tmp_path: Path) -> None:
    owners = 'name = "owners"\ncells = "tenure"\nrelation = "="\nright = { histogram = "sites", cells = "tenures" }'
    other = 'name = "owners"\ncells = "old"\nrelation = "="\nright = { published = "before", histogram = "units", cells = "h1" }'
    config = read(tmp_path, (owners, other), ("[histograms.sites]\n", INFORMED))
    informed = config.histogram("families").informed
    assert informed is not None
    assert (informed.groups, informed.right) == (
        CellGroups("tenure"),
        AnswersInStack("sites", CellGroups("tenures")),
    )
    assert [one.name for one in config.stacks[0].histograms] == ["sites", "families"]
    assert config.digest != read(tmp_path, (owners, other)).digest


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('right = { histogram = "sites", cells = "tenures" }', 'right = { published = "before", histogram = "units", cells = "h1" }', "it has 2 numbers"),
        ('cells = "tenure"\n', 'cells = "old"\n', "it has 3 numbers, and the cells are 2 groups"),
        ('cells = "tenure"\n', 'cells = "tenure"\nwhen = { old = "1" }\n', "it tells the sums of every cell"),
        ('cells = "tenure"\n', 'cells = "tenure"\nrelation = "="\n', "unknown key"),
    ],
)  # fmt: skip
def test_every_breach_of_what_informs_is_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in INFORMED
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, ("[histograms.sites]\n", INFORMED.replace(old, new)))
    assert message in str(caught.value)


def test_only_a_histogram_with_equations_is_informed(tmp_path: Path) -> None:
    turned = '[histograms.sites.informed]\ncells = "tenures"\nright = { histogram = "families", cells = "tenure" }\n[level_shares.families]\n'
    alone = MINE[MINE.index("[[histograms.sites.constraints]]") : MINE.index("[level_shares.families]")]
    with pytest.raises(ConfigError, match="only a histogram with equations is informed"):
        read(tmp_path, (alone, ""), ("[level_shares.families]\n", turned))


def test_the_histograms_of_a_stack_are_measured_together(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="families must be measured with sites, families"):
        read(tmp_path, measure="sites")
