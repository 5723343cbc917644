"""What a PHSafe release measures, in which order, and what it costs; no data is opened."""

from __future__ import annotations

import hashlib
from fractions import Fraction

from censafe.errors import ConfigError
from censafe.model import Neighbors, PartPlan, ProtectedUnit, QueryPlan, ReleasePlan
from censafe.products.configuration.source import ShippedConfig
from censafe.products.phsafe import definitions
from censafe.products.phsafe.config import PhsafeConfig, load_phsafe_config
from censafe.products.phsafe.definitions import (
    levels_of,
    loss_factor,
    measured_tables,
    neighbors_of,
    noise_law,
    phsafe_definitions,
    relation_text,
    truncated_tables,
)


def plan_release(config: PhsafeConfig) -> ReleasePlan:
    """Lay out one part for every measured table and one query for every level with a budget.

    Parts are in the order of the definitions (PH1_num, PH1_denom, PH2, PH3, PH4, PH5_denom, PH6, PH7, PH8_denom),
    queries in the order of their levels; a level with budget 0 is absent, and so is a table without levels.

    Example:
        >>> from censafe.products.phsafe.config import load_phsafe_config
        >>> plan = plan_release(load_phsafe_config("sdhc-pr"))
        >>> plan.total, [query.level for query in plan.parts[2].queries]
        (Fraction(1226649, 1000000), ['state_*'])
    """
    parts = tuple(_part(config, table, levels) for table, levels in measured_table_levels(config).items())
    if not parts:
        raise ConfigError(
            f"{config.origin}: all budgets are 0, so nothing would be released; "
            "give at least one table and level a budget above 0"
        )
    settings = {
        "states": ",".join(config.states),
        "sensitivity": config.sensitivity,
        # which cells the plan speaks of
        "definitions": hashlib.sha256(definitions.definitions_text().encode()).hexdigest(),
    }
    settings |= {
        f"tau.{table}": str(config.tau[table]) for table in truncated_tables() if table in config.tau
    }
    for neighbors in Neighbors:
        settings[f"neighbors.{neighbors.value}"] = relation_text(config.sensitivity, neighbors)
    total = sum((part.cost for part in parts), Fraction(0))
    own = neighbors_of(config.sensitivity)
    other = Neighbors.REPLACE if own is Neighbors.ADD_REMOVE else Neighbors.ADD_REMOVE
    return ReleasePlan(
        product="phsafe",
        definition=config.definition,
        neighbors=own,
        unit=ProtectedUnit.PERSON,
        other_losses={other: total * loss_factor(config.definition, config.sensitivity, other)},
        parts=parts,
        settings=settings,
    )


def measured_table_levels(config: PhsafeConfig) -> dict[str, tuple[str, ...]]:
    """Levels with a budget above 0 by measured table, in fixed order; tables without any are absent.

    Example:
        >>> from censafe.products.phsafe.config import load_phsafe_config
        >>> measured_table_levels(load_phsafe_config("sdhc-pr"))["PH6"]
        ('state_*',)
    """
    levels = {
        table: tuple(level for level in levels_of(table) if config.budgets[table, level] != 0)
        for table in measured_tables()
    }
    return {table: measured for table, measured in levels.items() if measured}


def _part(config: PhsafeConfig, table: str, levels: tuple[str, ...]) -> PartPlan:
    queries = []
    for level in levels:
        budget = config.budgets[table, level]
        if not isinstance(budget, Fraction):
            raise ConfigError(
                f"{config.origin}: the budget of {table}, level {level} is infinite; "
                "a release needs finite budgets"
            )
        law = noise_law(config.definition, config.sensitivity, config.tau.get(table), budget)
        queries.append(QueryPlan(table, level, law, budget))
    return PartPlan(table, tuple(queries))


def outline(shipped: ShippedConfig) -> tuple[str, ...]:
    """Every table with its levels and cells.

    Example:
        >>> from censafe.products.configuration.source import get_shipped
        >>> outline(get_shipped("sdhc-us"))[:2]
        ('Table PH1_num: Persons in occupied housing units by age.', '  levels: usa_A-G, usa_H,I, usa_*, state_A-G, state_H,I, state_*')
    """
    config, shells = load_phsafe_config(shipped.name), phsafe_definitions()
    lines = []
    for table in shells.tables:
        source = table.derived.source if table.derived else table.name
        levels = [level for level in shells.levels(table) if (source, level) in config.budgets]
        origin = f"; derived from {source}, without noise of its own" if table.derived else ""
        lines += [f"Table {table.name}: {table.label}{origin}.", f"  levels: {', '.join(levels)}"]
        lines += [f"  cell {cell}: {line.label}" for cell, line in table.basis.items()]
    return tuple(lines)
