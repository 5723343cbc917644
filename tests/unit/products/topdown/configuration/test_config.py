"""TopDown configurations: the shipped ones, a schema of one's own, and every breach named."""

import copy
import re
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import censafe
from censafe.errors import ConfigError
from censafe.geography.spines.tree import LevelRule, build_spine
from censafe.model import Definition, ProtectedUnit
from censafe.privacy.loss.budget import NotFinite, parse_toml_exact
from censafe.products.configuration import document as config_source
from censafe.products.configuration.source import get_shipped, shipped_configs
from censafe.products.topdown.configuration.config import TopdownConfig, load_config
from censafe.products.topdown.intake.facts import lone_state
from censafe.products.topdown.plan import exact_levels, plan_release, workloads

SIXTEEN = """
title = "Voting age by Hispanic origin and seven races"
levels = [{ name = "State", prefix = 2 }, { name = "County", prefix = 5 }, { name = "Block", prefix = 15 }]
rho = "1/2"

[schemas.sixteen]
attributes = [{ name = "votingage", levels = 2 }, { name = "group", levels = 8 }]
[schemas.sixteen.recodes.hispanic]
attribute = "group"
groups = [[0], [1, 2, 3, 4, 5, 6, 7]]

[histograms.persons]
schema = "sixteen"
exact_totals = "State"

[level_shares.persons]
State = "1/4"
County = 0.25
Block = "1/2"

[query_shares.persons.State]
total = 0
detailed = 1
[query_shares.persons.County]
"votingage * hispanic" = "1/3"
group = "2/3"
[query_shares.persons.Block]
total = 0.5
detailed = 0.5
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return path


def breaches(folder: Path, *changes: tuple[str, str], overrides: dict[str, str] | None = None) -> str:
    text = SIXTEEN
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    with pytest.raises(ConfigError) as caught:
        load_config(write(folder, text), overrides or {})
    return str(caught.value)


@pytest.mark.parametrize("name", [config.name for config in shipped_configs("topdown")])
def test_shipped_shares_sum_to_one_and_paths_to_the_total(name: str) -> None:
    config = load_config(name, {"root": load_config(name).levels[0].name})
    for histogram in config.histograms:
        assert sum(histogram.level_shares.values()) == 1
        for shares in histogram.query_shares.values():
            assert sum(shares.values()) == 1
            assert all(share > 0 for share in shares.values())
        path = [histogram.cost(level, query) for level, qs in histogram.query_shares.items() for query in qs]
        assert histogram.loss == sum(path)
    parts = plan_release(config).parts
    assert sum(part.cost / part.factor for part in parts) == sum(
        histogram.loss for histogram in config.histograms
    )
    assert plan_release(config).total == sum(part.cost for part in parts)
    assert config.warnings == ()


def test_levels_with_exact_totals() -> None:
    config = load_config("pl94-us")
    assert exact_levels(config.histogram("persons")) == ("US", "State")
    assert len(exact_levels(config.histogram("units"))) == 6
    assert [load.level.name in exact_levels(load.histogram) for load in workloads(config)[:3]] == [
        True,
        True,
        False,
    ]


def test_a_schema_is_data(tmp_path: Path) -> None:
    config = load_config(write(tmp_path, SIXTEEN))
    plan = plan_release(config)
    assert Definition.ZCDP is plan.definition
    assert Fraction(1, 2) == plan.total
    assert [part.name for part in plan.parts] == ["persons_State", "persons_County", "persons_Block"]
    assert [load.answers for load in workloads(config)] == [16, 12, 17]
    assert [[query.name for query in load.queries] for load in workloads(config)] == [
        ["detailed"],
        ["votingage * hispanic", "group"],
        ["total", "detailed"],
    ]
    passes = config.histogram("persons").passes["County"]
    assert passes.l2 == ((("votingage * hispanic", "group"),),)
    assert passes.rounding == ((("detailed",),),)


def test_overrides_reach_every_number() -> None:
    half = load_config("e2e-1940", {"epsilon": "1/2"})
    assert Fraction(1, 2) == half.histogram("persons").loss
    units = load_config("pl94-us", {"measure": "units", "rho.units": "3", "root": "County"})
    plan = plan_release(units)
    assert ProtectedUnit.PERSON is plan.unit
    assert 3 * (1 - 2 * Fraction(1, 205)) == sum(part.cost / part.factor for part in plan.parts)
    assert [level.name for level in units.run_levels] == ["County", "Tract", "Block_Group", "Block"]
    with pytest.raises(KeyError):
        units.histogram("persons")


def test_the_digest_knows_what_decides_the_release(tmp_path: Path) -> None:
    shipped = load_config("pl94-pr")
    copy = load_config(write(tmp_path, get_shipped("pl94-pr").text))
    assert shipped.digest == copy.digest
    assert plan_release(shipped).digest() == plan_release(copy).digest()
    digests = {shipped.digest}
    for change in (
        {"rho.units": "1"},
        {"measure": "persons"},
        {"root": "County", "measure": "units"},
        {"reader": "pl94"},
    ):
        digests.add(load_config("pl94-pr", change).digest)
    assert len(digests) == 4 + 1


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('State = "1/4"', 'State = "1/5"', "level_shares.persons: the shares sum to 19/20, not to 1"),
        ('State = "1/4"', 'State = "-1/4"', "level_shares.persons.State: -0.25 is negative"),
        ('State = "1/4"\nCounty = 0.25', 'State = 0\nCounty = 0.5', "persons.State: a level without budget cannot"),
        ('State = "1/4"\nCounty = 0.25', "County = 0.5", "level_shares.persons.State: the level has no budget"),
        ('State = "1/4"', 'Sate = "1/4"', "level_shares.persons.Sate: there is no such level. Did you mean 'State'"),
        ('group = "2/3"', 'group = "1/3"', "query_shares.persons.County: the shares sum to 2/3"),
        ('group = "2/3"', 'groups = "2/3"', "'groups' is neither an attribute of sixteen nor a recode"),
        ('group = "2/3"', '"hispanic*votingage" = "2/3"', "a query is there twice"),
        ("[0], [1, 2, 3, 4, 5, 6, 7]", "[0], [1, 2, 3, 4, 5, 6]", "must put each of the 8 levels"),
        ('rho = "1/2"', "rho = 0", "rho: 0 measures nothing"),
        ('rho = "1/2"', "rho = inf", "rho: Infinity means no noise"),
        ('rho = "1/2"', 'rho = "x"', "rho: 'x' is not a number"),
        ('rho = "1/2"', 'rho = "1/2"\nepsilon = 1', "rho, epsilon: give one of them"),
        ('rho = "1/2"', "", "rho, epsilon: give one of them"),
        ('rho = "1/2"', "rho = { people = 1 }", "histograms.persons: it has no loss; give rho.persons"),
        ('rho = "1/2"', "rho = { persons = 1, people = 1 }", "rho.people: there is no such histogram."),
        ('rho = "1/2"', 'rho = "1/2"\ncolor = 1', "color: unknown key."),
        ('schema = "sixteen"', 'schema = "sixten"', "Did you mean 'sixteen'"),
        ('exact_totals = "State"', 'exact_totals = "Land"', "histograms.persons.exact_totals: 'Land' is not allowed"),
        ("prefix = 5", "prefix = 2", "County must have a longer prefix than State"),
        ('prefix = 5', 'prefix = 5, code = "1"', "levels[1].code: only a level of prefix 0 has a code"),
        ('name = "County", prefix', 'name = "State", prefix', "State named more than once"),
        ("[schemas.sixteen]", '["schemas"."pl94-units"]\nattributes = [{ name = "a", levels = 2 }]\n[schemas.sixteen]',
         "schemas.pl94-units: a shipped schema has this name"),
    ],
)  # fmt: skip
def test_breaches_are_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert message in breaches(tmp_path, (old, new))


def test_all_breaches_come_at_once(tmp_path: Path) -> None:
    text = breaches(
        tmp_path,
        ('group = "2/3"', 'group = "1/3"'),
        ('rho = "1/2"', "rho = -1"),
        ("prefix = 5", "prefix = 1"),
    )
    assert "mine.toml: 3 problems in the configuration" in text


@pytest.mark.parametrize(
    ("passes", "message"),
    [
        ('levels = ["County"]\nl2 = [[["group"]]]\nrounding = [[["detailed"]]]',
         "votingage * hispanic is measured at County and in no pass"),
        ('levels = ["Land"]\nl2 = [[["group"]]]\nrounding = [[["detailed"]]]', "passes[0].levels: 'Land' is not allowed"),
        ('levels = ["Block"]\nl2 = [["total"]]\nrounding = [[["detailed"]]]', "l2: give outer passes of inner passes"),
        ('levels = ["Block"]\nl2 = [[["total", "detailed"]]]\nrounding = [[["total"]], [["detailed"]]]',
         "the same number of outer passes"),
        ('levels = ["Block", "Block"]\nl2 = [[["total", "detailed"]]]\nrounding = [[["detailed"]]]',
         "Block has passes already"),
        ('levels = ["Block"]\nl2 = [[["total", "details"]]]\nrounding = [[["detailed"]]]', "'details' is neither"),
    ],
)  # fmt: skip
def test_passes_must_use_what_is_measured(tmp_path: Path, passes: str, message: str) -> None:
    change = ("[level_shares.persons]", f"[[histograms.persons.passes]]\n{passes}\n\n[level_shares.persons]")
    assert message in breaches(tmp_path, change)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("rho", "1", "every histogram has its own; say --set rho.persons, rho.units"),
        ("rhoo", "1", "there is no key 'rhoo'. Did you mean 'rho'"),
        ("epsilon.persons", "1", "both are there"),
        ("levels", "State", "levels is changed in the file"),
        ("level_shares.persons", "1", "name one share, such as level_shares.persons.County"),
        ("level_shares.persons.US", "1/2", "the shares sum to"),
        ("query_shares.units.US.detailed", "1/2", "the shares sum to 1/2"),
        ("measure", "people", "measure: 'people' is not allowed"),
        ("root", "Tract", "root: Tract is below State, whose totals are the exact ones"),
        ("root.x", "Tract", "root has no keys below it"),
        ("rho.persons.US", "1", "one number a histogram"),
        ("histograms.persons", "1", "histograms.NAME.schema"),
        ("histograms.persons.schema", "pl94-units", "'cenrace' is neither an attribute"),
        ("reader", "csv", "reader: 'csv' is not allowed"),
    ],
)  # fmt: skip
def test_overrides_are_checked_like_the_file(key: str, value: str, message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        load_config("pl94-us", {key: value})


def test_only_toml_is_read(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text("{}", encoding="utf-8")
    with pytest.raises(ConfigError, match="a configuration of topdown is TOML"):
        load_config(path)


def test_the_title_stands_in_the_record_and_changes_no_digest(tmp_path: Path) -> None:
    config = load_config("pl94-us")
    assert (
        config.title
        == "2020 redistricting data (PL 94-171), United States: persons and occupancy of housing units"
    )
    assert config.record == {"title": config.title, **config.settings}
    own = tmp_path / "own.toml"
    own.write_text(config.text.replace(config.title, "Another title"), encoding="utf-8")
    other = load_config(own)
    assert (other.title, other.digest) == ("Another title", config.digest)
    own.write_text(config.text.replace(f'"{config.title}"', "7"), encoding="utf-8")
    with pytest.raises(ConfigError, match="title: give text in quotes"):
        load_config(own)


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
        held = any(one.constraints for one in load_config(name).histograms)  # met pass by pass
        for passes in ("production", "outer", *(() if held else ("one",))):
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
        ("optimized", "Tract", "State"),
        ("optimized", "Block_Group", "Block_Group"),
    ):
        with pytest.raises(ConfigError, match="between parents"):
            planned(spine, exact, root)
    assert (planned("aian", "State"), planned("optimized", "Block"), planned("aian", "County", "County")) == (
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
        plan_release(load_config(path, {"reader": "pl94"}))


def test_the_data_of_one_state_ask_for_a_run_of_one_state() -> None:
    def warned(blocks: list[str], settings: dict[str, str]) -> list[str]:
        config = load_config("pl94-us", settings)
        rules = [LevelRule(level.name, level.prefix, level.code) for level in config.run_levels]
        return [one.fix for one in lone_state(config, build_spine(np.array(blocks), rules))]

    one, two = ["4400010001001000", "4400010001001001"], ["4400010001001000", "5000010001001000"]
    assert warned(one, {}) == ["--set root=State, which costs less"]
    assert warned(two, {}) == warned(one, {"root": "State"}) == warned(one, {"bypass": "true"}) == []


# Former spellings of words of configurations and of keywords mean the same.


def test_a_word_of_a_configuration_may_have_its_former_spelling() -> None:
    former, own = (load_config("pl94-us", {"spine": word}) for word in ("optimi" + "sed", "optimized"))
    assert former.choices == own.choices
    assert own.choices.spine == "optimized"


def test_a_keyword_may_have_its_former_spelling() -> None:
    chosen = censafe.configuration("phsafe", "sdhc-us")
    former, own = (
        censafe.plan(chosen, targets=["PH3/state_A-G=25"], **{keyword: "rho"})
        for keyword in ("minimi" + "se", "minimize")
    )
    assert former.total == own.total


def test_both_spellings_at_once_are_refused() -> None:
    chosen = censafe.configuration("phsafe", "sdhc-us")
    both = {"minimi" + "se": "rho", "minimize": "rho"}
    with pytest.raises(TypeError, match="has no keyword"):
        censafe.plan(chosen, targets=["PH3/state_A-G=25"], **both)


# Whatever stands at a key of a configuration, the answer is a configuration or a ConfigError that names the key.


ODD: tuple[Any, ...] = (Fraction(-1), Fraction(7), "x", True, [], [{}], {"x": "y"}, NotFinite.NAN)
SCHEMAS = """
[schemas.own]
attributes = [{ name = "hhgq", levels = 2 }]
[schemas.own.recodes.r]
attribute = "hhgq"
groups = [[0, 1]]
[[schemas.own.zeros]]
name = "z"
when = { hhgq = [1] }
[schemas.own.facilities]
attribute = "hhgq"
minimum = [0, 1]
largest = [9, 9]
other_kinds = ["vacant"]
"""


def paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a document."""
    if path:
        yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from paths(inner, (*path, key))


