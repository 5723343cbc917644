"""Edits of the explorer page: both ways, switches, settings, bad input, undo, links and saved files."""

import json
from fractions import Fraction
from pathlib import Path
from xml.etree import ElementTree

import pytest
from playwright.sync_api import Browser

from censafe.model.bounds import upper
from censafe.products.configuration.source import get_shipped, shipped_configs
from censafe.products.detailed.config import load_h_config, load_p_config
from censafe.products.phsafe.config import load_phsafe_config as load_phsafe
from censafe.products.phsafe.planner import budgets_for_margins
from censafe.products.registry import product_of
from censafe.products.topdown.configuration.config import load_config as load_topdown
from censafe.products.topdown.plan import plan_release
from support.browser import ExplorerPage
from support.sampling import sampled
from support.shared import shared_data

LOADERS = {
    "phsafe": load_phsafe,
    "safetab-p": load_p_config,
    "safetab-h": load_h_config,
    "topdown": load_topdown,
}
WIDE = "persons.County.votingage * hispanic"


def test_a_margin_gives_the_budget_and_the_budget_gives_the_margin(explorer: ExplorerPage) -> None:
    explorer.type("PH3.state_A-G", "margin", "30")
    asked = budgets_for_margins(load_phsafe("sdhc-us"), {"PH3.state_A-G": Fraction(30)})
    budget = asked["budget.PH3.state_A-G"]
    assert (budget, "30.00") == (
        explorer.value("PH3.state_A-G", "loss"),
        explorer.value("PH3.state_A-G", "margin"),
    )
    explorer.type("PH3.state_A-G", "loss", "0.662976")
    assert explorer.value("PH3.state_A-G", "margin") == "20.01"  # 20.00001, rounded up
    explorer.type("PH3.state_A-G", "loss", budget)
    assert explorer.value("PH3.state_A-G", "margin") == "30.00"


@pytest.mark.parametrize(
    ("link", "row"),
    [("ddhca", "county_2"), ("ddhcb", "t4.tract_1"), ("pl94-us", WIDE), ("e2e-1940", "persons.County.hhgq")],
)
def test_both_ways_agree_for_every_product(explorer: ExplorerPage, link: str, row: str) -> None:
    explorer.open(link)
    for margin in ("7", "45/2"):
        explorer.type(row, "margin", margin)
        budget, shown = explorer.rows()[row], explorer.value(row, "margin")
        assert f"{upper(float(Fraction(margin)), 2):.2f}" == shown
        assert Fraction(margin) * Fraction("0.99999") <= Fraction(budget["moe"]) <= Fraction(margin)
        text = explorer.value(row, "loss")
        explorer.type(row, "loss", "1/7")
        explorer.type(row, "loss", text)
        assert shown == explorer.value(row, "margin")


def test_budgets_change_while_the_user_types(explorer: ExplorerPage) -> None:
    explorer.field("PH2.usa_*", "margin").press("ControlOrMeta+a")
    for key, expected in (("4", "4.00"), ("0", "40.00"), ("0", "400.00")):
        explorer.field("PH2.usa_*", "margin").press(key)
        margin = Fraction(expected)
        asked = budgets_for_margins(load_phsafe("sdhc-us"), {"PH2.usa_*": margin})
        shown = Fraction(explorer.value("PH2.usa_*", "loss"))
        assert abs(Fraction(asked["budget.PH2.usa_*"]) / shown - 1) < Fraction(1, 10**4)


BAD = ("0", "-3", "abc", "", "1,5", "1/0", "1e99", "0x10", "NaN", "Infinity", "1/2/3")


@pytest.mark.parametrize(("column", "texts"), [("margin", BAD), ("loss", BAD[:4])])
def test_bad_numbers_are_explained_and_nothing_is_lost(
    explorer: ExplorerPage, column: str, texts: tuple[str, ...]
) -> None:
    explorer.type("PH3.usa_*", "loss", "0.5")
    total, before = explorer.total(), explorer.value("PH2.usa_*", column)
    for text in texts:
        explorer.type("PH2.usa_*", column, text)
        assert f"It stays {before}." in explorer.message("PH2.usa_*", column), text
        assert explorer.field("PH2.usa_*", column).get_attribute("aria-invalid") == "true"
        assert text == explorer.value("PH2.usa_*", column)
        assert (total, "0.500000") == (explorer.total(), explorer.value("PH3.usa_*", "loss")), text
        explorer.field("PH2.usa_*", column).press("Escape")
        assert (before, "") == (explorer.value("PH2.usa_*", column), explorer.message("PH2.usa_*", column))


