"""The PHSafe paper's Table 10, from the shipped configuration, digit for digit."""

import csv
from fractions import Fraction

import pytest

from censafe.errors import CheckError, ConfigError
from censafe.model import Neighbors
from censafe.planning.prices.rows import plan_rows
from censafe.products.phsafe.config import load_phsafe_config
from censafe.products.phsafe.plan import plan_release
from censafe.products.phsafe.planner import paper, query_facts
from support.shared import shared_data

TABLE = "bureau/paper_tables/phsafe_table10.csv"


def test_table_10_is_reprinted_byte_for_byte() -> None:
    printed = shared_data(TABLE).read_bytes()
    assert printed == paper(load_phsafe_config("sdhc-us")).encode()


def test_the_plan_shows_the_same_digits() -> None:
    config = load_phsafe_config("sdhc-us")
    rows = [row for row in plan_rows(plan_release(config), query_facts(config)) if not row.derived]
    shown = [
        [
            row.facts.table,
            "NA" if row.facts.tau is None else str(row.facts.tau),
            row.facts.label,
            str(row.facts.target),
            row.loss_text(Neighbors.ADD_REMOVE),
            row.loss_text(Neighbors.REPLACE),
        ]
        for row in rows
    ]
    with shared_data(TABLE).open(encoding="utf-8", newline="") as stream:
        _, *printed = csv.reader(stream)
    assert printed == shown


def test_every_target_is_met_to_its_printed_precision() -> None:
    config = load_phsafe_config("sdhc-us")
    for row in plan_rows(plan_release(config), query_facts(config)):
        if row.facts.target is not None and row.moe is not None:
            assert abs(row.moe - row.facts.target) / row.facts.target < 0.01  # 0.000022 prints two digits


def test_a_budget_that_is_not_its_targets_is_named() -> None:
    config = load_phsafe_config("sdhc-us", {"budget.PH3.state_A-G": "0.6", "budget.PH7.usa_*": "0.002618"})
    with pytest.raises(CheckError) as caught:
        paper(config)
    assert "PH3.state_A-G: target 20 asks for rho 0.662976" in str(caught.value)
    assert "PH7.usa_*: target 500 asks for rho 0.002619" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "overrides", "message"),
    [
        ("sdhc-pr", {}, "no moe_target is stored"),
        ("sdhc-us", {"sensitivity": "household-local"}, "not zcdp and household-local"),
        ("sdhc-us", {"privacy_definition": "puredp"}, "not puredp and bureau"),
    ],
)
def test_configurations_without_the_table(name: str, overrides: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        paper(load_phsafe_config(name, overrides))


def test_production_totals() -> None:
    assert Fraction("1.257281") == plan_release(load_phsafe_config("sdhc-us")).total
    assert Fraction("1.226649") == plan_release(load_phsafe_config("sdhc-pr")).total
