"""PUBLIC FACTS. The tables of population groups of both products."""

from __future__ import annotations

from censafe.model.groups.cells import GroupTable, ProductTables
from censafe.products.detailed.households.variants import published_tables
from censafe.products.detailed.keys import CLASSES, Product
from censafe.products.detailed.persons.tables import person_tables


def tables_of(product: Product) -> ProductTables:
    """Files and cells of a product's tables.

    Example:
        >>> tables_of("safetab-p").keys, tables_of("safetab-h").keys
        (('t1t2',), ('t3', 't4'))
    """
    return person_tables() if product == "safetab-p" else published_tables()


def measured_table(key: str) -> GroupTable:
    """The tables of either product that are measured under a key; KeyError where there are none.

    Example:
        >>> measured_table("t4").title
        'Tenure'
    """
    return {table.key: table for product in CLASSES for table in tables_of(product).tables}[key]
