"""Configurations: read exactly, every breach reported at once, with its key and what is allowed."""

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from censafe.errors import ConfigError
from censafe.model import Definition
from censafe.products.configuration.source import INFINITE
from censafe.products.phsafe.config import load_phsafe_config, load_truth_config
from support.commands import bureau_config
from support.config_edits import Edit, drop, put
from support.shared import shared_data


def bureau() -> dict[str, Any]:
    """A valid configuration in the Bureau's JSON."""
    return bureau_config(budget=0.1) | {"state_filter": ["01", "44"]}


@pytest.fixture
def write(tmp_path: Path) -> Callable[[Any], Path]:
    def to_file(document: Any) -> Path:
        path = tmp_path / "config.json"
        path.write_text(json.dumps(document), encoding="utf-8")
        return path

    return to_file


BREACHES: dict[str, tuple[Edit, str]] = {
    "missing states": (drop("state_filter"), "state_filter: this key is missing"),
    "missing reader": (drop("reader"), "reader: this key is missing"),
    "missing definition": (drop("privacy_defn"), "privacy_defn: this key is missing"),
    "missing budget": (drop("privacy_budget"), "privacy_budget: this key is missing"),
    "missing tau": (drop("tau"), "tau: this key is missing"),
    "reader": (put("reader", value="cvs"), "reader: 'cvs' is not allowed; give one of csv, cef. Did you mean 'csv'?"),
    "reader number": (put("reader", value=1), "reader: 1 is not allowed"),
    "definition": (put("privacy_defn", value="dp"), "privacy_defn: 'dp' is not allowed; give one of zcdp, puredp"),
    "sensitivity": (put("sensitivity", value="local"), "give one of bureau, household-local, household-local-bounded"),
    "table extra": (put("privacy_budget", "PH9", value={}), "privacy_budget: extra table 'PH9'"),
    "derived table": (put("privacy_budget", "PH5_num", value={}), "extra table 'PH5_num'; it is computed from PH4"),
    "not a mapping": (put("privacy_budget", "PH3", value=0.5), "privacy_budget.PH3: 0.5 is not a mapping"),
    "budget list": (put("privacy_budget", value=[]), "privacy_budget: a list is not a mapping"),
    "level missing": (drop("privacy_budget", "PH3", "usa_*"), "privacy_budget.PH3: missing level usa_*"),
    "level extra": (put("privacy_budget", "PH3", "usa_B", value=1), "privacy_budget.PH3: extra level 'usa_B'"),
    "level of PH2": (put("privacy_budget", "PH2", "usa_A-G", value=1), "this table is not repeated by race"),
    "text": (put("privacy_budget", "PH3", "usa_*", value="0.5"), "PH3.usa_*: '0.5' is not a number"),
    "boolean": (put("privacy_budget", "PH3", "usa_*", value=True), "PH3.usa_*: true is not a number"),
    "null": (put("privacy_budget", "PH3", "usa_*", value=None), "PH3.usa_*: null is not a number"),
    "negative": (put("privacy_budget", "PH3", "usa_*", value=-0.5), "PH3.usa_*: -0.5 is negative"),
    "nan": (put("privacy_budget", "PH3", "usa_*", value=float("nan")), "PH3.usa_*: NaN is not a number"),
    "infinite": (put("privacy_budget", "PH3", "usa_*", value=float("inf")), "PH3.usa_*: Infinity means no noise"),
    "minus infinite": (put("privacy_budget", "PH3", "usa_*", value=-float("inf")), "-Infinity is not a number"),
    "tau missing": (drop("tau", "PH6"), "tau: missing table PH6"),
    "tau extra": (put("tau", "PH1_denom", value=3), "tau: extra table 'PH1_denom'; it counts units, not persons"),
    "tau unknown": (put("tau", "PH33", value=3), "tau: extra table 'PH33'"),
    "tau fraction": (put("tau", "PH3", value=5.5), "tau.PH3: 5.5 is not an integer"),
    "tau text": (put("tau", "PH3", value="5"), "tau.PH3: '5' is not an integer"),
    "tau boolean": (put("tau", "PH3", value=True), "tau.PH3: true is not an integer"),
    "tau zero": (put("tau", "PH3", value=0), "tau.PH3: 0 is too small"),
    "tau beyond any household": (
        put("tau", "PH3", value=10**30),
        "tau.PH3: the number is too large; give at most 99,999 persons a household",
    ),
    "tau negative": (put("tau", "PH3", value=-2), "tau.PH3: -2 is too small"),
    "no state": (put("state_filter", value=[]), "state_filter: the list is empty"),
    "states text": (put("state_filter", value="01"), "state_filter: '01' is not a list"),
    "states number": (put("state_filter", value=["01", 44]), "state_filter: 44 must be text in quotes"),
    "states repeated": (put("state_filter", value=["01", "44", "01"]), "state_filter: 01 named more than once"),
    "state invalid": (put("state_filter", value=["01", "03"]), "state_filter: 03 not a state code"),
    "state unpadded": (put("state_filter", value=["1"]), "state_filter: 1 not a state code"),
    "72 mixed": (put("state_filter", value=["01", "72"]), "state_filter: 72 (Puerto Rico) is mixed"),
}  # fmt: skip


