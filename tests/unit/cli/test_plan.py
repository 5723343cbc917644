"""``censafe plan`` and ``censafe configs`` from the outside."""

import csv
import io
import json
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from censafe.cli.configs import command as configs
from censafe.cli.plan import command as plan
from censafe.errors import ConfigError, UsageError
from censafe.products.configuration.source import get_shipped

NAMES = [
    "sdhc-pr", "sdhc-us", "ddhca", "ddhcb", "blocks-16", "dhc-pr", "dhc-us", "e2e-1940", "pl94-pr", "pl94-tracts",
    "pl94-us",
]  # fmt: skip


def run(*arguments: str, product: str = "phsafe") -> Result:
    return CliRunner().invoke(plan, [product, *arguments], catch_exceptions=False)


def test_the_table_says_what_the_budget_buys() -> None:
    result = run("sdhc-us")
    assert result.exit_code == 0
    for part in ("0.662976", "1.325952", "147.82", "1.257281", "2.514562", "12.0184", "11.4124"):
        assert part in result.stdout
    assert "…" not in result.stdout


@pytest.mark.parametrize(
    "settings",
    [
        "privacy_definition=puredp sensitivity=household-local-bounded",
        "budget=1/7 sensitivity=household-local-bounded",
        "budget=0.00000000001",
    ],
)
def test_no_number_is_cut_off(settings: str) -> None:
    changes = [word for setting in settings.split() for word in ("--set", setting)]
    assert "…" not in run("sdhc-us", *changes).stdout


def test_json_holds_totals_and_rows() -> None:
    document = json.loads(run("sdhc-us", "--json", "--set", "sensitivity=household-local").stdout)
    assert document["totals"] == {"add_remove": {"rho": "1.257281"}, "replace": {"rho": "5.029124"}}
    assert len(document["rows"]) == 64
    assert document["settings"]["sensitivity"] == "household-local"


def test_csv_has_one_line_a_row() -> None:
    lines = list(csv.DictReader(io.StringIO(run("sdhc-pr", "--csv", "--confidence", "0.95").stdout)))
    assert len(lines) == 32
    assert {"0.95"} == {line["confidence"] for line in lines}


def test_paper_prints_the_papers_table() -> None:
    lines = run("sdhc-us", "--paper").stdout.splitlines()
    assert lines[0] == "table,tau,population_group_level,moe_target_90,rho_unbounded,rho_bounded"
    assert 'PH3,6,"State, A-G",20,0.662976,1.325952' in lines
    assert len(lines) == 47


def test_warnings_go_to_standard_error() -> None:
    result = run("sdhc-us", "--set", "states=72", "--csv")
    assert "Warning: shipped configuration sdhc-us: states is 72 alone" in result.stderr
    assert "Warning" not in result.stdout


def test_a_margin_buys_its_budget() -> None:
    document = json.loads(run("sdhc-us", "--moe", "PH3.state_A-G=30", "--moe", "PH6=150", "--json").stdout)
    rows = {(row["table"], row["level"]): row for row in document["rows"]}
    assert 29.99 < rows["PH3", "state_A-G"]["moe"] <= 30
    assert 149.99 < rows["PH6", "usa_*"]["moe"] == rows["PH6", "state_*"]["moe"] <= 150
    assert rows["PH3", "usa_*"]["rho_add_remove"] == "0.001061"
    assert run("sdhc-us", "--moe", "PH3").exit_code == 2


@pytest.mark.parametrize("option", ["--confidence", "--delta"])
def test_a_level_outside_its_range_is_wrong_usage(option: str) -> None:
    with pytest.raises(UsageError, match="must be above 0 and below 1"):
        run("sdhc-us", option, "1")


def test_errors_are_ours() -> None:
    with pytest.raises(ConfigError, match=r"tau.PH3: 0 is too small"):
        run("sdhc-us", "--set", "tau.PH3=0")


