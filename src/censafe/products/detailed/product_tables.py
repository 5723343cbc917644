"""PUBLIC FACTS. The tables of population groups of both products."""

from __future__ import annotations

from typing import cast

from censafe.model.groups.cells import GroupTable, ProductTables
from censafe.products.configuration.source import ShippedConfig
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


def outline(shipped: ShippedConfig) -> tuple[str, ...]:
    """Every table with its universe, and the measured cells of a population group by its stat level.

    Example:
        >>> from censafe.products.configuration.source import get_shipped
        >>> outline(get_shipped("ddhca"))[1]
        '  measured cells of a population group, by its stat level: 0: 1, 1: 8, 2: 18, 3: 46'
    """
    lines = []
    for table in tables_of(cast(Product, shipped.product)).tables:
        sizes = ", ".join(f"{level}: {size}" for level, size in zip(table.shells, table.sizes, strict=True))
        lines += [
            f"Tables {table.key}: {table.title}. Universe: {table.universe}",
            f"  measured cells of a population group, by its stat level: {sizes}",
        ]
    return tuple(lines)
