"""Rows of a plan: costs, variances, margins, sizes, and their renderings from one list."""

import csv
import io
import json
import math
from fractions import Fraction
from typing import Any

import pytest
from rich.console import Console

from censafe.model import Definition, Neighbors, NoiseLaw, PartPlan, ProtectedUnit, QueryPlan, ReleasePlan
from censafe.planning.numbers import decimal_text, fixed_text, short_text
from censafe.planning.prices.extras import Rate, Run, effort_of, effort_sentences
from censafe.planning.prices.render import plan_sentences, plan_table, to_csv, to_json
from censafe.planning.prices.rows import PlanReport, QueryFacts, plan_report

GAUSSIAN = NoiseLaw.gaussian(Fraction(625))
LAPLACE = NoiseLaw.laplace(Fraction(12))
FACTS = (
    QueryFacts("T", "usa_*", "Nation", "T", 3, 1, 1, {"2": 1, "3": 1}, target=Fraction(41), places=4),
    QueryFacts("T", "state_*", "State", "T", 3, 51, 1, {"2": 1, "3": 1}),
    QueryFacts("D", "state_*", "State", "T", 3, 51, 1, {"1": 2, "2": 1}),
    QueryFacts("Z", "usa_*", "Nation", "Z", None, 1, 1, {"1": 1}),
)


def report(law: NoiseLaw, definition: Definition, **options: Any) -> PlanReport:
    costs = (("usa_*", Fraction("0.0250")), ("state_*", Fraction(1, 3)))
    part = PartPlan("T", tuple(QueryPlan("T", level, law, cost) for level, cost in costs))
    plan = ReleasePlan(
        product="example",
        definition=definition,
        neighbors=Neighbors.ADD_REMOVE,
        unit=ProtectedUnit.PERSON,
        other_losses={Neighbors.REPLACE: 2 * part.cost},
        parts=(part,),
        settings={"neighbors.add_remove": "one record more or less"},
    )
    return plan_report(plan, FACTS, origin="here", **options)


def test_rows_follow_the_facts_and_leave_out_what_is_not_measured() -> None:
    rows = report(GAUSSIAN, Definition.ZCDP).rows
    keys = [(row.facts.table, row.facts.level, row.cells, row.terms) for row in rows]
    assert keys == [
        ("T", "usa_*", ("2", "3"), 1),
        ("T", "state_*", ("2", "3"), 1),
        ("D", "state_*", ("1",), 2),
        ("D", "state_*", ("2",), 1),
    ]
    assert [row.answers for row in rows] == [2, 102, 51, 51]
    assert [row.derived for row in rows] == [False, False, True, True]


def test_losses_add_up_to_the_totals() -> None:
    found = report(GAUSSIAN, Definition.ZCDP)
    for relation in Neighbors:
        assert found.totals[relation] == sum(row.losses[relation] for row in found.rows)
    assert found.totals[Neighbors.REPLACE] == 2 * found.totals[Neighbors.ADD_REMOVE]
    assert set(found.epsilons) == set(Neighbors)


def test_margins_of_gaussian_noise() -> None:
    first, _, double, _ = report(GAUSSIAN, Definition.ZCDP).rows
    assert first.moe is not None and math.isclose(1.645 * 25, first.moe)
    assert (first.exact_moe, first.variance) == (41, 625)
    assert first.coverage is not None and 0.9 <= first.coverage < 0.905
    assert double.moe is not None and math.isclose(1.645 * 25 * math.sqrt(2), double.moe)
    assert (double.exact_moe, double.variance) == (58, 1250)
    assert double.coverage is not None and 0.9 <= double.coverage < 0.905


def test_other_confidences_take_the_normal_quantile_in_the_papers_rule() -> None:
    first, *_ = report(GAUSSIAN, Definition.ZCDP, confidence=Fraction(99, 100)).rows
    assert first.moe is not None and math.isclose(2.5758293 * 25, first.moe, rel_tol=1e-6)
    assert first.exact_moe == 64


def test_margins_of_geometric_noise() -> None:
    found = report(LAPLACE, Definition.PURE)
    first, _, double, _ = found.rows
    assert first.moe is not None and round(first.moe, 1) == 27.1
    assert (double.moe, double.exact_moe, double.coverage) == (None, None, None)
    assert not found.epsilons


