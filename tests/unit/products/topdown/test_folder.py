"""What stands beside stored measurements: folders, columns and exact figures."""

from dataclasses import replace

import numpy as np
import pytest

from censafe.errors import ConfigError
from censafe.estimation.topdown.levels.limits import LevelLimits
from censafe.products.topdown.configuration.config import load_config
from censafe.products.topdown.configuration.shipped import shipped_schemas
from censafe.products.topdown.folder import constraints_of, place_of, recodes_of

NONE = np.zeros((3, 0), np.int64)
BOUNDS = np.arange(24, dtype=np.int64).reshape(3, 8)


def test_persons_have_bounds_zeros_and_known_totals() -> None:
    histogram = load_config("pl94-us").histogram("persons")
    found = constraints_of(
        histogram, LevelLimits(np.array([5, 6, 7]), BOUNDS, BOUNDS + 1, kinds=np.zeros(2016, np.int32)), 3
    )
    assert [(one.name, one.sign, one.shape) for one in found] == [
        ("hhgq_total_ub", "<=", (8, 1, 1, 1)),
        ("hhgq_total_lb", ">=", (8, 1, 1, 1)),
        ("nurse_nva_0", "=", (1, 1, 1, 1)),
        ("total", "=", (1, 1, 1, 1)),
    ]
    assert found[0].recodes == ("hhgq", "*", "*", "*")
    assert found[2].recodes == ("nurse_nva_0", "nurse_nva_0", "*", "*")
    assert [one.values.tolist() for one in found[2:]] == [[[0], [0], [0]], [[5], [6], [7]]]
    assert (found[0].values == BOUNDS + 1).all()


def test_a_level_without_invariants_still_lists_its_geounits() -> None:
    config = load_config("pl94-us")
    (only,) = constraints_of(config.histogram("units"), LevelLimits(None, NONE, NONE), 3)
    assert (only.name, only.sign, only.values.tolist()) == ("total_lb", ">=", [[0], [0], [0]])
    persons = config.histogram("persons")
    bare = replace(persons, schema=replace(persons.schema, zeros=(), facilities=None))
    assert [one.name for one in constraints_of(bare, LevelLimits(np.arange(3), NONE, NONE), 3)] == ["total"]


def test_columns_name_what_a_query_keeps() -> None:
    schema = shipped_schemas()["pl94-persons"]
    assert recodes_of(schema, "total") == ("*", "*", "*", "*")
    assert recodes_of(schema, "detailed") == ("hhgq", "votingage", "hispanic", "cenrace")


def test_folders_are_those_of_the_configuration() -> None:
    place = place_of(load_config("pl94-pr"))
    assert place("units_Block") == "PR_Unit_PL_PROD/Block.parquet"
    with pytest.raises(ConfigError, match=r"measurements: US_Person_PL_PROD named more than once"):
        load_config("pl94-us", {"histograms.units.measurements": "US_Person_PL_PROD"})