def test_bad_settings_and_totals_are_explained(explorer: ExplorerPage) -> None:
    for name, text, word in (
        ("tau of PH3", "2.5", "whole number from 1 to 10000"),
        ("tau of PH3", "0", "whole number"),
        ("rho of whole release", "-1", "not above 0"),
        ("delta", "1", "not below 1"),
    ):
        target = explorer.page.get_by_label(name, exact=True)
        target.fill(text)
        target.press("Enter")
        assert word in str(
            explorer.page.locator(f"#{target.get_attribute('aria-describedby')}").text_content()
        )
        target.press("Escape")
    assert explorer.total() == "1.257281"


def test_tables_and_levels_are_switched_off_and_on(explorer: ExplorerPage) -> None:
    config = load_phsafe("sdhc-us")
    table = explorer.page.locator('[data-switch="PH3"]')
    level = explorer.page.locator('[data-switch="State, A-G"]')
    table.click()
    without = sum(b for (name, _), b in config.budgets.items() if name != "PH3")
    assert without == Fraction(explorer.total())
    assert explorer.field("PH3.usa_*", "loss").is_disabled()
    table.click()
    level.click()
    remaining = sum(b for (_, name), b in config.budgets.items() if name != "state_A-G")
    assert remaining == Fraction(explorer.total())
    assert table.evaluate("box => [box.checked, box.indeterminate]") == [False, True]
    assert explorer.rows()["PH5_num.state_A-G"]["moe"] == "", "what is summed from PH4 goes with it"
    table.click()
    assert remaining + config.budgets["PH3", "state_A-G"] == Fraction(explorer.total()), (
        "a half switch turns on at a click"
    )
    level.click()
    assert explorer.total() == "1.257281"


def test_tau_changes_the_margins_or_where_asked_the_budgets(explorer: ExplorerPage) -> None:
    tau = explorer.page.get_by_label("tau of PH3", exact=True)
    tau.fill("10")
    tau.press("Enter")
    planner = product_of("phsafe").planner
    loaded = planner.load("sdhc-us", {"tau.PH3": "10"}, {}, planner.CONFIDENCE)
    report = planner.report(loaded, confidence=planner.CONFIDENCE, delta=Fraction(1, 100))
    python = {(row.facts.table, row.facts.level): row.moe for row in report.rows}
    assert f"{upper(python['PH3', 'state_A-G'], 2):.2f}" == explorer.value("PH3.state_A-G", "margin")
    explorer.page.locator("#undo").click()
    explorer.page.locator("#keep").select_option("margins")
    tau.fill("10")
    tau.press("Enter")
    assert explorer.value("PH3.state_A-G", "margin") == "20.01"
    exact = Fraction(explorer.rows()["PH3.state_A-G"]["rho_exact"])
    assert Fraction("0.662976") * Fraction(22, 14) ** 2 == exact


def test_race_codes_and_the_stage_1_fraction_change_the_margins(explorer: ExplorerPage) -> None:
    explorer.open("ddhca")
    for name, text in (("race codes of a record", "3"), ("stage 1 fraction", "1/4")):
        target = explorer.page.get_by_label(name, exact=True)
        target.fill(text)
        target.press("Enter")
    planner = product_of("safetab-p").planner
    loaded = planner.load("ddhca", {"max_race_codes": "3", "stage_1_fraction": "1/4"}, {}, planner.CONFIDENCE)
    report = planner.report(loaded, confidence=planner.CONFIDENCE, delta=Fraction(1, 100))
    python = {row.facts.level: row for row in report.rows if row.facts.table == "stage2"}
    rows = explorer.rows()
    assert {level: str(row.exact_moe) for level, row in python.items()} == {
        level: rows[level]["moe_exact"] for level in python
    }
    shown = explorer.page.locator('[data-row="county_1"] th').text_content()
    assert f"totals published from {python['county_1'].facts.published_from}" in str(shown)


