"""The numbers on the explorer page are those of Python and of the papers."""

import csv
import io
import math
import random
from fractions import Fraction
from typing import Any

import pytest
from playwright.sync_api import Browser

from censafe.model import Definition, NoiseLaw
from censafe.planning.explorer.page import page_script
from censafe.planning.numbers import decimal_text, fixed_text, loss_text, short_text
from censafe.planning.prices.rows import PlanRow
from censafe.privacy.loss.attack import largest_power
from censafe.privacy.loss.conversions import odds_bound, slide_epsilon, tight_epsilon
from censafe.privacy.loss.margins import exact_margin, pure_margin
from censafe.products.configuration.source import shipped_configs
from censafe.products.planned import budget_for_margin
from censafe.products.registry import product_of
from support.browser import ExplorerPage, functions_page
from support.shared import shared_data

FUNCTIONS = [
    "parseRational", "decimalText", "lossText", "shortText", "fixedText", "exactMargin", "exactText", "geometricMargin",
    "slideEpsilon", "oddsEpsilon", "tightEpsilon", "zcdpPower", "purePower", "gaussianPower", "lossForMargin", "ONE",
]  # fmt: skip


def paper_file(name: str) -> list[list[str]]:
    return list(
        csv.reader(io.StringIO(shared_data(f"bureau/paper_tables/{name}").read_text(encoding="utf-8")))
    )


@pytest.mark.parametrize(
    ("config", "product", "name"),
    [
        ("sdhc-us", "phsafe", "phsafe_table10.csv"),
        ("ddhcb", "safetab-h", "safetab_h_table9.csv"),
    ],
)
def test_every_cell_of_the_papers_tables(
    explorer: ExplorerPage, config: str, product: str, name: str
) -> None:
    explorer.open(config)
    shown = explorer.paper()
    published = paper_file(name)
    assert [[cell.removesuffix(".0") for cell in row] for row in published] == shown
    planner = product_of(product).planner
    python = planner.paper(planner.load(config, {}, {}, planner.CONFIDENCE))
    assert list(csv.reader(io.StringIO(python))) == shown


def report_rows(product: str, config: str) -> list[PlanRow]:
    planner = product_of(product).planner
    loaded = planner.load(config, {}, {}, planner.CONFIDENCE)
    report = planner.report(loaded, confidence=planner.CONFIDENCE, delta=Fraction(1, 10**10))
    return [row for row in report.rows if not row.facts.detail]


def identifier(product: str, row: PlanRow) -> str | None:
    """The row of the page for a row of the plan; None for queries that the page shows beside another."""
    table, level = row.facts.table, row.facts.level
    if product == "safetab-p":
        return level if table == "stage2" else None
    if product == "topdown":
        histogram, _, query = table.partition(".")
        return f"{histogram}.{level}.{query}"
    split = len(row.cells) < len(row.facts.terms)
    return f"{table}.{level}{f'.{row.terms}' if split else ''}"


@pytest.mark.parametrize("config", shipped_configs(), ids=lambda config: config.name)
def test_every_row_of_every_shipped_plan(explorer: ExplorerPage, config: Any) -> None:
    explorer.open(config.name)
    rows = explorer.rows()
    plan = {
        key: row
        for row in report_rows(config.product, config.name)
        if (key := identifier(config.product, row))
    }
    assert set(plan) == {key for key, row in rows.items() if row["measured"] == "true" and row["moe_exact"]}
    for key, row in plan.items():
        shown = rows[key]
        parameter = row.law.parameter * (row.terms if row.law.kind == "gaussian" else 1)
        assert parameter == Fraction(shown["sigma2" if row.law.kind == "gaussian" else "scale"]), key
        assert (str(row.exact_moe), False) == (shown["moe_exact"], shown["changed"] == "true"), key
        assert row.moe is not None
        assert math.isclose(row.moe, float(shown["moe"]), rel_tol=1e-13, abs_tol=1e-13), key