@pytest.mark.parametrize("name", BREACHES)
def test_a_breach_is_named_with_its_key(name: str, write: Callable[[Any], Path]) -> None:
    edit, message = BREACHES[name]
    document = bureau()
    edit(document)
    with pytest.raises(ConfigError) as caught:
        load_phsafe_config(write(document))
    assert message in str(caught.value)
    assert "1 problem in the configuration" in str(caught.value)


def test_all_breaches_are_reported_together(write: Callable[[Any], Path]) -> None:
    document = bureau()
    for edit in (
        put("reader", value="parquet"),
        put("tau", "PH3", value=0),
        drop("tau", "PH7"),
        put("privacy_budget", "PH4", "usa_*", value=-1),
        put("state_filter", value=["03", "72", "03"]),
    ):
        edit(document)
    with pytest.raises(ConfigError) as caught:
        load_phsafe_config(write(document))
    message = str(caught.value)
    assert "7 problems" in message
    for part in ("reader", "tau.PH3", "PH7", "PH4.usa_*", "more than once", "not a state code", "mixed"):
        assert part in message


def test_the_bureaus_numbers_are_exact(write: Callable[[Any], Path]) -> None:
    document = bureau()
    document["privacy_budget"]["PH3"]["usa_*"] = 1e-7
    document["privacy_budget"]["PH3"]["state_*"] = 2
    config = load_phsafe_config(write(document))
    assert Fraction(1, 10**7) == config.budgets["PH3", "usa_*"]
    assert config.budgets["PH3", "state_*"] == 2
    assert Fraction(1, 10) == config.budgets["PH4", "usa_A-G"]
    assert (
        config.definition,
        config.sensitivity,
        config.reader,
        config.states,
    ) == (Definition.ZCDP, "bureau", "csv", ("01", "44"))