def test_csv_and_json_hold_the_same_rows() -> None:
    found = report(GAUSSIAN, Definition.ZCDP)
    document = json.loads(to_json(found))
    lines = list(csv.DictReader(io.StringIO(to_csv(found))))
    assert len(lines) == len(document["rows"]) == 4
    for line, row in zip(lines, document["rows"], strict=True):
        assert line == {
            key: " ".join(value) if isinstance(value, list) else "" if value is None else str(value)
            for key, value in row.items()
        }
    assert document["rows"][0]["rho_add_remove"] == "0.0250"
    assert document["rows"][1]["rho_add_remove"] == "1/3"
    assert document["totals"]["add_remove"]["rho"] == "43/120"
    assert document["delta"] == "0.0000000001"
    assert document["epsilons"]["replace"]["slide"] > document["epsilons"]["replace"]["tight"]


def test_the_terminal_shows_every_row_and_the_totals() -> None:
    found = report(GAUSSIAN, Definition.ZCDP)
    console = Console(width=124, file=io.StringIO())
    console.print(plan_table(found))
    text = console.file.getvalue()  # type: ignore[attr-defined]
    for part in ("D (T)", "State; cell 1", "0.0250", "0.05", "625", "41.2", "58.2", "206"):
        assert part in text
    assert "…" not in text
    sentences = " ".join(plan_sentences(found))
    assert (
        "Total rho 0.358334 when one person record is added or removed (unbounded), as the budgets are set."
        in sentences
    )
    assert "Epsilon at delta 1e-10, replaced (bounded)" in sentences
    assert "means: one record more or less." in sentences


def test_levels_of_groups_show_stability_and_the_smallest_count_published() -> None:
    law, cost = NoiseLaw.gaussian(Fraction(625)), Fraction(1, 8)
    part = PartPlan("usa_1", (QueryPlan("stage2", "usa_1", law, cost),))
    plan = ReleasePlan(
        "example",
        Definition.ZCDP,
        Neighbors.ADD_REMOVE,
        ProtectedUnit.PERSON,
        {Neighbors.REPLACE: 2 * cost},
        (part,),
    )
    common = {"level": "usa_1", "label": "Nation, Regional", "source": "stage2", "tau": None, "regions": None}
    facts = (
        QueryFacts(
            **common, table="stage2", iterations=48, terms={"cell": 1}, stability=9, published_from=94
        ),
        QueryFacts(**common, table="T01001", iterations=48, terms={"all": 8}, stability=9, detail=True),
    )
    found = plan_report(plan, facts, origin="here", notes=("A sentence.",))
    assert found.answers is None
    console = Console(width=160, file=io.StringIO())
    console.print(plan_table(found))
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "94" in text and "published" in text
    assert "T01001" not in text and "tau" not in text
    assert "A sentence." in plan_sentences(found)
    document = json.loads(to_json(found))
    assert document["notes"] == ["A sentence."]
    assert [row["published_from"] for row in document["rows"]] == [94, None]
    assert [row["stability"] for row in document["rows"]] == [9, 9]
    assert "notes" not in json.loads(to_json(report(GAUSSIAN, Definition.ZCDP)))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Fraction(0), "0"),
        (Fraction(200), "200"),
        (Fraction(-1, 4), "-0.25"),
        (Fraction(1, 10**10), "0.0000000001"),
        (Fraction(2, 7), "2/7"),
    ],
)
def test_decimal_text_is_exact(value: Fraction, text: str) -> None:
    assert text == decimal_text(value)
    assert value == Fraction(decimal_text(value))


def test_rounded_texts() -> None:
    assert fixed_text(Fraction("0.0000004"), 6) == "0.000000"
    assert fixed_text(Fraction("-0.0000004"), 6) == "0.000000"
    assert fixed_text(Fraction("2.5"), 0) == "2"
    assert short_text(Fraction(1, 3)) == "0.333333"
    assert short_text(Fraction(1000, 3)) == "333.33"


@pytest.mark.parametrize(
    ("blocks", "stored", "drawn"),
    [
        (1_000, "stored 78.1 KiB at 8 bytes", "draws about 4,100 of them and stores none"),
        (8_000_000, "stored 610.4 MiB at 8 bytes", "draws about 33 million of them and stores none"),
    ],
)
def test_few_answers_are_not_zero_millions(blocks: int, stored: str, drawn: str) -> None:
    rate = Rate("blocks", 8_000_000, (Run(8_000_000, 900.0, 6.0, drawn=33_000_000),), "benchmarks/x.py")
    text = effort_sentences(effort_of(rate, blocks, {"persons_Block": 10 * blocks}))[1]
    assert stored in text
    assert drawn in text