def put(document: dict[str, Any], path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    changed = copy.deepcopy(document)
    holder: Any = changed
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = value
    return changed


def two_levels() -> dict[str, Any]:
    """The 1940 configuration cut to two levels, with a schema of its own beside the shipped one."""
    document = parse_toml_exact(get_shipped("e2e-1940").text + SCHEMAS, "text")
    document["levels"] = document["levels"][:2]
    document["histograms"]["persons"]["passes"][0]["levels"] = ["National", "State"]
    document["level_shares"]["persons"] = {"National": Fraction(1, 3), "State": Fraction(2, 3)}
    for level in ("County", "Enumdist"):
        del document["query_shares"]["persons"][level]
    return document


def test_odd_values_are_refused_with_their_key(monkeypatch: pytest.MonkeyPatch) -> None:
    document = two_levels()
    refused = accepted = 0
    for number, path in enumerate(paths(document)):
        for odd in ODD[number % 2 :: 2]:  # every second one at a key, the others at the next
            changed = put(document, path, odd)
            monkeypatch.setattr(config_source, "load_raw", lambda *_, found=changed: found)
            try:
                plan_release(load_config("e2e-1940"))
                accepted += 1
            except ConfigError as error:
                assert str(path[0]) in str(error) or "persons" in str(error) or "epsilon" in str(error)
                refused += 1
    assert refused > 10 * accepted


def test_missing_keys_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "empty.toml"
    path.write_text("", encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    for key in ("levels: this key is missing", "histograms: this key is missing", "rho, epsilon: give one"):
        assert key in str(caught.value)
    document = {key: value for key, value in two_levels().items() if key != "schemas"}
    optional = {
        "title",
        "measure",
        ("histograms", "persons", "exact_totals"),
        ("histograms", "persons", "measurements"),
        ("histograms", "persons", "passes"),
    }
    for path_ in paths(document):
        if isinstance(path_[-1], int):
            continue
        changed = put(document, path_, None)
        holder: Any = changed
        for key in path_[:-1]:
            holder = holder[key]
        del holder[path_[-1]]
        monkeypatch.setattr(config_source, "load_raw", lambda *_, found=changed: found)
        if path_[0] in optional or (path_[:3] in optional and len(path_) == 3) or path_[-1] == "code":
            load_config("e2e-1940")
        else:
            with pytest.raises(ConfigError):
                load_config("e2e-1940")