def test_an_unknown_key_warns_in_the_bureaus_json(write: Callable[[Any], Path]) -> None:
    config = load_phsafe_config(write({**bureau(), "state_filtre": []}))
    (warning,) = config.warnings
    assert "unknown key 'state_filtre' is ignored" in warning
    assert "Did you mean 'state_filter'?" in warning


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('state_filter = ["01"]', "state_filter: unknown key. Here it is called 'states'."),
        ("statess = 1", "statess: unknown key. Did you mean 'states'?"),
        ("rho = 1", "rho: unknown key"),
    ],
)
def test_an_unknown_key_is_an_error_in_our_toml(line: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(f"{line}\n{shipped_text('sdhc-us')}", encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load_phsafe_config(path)
    assert message in str(caught.value)


def shipped_text(name: str) -> str:
    from censafe.products.configuration.source import get_shipped

    return get_shipped(name).text


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"0.662976"', "nan", "budget.PH3.state_A-G: NaN is not a number"),
        ('"0.662976"', "inf", "budget.PH3.state_A-G: Infinity means no noise"),
        ('"0.662976"', '"two"', "budget.PH3.state_A-G: 'two' is not a number"),
        ('"0.662976"', '"-1/2"', "budget.PH3.state_A-G: -0.5 is negative"),
        ('{ "state_A-G" = 5 }', '{ "state_A-G" = 5.5 }', "give a whole number of decimals"),
        ("= 500", "= 0", "moe_target.PH1_num.usa_A-G: 0 is too small"),
    ],
)
def test_numbers_of_our_toml(old: str, new: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    text = shipped_text("sdhc-us")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load_phsafe_config(path)
    assert message in str(caught.value)


def test_our_toml_takes_numbers_and_fractions(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    text = shipped_text("sdhc-us").replace('"0.662976"', '"2/3"', 1).replace('"0.141622"', "0.25", 1)
    path.write_text(text, encoding="utf-8")
    config = load_phsafe_config(path)
    assert Fraction(2, 3) == config.budgets["PH3", "state_A-G"]
    assert Fraction(1, 4) == config.budgets["PH1_num", "state_A-G"]


@pytest.mark.parametrize(
    ("name", "folder", "total"), [("sdhc-us", "us", "1.257281"), ("sdhc-pr", "pr", "1.226649")]
)
def test_shipped_configurations_are_the_production_ones(name: str, folder: str, total: str) -> None:
    shipped = load_phsafe_config(name)
    assert Fraction(total) == sum(shipped.budgets.values())
    assert shipped.warnings == ()
    production = load_phsafe_config(shared_data("bureau/phsafe/production") / folder)
    assert production.settings == shipped.settings
    assert production.digest == shipped.digest


@pytest.mark.parametrize("name", ["config_zcdp", "config_puredp", "config_zcdp_cef", "config_puredp_cef"])
def test_the_bureaus_toy_configurations_are_read_unchanged(name: str) -> None:
    config = load_phsafe_config(shared_data("bureau/phsafe/toy") / f"{name}.json")
    assert config.warnings == ()
    assert ("puredp" if "pure" in name else "zcdp") == config.definition.value
    assert ("cef" if name.endswith("cef") else "csv") == config.reader


def test_puerto_rico_with_a_nation_warns(write: Callable[[Any], Path]) -> None:
    (warning,) = load_phsafe_config(write({**bureau(), "state_filter": ["72"]})).warnings
    assert "the nation of 23 nation levels" in warning
    assert "would be Puerto Rico; set their budgets to 0" in warning


def test_overrides_are_applied_and_recorded() -> None:
    overrides = {
        "reader": "csv", "sensitivity": "household-local", "tau.PH3": "4", "privacy_budget.PH3.state_A-G": "0.5",
        "budget.PH3.state_H,I": "1/3", "budget.PH6": "0", "state_filter": "50, 44", "privacy_defn": "puredp",
    }  # fmt: skip
    config = load_phsafe_config("sdhc-us", overrides)
    assert overrides == config.overrides
    assert (config.reader, config.sensitivity, config.states) == ("csv", "household-local", ("44", "50"))
    assert Definition.PURE is config.definition
    assert (config.tau["PH3"], config.tau["PH7"]) == (4, 10)
    assert Fraction(1, 2) == config.budgets["PH3", "state_A-G"]
    assert Fraction(1, 3) == config.budgets["PH3", "state_H,I"]
    assert 0 == config.budgets["PH6", "usa_*"] == config.budgets["PH6", "state_*"]
    assert load_phsafe_config("sdhc-us").digest != config.digest
    assert {3} == set(load_phsafe_config("sdhc-us", {"tau": "3"}).tau.values())


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("raeder", "csv", "there is no key 'raeder'. Did you mean 'reader'?"),
        ("reader", "spark", "reader: 'spark' is not allowed"),
        ("reader.csv", "1", "reader has no keys below it"),
        ("tau.PH3", "0", "tau.PH3: 0 is too small"),
        ("tau.PH3", "many", "tau.PH3: 'many' is not an integer"),
        ("tau.PH3.usa_*", "1", "tau has one number a table"),
        ("tau.PH99", "1", "tau: extra table 'PH99'"),
        ("budget.PH3.usa_*", "-1", "budget.PH3.usa_*: -1 is negative"),
        ("budget.PH3.usa_*", "nan", "budget.PH3.usa_*: nan"),
        ("budget.PH3.usa_*", "Infinity", "budget.PH3.usa_*: Infinity means no noise"),
        ("budget.PH3.usa_*.x", "1", "one number a table and level"),
        ("states", "", "states: the list is empty"),
    ],
)
def test_a_wrong_override_is_an_error(key: str, value: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_phsafe_config("sdhc-us", {key: value})
    assert message in str(caught.value)


def test_infinite_budgets_only_without_noise(write: Callable[[Any], Path]) -> None:
    document = bureau()
    document["privacy_budget"]["PH3"]["usa_*"] = float("inf")
    config = load_phsafe_config(write(document), allow_infinite=True)
    assert INFINITE is config.budgets["PH3", "usa_*"]
    assert Fraction(1, 10) == config.budgets["PH3", "state_*"]
    assert config.settings["budget.PH3.usa_*"] == "Infinity"


def test_the_private_path_of_the_truth_needs_states_reader_and_tau(write: Callable[[Any], Path]) -> None:
    path = write({key: bureau()[key] for key in ("state_filter", "reader", "tau")})
    config = load_phsafe_config(path, allow_infinite=True)
    assert {INFINITE} == set(config.budgets.values())
    assert len(config.budgets) == 46
    with pytest.raises(ConfigError, match="tau: this key is missing"):
        load_phsafe_config(write({"state_filter": ["01"], "reader": "csv"}), allow_infinite=True)


def test_the_truth_needs_states_and_reader_alone(write: Callable[[Any], Path]) -> None:
    config = load_truth_config(write({"state_filter": ["44", "01"], "reader": "csv"}), {"reader": "cef"})
    assert (config.states, config.reader, config.overrides) == (("01", "44"), "cef", {"reader": "cef"})
    with pytest.raises(ConfigError, match=r"(?s)2 problems.*state_filter: this key.*reader: this key"):
        load_truth_config(write({}))


def test_golden_configurations_are_enough_for_the_truth() -> None:
    for case in sorted(shared_data("bureau/phsafe/golden").iterdir()):
        assert load_truth_config(case).reader == "csv"


def test_sources_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no shipped configuration of that name .* Did you mean 'sdhc-us'"):
        load_phsafe_config("sdhc-su")
    with pytest.raises(ConfigError, match=r"has no config.json"):
        load_phsafe_config(tmp_path)
    (tmp_path / "config_zcdp.json").write_text("{}", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"it holds config_zcdp.json: name the file"):
        load_phsafe_config(tmp_path)
    (tmp_path / "config.yaml").write_text("{}", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"ends in .json"):
        load_phsafe_config(tmp_path / "config.yaml")


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"reader": "csv", "reader": "cef"}'])
def test_a_file_that_is_no_configuration(text: str, tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"config.json"):
        load_phsafe_config(path)


def test_a_table_that_is_not_named_has_budget_0_and_this_is_said(tmp_path: Path) -> None:
    config = bureau()
    del config["privacy_budget"]["PH3"], config["tau"]["PH3"]
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config), encoding="utf-8")
    found = load_phsafe_config(path)
    assert {budget for (table, _), budget in found.budgets.items() if table == "PH3"} == {0}
    assert any("does not name PH3: budget 0, not measured" in warning for warning in found.warnings)
    assert found.tau.get("PH3") is None