def test_configs_are_listed_shown_and_read_back(tmp_path: Path) -> None:
    runner = CliRunner()
    listed = runner.invoke(configs, []).stdout
    assert listed == runner.invoke(configs, ["list"]).stdout
    header, *rows, hint = listed.splitlines()
    assert header.split()[:2] == ["name", "product"]
    assert "configs show NAME" in hint
    assert [row.split()[0] for row in rows] == NAMES
    standing = {row.split()[0]: row.split()[2] for row in rows}
    assert {"blocks-16", "e2e-1940", "pl94-tracts"} == {name for name in NAMES if standing[name] == "no"}
    assert {"yes", "no"} == set(standing.values())
    assert set(NAMES) == {
        item["name"] for item in json.loads(runner.invoke(configs, ["list", "--json"]).stdout)
    }
    shown = runner.invoke(configs, ["show", "sdhc-us"]).stdout
    assert shown.startswith("# 2020 production: Budgets, thresholds and levels of the 2020 production run.\n")
    assert get_shipped("sdhc-us").text.rstrip() in shown
    assert "# Table PH5_num: " in shown
    (tmp_path / "mine.toml").write_text(shown, encoding="utf-8")
    assert (
        json.loads(run("sdhc-us", "--json").stdout)["plan"]
        == json.loads(run(str(tmp_path / "mine.toml"), "--json").stdout)["plan"]
    )


def test_a_shown_topdown_configuration_says_what_its_schema_queries_passes_and_constraints_are() -> None:
    runner = CliRunner()
    redistricting = runner.invoke(configs, ["show", "pl94-us"]).stdout
    assert tomllib.loads(redistricting) == tomllib.loads(get_shipped("pl94-us").text)
    for line in (
        "# Histogram persons: schema pl94-persons, 2,016 cells, of which 1,890 can hold records; a record is a person.",
        "#   attribute cenrace: 63 levels",
        "#   recode hhinstlevels of hhgq: 3 groups",
        "#     State, County, Tract, Block_Group, Block: total (1), cenrace (63)",
        "#     State, County, Tract, Block_Group: 1. total then cenrace + hispanic",
        "#   exact: totals of State and all levels above it",
    ):
        assert line in redistricting
    dhc = runner.invoke(configs, ["show", "dhc-us"]).stdout
    assert "of persons in the published redistricting" in dhc
    assert "#   constraint owned: hhtenshort_3lev = tenure_3lev of units, estimated together" in dhc
    assert runner.invoke(configs, ["show", "blocks-16"]).stdout.startswith("# Not the 2020 production: ")


def test_safetab_plans_name_groups_suppression_and_shares() -> None:
    result = run("ddhca", product="safetab-p")
    for part in (
        "published",
        "2,150",
        "2.10872",
        "31.4465",
        "95%",
        "15.174",
        "rho 4.944 for United States",
        "94",
    ):
        assert part in result.stdout
    assert "T01001" not in result.stdout
    assert "…" not in result.stdout


def test_safetab_json_and_csv_hold_sums_of_cells_too() -> None:
    document = json.loads(run("ddhcb", "--json", "--set", "run_pr=false", product="safetab-h").stdout)
    assert document["totals"]["add_remove"] == {"rho": "8.895302"}
    assert document["confidence"] == "0.95"
    assert document["notes"]
    rows = {(row["level"], row["table"], *row["cells"]): row for row in document["rows"]}
    total = rows["usa_2", "T03004", "0"]
    assert (total["draws"], total["stability"], total["rho_add_remove"], total["answers"]) == (
        5,
        9,
        "0",
        None,
    )
    lines = list(csv.DictReader(io.StringIO(run("ddhca", "--csv", product="safetab-p").stdout)))
    found = {line["published_from"] for line in lines if line["table"] == "stage2"}
    assert found == {"", "22", "94"}


def test_safetab_margins_and_paper() -> None:
    options = ("--moe", "t3.county_2=15", "--csv")
    lines = list(csv.DictReader(io.StringIO(run("ddhcb", *options, product="safetab-h").stdout)))
    moe = {(line["level"], line["table"]): float(line["moe"]) for line in lines if line["draws"] == "1"}
    assert 14.99 < moe["county_2", "t3"] <= 15
    assert 10.9 < moe["county_2", "t4"] <= 11.01
    paper = run("ddhcb", "--paper", product="safetab-h").stdout.splitlines()
    assert '"County, Detailed",11,0.14,0.14,0.28,0.28' in paper
    with pytest.raises(ConfigError, match="no moe_target is stored"):
        run("ddhca", "--paper", product="safetab-p")


