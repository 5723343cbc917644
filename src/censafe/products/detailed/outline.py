"""The tables of SafeTab-P and SafeTab-H as lines of text, to be printed with a configuration."""

from __future__ import annotations

from typing import cast

from censafe.products.configuration.source import ShippedConfig
from censafe.products.detailed.keys import Product
from censafe.products.detailed.product_tables import tables_of


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
