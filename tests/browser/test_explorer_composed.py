"""The page's exact composition of the noise is that of Python, and working it out holds no edit up."""

from fractions import Fraction
from typing import Any

import pytest
from playwright.sync_api import Browser

from censafe.model import Definition
from censafe.model.bounds import upper
from censafe.planning.explorer.page import page_script
from censafe.privacy.loss.attack import MovedQuery
from censafe.privacy.loss.conversions import epsilons, gaussian_epsilon
from censafe.privacy.loss.loss_law import composed_epsilon, gathered, spare_variance
from censafe.products.configuration.source import ShippedConfig, shipped_configs
from censafe.products.registry import product_of
from support.browser import ExplorerPage, functions_page

NAMES = ("gaussianEpsilon", "composedEpsilon", "spareVariance", "lawsOf", "freshState", "gatherLaws")
DRAIN = "g => { let s = g.next(); while (!s.done) s = g.next(); return s.value; }"
DELTA = Fraction(1, 10**10)
LAWS = {
    "one": [MovedQuery(Fraction(4), 2)],
    "steps": [MovedQuery(Fraction(92401), 1, 22), MovedQuery(Fraction(1478), 2, 14), MovedQuery(Fraction(1709), 1, 2)],
    "groups": [MovedQuery(Fraction(2343, 1000), 9), MovedQuery(Fraction(31447, 1000), 9), MovedQuery(Fraction(625), 9)],
}  # fmt: skip