def test_a_configuration_of_another_product_is_not_found() -> None:
    with pytest.raises(ConfigError, match=r"no shipped configuration of that name \(ddhcb\)"):
        run("ddhca", product="safetab-h")


def test_topdown_plans_show_shares_and_what_the_loss_means() -> None:
    result = run("pl94-us", "--set", "spine=standard", product="topdown")
    for part in (
        "persons.hispanic * cenrace",
        "2,016",
        "78.423%",
        "2.63117",
        "14.3436 (tight bound)",
        "By rows of one histogram, the Bureau's statement: rho 2.63117",
        "Tract 9.38",
    ):
        assert part in result.stdout
    assert "unbounded" not in result.stdout
    assert "…" not in result.stdout
    left_to_the_data = run("pl94-us", product="topdown").stdout
    assert (
        "optimized, that of the 2020 production, where the input gives block attributes" in left_to_the_data
    )
    assert "Block_Group 16.89" in left_to_the_data  # what may be known of the block on that spine
    half = json.loads(run("e2e-1940", "--set", "epsilon=1/2", "--json", product="topdown").stdout)
    assert half["totals"] == {"replace": {"epsilon": "0.5"}}
    assert half["rows"][0]["parameter_exact"] == "160"


def test_topdown_lists_its_shares_and_refuses_margins() -> None:
    lines = list(csv.DictReader(io.StringIO(run("pl94-pr", "--csv", product="topdown").stdout)))
    assert tuple(lines[-1][key] for key in ("histogram", "level", "cells")) == ("units", "Block", "2")
    paper = run("pl94-pr", "--paper", product="topdown").stdout.splitlines()
    assert paper[0] == "histogram,level,level_share,query,cells,query_share,loss"
    assert len(lines) == len(paper) - 1 == 59
    with pytest.raises(ConfigError, match="share of one total"):
        run("pl94-pr", "--moe", "persons.State=3", product="topdown")


def test_safetab_says_how_many_numbers_there_can_be_at_most() -> None:
    document = json.loads(run("ddhca", "--json", product="safetab-p").stdout)
    most = {
        (row["table"], row["level"]): row["groups_at_most"] for row in document["rows"] if row["draws"] == 1
    }
    assert (
        most["stage2", "tract_2"],
        most["detailed_only", "usa_2"],
        most["stage1", "tract_2"],
    ) == (84_414 * 2150, 794, None)
    answers = {(row["table"], row["level"]): row["answers_at_most"] for row in document["rows"]}
    assert answers["stage2", "tract_2"] == 49 * 84_414 * 2150
    assert document["answers"] is None
    assert document["answers_at_most"] == sum(value for value in answers.values() if value)
    assert any("at most 0.01% are published" in note for note in document["notes"])
    households = json.loads(run("ddhcb", "--json", "--set", "run_pr=false", product="safetab-h").stdout)
    assert any("groups with a total in the input" in note for note in households["notes"])
    assert "answers" in run("ddhcb", product="safetab-h").stdout


@pytest.mark.parametrize(
    ("options", "basis"),
    [
        (("topdown", "pl94-us"), "measured"),
        (("topdown", "pl94-us", "--size", "100000"), "interpolated"),
        (("topdown", "pl94-us", "--size", "20000000"), "extrapolated"),
        (("safetab-p", "ddhca"), "extrapolated"),
        (("phsafe", "sdhc-us", "--size", "1000"), "at most"),
    ],
)
def test_the_expected_time_says_what_it_rests_on(options: tuple[str, ...], basis: str) -> None:
    product, *rest = options
    effort = json.loads(run(*rest, "--json", product=product).stdout)["effort"]
    assert basis == effort["basis"]
    assert effort["measured_sizes"]
    assert basis.replace("measured", "measured at about this size") in run(*rest, product=product).stdout