@pytest.fixture(scope="module")
def functions(chromium: Browser, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Call the page's functions: ``functions("name(x)", values)`` maps an expression over values called x."""
    path = tmp_path_factory.mktemp("functions") / "functions.html"
    path.write_text(functions_page(page_script(), tuple(FUNCTIONS)), encoding="utf-8")
    page = chromium.new_page()
    page.goto(path.as_uri())
    names = ", ".join(FUNCTIONS)

    def call(expression: str, values: list[Any]) -> list[Any]:
        return list(
            page.evaluate(
                f"values => {{ const {{ {names} }} = T; return values.map(x => {expression}); }}", values
            )
        )

    yield call
    page.close()


def random_fractions(count: int, low: float, high: float) -> list[Fraction]:
    """Reproducible fractions, log-uniform."""
    draw = random.Random(20200401)
    span = math.log(high / low)
    return [
        Fraction(low * math.exp(draw.random() * span)).limit_denominator(draw.choice([1, 7, 1000, 10**9]))
        or Fraction(1, 3)
        for _ in range(count)
    ]


def test_exact_margins_of_the_page_are_those_of_python(functions: Any) -> None:
    levels = (Fraction(9, 10), Fraction(19, 20), Fraction(9998, 10000))
    sigmas = [*random_fractions(60, 0.05, 2e4), Fraction(2 * 10**7)]
    for level in levels:
        for kind, parameters in (("gaussian", sigmas), ("geometric", random_fractions(60, 0.05, 1e4))):
            law = NoiseLaw.gaussian if kind == "gaussian" else NoiseLaw.laplace
            found = functions(
                f"exactMargin('{kind}', parseRational(x), parseRational('{level}'))",
                [str(p) for p in parameters],
            )
            assert [exact_margin(law(parameter), level) for parameter in parameters] == found


def test_margins_of_geometric_noise_are_those_of_python(functions: Any) -> None:
    scales = random_fractions(50, 0.05, 1e4)
    found = functions("geometricMargin(x, 0.9)", [float(scale) for scale in scales])
    assert found == pytest.approx([pure_margin(scale) for scale in scales], rel=1e-12, abs=1e-12)


def test_texts_of_numbers_are_those_of_python(functions: Any) -> None:
    values = [
        *random_fractions(150, 1e-6, 1e9),
        Fraction(1, 8),
        Fraction(3, 8),
        Fraction(5, 1000),
        Fraction(0),
    ]
    texts = [str(value) for value in values]
    assert [decimal_text(value) for value in values] == functions("decimalText(parseRational(x))", texts)
    assert [fixed_text(value, 2) for value in values] == functions("fixedText(parseRational(x), 2)", texts)
    ours = [Fraction(text.replace("e", "E")) for text in functions("shortText(parseRational(x))", texts)]
    assert [Fraction(short_text(value)) for value in values] == ours
    losses = [Fraction(text.replace("e", "E")) for text in functions("lossText(parseRational(x))", texts)]
    assert [Fraction(loss_text(value)) for value in values] == losses


def test_budgets_for_margins_are_those_of_the_command_line(functions: Any) -> None:
    for level in (Fraction(9, 10), Fraction(19, 20)):
        margins = random_fractions(100, 0.01, 1e6)
        found = functions(
            f"decimalText(lossForMargin('gaussian', parseRational('484'), ONE, parseRational(x), parseRational('{level}')))",
            [str(margin) for margin in margins],
        )
        assert [budget_for_margin(margin, Fraction(484), level) for margin in margins] == found


def test_conversions_are_those_of_python(functions: Any) -> None:
    rhos = random_fractions(60, 1e-6, 100)
    for delta in (Fraction(1, 10**10), Fraction(1, 100)):
        for name, python in (("slideEpsilon", slide_epsilon), ("tightEpsilon", tight_epsilon)):
            found = functions(f"{name}(x, {-math.log(delta)!r})", [float(rho) for rho in rhos])
            assert found == pytest.approx([python(rho, delta) for rho in rhos], rel=1e-11)


def test_odds_are_those_of_python(functions: Any) -> None:
    rhos = random_fractions(20, 1e-3, 30)
    for delta in (Fraction(1, 10**10), Fraction(1, 10)):
        found = functions(f"oddsEpsilon(x, {-math.log(delta)!r})", [float(rho) for rho in rhos])
        assert found == pytest.approx([odds_bound(rho, Definition.ZCDP, delta) for rho in rhos], rel=1e-9)


def test_power_is_that_of_python(functions: Any) -> None:
    rhos = random_fractions(8, 0.001, 8)
    for alpha in (Fraction(1, 100), Fraction(5, 100), Fraction(1, 10)):
        found = functions(f"zcdpPower(x, {float(alpha)}, true)", [float(rho) for rho in rhos])
        python = [largest_power(rho, Definition.ZCDP, alpha) for rho in rhos]
        assert found == pytest.approx(python, abs=2e-4)
        pure = functions(f"purePower(x, {float(alpha)})", [float(rho) for rho in rhos])
        assert pure == pytest.approx([largest_power(rho, Definition.PURE, alpha) for rho in rhos], abs=1.1e-4)


def test_the_slides_table_of_level_and_power(functions: Any) -> None:
    rho = 2.56 * 165 / 4099 + 0.07 * 99 / 820
    found = functions(f"gaussianPower({rho!r}, x)", [0.01, 0.05, 0.1])
    assert found == pytest.approx([0.03186, 0.12047, 0.20916], abs=1e-5)
