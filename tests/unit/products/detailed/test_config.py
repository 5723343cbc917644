"""SafeTab configurations: read exactly, every breach reported at once, with its key and what is allowed."""

import json
import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import pytest

from censafe.errors import ConfigError
from censafe.model import Definition
from censafe.products.configuration.source import INFINITE, get_shipped
from censafe.products.detailed.config import load_h_config, load_p_config, load_scope
from support.config_edits import Edit, drop, put
from support.safetab_folders import PR_LEVELS, US_LEVELS, bureau_config
from support.safetab_universes import write_parameters
from support.shared import shared_data

Write = Callable[[dict[str, Any]], Path]
LOAD = {"p": load_p_config, "h": load_h_config}


def budgets(kind: str) -> dict[str, Any]:
    return {
        f"privacy_budget_{kind}_level_{level}_{name}": 0.25
        for name in (*US_LEVELS, *PR_LEVELS)
        for level in (1, 2)
    }


def bureau(product: Literal["p", "h"]) -> dict[str, Any]:
    """A valid configuration in the Bureau's JSON, with a budget for every level."""
    document = bureau_config(product) | {"state_filter_us": ["44", "01"]}
    document.pop("zero_suppression_chance", None)
    return document | {key: 0.25 for key in document if "_level_" in key}


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def to_folder(document: dict[str, Any]) -> Path:
        folder = write_parameters(tmp_path / "parameters")
        (folder / "config.json").write_text(json.dumps(document), encoding="utf-8")
        return folder

    return to_folder


