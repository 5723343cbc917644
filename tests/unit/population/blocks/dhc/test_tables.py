"""The tables of the reader against the schemas that the products ship: one rule, written for records and for cells."""

import csv
from importlib.resources import files

import numpy as np

from censafe.population.blocks.dhc.tables import (
    HOUSEHOLD_SHAPE,
    PERSON_SHAPE,
    UNIT_LEVELS,
    household_recodes,
    person_recodes,
    quarters,
    relgq_label,
)
from censafe.products.topdown.configuration.shipped import shipped_schemas

FOLDER = "censafe.products.topdown.configuration"


def shipped(name: str) -> list[dict[str, str]]:
    text = files(FOLDER).joinpath("data").joinpath(name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def test_histograms_have_the_shapes_of_the_schemas():
    schemas = shipped_schemas()
    assert schemas["dhc-persons"].schema.shape == PERSON_SHAPE
    assert schemas["dhc-households"].schema.shape == HOUSEHOLD_SHAPE
    assert schemas["dhc-units"].schema.shape == (UNIT_LEVELS,)


def test_ages_that_records_may_have_are_the_cells_that_may_hold_persons():
    allowed = shipped_schemas()["dhc-persons"].allowed().reshape(PERSON_SHAPE)
    recodes, age = person_recodes(), np.arange(116)
    held = (age >= recodes.youngest[:, None]) & (age <= recodes.oldest[:, None])
    assert np.array_equal(allowed, np.broadcast_to(held[:, None, :, None, None], PERSON_SHAPE))


def test_households_that_break_no_rule_are_the_cells_that_may_hold_them():
    allowed = shipped_schemas()["dhc-households"].allowed().reshape(HOUSEHOLD_SHAPE)
    held = household_recodes().rule == 0  # sex, hhage, elderly, type
    assert np.array_equal(allowed, np.broadcast_to(held[:, :, None, None, :, None, :], HOUSEHOLD_SHAPE))


def test_levels_are_those_of_the_products():
    seven = (
        "level", "size", "couple", "own_child_class", "child_class", "multigen", "relatives", "child_present",
    )  # fmt: skip
    own = (
        files("censafe.population.blocks.dhc")
        .joinpath("data/household_types.csv")
        .read_text(encoding="utf-8")
    )
    types = [tuple(row[name] for name in seven) for row in shipped("hhtype_levels.csv")]
    assert types == [tuple(row[name] for name in seven) for row in csv.DictReader(own.splitlines())]
    relgq = shipped("relgq_levels.csv")
    assert [row["input_gqtype"].split() for row in relgq[18:]] == [
        list(map(str, one.input_codes)) for one in quarters()
    ]
    assert [row["hhgq8"] for row in relgq[18:]] == [str(one.hhgq8) for one in quarters()]
    assert len(relgq) == 42
    assert len({relgq_label(level) for level in range(42)}) == 42
