"""The production budgets, their noise and what they mean, digit for digit, from the shipped configurations."""

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from censafe.model import Definition, Neighbors
from censafe.privacy.loss.conversions import epsilons
from censafe.privacy.noise.variance import exact_variance
from censafe.products.topdown.configuration.config import TopdownConfig, load_config
from censafe.products.topdown.plan import plan_release, rows_loss, workloads
from censafe.products.topdown.planner import report
from censafe.products.topdown.readings import attribute_losses
from support.printed_losses import levels_below
from support.shared import shared_data

DELTA = Fraction(1, 10**10)
RUNS = [
    (f"pl94-{area}", histogram, f"pl94_{histogram}_{area}")
    for area in ("us", "pr")
    for histogram in ("persons", "units")
]


def reference(name: str) -> Any:
    return json.loads(shared_data(f"topdown/{name}.json").read_text())


def tight(rho: Fraction) -> float:
    return round(epsilons(rho, DELTA).tight, 4)


@pytest.mark.parametrize(("name", "histogram", "file"), [*RUNS, ("e2e-1940", "persons", "e2e_1940")])
def test_every_budget_is_the_productions(name: str, histogram: str, file: str) -> None:
    source = reference(file)
    loads = [load for load in workloads(load_config(name)) if load.histogram.name == histogram]
    assert [level["name"] for level in source["geolevels_top_down"]] == [load.level.name for load in loads]
    for load in loads:
        expected = source["measurements"][load.level.name]
        queries = list(zip(load.queries, load.part.queries, strict=True))
        assert [item["query"] for item in expected] == [query.name for query, _ in queries]
        assert [item["cells"] for item in expected] == [query.answers for query, _ in queries]
        for item, (_, plan) in zip(expected, queries, strict=True):
            assert Fraction(item["rho" if "rho" in item else "epsilon"]) == plan.cost
        if "cells_per_geounit" in source:
            assert source["cells_per_geounit"][load.level.name] == load.answers
            assert Fraction(source["rho_by_level"][load.level.name]) == sum(q.cost for q in load.part.queries)


@pytest.mark.parametrize(("name", "histogram", "file"), [*RUNS, ("e2e-1940", "persons", "e2e_1940")])
def test_the_order_of_estimation_is_the_productions(name: str, histogram: str, file: str) -> None:
    passes = load_config(name).histogram(histogram).passes
    for entry in reference(file)["orderings"]:
        for level in entry["levels"]:
            assert entry["order"]["l2"] == json.loads(json.dumps(passes[level].l2))
            assert entry["order"]["rounder"] == json.loads(json.dumps(passes[level].rounding))


@pytest.mark.parametrize(("name", "histogram", "file"), RUNS)
def test_certificates_are_reproduced(name: str, histogram: str, file: str) -> None:
    expected = reference("certificate_epsilons")["runs"][file]
    config = load_config(name, {"measure": histogram})
    measured = config.histogram(histogram)
    total = rows_loss(plan_release(config))
    assert Fraction(expected["rho_total"]) == total
    assert expected["eps_total_tight"] == tight(total)
    assert expected["eps_total_bun_steinke"] == round(epsilons(total, DELTA).slide, 4)
    printed = expected["certificate"]
    assert abs(Fraction(printed["eps_total"]) - Fraction(epsilons(total, DELTA).tight)) < Fraction(1, 10**4)
    for kind, losses in (
        ("attributes", attribute_losses(config, measured)),
        ("block_within", levels_below(config, measured)),
    ):
        assert set(expected[kind]) == set(losses)
        for key, loss in losses.items():
            assert Fraction(expected[kind][key]["rho"]) == loss
            assert expected[kind][key]["eps_tight"] == tight(loss)
            assert printed[kind][key] == round(epsilons(loss, DELTA).tight, 2)


@pytest.mark.parametrize("name", ["pl94-us", "pl94-pr"])
def test_persons_and_units_compose(name: str) -> None:
    expected = reference("certificate_epsilons")["runs"]["pl94_persons_plus_units"]
    shown = report(load_config(name), confidence=Fraction(9, 10), delta=DELTA)
    assert Neighbors.REPLACE in shown.totals
    total = rows_loss(shown.plan)
    assert Fraction(expected["rho_total"]) == total
    assert expected["eps_total_tight"] == round(epsilons(total, DELTA).tight, 4)
    assert expected["eps_total_bun_steinke"] == round(epsilons(total, DELTA).slide, 4)
    both = {(item.kind, item.name): item.loss for item in shown.readings if item.histogram == "all"}
    # a household that moves: one person and two units
    assert round(float(both["Block within", "Block_Group"]), 4) == 0.1210
    config = load_config(name)
    printed = sum(levels_below(config, histogram)["Block_Group"] for histogram in config.histograms)
    assert round(float(printed), 4) == 0.1119


def deviations(config: TopdownConfig, histogram: str, query: str) -> list[float]:
    """Standard deviations by level, to three digits."""
    found = []
    for load in workloads(config):
        for asked, plan in zip(load.queries, load.part.queries, strict=True):
            if load.histogram.name == histogram and asked.name == query:
                found.append(float(f"{math.sqrt(exact_variance(plan.law)):.3g}"))
    return found


def test_standard_deviations_of_the_specification() -> None:
    config = load_config("pl94-us")
    assert deviations(config, "persons", "total") == [1.10, 2.17, 2.47, 1.75, 89.2]
    assert deviations(config, "persons", "detailed") == [4.43, 4.45, 4.42, 4.46, 2.02, 3.18]
    assert deviations(config, "units", "detailed") == [52.3, 52.3, 12.5, 6.13, 5.58, 10.5]