BOTH: dict[str, tuple[Edit, str]] = {
    "missing": (drop("max_race_codes"), "missing keys: max_race_codes; all of them are needed"),
    "missing states": (drop("state_filter_us"), "missing keys: state_filter_us;"),
    "missing negatives": (drop("allow_negative_counts"), "missing keys: allow_negative_counts;"),
    "missing definition": (drop("privacy_defn"), "missing keys: privacy_defn;"),
    "codes zero": (put("max_race_codes", value=0), "max_race_codes: 0 is not allowed; give a whole number from 1 to 8"),
    "codes nine": (put("max_race_codes", value=9), "max_race_codes: 9 is not allowed"),
    "codes fraction": (put("max_race_codes", value=2.5), "max_race_codes: 2.5 is not allowed"),
    "codes boolean": (put("max_race_codes", value=True), "max_race_codes: true is not allowed"),
    "codes text": (put("max_race_codes", value="8"), "max_race_codes: '8' is not allowed"),
    "negatives": (put("allow_negative_counts", value="yes"), "allow_negative_counts: 'yes' is not allowed; give true or false"),
    "run flag": (put("run_us", value=1), "run_us: 1 is not allowed; give true or false"),
    "reader": (put("reader", value="cvs"), "reader: 'cvs' is not allowed; give one of csv, cef"),
    "definition": (put("privacy_defn", value="dp"), "privacy_defn: 'dp' is not allowed; give one of zcdp, puredp"),
    "no states": (put("state_filter_us", value=[]), "state_filter_us: the list is empty"),
    "states number": (put("state_filter_us", value=[1]), 'state_filter_us: 1 must be text in quotes, such as "01"'),
    "states text": (put("state_filter_us", value="01"), "state_filter_us: '01' is not a list"),
    "states twice": (put("state_filter_us", value=["01", "01"]), "01 named more than once"),
    "state 03": (
        put("state_filter_us", value=["03", "72"]),
        "state_filter_us: 03, 72 not a state code; allowed are 01 to 56 without 03, 07, 14, 43, 52; "
        "Puerto Rico is run with run_pr",
    ),
    "stability": (put("stability", value="tight"), "stability: 'tight' is not allowed; give one of bureau, exact"),
    "coterminous": (put("coterminous", value="yes"), "give one of off, donor, combined"),
    "mark_x": (put("mark_x", value="yes"), "mark_x: 'yes' is not allowed; give true or false"),
    "respect_granularity": (
        put("respect_granularity", value="no"),
        "respect_granularity: 'no' is not allowed; give true or false",
    ),
    "suppress": (
        put("suppress", value="largest-variance"),
        "suppress: 'largest-variance' is not allowed; give one of both, alone, larger-variance. Did you mean 'larger-variance'?",
    ),
    "marked_negatives": (
        put("marked_negatives", value="zeros"),
        "marked_negatives: 'zeros' is not allowed; give one of zero, X, keep. Did you mean 'zero'?",
    ),
    "missing_blocks": (put("missing_blocks", value="skip"), "give one of stop, drop"),
    "universe": (
        put("universe", value="elsewhere"),
        "elsewhere has no race-and-ethnicity-codes.txt, race-characteristic-iterations.txt, "
        "ethnicity-characteristic-iterations.txt, race-and-ethnicity-code-to-iteration.txt; put the files there, "
        "or say --set universe=2020",
    ),
    "universe number": (put("universe", value=2020), "universe: 2020 is not allowed; give '2020' or a folder in quotes"),
}  # fmt: skip
P: dict[str, tuple[Edit, str]] = {
    "missing budget": (
        drop("privacy_budget_p_level_2_pr_tract"),
        "missing keys: privacy_budget_p_level_2_pr_tract; all of them are needed",
    ),
    "missing fraction": (drop("privacy_budget_p_stage_1_fraction"), "missing keys: privacy_budget_p_stage_1_fraction;"),
    "missing thresholds": (drop("thresholds_p", "(USA, 1)"), "missing keys: thresholds_p.(USA, 1);"),
    "budget negative": (
        put("privacy_budget_p_level_1_usa", value=-1),
        "privacy_budget_p_level_1_usa: -1 is negative; give 0 (level not measured) or more",
    ),
    "budget text": (put("privacy_budget_p_level_1_usa", value="1"), "_1_usa: '1' is not a number; give a number with"),
    "budget boolean": (put("privacy_budget_p_level_1_usa", value=True), "_1_usa: true is not a number"),
    "budget infinite": (
        put("privacy_budget_p_level_1_usa", value=float("inf")),
        "privacy_budget_p_level_1_usa: Infinity means no noise and protects no one; "
        "only 'truth --private-path' takes it",
    ),
    "budget nan": (put("privacy_budget_p_level_1_usa", value=float("nan")), "_1_usa: NaN is not a number"),
    "fraction zero": (
        put("privacy_budget_p_stage_1_fraction", value=0),
        "privacy_budget_p_stage_1_fraction: 0 is not allowed; give a share above 0 and below 1",
    ),
    "fraction one": (put("privacy_budget_p_stage_1_fraction", value="1"), "fraction: 1 is not allowed"),
    "fraction word": (put("privacy_budget_p_stage_1_fraction", value="half"), "fraction: 'half' is not a number"),
    "fraction boolean": (put("privacy_budget_p_stage_1_fraction", value=True), "fraction: true or false is not allowed"),
    "few": (
        put("thresholds_p", "(USA, 1)", value=[1, 2]),
        "thresholds_p.(USA, 1): 2 thresholds are too few; give three in ascending order",
    ),
    "descending": (
        put("thresholds_p", "(PR-PLACE, 2)", value=[1, 3, 2]),
        "thresholds_p.(PR-PLACE, 2): [1, 3, 2] goes down; give thresholds in ascending order",
    ),
    "descending late": (put("thresholds_p", "(USA, 1)", value=[1, 2, 3, 0]), "[1, 2, 3, 0] goes down"),
    "threshold fraction": (put("thresholds_p", "(USA, 1)", value=[1, 2, 2.5]), "2.5 not a whole number"),
    "threshold text": (put("thresholds_p", "(USA, 1)", value=[1, 2, "3"]), "'3' not a whole number"),
    "threshold boolean": (put("thresholds_p", "(USA, 1)", value=[False, 2, 3]), "false not a whole number"),
    "threshold number": (put("thresholds_p", "(USA, 1)", value=3), "thresholds_p.(USA, 1): 3 is not a list"),
    "thresholds list": (put("thresholds_p", value=[1]), "thresholds_p: a list is not a mapping"),
    "chance one": (put("zero_suppression_chance", value=1), "zero_suppression_chance: 1 is not allowed; give 0 or more and below 1"),
    "chance negative": (put("zero_suppression_chance", value=-0.1), "zero_suppression_chance: -0.1 is not allowed"),
    "t1": (put("t1", value="stage1"), "t1: 'stage1' is not allowed; give one of stage2, pooled"),
}  # fmt: skip
H: dict[str, tuple[Edit, str]] = {
    "missing budget": (
        drop("privacy_budget_h_t4_level_2_usa"),
        "missing keys: privacy_budget_h_t4_level_2_usa;",
    ),
    "missing class": (
        drop("thresholds_h_t4"),
        "missing keys: thresholds_h_t4.(USA, 1), thresholds_h_t4.(USA, 2), thresholds_h_t4.(STATE, 1)",
    ),
    "two of t4": (
        put("thresholds_h_t4", "(USA, 1)", value=[1, 2]),
        "thresholds_h_t4.(USA, 1): 2 thresholds; T04001 and T04002 are told apart by exactly one",
    ),
    "none of t4": (put("thresholds_h_t4", "(USA, 1)", value=[]), "thresholds_h_t4.(USA, 1): 0 thresholds;"),
    "few of t3": (
        put("thresholds_h_t3", "(USA, 1)", value=[1]),
        "thresholds_h_t3.(USA, 1): 1 thresholds are too few",
    ),
}


