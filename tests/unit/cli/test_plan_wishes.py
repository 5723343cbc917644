"""``censafe plan`` with targets, totals, expected errors, meaning and a workbook."""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from click.testing import CliRunner, Result

from censafe.cli.plan import command as plan
from censafe.errors import UsageError
from censafe.planning.prices import meaning
from censafe.privacy.loss.loss_law import composed_epsilon, loss_of
from censafe.products.topdown.configuration.config import load_config
from censafe.products.topdown.plan import one_change_loss, plan_release, rows_loss
from censafe.products.topdown.readings import record_questions


def run(*arguments: str) -> Result:
    return CliRunner().invoke(plan, list(arguments), catch_exceptions=False)


def document(*arguments: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run(*arguments, "--json").stdout)
    return found


def test_a_target_buys_its_budget_and_says_what_it_costs() -> None:
    result = run("phsafe", "sdhc-us", "--target", "PH3/state_A-G=20@90%", "--target", "PH8_num/usa_*=400")
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
        "topdown",
        "pl94-us",
        "--expected",
        "persons.votingage/County",
        "--expected",
        "persons.hhgq * cenrace/Tract",
    )["expected"]
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
    words = run("topdown", "e2e-1940", "--meaning").stdout
    assert "One person: one person's record is replaced by another one, in the same housing unit" in words
    assert "finds it at most 1.29 times in 100" in words
    words = run("safetab-h", "ddhcb", "--set", "run_us=false", "--meaning", "--delta", "1e-6").stdout
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
    result = run("safetab-h", "ddhcb", "--set", "run_pr=false", "--xlsx", str(path), "--csv")
    assert f"Wrote {path}: 4 sheets" in result.stderr
    assert openpyxl.load_workbook(path).sheetnames == ["safetab-h", "phsafe", "safetab-p", "topdown"]


def test_options_that_contradict_each_other_are_wrong_usage() -> None:
    both = ("--minimize", "rho", "--maximize", "accuracy", "--total", "1", "--target", "PH3=20")
    with pytest.raises(UsageError, match="choose one of them"):
        run("phsafe", "sdhc-us", *both)
    assert run("phsafe", "sdhc-us", "--maximize", "accuracy", "--total", "much").exit_code == 2


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