def test_a_total_is_shared_out_in_proportion(explorer: ExplorerPage) -> None:
    explorer.open("pl94-us")
    total = explorer.page.locator('[data-total="persons"] input')
    total.fill("1")
    total.press("Enter")
    assert explorer.total("persons") == "1"
    rows = explorer.rows()
    plan = plan_release(load_topdown("pl94-us", {"rho.persons": "1"}))
    costs = {
        f"{q.table.partition('.')[0]}.{q.level}.{q.table.partition('.')[2]}": q.cost
        for p in plan.parts
        for q in p.queries
    }
    assert costs == {key: Fraction(row["rho_exact"]) for key, row in rows.items()}


def test_edits_are_taken_back_and_made_again(explorer: ExplorerPage) -> None:
    explorer.type("PH2.usa_*", "loss", "0.1")
    explorer.page.locator('[data-switch="PH6"]').click()
    edited = explorer.total()
    explorer.page.locator("#undo").click()
    explorer.page.locator("#undo").click()
    assert (explorer.total(), explorer.value("PH2.usa_*", "loss")) == ("1.257281", "0.002619")
    assert explorer.page.locator("#undo").is_disabled()
    explorer.page.locator("#redo").click()
    explorer.page.locator("body").press("Control+Shift+Z")
    assert edited == explorer.total()
    explorer.page.locator("#sheet").select_option("ddhcb")
    explorer.page.locator("#sheet").select_option("sdhc-us")
    assert edited == explorer.total(), "edits of a configuration wait while another is shown"
    explorer.page.locator("#reset").click()
    assert explorer.total() == "1.257281"
    explorer.page.locator("#undo").click()
    assert edited == explorer.total()


def test_differences_from_the_configuration_are_marked(explorer: ExplorerPage) -> None:
    explorer.type("PH2.usa_*", "loss", "0.1")
    line = explorer.page.locator('[data-row="PH2.usa_*"]')
    assert "changed" in str(line.get_attribute("class"))
    assert "changed" in str(line.locator("th").text_content())
    assert "0.002619" in str(line.locator('[data-label="configuration: rho"]').text_content())
    explorer.type("PH2.usa_*", "loss", "0.002619")
    assert "changed" not in str(line.get_attribute("class"))


def test_the_link_holds_every_edit(explorer: ExplorerPage) -> None:
    explorer.open("ddhca")
    explorer.type("county_2", "margin", "17")
    explorer.page.locator('[data-switch="Tract, Detailed"]').click()
    explorer.page.get_by_label("race codes of a record", exact=True).fill("4")
    explorer.page.locator("#confidence").select_option("9/10")
    explorer.page.locator("#relation").select_option("1")
    rows, link = explorer.rows(), explorer.page.url.partition("#")[2]
    explorer.open(link)
    assert rows == explorer.rows()
    assert (
        explorer.page.locator("#confidence").input_value(),
        explorer.page.locator("#relation").input_value(),
    ) == ("9/10", "1")


def test_a_broken_link_is_told_and_breaks_nothing(explorer: ExplorerPage) -> None:
    explorer.open("sdhc-us&PH2.usa_*=-4&nonsense&off%20PH9=&PH3.usa_*=1/2&set%20tau.PH3=x&%E0%A4%A=1&delta=7")
    assert "6 parts of the link could not be read" in str(explorer.page.locator("#status").text_content())
    assert (explorer.value("PH2.usa_*", "loss"), explorer.value("PH3.usa_*", "loss")) == (
        "0.002619",
        "0.500000",
    )
    explorer.open("no-such-configuration")
    assert "names no configuration" in str(explorer.page.locator("#status").text_content())
    assert explorer.total() == "1.257281"


def edit_some(explorer: ExplorerPage, product: str) -> dict[str, Fraction]:
    """Edit two rows of a configuration in the ways that are hard to write down; the losses that follow."""
    first, second = [key for key, row in explorer.rows().items() if row["measured"] == "true"][1:3]
    explorer.type(first, "loss", "1/7")
    explorer.type(second, "margin", "33")
    symbol = "epsilon_exact" if "epsilon_exact" in explorer.rows()[first] else "rho_exact"
    return {key: Fraction(row[symbol]) for key, row in explorer.rows().items() if Fraction(row[symbol])}


