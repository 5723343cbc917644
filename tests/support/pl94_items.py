"""Items of the redistricting tables for tests, P1 to P5 of persons and H1 of housing units."""

import numpy as np
from numpy.typing import NDArray

from censafe.model.sparse import SparseLevel
from censafe.products.topdown.census_tables.definitions import SCHEMAS, census_tables
from censafe.products.topdown.configuration.shipped import shipped_schemas
from censafe.publication.tables.pl94 import TableItems, TableLevel, table_items

TABLES = census_tables("pl94")
ITEMS = tuple(
    TableItems(
        [table for table in TABLES.values() if table.histogram == histogram], shipped_schemas()[name].schema
    )
    for histogram, name in SCHEMAS["pl94"].items()
)
NAMES = tuple(name for own in ITEMS for name in own.names)


def items_of(*histograms: SparseLevel) -> NDArray[np.int32]:
    """Items of every geounit, shape (geounits, items); those of persons alone where no housing units are given."""
    level = TableLevel("of a test", histograms)
    return table_items(level, ITEMS[: len(histograms)], 0, histograms[0].nodes)
