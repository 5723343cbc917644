"""The SafeTab-H paper's Table 9 and the production figures, from the shipped configurations, digit for digit."""

from fractions import Fraction

import pytest

from censafe.errors import CheckError, ConfigError
from censafe.products.detailed.codes.parameters import read_universe
from censafe.products.detailed.config import load_h_config, load_p_config
from censafe.products.detailed.plan import plan_release
from censafe.products.detailed.planner import table_9
from support.shared import shared_data


def test_table_9_is_reprinted_byte_for_byte() -> None:
    printed = shared_data("bureau/paper_tables/safetab_h_table9.csv").read_bytes()
    assert printed == table_9(load_h_config("ddhcb"), read_universe()).encode()


@pytest.mark.parametrize(
    ("area", "persons", "households"), [("us", "4.944", "8.895302"), ("pr", "2.643", "4.754134")]
)
def test_production_totals(area: str, persons: str, households: str) -> None:
    other = {"run_pr" if area == "us" else "run_us": "false"}
    universe = read_universe()
    assert Fraction(persons) == plan_release(load_p_config("ddhca", other), universe).total
    assert Fraction(households) == plan_release(load_h_config("ddhcb", other), universe).total


def test_budgets_that_are_not_their_targets_are_named() -> None:
    changes = {"budget.t3.usa_2": "1.92", "budget.t4.tract_1": "0.0069"}
    with pytest.raises(CheckError) as caught:
        table_9(load_h_config("ddhcb", changes), read_universe())
    assert "budget.t3.usa_2: target 3 asks for rho 1.920800" in str(caught.value)
    assert "budget.t4.tract_1: target 50 asks for rho 0.006915" in str(caught.value)


def test_the_factor_nine_is_in_the_papers_numbers() -> None:
    fewer = load_h_config("ddhcb", {"max_race_codes": "3"})
    with pytest.raises(CheckError, match=r"target 3 asks for rho 0\.853689"):
        table_9(fewer, read_universe())


def test_configurations_without_the_table() -> None:
    universe = read_universe()
    with pytest.raises(ConfigError, match="no moe_target is stored"):
        table_9(load_p_config("ddhca"), universe)
    with pytest.raises(ConfigError, match="privacy_definition zcdp, not puredp"):
        table_9(load_h_config("ddhcb", {"privacy_definition": "puredp"}), universe)


# rho -> sigma2 detailed-only, stage 1, stage 2; 95% margin of a stage 2 cell.
FIGURES = {
    "usa_2": (2.11, 21.1, 2.34, 3),
    "county_2": (28.3, 283, 31.4, 11),
    "county_1": (562.5, 5625, 625, 49),
}


@pytest.mark.parametrize("level", FIGURES)
def test_production_noise_of_safetab_p(level: str) -> None:
    plan = plan_release(load_p_config("ddhca"), read_universe())
    part = {part.name: part for part in plan.parts}[level]
    *variances, margin = FIGURES[level]
    assert [float(f"{float(query.law.parameter):.3g}") for query in part.queries] == [
        float(f"{number:.3g}") for number in variances
    ]
    assert round(1.96 * float(part.queries[2].law.parameter) ** 0.5) == margin
