"""``censafe plan`` and ``censafe configs`` from the outside."""

import csv
import io
import json
import tomllib
from fractions import Fraction
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from click.testing import CliRunner, Result

import censafe
from censafe.cli.configs import command as configs
from censafe.cli.plan import command as plan
from censafe.errors import ConfigError, DataError, UsageError
from censafe.planning.prices import meaning
from censafe.planning.prices.extras import EstimatedTables
from censafe.privacy.loss.loss_law import composed_epsilon, loss_of
from censafe.products.configuration.source import get_shipped
from censafe.products.topdown.configuration.config import load_config
from censafe.products.topdown.plan import one_change_loss, plan_release, rows_loss, workloads
from censafe.products.topdown.planner import effort
from censafe.products.topdown.readings import record_questions
from support.commands import CommandLine
from support.shared import shared_data

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


# ``censafe plan`` with targets, totals, expected errors, meaning and a workbook.


def planned(*arguments: str) -> Result:
    return CliRunner().invoke(plan, list(arguments), catch_exceptions=False)


def document(*arguments: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(planned(*arguments, "--json").stdout)
    return found


def test_a_target_buys_its_budget_and_says_what_it_costs() -> None:
    result = planned("phsafe", "sdhc-us", "--target", "PH3/state_A-G=20@90%", "--target", "PH8_num/usa_*=400")
    assert "Target PH3/state_A-G: wanted 20 at 90%, reached 20.00, covers 90.83%" in result.stdout
    assert "--set 'budget.PH3.state_A-G=662977/1000000'" in result.stdout
    assert "Target PH8_num/usa_*: wanted 400 at 90%, reached 400.00;" in result.stdout
    assert "budget.PH7.usa_*" in result.stdout


def test_the_budgets_of_the_json_are_exact_and_give_the_same_plan() -> None:
    found = document("safetab-h", "ddhcb", "--set", "run_pr=false", "--target", "county_2=2.5@95%")
    budgets = found["targets"]["budgets"]
    assert set(budgets) == {"t3/county_2", "t4/county_2"}
    assert Fraction(budgets["t3/county_2"]["fraction"]) == Fraction(budgets["t3/county_2"]["decimal"])
    assert all(one["margin"] <= 2.5 and one["coverage_exact"] >= 0.95 for one in found["targets"]["targets"])
    settings = [
        word for key, value in found["targets"]["settings"].items() for word in ("--set", f"{key}={value}")
    ]
    repeated = document("safetab-h", "ddhcb", "--set", "run_pr=false", *settings)
    assert repeated["plan"] == found["plan"]
    rows = {(row["table"], row["level"]): row for row in repeated["rows"]}
    row = rows["t3", "county_2"]
    assert Fraction(row["rho_add_remove_fraction"]) == Fraction(budgets["t3/county_2"]["fraction"])


def test_a_total_is_shared_out_and_not_exceeded() -> None:
    found = document("phsafe", "sdhc-us", "--maximize", "accuracy", "--total", "2")
    total = Fraction(found["totals"]["add_remove"]["rho"])
    assert Fraction("1.9999") < total <= 2
    ratios = [one["margin"] / float(Fraction(one["margin_wanted"])) for one in found["targets"]["targets"]]
    assert (
        max(ratios) == pytest.approx(min(ratios), rel=1e-4) == pytest.approx((1.257281 / 2) ** 0.5, rel=1e-4)
    )


def test_queries_of_a_level_share_the_work_in_the_cheapest_plan() -> None:
    wanted = ("--target", "persons.votingage/County=20@95%", "--target", "persons.total/County=5")
    found = document("topdown", "pl94-us", "--minimize", "rho", *wanted)
    targets = found["targets"]
    assert all(one["margin"] <= float(one["margin_wanted"]) for one in targets["targets"])
    assert Fraction(targets["least_total"]) <= Fraction(targets["least_total_lower_bound"]) * Fraction(
        "1.0001"
    )
    own = document("topdown", "pl94-us", *wanted)["targets"]
    assert Fraction(targets["least_total"]) < Fraction(own["least_total"])
    assert all(one["shadow_price"] > 0 for one in own["targets"])


def test_expected_errors_of_queries_measured_or_not() -> None:
    found = document(
        "topdown", "pl94-us", "--expected", "persons.votingage/County", "--expected",
        "persons.hhgq * cenrace/Tract",
    )["expected"]  # fmt: skip
    assert [(one["kind"], round(one["sd"], 2)) for one in found[:2]] == [("own", 38.34), ("combined", 20.82)]
    assert {one["kind"] for one in found[2:]} == {"combined"}
    assert len(document("phsafe", "sdhc-us", "--expected", "PH3/usa_*")["expected"]) == 1


@pytest.mark.long
def test_a_plan_on_another_spine_has_its_own_reading_and_that_of_the_slides() -> None:
    found = document("topdown", "pl94-us", "--meaning", "--delta", "1e-10")["meaning"]
    losses = {one["question"]: round(one["rho_float"], 5) for one in found}
    changes = {one["question"]: one["change"] for one in found}
    own, slides = (
        f"Block within Block_Group, {name}" for name in ("one record of each histogram", "as printed")
    )
    assert (losses[own], losses[slides]) == (2.56595, 0.11195)
    assert "on the optimized spine two Blocks of one Block_Group may have no geounit below US" in changes[own]
    assert "on the standard spine, as in the slides of the Bureau" in changes[slides]
    assert [one for one in changes.values() if "slides" in one] == [changes[slides]]


def test_the_slides_table_of_attacks_is_found_in_the_plan() -> None:
    budgets = (
        "--set", "rho.persons=2.56", "--set", "rho.units=0.07", "--set", "measure=persons,units", "--set",
        "spine=standard",
    )  # fmt: skip
    found = document("topdown", "pl94-us", *budgets, "--meaning", "--delta", "1e-10")
    questions = {one["question"]: one for one in found["meaning"]}
    block = questions["Block within Block_Group, as printed"]
    assert block["rho_float"] == pytest.approx(0.1115007, abs=1e-7)
    powers = [[one[key] for one in block["attack"]] for key in ("power_gaussian", "power", "bound")]
    printed = [[0.03186, 0.12047, 0.20916], [0.03186, 0.12047, 0.20917], [0.0374, 0.1402, 0.2404]]
    for row, expected in zip(powers, printed, strict=True):
        assert row == pytest.approx(expected, abs=6e-6)
    household = questions["Block within Block_Group, a household"]
    assert household["cells"] == block["cells"] + 2  # the unit that is left and the one that is entered
    assert household["rho_float"] == pytest.approx(0.1030495 + 2 * 0.0084512, abs=1e-7)
    powers = [[one[key] for one in household["attack"]] for key in ("power_gaussian", "power", "bound")]
    corrected = [[0.03314, 0.12403, 0.21425], [0.03314, 0.12403, 0.21425], [0.0391, 0.1451, 0.2472]]
    for row, expected in zip(powers, corrected, strict=True):
        assert row == pytest.approx(expected, abs=6e-6)
    (whole,) = found["meaning"][1]["epsilon"]
    assert whole["slide"] == pytest.approx(18.1938, abs=1e-4)
    assert 16.72 < whole["composed_lower"] < whole["composed_upper"] < 16.75 < whole["tight"]
    assert 0.05 < whole["spare_variance_at_tight"] < whole["spare_variance_at_slide"] < 0.25


def test_the_meaning_is_said_in_words_and_under_pure_dp_too() -> None:
    words = planned("topdown", "e2e-1940", "--meaning").stdout
    assert "One person: one person's record is replaced by another one, in the same housing unit" in words
    assert "finds it at most 1.29 times in 100" in words
    words = planned("safetab-h", "ddhcb", "--set", "run_us=false", "--meaning", "--delta", "1e-6").stdout
    assert "One household's record of Puerto Rico, all tables" in words
    assert "less variance would still keep the tight epsilon" in words


def test_time_memory_and_answers_follow_the_size() -> None:
    small, nation = (document("topdown", "pl94-us", *more)["effort"] for more in (("--size", "20000"), ()))
    assert nation["size"] == 8_132_968
    assert sum(nation["answers"].values()) == pytest.approx(2.2e10, rel=0.01)
    assert small["seconds"] < nation["seconds"]
    assert small["answers"]["persons_Block"] == 20000 * 2603
    assert "effort" not in document("topdown", "e2e-1940")


def test_further_deltas_are_converted() -> None:
    found = document("phsafe", "sdhc-us", "--delta", "1e-10", "--delta", "1e-5")["epsilons_at_other_deltas"]
    assert [(one["neighbors"], one["delta"]) for one in found] == [
        ("add_remove", "0.00001"),
        ("replace", "0.00001"),
    ]


def test_a_workbook_has_a_sheet_for_every_product_with_the_plan_first(tmp_path: Path) -> None:
    path = tmp_path / "plan.xlsx"
    result = planned("safetab-h", "ddhcb", "--set", "run_pr=false", "--xlsx", str(path), "--csv")
    assert f"Wrote {path}: 4 sheets" in result.stderr
    assert openpyxl.load_workbook(path).sheetnames == ["safetab-h", "phsafe", "safetab-p", "topdown"]


def test_options_that_contradict_each_other_are_wrong_usage() -> None:
    both = ("--minimize", "rho", "--maximize", "accuracy", "--total", "1", "--target", "PH3=20")
    with pytest.raises(UsageError, match="choose one of them"):
        planned("phsafe", "sdhc-us", *both)
    assert planned("phsafe", "sdhc-us", "--maximize", "accuracy", "--total", "much").exit_code == 2


def test_a_question_of_the_dhc_has_the_noise_of_its_redistricting_data_as_well() -> None:
    config = load_config("dhc-us", {"measure": "persons"})
    questions = {one.name: one for one in record_questions(config)}
    own, both = questions["one row of each histogram"], questions["one row of each histogram, with pl94-us"]
    earlier = record_questions(load_config("pl94-us"))[1]
    assert loss_of(both.queries) == loss_of(own.queries) + loss_of(earlier.queries)
    delta = Fraction(1, 10**10)
    alone, row = composed_epsilon(own.queries, delta), composed_epsilon(both.queries, delta)
    assert alone.upper < row.lower <= row.upper


def test_the_meaning_of_the_dhc_is_stated_with_its_redistricting_data(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every question with its own loss, none left out on the way to the page; nothing is composed, which takes a minute."""
    monkeypatch.setattr(meaning, "meaning_of", lambda question, deltas: meaning.Meaning(question, (), (), ()))
    found = {one["question"]: one for one in document("topdown", "dhc-us", "--meaning")["meaning"]}
    questions = record_questions(load_config("dhc-us"))
    stated = [(name, Fraction(one["rho"])) for name, one in found.items()]
    assert stated == [(one.name, one.loss) for one in questions]
    assert all(loss_of(one.queries) == one.loss for one in questions)  # what is composed is what is stated
    own, earlier = (plan_release(load_config(name)) for name in ("dhc-us", "pl94-us"))
    place, rows = (
        found[f"Block within Block_Group, {name}"] for name in ("one person", "all histograms by rows")
    )
    assert Fraction(place["rho"]) > Fraction(
        rows["rho"]
    )  # both households are of another type in the same answers
    together = found["one row of each histogram, with pl94-us"]
    assert Fraction(found["one person"]["rho"]) == one_change_loss(own)
    assert Fraction(found["one row of each histogram"]["rho"]) == rows_loss(own)
    assert Fraction(together["rho"]) == rows_loss(own) + rows_loss(earlier)
    assert together["cells"] == 2 * sum(len(part.queries) for part in (*own.parts, *earlier.parts))


@pytest.mark.long
def test_the_noise_of_the_dhc_and_its_redistricting_data_is_composed_together() -> None:
    found = document("topdown", "dhc-us", "--set", "measure=persons", "--meaning", "--delta", "1e-10")[
        "meaning"
    ]
    questions = {one["question"]: one for one in found}
    own, both = questions["one row of each histogram"], questions["one row of each histogram, with pl94-us"]
    earlier = document("topdown", "pl94-us", "--meaning", "--delta", "1e-10")["meaning"][1]
    assert Fraction(both["rho"]) == Fraction(own["rho"]) + Fraction(earlier["rho"])
    assert both["cells"] == own["cells"] + earlier["cells"]
    (row,), (alone,) = both["epsilon"], own["epsilon"]
    assert alone["composed_upper"] < row["composed_lower"] <= row["composed_upper"] < row["tight"]
    assert "pl94-us" not in json.dumps(earlier)


# Bad input of ``plan``: a clear message in the terminal, and nothing lost of what was there.


BAD = {
    "margin 0": (("phsafe", "sdhc-us", "--target", "PH3=0"), "has no budget; give one above 0"),
    "margin below 0": (("phsafe", "sdhc-us", "--moe", "PH3=-5"), "has no budget; give one above 0"),
    "margin nil": (("phsafe", "sdhc-us", "--target", "PH3=1e-140"), "out of reach; give one from 0.000001"),
    "margin out of range": (("phsafe", "sdhc-us", "--target", "PH3=1e-400"), "magnitudes from 1e-150 to 1e150"),
    "margin of 0 by rule": (("phsafe", "sdhc-us", "--moe", "PH3=1e-400"), "magnitudes from 1e-150 to 1e150"),
    "budget out of range": (("phsafe", "sdhc-us", "--set", "budget.PH3.usa_*=1e-400"), "magnitudes from 1e-150 to 1e150"),
    "margin nil by rule": (("phsafe", "sdhc-us", "--moe", "PH3=1e-99"), "out of reach; give one from 0.000001"),
    "no margin": (("phsafe", "sdhc-us", "--moe", "PH3=abc"), "--moe PH3=abc: 'abc' is not a number"),
    "no target": (("phsafe", "sdhc-us", "--target", "PH3=five"), "'five' is not a number"),
    "table": (("phsafe", "sdhc-us", "--target", "PH9=5"), "there is no table 'PH9'"),
    "level": (("safetab-h", "ddhcb", "--moe", "t3.county_9=5"), "Did you mean 't3.county_2'?"),
    "query": (("topdown", "pl94-us", "--target", "persons.nosuch/County=5"), "neither an attribute"),
    "not measured": (("topdown", "pl94-us", "--target", "persons.votingage * hhgq/County=5"), "is not measured at County"),
    "level of a target": (("phsafe", "sdhc-us", "--target", "PH3/county=20"), "PH3 has no level 'county'"),
    "level of SafeTab": (("safetab-h", "ddhcb", "--target", "village_1=20"), "no level 'village_1'"),
    "not measured at the root": (("topdown", "pl94-us", "--target", "persons.total/US=20"), "is not measured at US"),
    "total below 0": (("phsafe", "sdhc-us", "--maximize", "accuracy", "--total", "-1"), "give a budget above 0"),
    "total missing": (("phsafe", "sdhc-us", "--maximize", "accuracy"), "needs --total"),
    "total alone": (("phsafe", "sdhc-us", "--target", "PH3=20", "--total", "1"), "--total is the budget for"),
    "no targets": (("phsafe", "sdhc-us", "--minimize", "rho"), "at least one"),
    "pure DP": (("phsafe", "sdhc-us", "--set", "privacy_definition=puredp", "--target", "PH3=20"), "zcdp only"),
    "pure DP of SafeTab": (("safetab-p", "ddhca", "--set", "privacy_definition=puredp", "--target", "usa_1=20"), "zcdp only"),
    "impossible": (("phsafe", "sdhc-us", "--target", "PH3=20@99.99999999999999999999%"), "closer to 1 than margins"),
    "total too small": (
        ("phsafe", "sdhc-us", "--maximize", "accuracy", "--total", "0.1", "--target", "PH6=150"),
        "is spent on what no target is about",
    ),
    "no total": (("phsafe", "sdhc-us", "--maximize", "accuracy", "--total", "x"), "'x' is not a number"),
    "total nil": (("phsafe", "sdhc-us", "--maximize", "accuracy", "--total", "1e-140"), "--total is out of reach"),
    "budget": (("phsafe", "sdhc-us", "--set", "budget.PH3.usa_*=abc"), "budget.PH3.usa_*: 'abc' is not a number"),
    "comma": (("safetab-p", "ddhca", "--set", "budget.usa_1=1,5"), "budget.usa_1: '1,5' is not a number"),
    "budget endless": (("phsafe", "sdhc-us", "--set", "budget.PH3.usa_*=1e100"), "noise would be all zeros"),
    "budget beyond reports": (("phsafe", "sdhc-us", "--set", "budget.PH3.usa_*=1e300"), "magnitudes from 1e-150 to 1e150"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_explained_and_the_workbook_stays(
    case: str, tmp_path: Path, censafe: CommandLine
) -> None:
    arguments, message = BAD[case]
    book = tmp_path / "b.xlsx"
    book.write_text("before", encoding="utf-8")
    outcome = censafe("plan", *arguments, "--xlsx", book)
    assert outcome.code != 0
    assert (outcome.out, True) == ("", message in outcome.err)
    assert book.read_text(encoding="utf-8") == "before"


def test_the_papers_table_and_a_workbook_go_together(tmp_path: Path, censafe: CommandLine) -> None:
    book = tmp_path / "b.xlsx"
    text = censafe("plan", "phsafe", "sdhc-us", "--paper", "--xlsx", book).out
    published = shared_data("bureau/paper_tables/phsafe_table10.csv").read_text(encoding="utf-8")
    assert len(list(csv.reader(io.StringIO(published)))) == len(list(csv.reader(io.StringIO(text))))
    assert "phsafe" in openpyxl.load_workbook(book, read_only=True).sheetnames


# What ``plan`` says of the time, memory and answers of the DHC, beside a run of it.


SETTINGS = {"root": "State", "measure": "persons"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Records and a small run of them."""
    folder = tmp_path_factory.mktemp("dhc-effort")
    censafe.synthesize(folder / "data", persons=6_000, states=["50"], layout="dhc")
    chosen = censafe.configuration("topdown", "dhc-us", **SETTINGS)
    censafe.release(chosen, folder / "data", folder / "out", test_key=1)
    return folder


@pytest.fixture(scope="module")
def results(folder: Path) -> dict[str, Any]:
    """What a small run says of its post-processing."""
    manifest = json.loads((folder / "out" / "manifest.json").read_text(encoding="utf-8"))
    return manifest["post_processing"]


@pytest.fixture(scope="module")
def levels(results: dict[str, Any]) -> list[dict[str, int]]:
    """Every level of persons with its geounits and the answers that were drawn."""
    return results["levels_persons"]


@pytest.mark.long
def test_stored_answers_are_those_of_every_geounit(levels: list[dict[str, int]]) -> None:
    config = load_config("dhc-us", SETTINGS)
    blocks = levels[-1]["geounits"]
    planned = effort(config, blocks)
    assert planned is not None
    (of_geounit,) = {load.answers for load in workloads(config)}
    assert of_geounit == 1_903_289
    assert planned.answers["persons_Block"] == blocks * of_geounit
    assert planned.stored_gib == 8 * sum(planned.answers.values()) / 2**30
    whole = sum(level["geounits"] for level in levels) * of_geounit
    assert (
        2 / 3 < sum(planned.answers.values()) / whole < 3 / 2
    )  # levels between are in proportion to those of larger states


def test_drawn_answers_are_of_the_stated_size(levels: list[dict[str, int]]) -> None:
    drawn = sum(level["answers_drawn"] for level in levels)
    both = effort(load_config("dhc-us", {"root": "State"}), levels[-1]["geounits"])
    assert both is not None
    assert both.drawn is not None
    assert 0.2 < drawn / both.drawn < 5  # persons alone, of a small state
    assert drawn < sum(both.answers.values()) / 100


def test_linear_estimates_read_no_more_answers_than_planned(
    results: dict[str, Any], levels: list[dict[str, int]]
) -> None:
    """Of the geounits above the block groups, and none that is the only child of its parent."""
    read = results["table_estimates"]["answers"]
    planned = effort(load_config("dhc-us", SETTINGS), levels[-1]["geounits"])
    assert planned is not None
    assert planned.linear is not None
    assert planned.linear.tables == ("P1", "P5", "P12")
    assert planned.linear.below == 1_903_289
    whole = sum(level["geounits"] for level in levels[:-2]) * planned.linear.below
    assert 0 < sum(read.values()) <= whole
    assert planned.linear.answers["persons_State"] == 1_903_289
    assert (
        1_903_289 / 4 < read["persons_State"] < 1_364_757
    )  # those that can hold anyone, less absent kinds of group quarters
    assert results["table_estimates"]["geounits"]["persons_State"] == 1
    assert set(planned.linear.answers) == {
        f"persons_{level}" for level in ("State", "County", "Prim", "Tract_Subset_Group", "Tract_Subset")
    }
    assert round(planned.linear.seconds, 3) == 0.072  # 4.2 ns an answer, 9 geounits


def test_with_the_data_exactly_what_a_run_draws_is_planned(folder: Path, results: dict[str, Any]) -> None:
    chosen = censafe.configuration("topdown", "dhc-us", **SETTINGS)
    done = results["table_estimates"]
    effort = json.loads(censafe.plan(chosen, data=folder / "data").to_json())["effort"]
    planned = effort["linear_estimates"]
    assert planned["from_data"]
    assert planned["answers"] == done["answers"]
    assert planned["answers_drawn"] == sum(done["answers"].values())
    assert planned["geounits"] == sum(done["geounits"].values())
    assert planned["estimates"] == done["rows"]
    assert planned["left_out"] == done.get("left_out", {})
    assert effort["size"] == results["levels_persons"][-1]["geounits"]
    written = (folder / "out" / "table_estimates.parquet").stat().st_size
    assert 0.8 < planned["file_bytes"] / written < 1.2


def test_other_tables_and_areas_are_planned_without_data() -> None:
    config = load_config("dhc-us")
    usual, named = effort(config, 1_000_000), effort(config, 1_000_000, EstimatedTables(("P12",)))
    assert usual is not None
    assert usual.linear is not None
    assert named is not None
    assert named.linear is not None
    assert named.linear.tables == ("P12",)
    assert set(named.linear.answers) == {name for name in usual.linear.answers if name.startswith("persons")}
    assert named.linear.drawn == 1_903_289 * named.linear.geounits
    assert named.linear.estimates == 49 * sum(round(n * 1_000_000 / 8_132_968) for n in (51, 3_143))
    none = effort(config, 1_000_000, EstimatedTables(("none",)))
    assert none is not None
    assert none.linear is None


def test_a_list_adds_the_block_groups_and_blocks_that_it_divides(tmp_path: Path) -> None:
    listed = tmp_path / "districts.csv"
    groups = ["440010001011", "440010001012", "440010001013"]
    rows = [
        f"{group}{block:04d},{group[-1] if block < 3 or group == groups[0] else 9}"
        for group in groups
        for block in range(5)
    ]
    listed.write_text("geocode,district\n" + "\n".join(rows) + "\n", encoding="utf-8")
    config = load_config("dhc-us", SETTINGS)
    without, planned = effort(config, 10_000), effort(config, 10_000, EstimatedTables(areas=listed))
    assert without is not None
    assert without.linear is not None
    assert planned is not None
    assert planned.linear is not None
    assert planned.linear.lower_geounits == 2 + 10
    assert planned.linear.drawn - without.linear.drawn == 12 * 1_903_289
    cells = without.linear.estimates // sum(max(1, round(n * 10_000 / 8_132_968)) for n in (51, 3_143))
    assert planned.linear.estimates - without.linear.estimates == 4 * cells  # districts 1, 2, 3 and 9


def test_what_cannot_be_planned_is_refused(tmp_path: Path) -> None:
    chosen = censafe.configuration("topdown", "dhc-us", **SETTINGS)
    with pytest.raises(UsageError, match=r"from State has is not known; fix: give the data, or `size`"):
        censafe.plan(chosen, tables=["P12"])
    with pytest.raises(ConfigError, match="P99"):
        censafe.plan(chosen, tables=["P99"], size=100)
    with pytest.raises(UsageError, match="phsafe publishes its tables as they are measured"):
        censafe.plan(censafe.configuration("phsafe", "sdhc-us"), tables=["PH3"])
    with pytest.raises(DataError, match=str(tmp_path)):
        censafe.plan(chosen, data=tmp_path)


def test_linear_estimates_of_other_runs_are_not_planned() -> None:
    for name, settings in (("pl94-us", {}), ("dhc-us", {"noisy_measurements": "stored"})):
        planned = effort(load_config(name, settings), None)
        assert planned is not None
        assert planned.linear is None


def test_the_nation_has_a_time_and_a_memory() -> None:
    nation = effort(load_config("dhc-us"), None)
    assert nation is not None
    assert nation.size == 8_132_968
    assert sum(nation.answers.values()) > 2.3e13  # noisy answers of the production, as published
    assert effort(load_config("e2e-1940"), None) is None
