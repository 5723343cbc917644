"""The tables of the redistricting data by their definitions are those that a run writes, and those that are read as they are published."""

import numpy as np

from censafe.model.cells.counting import AreaBlocks, tabulated
from censafe.model.sparse import SparseLevel
from censafe.model.topdown.pl94 import GQ_ITEMS, RACE_ITEMS, TABLE_ITEMS
from censafe.population.blocks.legacy import _wrong_sums
from censafe.products.topdown.census_tables.definitions import SCHEMAS
from censafe.products.topdown.configuration.shipped import shipped_schemas
from support.histograms import dense, sparse_level
from support.pl94_items import NAMES, TABLES, items_of

BLOCKS = 5


def level(schema: str, seed: int) -> SparseLevel:
    """Counts in every cell that may hold records, of some blocks of which one is empty."""
    shipped = shipped_schemas()[schema]
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 4, (BLOCKS, shipped.schema.cells)) * shipped.allowed()
    counts[2] = 0
    return sparse_level(np.array([f"{one:02d}" for one in range(BLOCKS)]), counts)


def test_items_of_a_run_are_those_of_any_areas() -> None:
    persons, units = level("pl94-persons", 3), level("pl94-units", 4)
    areas = AreaBlocks(persons.geounits, np.arange(BLOCKS))
    values = []
    for table in TABLES.values():
        schema = shipped_schemas()[SCHEMAS["pl94"][table.histogram]].schema
        blocks = persons if table.histogram == "persons" else units
        values.append(np.concatenate([own for _, own in tabulated(table, schema, blocks, areas)]))
    assert len(NAMES) == 301
    assert np.array_equal(np.hstack(values), items_of(persons, units))


def test_items_are_where_the_published_files_have_them() -> None:
    persons, units = level("pl94-persons", 5), level("pl94-units", 6)
    cells = dense(persons, 8 * 2 * 2 * 63).reshape(BLOCKS, 8, 2, 2, 63)
    items = np.split(items_of(persons, units), np.cumsum(list(TABLE_ITEMS.values()))[:-1], axis=1)
    tables = dict(zip(TABLE_ITEMS, items, strict=True))
    races = np.array(RACE_ITEMS)
    assert np.array_equal(tables["P1"][:, races], cells.sum(axis=(1, 2, 3)))
    assert np.array_equal(tables["P2"][:, races + 2], cells[:, :, :, 0].sum(axis=(1, 2)))
    assert np.array_equal(tables["P3"][:, races], cells[:, :, 1].sum(axis=(1, 2)))
    assert np.array_equal(tables["P4"][:, races + 2], cells[:, :, 1, 0].sum(axis=1))
    assert np.array_equal(tables["P5"][:, list(GQ_ITEMS)], cells[:, 1:].sum(axis=(2, 3, 4)))
    assert not any(wrong.any() for wrong in _wrong_sums(tables).values())
