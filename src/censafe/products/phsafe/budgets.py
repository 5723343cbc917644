"""Budgets of PHSafe as a planner turns them, and what an accuracy target on a table means for them."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from censafe.errors import ConfigError
from censafe.model import Definition
from censafe.model.entries import nearest
from censafe.planning.prices.programme import Term
from censafe.planning.prices.rows import QueryFacts
from censafe.planning.prices.targets import Asked
from censafe.products.phsafe.config import PhsafeConfig
from censafe.products.phsafe.config_checks import level_labels, measured_tables
from censafe.products.phsafe.definitions import phsafe_definitions
from censafe.products.phsafe.plan import plan_release
from censafe.products.phsafe.sensitivity import neighbours_of, sensitivity_bound

__all__ = ["asked", "budgets_of", "overrides", "query_facts"]


def query_facts(config: PhsafeConfig) -> tuple[QueryFacts, ...]:
    """Size and truncation of every published table and level, measured or derived, in the order of the paper's table.

    Rows of a state level are counted for the states of the configuration; a release has those of them that
    occur in the geography file.
    """
    definitions = phsafe_definitions()
    facts = []
    for table in definitions.tables:
        terms = (
            {cell: len(sources) for cell, sources in table.derived.cells.items()}
            if table.derived
            else {cell.id: 1 for cell in table.basis}
        )
        source = table.derived.source if table.derived else table.name
        levels = definitions.levels(table)
        for level, label in level_labels().items():
            if level not in levels:
                continue
            geography, group = levels[level]
            facts.append(
                QueryFacts(
                    table=table.name,
                    level=level,
                    label=label,
                    source=source,
                    tau=config.tau_of(source),
                    regions=len(geography.region_ids(config.states)),
                    iterations=len(group.iterations),
                    terms=terms,
                    target=config.moe_targets.get((table.name, level)),
                    places=config.paper_places(table.name, level),
                )
            )
    return tuple(facts)


def budgets_of(config: PhsafeConfig) -> dict[str, Fraction]:
    """Budgets above 0 by ``TABLE/LEVEL``.

    Example:
        >>> from censafe.products.phsafe.config import load_phsafe_config
        >>> budgets_of(load_phsafe_config("sdhc-us"))["PH3/state_A-G"]
        Fraction(10359, 15625)
    """
    return {
        f"{query.table}/{query.level}": query.cost
        for part in plan_release(config).parts
        for query in part.queries
    }


def asked(config: PhsafeConfig, name: str) -> tuple[Asked, ...]:
    """The published table and level, or all levels of a table, that a target names.

    A table that is computed from another one asks for that one's budget; its cell with the most draws decides.

    Raises:
        ConfigError: an unknown table or level, or pure DP.

    Example:
        >>> from censafe.products.phsafe.config import load_phsafe_config
        >>> [one.name for one in asked(load_phsafe_config("sdhc-us"), "PH6")]
        ['PH6/usa_*', 'PH6/state_*']
    """
    if config.definition is not Definition.ZCDP:
        raise ConfigError("targets are turned into budgets under privacy_definition zcdp only")
    table, _, level = name.replace(".", "/", 1).partition("/")
    facts = [fact for fact in query_facts(config) if fact.table == table]
    if not facts:
        tables = list(dict.fromkeys([*measured_tables(), *(fact.table for fact in query_facts(config))]))
        raise ConfigError(
            f"there is no table {table!r}; they are {', '.join(tables)}.{nearest(table, tables)}"
        )
    found = [fact for fact in facts if level in ("", fact.level)]
    if not found:
        levels = ", ".join(fact.level for fact in facts)
        raise ConfigError(f"{table} has no level {level!r}; its levels are {levels}")
    wanted = []
    for fact in found:
        bound = sensitivity_bound(
            config.sensitivity, neighbours_of(config.sensitivity), config.tau_of(fact.source)
        )
        draws = max(fact.terms.values())
        term = Term(draws * bound.l2_squared / 2, {f"{fact.source}/{fact.level}": Fraction(1)})
        wanted.append(Asked(f"{fact.table}/{fact.level}", (term,), draws == 1))
    return tuple(wanted)


def overrides(config: PhsafeConfig, budgets: Mapping[str, Fraction]) -> dict[str, str]:
    """``--set`` keys and values.

    Example:
        >>> from censafe.products.phsafe.config import load_phsafe_config
        >>> overrides(load_phsafe_config("sdhc-us"), {"PH3/state_A-G": Fraction(1, 3)})
        {'budget.PH3.state_A-G': '1/3'}
    """
    return {f"budget.{name.replace('/', '.', 1)}": str(value) for name, value in budgets.items()}