@pytest.fixture(scope="module")
def page(chromium: Browser, tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("composed") / "functions.html"
    path.write_text(functions_page(page_script(), NAMES), encoding="utf-8")
    opened = chromium.new_page()
    opened.goto(path.as_uri())
    yield opened
    opened.close()


def plain(laws: list[MovedQuery]) -> list[dict[str, float]]:
    return [{"sigma2": float(law.sigma2), "cells": law.cells, "step": law.step} for law in laws]


@pytest.mark.parametrize("name", LAWS)
def test_brackets_are_those_of_python(page: Any, name: str) -> None:
    found = page.evaluate(f"laws => ({DRAIN})(T.composedEpsilon(laws, 1e-10, 16384))", plain(LAWS[name]))
    python = composed_epsilon(LAWS[name], DELTA, points=1 << 14)
    assert (python.lower, python.upper) == pytest.approx((found["lower"], found["upper"]), rel=1e-7)


def test_spared_variance_is_that_of_python(page: Any) -> None:
    tight = epsilons(Fraction(1, 4), DELTA).tight
    found = page.evaluate(
        f"([laws, e]) => ({DRAIN})(T.spareVariance(laws, 1e-10, e))", [plain(LAWS["one"]), tight]
    )
    assert spare_variance(LAWS["one"], DELTA, tight) == pytest.approx(found, abs=0.0011)


def test_epsilon_of_a_gaussian_is_that_of_python(page: Any) -> None:
    rhos = [Fraction(1, 1000), Fraction(1, 9), Fraction(256, 100), Fraction(40)]
    for delta in (DELTA, Fraction(1, 100)):
        found = page.evaluate(
            "([rhos, delta]) => rhos.map(rho => T.gaussianEpsilon(rho, delta))",
            [[float(rho) for rho in rhos], float(delta)],
        )
        assert found == pytest.approx([gaussian_epsilon(rho, delta) for rho in rhos], rel=1e-9)


SAMPLED = ("ddhca", "pl94-us")


@pytest.mark.parametrize(
    "config",
    [
        pytest.param(config, id=config.name, marks=() if config.name in SAMPLED else pytest.mark.long)
        for config in shipped_configs()
    ],
)
def test_the_touched_cells_are_those_of_the_plan(
    explorer: ExplorerPage, page: Any, config: ShippedConfig
) -> None:
    explorer.open(config.name)
    sheets = explorer.page.evaluate("() => JSON.parse(document.getElementById('sheets').textContent)")
    sheet = next(one for one in sheets if one["key"] == config.name)
    planner = product_of(config.product).planner
    asked = planner.questions(planner.load(config.name, {}, {}, planner.CONFIDENCE))
    if asked[0].definition is not Definition.ZCDP:
        assert sheet["questions"] == []
        return
    shown = page.evaluate(
        "sheet => sheet.questions.map(q => T.gatherLaws(T.lawsOf(T.freshState(sheet), q)).map(l => [l.sigma2, l.cells, l.step]))",
        sheet,
    )
    assert len(asked) == len(shown)
    for question, laws in zip(asked, shown, strict=True):
        python = sorted((float(law.sigma2), law.cells, law.step) for law in gathered(question.queries))
        assert [pytest.approx(law, rel=1e-14) for law in python] == sorted(tuple(law) for law in laws)


def finished(explorer: ExplorerPage) -> list[str]:
    explorer.page.wait_for_function(
        "() => document.getElementById('composed').getAttribute('aria-busy') === 'false'", timeout=60_000
    )
    return list(explorer.page.locator("#composed tbody tr").first.locator("td").all_text_contents())


def test_the_page_shows_the_figures_of_the_command_line(explorer: ExplorerPage) -> None:
    explorer.open("sdhc-us")
    planner = product_of("phsafe").planner
    (question,) = planner.questions(planner.load("sdhc-us", {}, {}, planner.CONFIDENCE))
    python, stated = composed_epsilon(question.queries, DELTA), epsilons(question.loss, DELTA)
    rho, slide, tight, least, most, spared, more, before = finished(explorer)
    assert (f"{upper(stated.slide, 4):.4f}", f"{upper(stated.tight, 4):.4f}", "1.257281") == (
        slide,
        tight,
        rho,
    )
    assert float(least) <= python.lower <= python.upper <= float(most)
    assert float(most) - float(least) <= python.upper - python.lower + 2e-4
    assert f"{100 * spare_variance(question.queries, DELTA, stated.tight):.1f}%" == spared
    assert f"{100 * spare_variance(question.queries, DELTA, stated.slide):.1f}%" == more
    explorer.type("PH3.state_A-G", "loss", "0.2")
    edited = finished(explorer)
    assert most == before == edited[7]
    assert float(edited[4]) < float(most)


def test_the_noise_is_composed_in_short_slices(explorer: ExplorerPage) -> None:
    """With a clock that counts its readings, so that the verdict does not depend on the load of the machine."""
    explorer.open("pl94-us")
    finished(explorer)
    explorer.page.evaluate(
        """() => {
        const wait = window.setTimeout;
        window.clock = 0;
        window.slices = [];
        performance.now = () => ++window.clock;
        window.setTimeout = (work, after) => wait(() => {
            const start = window.clock;
            work();
            window.slices.push(window.clock - start);
        }, after);
    }"""
    )
    explorer.type("persons.County.votingage * hispanic", "loss", "1/7")
    finished(explorer)
    slices = explorer.page.evaluate("() => window.slices")
    assert len(slices) > 20
    assert sum(slices) > 200
    assert max(slices) < 20, "eight readings of the clock a slice, and those of the update of the page"
    assert explorer.page.locator("#composed tbody tr").count() == 7


def test_what_cannot_be_composed_says_so(explorer: ExplorerPage) -> None:
    explorer.open("pl94-tracts")
    explorer.page.locator('[data-switch="Tract"]').click()
    cells = explorer.page.locator("#composed tbody tr").nth(2).locator("td").all_text_contents()
    assert cells[3:7] == ["not measured"] * 4
    explorer.type("persons.County.detailed", "margin", "10000000")
    assert explorer.page.locator("#composed tbody tr").first.locator("td").nth(3).text_content() == "too wide"
    explorer.page.locator("#sheet").select_option("e2e-1940")
    assert not explorer.page.locator("#composed-part").is_visible()
