"""What a plan measures: laws, sums, and that one replaced record moves the answers of a level by two."""

import math
from fractions import Fraction

import numpy as np
import pytest

from censafe.model import Definition, Neighbors, ProtectedUnit
from censafe.planning.prices.render import plan_sentences
from censafe.privacy.loss.promises import promise_of
from censafe.products.configuration.source import shipped_configs
from censafe.products.topdown.configuration.config import load_config
from censafe.products.topdown.plan import (
    exact_figures,
    level_costs,
    noise_law,
    plan_release,
    rows_loss,
    workloads,
)
from censafe.products.topdown.planner import report

NAMES = [config.name for config in shipped_configs("topdown")]


@pytest.mark.parametrize("name", NAMES)
def test_laws_follow_the_costs(name: str) -> None:
    plan = plan_release(load_config(name))
    for part in plan.parts:
        for query in part.queries:
            if plan.definition is Definition.ZCDP:
                assert ("gaussian", 1 / query.cost) == (query.law.kind, query.law.parameter)
            else:
                assert ("laplace", 2 / query.cost) == (query.law.kind, query.law.parameter)


@pytest.mark.parametrize("definition", Definition)
def test_the_loss_of_a_level_is_its_sensitivity_over_its_noise(definition: Definition) -> None:
    """Delta2 / (2 sigma2) with squared L2 change 2, and L1 / t with L1 change 2, are the cost."""
    for cost in (Fraction(3, 7), Fraction(1), Fraction(5, 2)):
        law = noise_law(definition, cost)
        loss = 2 / (2 * law.parameter) if definition is Definition.ZCDP else 2 / law.parameter
        assert cost == loss


@pytest.mark.parametrize("name", NAMES)
def test_one_replaced_record_moves_each_query_by_two_at_most(name: str) -> None:
    """Every cell is in exactly one answer, so the change of a query is minus one in one answer and plus one in one."""
    for load in workloads(load_config(name)):
        for query in load.queries:
            assert load.histogram.schema.schema.shape == tuple(len(one.of_level) for one in query.factors)
            assert query.answers == math.prod(one.groups for one in query.factors)
            for factor in query.factors:  # so that every cell has one answer, and every answer a cell
                np.testing.assert_array_equal(np.arange(factor.groups), np.unique(factor.of_level))


def test_parts_are_named_once_and_in_order() -> None:
    plan = plan_release(load_config("pl94-us"))
    names = [part.name for part in plan.parts]
    assert len(names) == len(set(names)) == 12
    assert names[:2] == ["persons_US", "persons_State"]
    assert names[-1] == "units_Block"
    pairs = [(query.table, query.level) for part in plan.parts for query in part.queries]
    assert len(pairs) == len(set(pairs))
    assert [part.name for part in plan.parts] == [
        load.part.name for load in workloads(load_config("pl94-us"))
    ]


def test_the_promise_is_for_replaced_records_only() -> None:
    plan = plan_release(load_config("pl94-us"))
    assert (plan.neighbors, plan.unit) == (Neighbors.REPLACE, ProtectedUnit.PERSON)
    assert plan.other_losses == {}
    words = plan.settings["neighbors.replace"]
    assert words.startswith(
        "one person's record is replaced by another one, in the same housing unit or quarters or in another"
    )
    assert (
        "with the published State totals and counts of housing units and group quarters by kind by Block unchanged"
        in words
    )


@pytest.mark.parametrize(
    ("name", "root", "ways"),
    [
        ("pl94-us", "State", ("persons", "units")),
        ("pl94-us", "US", ("persons", "units")),
        ("pl94-pr", "State", ("persons", "units")),
        ("dhc-us", "State", ("persons", "households,units")),
        ("dhc-pr", "State", ("persons", "households,units")),
    ],
)
def test_the_parts_of_a_plan_cost_the_same_in_one_run_and_in_several(
    name: str, root: str, ways: tuple[str, ...]
) -> None:
    whole = plan_release(load_config(name, {"root": root}))
    split = [plan_release(load_config(name, {"root": root, "measure": measure})) for measure in ways]
    assert whole.total == sum(plan.total for plan in split)
    assert whole.parts == tuple(part for plan in split for part in plan.parts)
    assert {promise_of(plan) for plan in (whole, *split)} == {
        promise_of(whole)
    }  # so that a ledger adds them as they are


def test_the_1940_test_declares_the_units_that_it_publishes_exactly() -> None:
    config = load_config("e2e-1940")
    units = "occupied housing units, group quarters by kind and vacant housing units"
    figures = exact_figures(config)
    assert f"numbers of {units} in every Enumdist" in figures[0]
    assert any("occupied or vacant is not protected" in text for text in figures)
    assert f"counts of {units} by Enumdist unchanged" in plan_release(config).settings["neighbors.replace"]
    # in 2020 housing units are counted whether or not somebody lives in them, and occupancy is measured
    figures = exact_figures(load_config("pl94-us"))
    assert "numbers of housing units and group quarters by kind in every Block" in figures[0]
    assert not any("occupied or vacant is not protected" in text for text in figures)


def test_the_guarantee_is_conditional_on_the_exact_figures_and_says_what_they_leave_open() -> None:
    figures = "\n".join(exact_figures(load_config("pl94-us")))
    assert "The guarantee is conditional on what is published exactly" in figures
    assert "Not protected: that a unit of these kinds exists in its Block" in figures
    assert "Not protected: a change of a total of State" in figures
    assert "The losses of the histograms add" in figures
    assert "redistricting" not in figures
    held = "\n".join(exact_figures(load_config("dhc-us")))
    assert "The losses of redistricting, released from the same records before, are not in this total" in held


@pytest.mark.parametrize(
    ("name", "settings", "records"),
    [
        ("pl94-us", {}, ("person",)),
        ("pl94-us", {"measure": "units"}, ("person",)),
        ("pl94-us", {"measure": "persons"}, ("person",)),
        ("e2e-1940", {}, ("person",)),
    ],
)
def test_a_plan_names_the_kinds_of_record_that_it_protects(
    name: str, settings: dict[str, str], records: tuple[str, ...]
) -> None:
    config = load_config(name, settings)
    assert records == plan_release(config).records
    (first, *_) = plan_sentences(report(config, confidence=Fraction(9, 10), delta=Fraction(1, 10**10)))
    assert f"when one {' record and one '.join(records)} record " in first


def test_a_run_below_the_nation_spends_less() -> None:
    config = load_config("pl94-us", {"root": "State", "measure": "persons"})
    costs = level_costs(config, config.histogram("persons"))
    assert "US" not in costs
    assert rows_loss(plan_release(config)) == sum(costs.values())
    assert config.histogram("persons").loss * (1 - Fraction(104, 4099)) == sum(costs.values())
    assert (
        plan_release(config).digest() != plan_release(load_config("pl94-us", {"measure": "persons"})).digest()
    )
