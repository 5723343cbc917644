"""The plan of the Demographic and Housing Characteristics File, number by number, against the production strategies."""

import csv
import json
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from censafe.model.bounds import upper
from censafe.privacy.loss.conversions import epsilons
from censafe.privacy.noise.variance import exact_variance
from censafe.products.topdown.configuration.config import TopdownConfig, load_config
from censafe.products.topdown.configuration.schema_checks import schema_text
from censafe.products.topdown.configuration.shipped import shipped_schemas
from censafe.products.topdown.plan import LevelWorkload, level_costs, plan_release, workloads
from censafe.products.topdown.planner import report
from censafe.products.topdown.readings import attribute_losses
from support.printed_losses import levels_below
from support.shared import shared_data

DELTA = Fraction(1, 10**10)
AREAS = ("us", "pr")
# The histograms of our configuration that make one of production, and the name that production has for the query of all their cells.
PARTS = {"dhcp": {"persons": "detailed"}, "dhch": {"households": "detailed", "units": "tenvacgq"}}


def reference(name: str) -> Any:
    return json.loads(shared_data(f"topdown/{name}.json").read_text())


def loads(config: TopdownConfig, product: str, level: str) -> list[LevelWorkload]:
    return [
        one for one in workloads(config) if one.histogram.name in PARTS[product] and one.level.name == level
    ]


@pytest.mark.parametrize("area", AREAS)
@pytest.mark.parametrize("product", PARTS)
def test_every_budget_is_the_productions(area: str, product: str) -> None:
    config, source = load_config(f"dhc-{area}"), reference(f"{product}_{area}")
    assert [one["name"] for one in source["geolevels_top_down"]] == [one.name for one in config.levels]
    for level, expected in source["measurements"].items():
        found = {}
        for load in loads(config, product, level):
            names = PARTS[product]
            for query, plan in zip(load.queries, load.part.queries, strict=True):
                name = names[load.histogram.name] if query.name == "detailed" else query.name
                found[name] = (query.answers, plan.cost)
                assert plan.law.parameter == 1 / plan.cost
        assert {one["query"]: (one["cells"], Fraction(one["rho"])) for one in expected} == found
        assert Fraction(source["rho_by_level"][level]) == sum(cost for _, cost in found.values())
        assert source["cells_per_geounit"][level] == sum(cells for cells, _ in found.values())
    total = sum(one.loss for one in config.histograms if one.name in PARTS[product])
    assert Fraction(source["privacy"]["rho_total"]) == total


@pytest.mark.parametrize("area", AREAS)
@pytest.mark.parametrize("product", PARTS)
def test_the_order_of_outer_passes_is_the_productions(area: str, product: str) -> None:
    config = load_config(f"dhc-{area}")
    (stack,) = (one for one in config.stacks if one.histograms[0].name in PARTS[product])
    for entry in reference(f"{product}_{area}")["orderings"]:
        for level in entry["levels"]:
            for kind, known in (("l2", "l2"), ("rounding", "rounder")):
                passes = [
                    (PARTS[product][one.name], outer)
                    for one in stack.histograms
                    for outer in getattr(one.passes[level], kind)
                ]
                found = [
                    [[name if text == "detailed" else text for inner in outer for text in inner]]
                    for name, outer in passes
                ]
                assert entry["order"][known] == found


@pytest.mark.parametrize("area", AREAS)
def test_inner_passes_put_short_queries_of_households_first_at_the_top(area: str) -> None:
    config = load_config(f"dhc-{area}")
    several = {
        (histogram.name, level): [[len(inner) for inner in outer] for outer in passes.l2]
        for histogram in config.histograms
        for level, passes in histogram.passes.items()
        if any(len(outer) > 1 for outer in passes.l2)
    }
    top = ["US", "State"] if area == "us" else ["State"]
    assert several == {("households", level): [[5, 1], [3]] for level in top}


