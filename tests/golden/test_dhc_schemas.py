"""Recodes, edit rules and levels of the Demographic and Housing Characteristics File, against those of the production code."""

import csv
import json
from typing import Any

import numpy as np
import pytest

from censafe.products.topdown.configuration.level_tables import schema_text
from censafe.products.topdown.configuration.shipped import shipped_schemas
from support.shared import shared_data

NAMES = {"dhc-persons": "dhcp", "dhc-households": "dhch", "dhc-units": "dhch_units"}


def reference(name: str) -> Any:
    return json.loads(shared_data(f"topdown/{name}.json").read_text())


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