@pytest.mark.parametrize(
    ("product", "edit", "message"),
    [
        *((product, *BOTH[name]) for name in BOTH for product in "ph"),
        *(("p", *P[name]) for name in P),
        *(("h", *H[name]) for name in H),
    ],
)
def test_every_rule_names_its_key_and_what_is_allowed(
    product: str, edit: Edit, message: str, write: Write
) -> None:
    document = bureau(product)
    edit(document)
    with pytest.raises(ConfigError, match=re.escape(message)):
        LOAD[product](write(document))


@pytest.mark.parametrize("product", ["p", "h"])
def test_a_valid_configuration_is_read_from_its_folder_and_from_its_file(product: str, write: Write) -> None:
    folder = write(bureau(product))
    config = LOAD[product](folder)
    assert LOAD[product](folder / "config.json").digest == config.digest
    assert config.universe == folder
    assert config.warnings == ()
    assert (config.states, config.all_states) == (("01", "44"), ("01", "44", "72"))
    assert (config.negatives, config.coterminous, config.mark_x) == ("keep", "off", False)
    assert (config.stability, config.missing_blocks, config.definition) == ("bureau", "stop", Definition.ZCDP)
    assert len(config.levels) == 20
    assert set(config.budgets.values()) == {Fraction(1, 4)}


def test_all_breaches_are_reported_at_once(write: Write) -> None:
    document = bureau("p")
    for name in ("codes nine", "reader", "state 03"):
        BOTH[name][0](document)
    for name in ("missing budget", "missing thresholds", "budget negative", "fraction zero", "descending"):
        P[name][0](document)
    with pytest.raises(ConfigError, match="7 problems in the configuration") as caught:
        load_p_config(write(document))
    missing = "missing keys: privacy_budget_p_level_2_pr_tract, thresholds_p.(USA, 1); all of them are needed"
    assert missing in str(caught.value)


def test_nothing_to_run_and_nothing_to_spend(write: Write) -> None:
    document = {**bureau("p"), "run_us": False, "run_pr": False}
    with pytest.raises(ConfigError, match="run_us, run_pr: both are false"):
        load_p_config(write(document))
    us_only = {**bureau("p"), "run_pr": False}
    spent_in_pr = {key: 0 if "pr_" not in key else 0.5 for key in budgets("p")}
    with pytest.raises(ConfigError, match="budget: all budgets of the run are 0"):
        load_p_config(write({**us_only, **spent_in_pr}))
    nothing = dict.fromkeys([*budgets("h_t3"), *budgets("h_t4")], 0)
    with pytest.raises(ConfigError, match="budget: all budgets of the run are 0"):
        load_h_config(write({**bureau("h"), **nothing}))