@pytest.mark.parametrize("area", AREAS)
def test_the_meaning_of_the_loss_is_that_of_the_reference(area: str) -> None:
    runs = reference("certificate_epsilons")["runs"]
    config = load_config(f"dhc-{area}")
    for product, names in PARTS.items():
        expected = runs[f"{product}_{area}"]
        chosen = [config.histogram(name) for name in names]
        total = sum((one.loss for one in chosen), Fraction(0))
        assert Fraction(expected["rho_total"]) == total
        assert expected["eps_total_tight"] == round(epsilons(total, DELTA).tight, 4)
        assert expected["eps_total_bun_steinke"] == round(epsilons(total, DELTA).slide, 4)
        below = [levels_below(config, one) for one in chosen]
        within = {level: sum((one[level] for one in below), Fraction(0)) for level in below[0]}
        assert {level: Fraction(item["rho"]) for level, item in expected["block_within"].items()} == within
        even = load_config(f"dhc-{area}", {"bypass": "false"})
        found = {
            key: loss for name in names for key, loss in attribute_losses(even, even.histogram(name)).items()
        }
        known = {key: Fraction(item["rho"]) for key, item in expected["attributes"].items()}
        assert {key: found[key] for key in known} == known


# Source: allocation tables of 2020 as quoted by uscensusbureau/AMC_Confidence_Intervals (US and Block), and their sums by level.
PUBLISHED = {
    "persons": ("1.91", "26.17", "10.00", "12.52", "12.52", "27.99", "8.67", "0.22"),
    "units with households": ("6.28", "22.09", "18.77", "12.61", "12.61", "21.90", "5.53", "0.21"),
}


def test_level_shares_are_those_that_were_published() -> None:
    config = load_config("dhc-us")
    for stack in config.stacks:
        costs = [level_costs(config, one) for one in stack.histograms]
        total = sum((sum(one.values()) for one in costs), Fraction(0))
        shares = [sum(one[level.name] for one in costs) / total for level in config.levels]
        assert PUBLISHED[stack.name] == tuple(f"{float(100 * share):.2f}" for share in shares)


def deviations(config: TopdownConfig, histogram: str) -> list[tuple[float, float]]:
    """Standard deviation of the best measured query and of single cells by level, to two decimals."""
    found = []
    for load in workloads(config):
        if load.histogram.name == histogram:
            own = [round(math.sqrt(exact_variance(plan.law)), 2) for plan in load.part.queries]
            found.append((min(own), own[-1]))
    return found


def test_standard_deviations_of_the_specification() -> None:
    config = load_config("dhc-us")
    assert deviations(config, "persons") == [
        (5.85, 11.7), (1.58, 3.16), (2.84, 5.68), (2.29, 4.57), (2.29, 4.57), (1.7, 3.39), (4.82, 4.82), (30.15, 30.15),
    ]  # fmt: skip
    assert deviations(config, "households") == [
        (3.09, 3.09), (1.59, 1.59), (1.59, 2.69), (2.27, 3.21), (2.27, 3.21), (1.47, 2.49), (2.93, 4.96), (15.08, 25.82),
    ]  # fmt: skip


def test_the_plan_prints_sums_of_levels_exactly_and_what_was_published_before() -> None:
    config = load_config("dhc-us")
    notes = report(config, confidence=Fraction(9, 10), delta=DELTA).notes
    persons = next(
        one for one in notes if one.startswith("persons: rho 24811/5000 for one person record by rows")
    )
    units = next(one for one in notes if one.startswith("units with households: rho 15401/2000 for one"))
    assert "US 949/10000 (1.91%), State 12987/10000 (26.17%), County 62/125 (10.00%)" in persons
    assert "Block_Group 213/500 (5.53%), Block 2/125 (0.21%)" in units
    earlier = plan_release(load_config("pl94-us", {"spine": "optimized"})).total  # a person costs more there
    assert earlier > plan_release(load_config("pl94-us", {"spine": "standard"})).total
    both = plan_release(config).total + earlier
    (together,) = (one for one in notes if one.startswith("Together with pl94-us"))
    assert f"at most rho 42.4498, epsilon {upper(epsilons(both, DELTA).tight, 4):.4f}" in together
    assert 42.4497 < both < 42.4498


# Recodes, edit rules and levels of the Demographic and Housing Characteristics File, against those of the production code.


