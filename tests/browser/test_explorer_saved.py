"""Whatever is edited on the explorer page, a file that it saves is read by ``plan`` and has the page's numbers."""

import random
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path

import pytest

from censafe.products.configuration.source import ShippedConfig, get_shipped, shipped_configs
from censafe.products.registry import product_of
from support.browser import ExplorerPage

ROUNDS = 3
SAMPLED = ("sdhc-us", "ddhca", "e2e-1940")
SETTINGS = {
    "phsafe": ("tau.PH3", "7"),
    "safetab-p": ("max_race_codes", "3"),
    "safetab-h": ("max_race_codes", "2"),
}


def budgets_of(shipped: ShippedConfig, file: Path, settings: Mapping[str, str]) -> dict[str, Fraction]:
    """The losses of a saved configuration as the command line reads them, by the page's names of the rows."""
    planner = product_of(shipped.product).planner
    found = planner.budgets_of(planner.load(str(file), dict(settings), {}, planner.CONFIDENCE))
    if shipped.product != "topdown":
        return {name.replace("/", ".", 1): budget for name, budget in found.items()}
    named = {}
    for name, budget in found.items():
        path, _, level = name.rpartition("/")
        histogram, _, query = path.partition(".")
        named[f"{histogram}.{level}.{query}"] = budget
    return named


def shown_budgets(explorer: ExplorerPage) -> dict[str, Fraction]:
    rows = explorer.rows()
    symbol = "rho_exact" if "rho_exact" in next(iter(rows.values())) else "epsilon_exact"
    return {key: Fraction(row[symbol]) for key, row in rows.items() if Fraction(row[symbol])}


def switch_and_edit(explorer: ExplorerPage, product: str, draw: random.Random) -> None:
    """Some switches off, or back on, one or two budgets, and a setting."""
    switches = explorer.page.locator("[data-switch]")
    for place in draw.sample(range(switches.count()), min(2, switches.count())):
        switches.nth(place).evaluate("box => box.click()")
    fields = explorer.page.locator("[data-column=loss]:enabled")
    for _ in range(2):
        if fields.count():
            field = fields.nth(draw.randrange(fields.count()))
            field.evaluate(
                "(f, v) => { f.focus(); f.value = v; f.dispatchEvent(new Event('input')); f.dispatchEvent(new Event('change')); f.blur(); }",
                str(Fraction(draw.randrange(1, 500), draw.randrange(1, 900))),
            )
    if product in SETTINGS and draw.random() < 0.5:
        key, value = SETTINGS[product]
        label = {"tau.PH3": "tau of PH3", "max_race_codes": "race codes of a record"}[key]
        explorer.page.get_by_label(label, exact=True).fill(value)
        explorer.page.get_by_label(label, exact=True).press("Enter")


@pytest.mark.parametrize(
    "shipped",
    [
        pytest.param(config, id=config.name, marks=() if config.name in SAMPLED else pytest.mark.long)
        for config in shipped_configs()
    ],
)
def test_any_edited_configuration_is_read_back(
    explorer: ExplorerPage, shipped: ShippedConfig, tmp_path: Path
) -> None:
    draw, saved = random.Random(shipped.name), 0
    for number in range(ROUNDS):
        explorer.open(shipped.name)
        switch_and_edit(explorer, shipped.product, draw)
        if explorer.page.locator("#obstacles").text_content():
            explorer.page.locator("#save-toml").click()
            assert "Nothing was saved" in str(explorer.page.locator("#save-status").text_content())
            continue
        saved += 1
        file = tmp_path / f"{number}.toml"
        file.write_bytes(explorer.saved("#save-toml"))
        assert shown_budgets(explorer) == budgets_of(shipped, file, {})
        if shipped.product != "topdown":
            json = tmp_path / f"{number}.json"
            json.write_bytes(explorer.saved("#save-json"))
            place = {} if shipped.product == "phsafe" else {"universe": "2020"}
            shown, read = shown_budgets(explorer), budgets_of(shipped, json, place)
            assert set(shown) == set(read)
            assert all(shown[key] * (1 - Fraction(1, 10**14)) <= read[key] <= shown[key] for key in shown)
    assert saved >= 1


@pytest.mark.parametrize("level", ["US", "State", "Block"])
def test_a_level_without_budget_leaves_the_geography(
    explorer: ExplorerPage, level: str, tmp_path: Path
) -> None:
    explorer.open("pl94-us")
    explorer.page.locator(f'[data-switch="{level}"]').click()
    file = tmp_path / "config.toml"
    file.write_bytes(explorer.saved("#save-toml"))
    assert f"has no level {level}" in str(explorer.page.locator("#save-status").text_content())
    assert shown_budgets(explorer) == budgets_of(get_shipped("pl94-us"), file, {})
    planner = product_of("topdown").planner
    loaded = planner.load(str(file), {}, {}, planner.CONFIDENCE)
    assert level not in [one.name for one in loaded.levels]
    assert {
        "persons": "US" if level == "State" else "State",
        "units": "Block_Group" if level == "Block" else "Block",
    } == {histogram.name: histogram.exact_totals for histogram in loaded.histograms}


def test_a_histogram_without_budget_is_not_measured(explorer: ExplorerPage, tmp_path: Path) -> None:
    explorer.open("pl94-us")
    explorer.page.locator('[data-switch="units"]').click()
    explorer.page.locator('[data-switch="County"]').dblclick()  # the first brings its units back
    file = tmp_path / "config.toml"
    file.write_bytes(explorer.saved("#save-toml"))
    found = budgets_of(get_shipped("pl94-us"), file, {})
    assert found == shown_budgets(explorer)
    assert {"persons"} == {name.partition(".")[0] for name in found}


def test_what_cannot_be_run_is_told_and_not_saved(explorer: ExplorerPage) -> None:
    explorer.open("pl94-us")
    explorer.page.locator('[data-row="units.County.detailed"] input[type=checkbox]').click()
    obstacle = "units measures nothing at County, where persons does"
    assert obstacle in str(explorer.page.locator("#obstacles").text_content())
    explorer.page.locator("#save-toml").click()
    assert "Nothing was saved" in str(explorer.page.locator("#save-status").text_content())
    assert obstacle in str(explorer.page.locator("#save-status").text_content())
    assert explorer.page.evaluate("() => window.saved ?? null") is None
    explorer.open("sdhc-us")
    for box in explorer.page.locator('[data-switch^="PH"]').all():
        box.click()
    explorer.page.locator("#save-json").click()
    assert "Nothing is measured" in str(explorer.page.locator("#save-status").text_content())