def test_thresholds_are_needed_for_the_geographies_of_the_run_only(write: Write) -> None:
    document = {**bureau("p"), "run_pr": False}
    document["thresholds_p"] = {
        key: value for key, value in document["thresholds_p"].items() if "PR-" not in key
    }
    config = load_p_config(write(document))
    assert len(config.levels) == 12
    document = {**document, "run_pr": True}
    with pytest.raises(
        ConfigError, match=re.escape("thresholds_p.(PR-STATE, 1), thresholds_p.(PR-STATE, 2)")
    ):
        load_p_config(write(document))


def test_a_puerto_rico_run_needs_no_states(write: Write) -> None:
    document = {**bureau("h"), "run_us": False}
    del document["state_filter_us"]
    config = load_h_config(write(document))
    assert (config.states, config.all_states) == ((), ("72",))
    assert {level.region_type for level in config.levels} == {"PR-STATE", "PR-COUNTY", "PR-TRACT", "PR-PLACE"}


def test_more_than_three_thresholds_warn_and_the_first_three_are_used(write: Write) -> None:
    document = bureau("p")
    document["thresholds_p"]["(USA, 1)"] = [-1, 2, 2, 4]
    config = load_p_config(write(document))
    assert config.thresholds["p", "usa_1"] == (-1, 2, 2)
    assert "only the first three thresholds are used: thresholds_p.(USA, 1)" in config.warnings[0]