@pytest.mark.parametrize(
    "config", sampled(shipped_configs(), ("sdhc-us", "ddhcb", "dhc-us"), lambda config: config.name)
)
def test_saved_toml_is_the_edited_configuration(
    explorer: ExplorerPage, config: object, tmp_path: Path
) -> None:
    shipped = get_shipped(config.name)  # type: ignore[attr-defined]
    explorer.open(shipped.name)
    file = tmp_path / "config.toml"
    file.write_bytes(explorer.saved("#save-toml"))
    assert shipped.text == file.read_text(encoding="utf-8")
    wanted = edit_some(explorer, shipped.product)
    file.write_bytes(explorer.saved("#save-toml"))
    loaded = LOADERS[shipped.product](file, {})  # type: ignore[operator]
    if shipped.product == "topdown":
        plan = plan_release(loaded)
        found = {
            f"{q.table.partition('.')[0]}.{q.level}.{q.table.partition('.')[2]}": q.cost
            for p in plan.parts
            for q in p.queries
        }
    else:
        alone = shipped.product == "safetab-p"
        found = {
            level if alone else f"{table}.{level}": b for (table, level), b in loaded.budgets.items() if b
        }
    assert wanted == found


@pytest.mark.parametrize("name", sampled(("sdhc-us", "sdhc-pr", "ddhca", "ddhcb"), ("sdhc-pr", "ddhca")))
def test_saved_json_is_the_bureaus_configuration(explorer: ExplorerPage, name: str, tmp_path: Path) -> None:
    shipped = get_shipped(name)
    explorer.open(name)
    file = tmp_path / "config.json"
    file.write_bytes(explorer.saved("#save-json"))
    load = LOADERS[shipped.product]
    place = {} if shipped.product == "phsafe" else {"universe": "2020"}
    assert load(name, {}).digest == load(file, place).digest  # type: ignore[operator]
    wanted = edit_some(explorer, shipped.product)
    file.write_bytes(explorer.saved("#save-json"))
    assert "Rounded down" in str(explorer.page.locator("#save-status").text_content())
    spent = [budget for budget in load(file, place).budgets.values() if budget]  # type: ignore[operator]
    assert sum(wanted.values()) - Fraction(1, 10**14) < sum(spent) <= sum(wanted.values())


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("sdhc-us", "phsafe/production/us/config.json"),
        ("ddhca", "safetab_p/production/config.json"),
        ("ddhcb", "safetab_h/production/config.json"),
    ],
)
def test_saved_json_has_the_keys_of_the_bureaus_own_file(
    explorer: ExplorerPage, name: str, file: str
) -> None:
    published = json.loads(shared_data(f"bureau/{file}").read_text(encoding="utf-8"))
    explorer.open(name)
    saved = json.loads(explorer.saved("#save-json"))
    assert set(published) == set(saved)
    assert {
        key: type(value) for key, value in published.items() if isinstance(value, dict | list | str | bool)
    } == {key: type(value) for key, value in saved.items() if isinstance(value, dict | list | str | bool)}


def test_drawings_are_saved(explorer: ExplorerPage) -> None:
    for name in ("epsilon", "power", "odds"):
        drawing = ElementTree.fromstring(explorer.saved(f'[data-svg="{name}"]'))  # noqa: S314 - of our own page
        assert drawing.tag == "{http://www.w3.org/2000/svg}svg"
        assert len(drawing.findall("{http://www.w3.org/2000/svg}path")) >= 1 + (name != "odds")
        assert explorer.saved(f'[data-png="{name}"]')[:8] == b"\x89PNG\r\n\x1a\n"


def test_a_button_saves_a_real_file(chromium: Browser, explorer_file: Path) -> None:
    page = chromium.new_page(accept_downloads=True)
    page.goto(explorer_file.as_uri())
    with page.expect_download() as download:
        page.locator("#save-toml").click()
    assert download.value.suggested_filename == "config.toml"
    assert Path(download.value.path()).read_text(encoding="utf-8") == get_shipped("sdhc-us").text
    page.close()