@pytest.mark.parametrize("total", ["1/4", "1/2", "3/4", "1", "2", "4", "6", "8"])
def test_the_variance_of_1940_follows_the_corrected_formula(total: str) -> None:
    plan = plan_release(load_config("e2e-1940", {"epsilon": total}))
    assert Definition.PURE is plan.definition
    assert Fraction(total) == plan.total
    for share, query in zip(
        (Fraction(1, 10), Fraction(9, 40), Fraction(27, 40)), plan.parts[0].queries, strict=True
    ):
        epsilon = Fraction(total) / 4 * share
        assert epsilon == query.cost
        p = -math.expm1(-epsilon / 2)
        assert exact_variance(query.law) == pytest.approx(2 * (1 - p) / p**2, rel=1e-12)


def as_toml(source: Any, recodes: Any) -> str:
    """The persons of the Demographic and Housing Characteristics File as a configuration of one's own."""
    total = Fraction(source["privacy"]["rho_total"])
    lines = [f'rho = "{total}"', "levels = ["]
    lines += [
        f'{{ name = "{level["name"]}", prefix = {position} }},'
        for position, level in enumerate(source["geolevels_top_down"])
    ]
    attributes = (f'{{ name = "{name}", levels = {levels} }}' for name, levels in source["schema"]["main"])
    lines += ["]", "[schemas.dhcp]", f"attributes = [{', '.join(attributes)}]"]
    for name, recode in recodes.items():
        lines += [
            f"[schemas.dhcp.recodes.{name}]",
            f'attribute = "{recode["attribute"]}"',
            f"groups = {recode['groups']}",
        ]
    lines += ["[histograms.persons]", 'schema = "dhcp"', "[level_shares.persons]"]
    costs = {
        level: {item["query"]: Fraction(item["rho"]) for item in items}
        for level, items in source["measurements"].items()
    }
    lines += [f'{level} = "{sum(queries.values()) / total}"' for level, queries in costs.items()]
    for level, queries in costs.items():
        lines.append(f"[query_shares.persons.{level}]")
        lines += [f'"{query}" = "{cost / sum(queries.values())}"' for query, cost in queries.items()]
    return "\n".join(lines)


@pytest.mark.parametrize("area", ["us", "pr"])
def test_a_schema_of_a_million_cells_is_data(area: str, tmp_path: Path) -> None:
    source, expected = reference(f"dhcp_{area}"), reference("certificate_epsilons")["runs"][f"dhcp_{area}"]
    path = tmp_path / "dhcp.toml"
    path.write_text(as_toml(source, reference("recodes")["dhcp"]), encoding="utf-8")
    config = load_config(path)
    histogram = config.histogram("persons")
    assert source["schema"]["main_cells"] == histogram.schema.schema.cells
    assert Fraction(expected["rho_total"]) == rows_loss(plan_release(config))
    cells = [{query.name: query.answers for query in load.queries} for load in workloads(config)]
    assert [
        {item["query"]: item["cells"] for item in items} for items in source["measurements"].values()
    ] == cells
    for kind, losses in (
        ("attributes", attribute_losses(config, histogram)),
        ("block_within", levels_below(config, histogram)),
    ):
        assert {key: Fraction(item["rho"]) for key, item in expected[kind].items()} == losses


def test_readings_of_1940_are_epsilons() -> None:
    shown = report(load_config("e2e-1940"), confidence=Fraction(9, 10), delta=DELTA)
    found = {(item.kind, item.name): item for item in shown.readings}
    assert Fraction(13, 160) == found["attribute", "hhgq"].loss
    assert Fraction(1, 8) == found["Enumdist within", "State"].loss
    assert all(item.epsilons is None for item in shown.readings)


# The shipped configurations for other areas and schemas have the budgets of production.


# what a query of production becomes where there is no kind of quarters, and one attribute for origin and race
BECOMES = {
    "total": "total",
    "hhgq": "total",
    "hhinstlevels": "total",
    "hispanic": "hispanic",
    "votingage": "votingage",
    "votingage * hispanic": "votingage * hispanic",
    "cenrace": "hispanic_race",
    "hispanic * cenrace": "hispanic_race",
    "votingage * cenrace": "detailed",
    "votingage * hispanic * cenrace": "detailed",
    "detailed": "detailed",
}


def test_sixteen_counts_have_production_shares() -> None:
    known = load_config("pl94-us").histogram("persons")
    ours = load_config("blocks-16").histogram("persons")
    assert known.loss == ours.loss
    assert known.level_shares == ours.level_shares
    for level, shares in known.query_shares.items():
        expected: dict[str, Fraction] = {}
        for query, share in shares.items():
            expected[BECOMES[query]] = expected.get(BECOMES[query], Fraction(0)) + share
        assert expected == ours.query_shares[level]


def test_sixteen_counts_are_voting_age_by_hispanic_origin_and_race() -> None:
    schema = load_config("blocks-16").histogram("persons").schema
    assert schema.schema.shape == (2, 8)
    assert schema.facilities is None
    assert schema.query("hispanic").label.tolist() == [0, *[1] * 7] * 2


@pytest.mark.parametrize("histogram", ["persons", "units"])
def test_tracts_have_the_noise_of_production(histogram: str) -> None:
    known = load_config("pl94-us").histogram(histogram)
    ours = load_config("pl94-tracts").histogram(histogram)
    assert tuple(ours.level_shares) == ("US", "State", "County", "Tract")
    for level in ours.level_shares:
        assert known.query_shares[level] == ours.query_shares[level]
        assert known.passes[level] == ours.passes[level]
        for query in ours.query_shares[level]:
            assert known.cost(level, query) == ours.cost(level, query)