def test_unknown_keys_warn_in_json_and_stop_in_toml(write: Write, tmp_path: Path) -> None:
    config = load_p_config(write({**bureau("p"), "max_race_code": 3}))
    assert "unknown key 'max_race_code' is ignored. Did you mean 'max_race_codes'?" in config.warnings[0]
    mine = tmp_path / "mine.toml"
    mine.write_text(get_shipped("ddhca").text + "\nusa_3 = [1, 2, 3]\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"thresholds.usa_3: unknown key. Did you mean 'thresholds.usa_"):
        load_p_config(mine)
    mine.write_text("state_filter_us = ['01']\n" + get_shipped("ddhca").text, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"state_filter_us: unknown key\. Here it is called 'states'"):
        load_p_config(mine)


def test_the_bureaus_negatives_and_fraction_as_text(write: Write) -> None:
    document = {**bureau("p"), "allow_negative_counts": False, "privacy_budget_p_stage_1_fraction": "1/10"}
    config = load_p_config(write(document))
    assert (config.negatives, config.stage_1_fraction) == ("zero", Fraction(1, 10))
    assert config.zero_suppression_chance == 0


@pytest.mark.parametrize(("product", "name"), [("p", "ddhca"), ("h", "ddhcb")])
def test_shipped_configurations_are_the_production_ones(product: str, name: str) -> None:
    production = LOAD[product](shared_data(f"bureau/safetab_{product}/production"))
    shipped = LOAD[product](name)
    assert production.digest == shipped.digest
    assert production.warnings == shipped.warnings == ()
    assert shipped.universe is None


@pytest.mark.parametrize("folder", ["input_dir_puredp", "input_dir_zcdp"])
@pytest.mark.parametrize("product", ["p", "h"])
def test_toy_folders_are_read_as_they_are(product: str, folder: str) -> None:
    config = LOAD[product](shared_data(f"bureau/safetab_{product}/toy/{folder}"))
    assert config.all_states == ("01", "02", "11")
    assert config.definition.value == folder.removeprefix("input_dir_")


def test_overrides_by_our_keys_and_the_bureaus(write: Write) -> None:
    folder = write(bureau("p"))
    config = load_p_config(
        folder,
        {
            "budget": "1/3", "budget.usa_2": "0.5", "privacy_budget_p_level_1_usa": "0", "thresholds.usa_1": "1,2,3",
            "thresholds_p.(USA, 2)": "4, 5, 6", "max_race_codes": "3", "allow_negative_counts": "false",
            "states": "06,04", "run_pr": "false", "mark_x": "true", "t1": "pooled", "universe": "2020",
        },
    )  # fmt: skip
    assert config.budgets["p", "usa_2"] == Fraction(1, 2)
    assert config.budgets["p", "usa_1"] == 0
    assert config.budgets["p", "aiannh_1"] == Fraction(1, 3)
    assert (config.thresholds["p", "usa_1"], config.thresholds["p", "usa_2"]) == ((1, 2, 3), (4, 5, 6))
    assert (config.max_race_codes, config.negatives, config.states) == (3, "zero", ("04", "06"))
    assert (config.run_pr, config.mark_x, config.t1, config.universe) == (False, True, "pooled", None)
    assert config.overrides["max_race_codes"] == "3"
    assert load_h_config("ddhcb", {"budget.t4": "0"}).measured("t4") == ()


@pytest.mark.parametrize(
    ("key", "text", "message"),
    [
        ("budgets", "1", "--set budgets: there is no key 'budgets'. Did you mean 'budget"),
        ("title", "x", "--set title: there is no key 'title'"),
        ("budget.usa_1", "much", "privacy_budget_p_level_1_usa: 'much' is not a number"),
        ("thresholds.usa_1", "1,2,many", "thresholds_p.(USA, 1): 'many' not a whole number"),
        ("run_us", "perhaps", "run_us: 'perhaps' is not allowed; give true or false"),
        ("negatives", "clip", "allow_negative_counts: 'clip' is not allowed"),
    ],
)
def test_overrides_that_say_nothing(key: str, text: str, message: str, write: Write) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        load_p_config(write(bureau("p")), {key: text})


def test_keys_of_the_other_product_are_unknown(write: Write) -> None:
    with pytest.raises(ConfigError, match="missing keys: privacy_budget_p_stage_1_fraction") as caught:
        load_p_config(write(bureau("h")))
    assert "thresholds_p.(PR-PLACE, 2)" in str(caught.value)
    with pytest.raises(ConfigError, match="there is no key 't1'"):
        load_h_config("ddhcb", {"t1": "pooled"})


def test_the_truth_takes_infinite_or_no_budgets(write: Write) -> None:
    document = {**bureau("p"), **dict.fromkeys(budgets("p"), float("inf"))}
    config = load_p_config(write(document), allow_infinite=True)
    assert set(config.budgets.values()) == {INFINITE}
    assert config.settings["budget.usa_1"] == "Infinity"
    bare = {
        key: bureau("h")[key] for key in ("max_race_codes", "run_us", "run_pr", "reader", "state_filter_us")
    }
    private = load_h_config(write(bare), allow_infinite=True)
    assert set(private.budgets.values()) == {INFINITE}
    assert private.thresholds["t3", "usa_1"] == (-(10**9),) * 3
    assert private.thresholds["t4", "usa_1"] == (-(10**9),)
    scope = load_scope("safetab-h", write(bare), {"max_race_codes": "2"})
    assert (scope.max_race_codes, scope.all_states, scope.missing_blocks) == (2, ("01", "44", "72"), "stop")
    with pytest.raises(ConfigError, match="missing keys: reader, state_filter_us"):
        load_scope("safetab-h", write({key: bare[key] for key in ("max_race_codes", "run_us", "run_pr")}))


def test_a_universe_beside_our_own_file(tmp_path: Path) -> None:
    folder = write_parameters(tmp_path / "mine")
    text = get_shipped("ddhca").text.replace('universe = "2020"', 'universe = "mine"')
    (tmp_path / "mine.toml").write_text(text, encoding="utf-8")
    assert load_p_config(tmp_path / "mine.toml").universe == folder
    (tmp_path / "mine.toml").write_text(text.replace('"mine"', '"yours"'), encoding="utf-8")
    with pytest.raises(ConfigError, match=r"yours has no race-and-ethnicity-codes.txt"):
        load_p_config(tmp_path / "mine.toml")


def test_stored_numbers_of_the_paper_are_checked() -> None:
    with pytest.raises(
        ConfigError, match=re.escape("moe_target.usa_1: 0 is too small; give a number above 0")
    ):
        load_h_config("ddhcb", {"moe_target.usa_1": "0"})


def test_the_digest_follows_every_setting() -> None:
    base = load_p_config("ddhca").digest
    for key, text in (
        ("negatives", "zero"),
        ("stage_1_fraction", "1/5"),
        ("stability", "exact"),
        ("reader", "csv"),
    ):
        assert load_p_config("ddhca", {key: text}).digest != base
    assert load_p_config("ddhca", {"stage_1_fraction": "1/10"}).digest == base
