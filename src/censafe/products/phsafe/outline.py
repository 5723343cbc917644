"""The tables of PHSafe as lines of text, to be printed with a configuration."""

from __future__ import annotations

from censafe.products.configuration.source import ShippedConfig
from censafe.products.phsafe.config import load_phsafe_config
from censafe.products.phsafe.definitions import phsafe_definitions


def outline(shipped: ShippedConfig) -> tuple[str, ...]:
    """Every table with its levels and cells.

    Example:
        >>> from censafe.products.configuration.source import get_shipped
        >>> outline(get_shipped("sdhc-us"))[:2]
        ('Table PH1_num: Persons in occupied housing units by age.', '  levels: usa_A-G, usa_H,I, usa_*, state_A-G, state_H,I, state_*')
    """
    config, definitions = load_phsafe_config(shipped.name), phsafe_definitions()
    lines = []
    for table in definitions.tables:
        source = table.derived.source if table.derived else table.name
        levels = [level for level in definitions.levels(table) if (source, level) in config.budgets]
        origin = f"; derived from {source}, without noise of its own" if table.derived else ""
        lines += [f"Table {table.name}: {table.label}{origin}.", f"  levels: {', '.join(levels)}"]
        lines += [f"  cell {cell.id}: {cell.label}" for cell in table.basis]
    return tuple(lines)
