"""Queries that intervals are made for."""

import numpy as np
import pytest

from censafe.errors import UsageError
from censafe.model import SparseLevel
from censafe.products.topdown.configuration.config import load_config
from censafe.products.topdown.intervals import chosen_queries
from censafe.products.topdown.labels import item_words
from support.pl94_items import NAMES, items_of


def one_of_each(cells: int) -> SparseLevel:
    """A geounit for every cell, with one record in it."""
    names = np.array([f"{cell:04d}" for cell in range(cells)])
    return SparseLevel(
        names, np.arange(cells + 1), np.arange(cells, dtype=np.int32), np.ones(cells, np.int32)
    )


def test_tables_are_those_that_are_published():
    found = chosen_queries(load_config("pl94-us"), ("P1", "P2", "P3", "P4", "P5", "H1"))
    persons = np.vstack([query.weights for query in found["persons"]])
    items = items_of(one_of_each(2016))
    assert np.array_equal(items.T, persons)
    labels = [label for name in ("persons", "units") for query in found[name] for label in query.labels]
    assert list(NAMES) == [label.split(" ")[0] for label in labels]
    words = [word for table in ("P1", "P2", "P3", "P4", "P5", "H1") for word in item_words()[table]]
    assert [label.split(" ", 1)[1] for label in labels] == words
    assert found["units"][0].weights.tolist() == [[1, 1], [0, 1], [1, 0]]


def test_groups_of_races_part_every_cell():
    (alone, beside) = chosen_queries(load_config("pl94-us"), ("races", "votingage * races"))["persons"]
    for query, answers in ((alone, 7), (beside, 14)):
        assert (answers, 2016) == query.weights.shape
        assert query.weights.sum(axis=0).tolist() == [1.0] * 2016
    assert beside.labels[10] == "18 and over, Asian alone"
    assert alone.weights.tolist() == (beside.weights[:7] + beside.weights[7:]).tolist()


def test_any_query_of_a_schema_of_ones_own():
    config = load_config("blocks-16")
    default = chosen_queries(config, ())["persons"]
    assert [query.name for query in default] == ["total", "votingage", "hispanic_race"]
    (query,) = chosen_queries(config, ("hispanic * votingage",))["persons"]
    assert (query.labels[0].split(", ")[0], len(query.labels)) == ("under 18", 4)
    assert query.labels[1] == "under 18, not Hispanic"
    expected = config.histograms[0].schema.query("hispanic * votingage")
    assert expected.label.tolist() == query.weights.argmax(axis=0).tolist()


def test_a_name_that_nothing_has():
    with pytest.raises(
        UsageError, match=r"`queries` cenrac: no such query. Did you mean 'cenrace'\? Allowed: H1, P1"
    ):
        chosen_queries(load_config("pl94-us"), ("total", "cenrac"))
    with pytest.raises(UsageError, match="no such query"):
        chosen_queries(load_config("blocks-16"), ("races",))
    with pytest.raises(UsageError, match="no such query"):
        chosen_queries(load_config("pl94-us"), ("races * cenrace",))