NAMES = {"dhc-persons": "dhcp", "dhc-households": "dhch", "dhc-units": "dhch_units"}


@pytest.mark.parametrize("name", NAMES)
def test_recodes_are_the_productions(name: str) -> None:
    expected = reference("recodes")[NAMES[name]]
    schema = shipped_schemas()[name]
    # recodes of one group only serve the edit rules, which name levels by the columns of a table
    used = {text for text, one in expected.items() if one["use"] != "edit constraint"}
    # sizes of households alone are measured by no query; evaluations count them. Householders as households have them: joint = true
    assert used == set(schema.recodes) - {"household_size", "householder_age", "householder_race"}
    for text in used:
        found, known = schema.recodes[text], expected[text]
        assert known["attribute"] == found.attribute
        assert known["groups"] == [sorted(group) for group in found.groups]
        assert known["partition"] == found.partition


@pytest.mark.parametrize(("name", "area"), [("dhc-persons", "dhcp"), ("dhc-households", "dhch")])
def test_attributes_and_cells_are_the_productions(name: str, area: str) -> None:
    expected = reference(f"{area}_us")["schema"]
    schema = shipped_schemas()[name].schema
    assert [tuple(item) for item in expected["main"]] == [(one.name, one.levels) for one in schema.attributes]
    assert expected["main_cells"] == schema.cells


def test_the_age_rules_are_the_productions() -> None:
    expected = reference("edit_rules")["dhcp"]
    schema = shipped_schemas()["dhc-persons"]
    ages = {levels: set(rule.when["age"]) for rule in schema.zeros for levels in rule.when["relgq"]}
    assert len(schema.zeros) == len(expected["rules"]) == len(ages) == 32
    for rule in expected["rules"]:
        allowed = range(rule["age_min_allowed"], rule["age_max_allowed"] + 1)
        assert set(range(116)) - set(allowed) == ages[rule["relgq"]]
    assert expected["cells_left"] == int(schema.allowed().sum())


def test_the_household_rules_are_the_productions() -> None:
    expected = reference("edit_rules")["dhch"]
    schema = shipped_schemas()["dhc-households"]
    known = {rule["rule"]: {a: sorted(v) for a, v in rule["zero_when"].items()} for rule in expected["rules"]}
    assert known == {rule.name: {a: sorted(v) for a, v in rule.when.items()} for rule in schema.zeros}
    assert len(known) == 22
    assert expected["cells_left"] == int(schema.allowed().sum())


@pytest.mark.parametrize(
    ("own", "theirs"),
    [
        ("relgq_levels", "relgq_levels"),
        ("tenvacgq_levels", "tenvacgq_levels"),
        ("hhtype_levels", "dhch_hhtype_levels"),
    ],
)
def test_tables_of_levels_agree(own: str, theirs: str) -> None:
    expected = list(csv.DictReader(shared_data(f"topdown/{theirs}.csv").read_text().splitlines()))
    found = list(csv.DictReader(schema_text(f"{own}.csv").splitlines()))
    columns = [column for column in found[0] if column in expected[0]]
    assert len(columns) >= 8
    assert [[row[c] for c in columns] for row in expected] == [[row[c] for c in columns] for row in found]


def test_labels_of_a_million_cells_are_those_of_the_axes() -> None:
    schema = shipped_schemas()["dhc-households"]
    text = "sex * hisp * hhtenshort_3lev * race * DetailedCoupleTypeMultGenDetOwnChildSize"
    query = schema.query(text)
    assert query.answers == 15_372
    cells = np.random.default_rng(1).integers(0, schema.schema.cells, 50)
    place = {
        level: group
        for group, levels in enumerate(schema.recodes[text.split(" * ")[-1]].groups)
        for level in levels
    }
    for cell, label in zip(cells.tolist(), query.labels(cells).tolist(), strict=True):
        sex, _, hisp, race, _, tenure, kind = np.unravel_index(cell, schema.schema.shape)
        assert np.ravel_multi_index((sex, hisp, race, tenure, place[int(kind)]), (2, 2, 7, 3, 183)) == label
