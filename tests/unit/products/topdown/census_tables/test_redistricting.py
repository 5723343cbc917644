"""The tables of the redistricting data by their definitions are those that a run writes by code of its own."""

from __future__ import annotations

import numpy as np

from censafe.model.sparse import SparseLevel
from censafe.model.topdown.pl94 import item_names
from censafe.products.topdown.census_tables.definitions import SCHEMAS, census_tables
from censafe.products.topdown.census_tables.tabulate import AreaBlocks, tabulated
from censafe.products.topdown.configuration.shipped import shipped_schemas
from censafe.publication.tables.pl94 import TableLevel, table_items

BLOCKS = 5


def level(schema: str, seed: int) -> SparseLevel:
    """Counts in every cell that may hold records, of some blocks of which one is empty."""
    shipped = shipped_schemas()[schema]
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 4, (BLOCKS, shipped.schema.cells)) * shipped.allowed()
    counts[2] = 0
    block, cell = np.nonzero(counts)
    pointer = np.searchsorted(block, np.arange(BLOCKS + 1)).astype(np.int64)
    names = np.array([f"{one:02d}" for one in range(BLOCKS)])
    return SparseLevel(names, pointer, cell.astype(np.int32), counts[block, cell].astype(np.int32))


def test_both_give_the_same_301_items() -> None:
    persons, units = level("pl94-persons", 3), level("pl94-units", 4)
    expected = table_items(TableLevel("Block", persons, units), 0, BLOCKS)
    areas = AreaBlocks(persons.geounits, np.arange(BLOCKS))
    found, names = [], []
    for table in census_tables("pl94").values():
        schema = shipped_schemas()[SCHEMAS["pl94"][table.histogram]].schema
        blocks = persons if table.histogram == "persons" else units
        found.append(np.concatenate([own for _, own in tabulated(table, schema, blocks, areas)]))
        names += [f"{table.name}{number}" for number in range(1, len(table.lines) + 1)]
    assert len(names) == len(item_names()) == 301
    assert np.array_equal(np.hstack(found), expected)
