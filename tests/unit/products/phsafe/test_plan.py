"""Plans: which parts, in which order, at which cost."""

import hashlib
from fractions import Fraction

import pytest

from censafe.errors import ConfigError
from censafe.model import Definition, Neighbors, ProtectedUnit
from censafe.products.phsafe.config import load_phsafe_config
from censafe.products.phsafe.definitions import (
    SENSITIVITIES,
    Sensitivity,
    definitions_text,
    levels_of,
    measured_tables,
    phsafe_definitions,
    query_loss,
)
from censafe.products.phsafe.plan import measured_table_levels, plan_release
from censafe.products.phsafe.planner import query_facts


def test_one_part_a_table_in_fixed_order() -> None:
    plan = plan_release(load_phsafe_config("sdhc-us"))
    assert tuple(part.name for part in plan.parts) == measured_tables()
    for part in plan.parts:
        assert levels_of(part.name) == tuple(query.level for query in part.queries)
        assert {part.name} == {query.table for query in part.queries}
    assert (plan.product, plan.definition, plan.unit) == ("phsafe", Definition.ZCDP, ProtectedUnit.PERSON)


@pytest.mark.parametrize(
    ("sensitivity", "neighbors", "other"),
    [
        ("bureau", Neighbors.ADD_REMOVE, "2.514562"),
        ("household-local", Neighbors.ADD_REMOVE, "5.029124"),
        ("household-local-bounded", Neighbors.REPLACE, "0.31432025"),
    ],
)
def test_totals_under_both_relations(sensitivity: str, neighbors: Neighbors, other: str) -> None:
    plan = plan_release(load_phsafe_config("sdhc-us", {"sensitivity": sensitivity}))
    assert (Fraction("1.257281"), neighbors) == (plan.total, plan.neighbors)
    assert [Fraction(other)] == list(plan.other_losses.values())
    assert neighbors not in plan.other_losses
    assert sensitivity == plan.settings["sensitivity"]


@pytest.mark.parametrize("name", ["sdhc-us", "sdhc-pr"])
@pytest.mark.parametrize("sensitivity", SENSITIVITIES)
@pytest.mark.parametrize("definition", ["zcdp", "puredp"])
def test_every_query_has_the_noise_of_what_it_costs(
    name: str, sensitivity: Sensitivity, definition: str
) -> None:
    config = load_phsafe_config(name, {"sensitivity": sensitivity, "privacy_definition": definition})
    plan = plan_release(config)
    for part in plan.parts:
        tau = config.tau.get(part.name)
        losses = [query_loss(query.law, sensitivity, plan.neighbors, tau) for query in part.queries]
        assert [config.budgets[query.table, query.level] for query in part.queries] == losses, part.name
        assert sum(losses) == part.cost


def test_zero_budgets_are_absent() -> None:
    config = load_phsafe_config("sdhc-us", {"budget.PH6": "0", "budget.PH3.usa_A-G": "0"})
    plan = plan_release(config)
    assert "PH6" not in [part.name for part in plan.parts]
    (part,) = (part for part in plan.parts if part.name == "PH3")
    assert [q.level for q in part.queries] == ["usa_H,I", "usa_*", "state_A-G", "state_H,I", "state_*"]
    assert {part.name: tuple(q.level for q in part.queries) for part in plan.parts} == measured_table_levels(
        config
    )


def test_a_plan_without_any_budget_is_an_error() -> None:
    with pytest.raises(ConfigError, match="all budgets are 0"):
        plan_release(load_phsafe_config("sdhc-us", {"budget": "0"}))


def test_an_infinite_budget_cannot_be_planned() -> None:
    config = load_phsafe_config("sdhc-us", {"budget.PH3.usa_*": "Infinity"}, allow_infinite=True)
    with pytest.raises(ConfigError, match="PH3, level usa_\\* is infinite"):
        plan_release(config)


def test_settings_identify_the_plan() -> None:
    base = plan_release(load_phsafe_config("sdhc-us"))
    assert hashlib.sha256(definitions_text().encode()).hexdigest() == base.settings["definitions"]
    assert base.settings["tau.PH3"] == "6"
    assert base.digest() == plan_release(load_phsafe_config("sdhc-us", {"reader": "csv"})).digest()
    for change in (
        {"states": "44"},
        {"tau.PH3": "7"},
        {"sensitivity": "household-local"},
        {"privacy_defn": "puredp"},
    ):
        assert base.digest() != plan_release(load_phsafe_config("sdhc-us", change)).digest()


def test_pure_dp_costs_are_epsilon() -> None:
    plan = plan_release(load_phsafe_config("sdhc-us", {"privacy_definition": "puredp"}))
    assert {"laplace"} == {query.law.kind for part in plan.parts for query in part.queries}
    assert Fraction("2.514562") == plan.other_losses[Neighbors.REPLACE]


def test_levels_are_printed_as_in_the_paper() -> None:
    assert phsafe_definitions().level_labels == {
        "usa_*": "Nation, Unattributed", "usa_A-G": "Nation, A-G", "usa_H,I": "Nation, H-I",
        "state_*": "State, Unattributed", "state_A-G": "State, A-G", "state_H,I": "State, H-I",
    }  # fmt: skip


def test_facts_of_every_published_table() -> None:
    facts = query_facts(load_phsafe_config("sdhc-us"))
    assert len(facts) == 58
    by_key = {(fact.table, fact.level): fact for fact in facts}
    state = by_key["PH8_num", "state_A-G"]
    assert (
        state.source, state.tau, state.regions, state.iterations, state.terms,
    ) == ("PH7", 10, 51, 7, {"2": 2, "3": 1})  # fmt: skip
    nation = by_key["PH1_denom", "usa_H,I"]
    assert (
        nation.source, nation.tau, nation.regions, nation.iterations, nation.terms,
    ) == ("PH1_denom", None, 1, 2, {"1": 1})  # fmt: skip
