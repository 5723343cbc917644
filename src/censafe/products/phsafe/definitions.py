"""PHSafe's table definitions, read from ``tables.toml`` once, and tables that are sums of answers already measured."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache
from importlib import resources

import numpy as np
from numpy.typing import NDArray

from censafe.model import Axis, KeyDomain, Measurements, PublishedQuery
from censafe.tabulation.tables.definitions import DefinitionSet, TableDefinition, load_definitions


@lru_cache(maxsize=1)
def phsafe_definitions() -> DefinitionSet:
    """The eleven S-DHC tables with their cells, iterations and levels.

    Source: PHSafe paper, section 4; the Bureau's PHSafe 3.0.0.

    Example:
        >>> definitions = phsafe_definitions()
        >>> [table.name for table in definitions.measured]
        ['PH1_num', 'PH1_denom', 'PH2', 'PH3', 'PH4', 'PH5_denom', 'PH6', 'PH7', 'PH8_denom']
        >>> list(definitions.levels(definitions.table("PH2")))
        ['usa_*', 'state_*']
    """
    return load_definitions(definitions_text(), "tables.toml")


def definitions_text() -> str:
    """The definitions as they are shipped, TOML."""
    return resources.files("censafe.products.phsafe").joinpath("tables.toml").read_text(encoding="utf-8")


def measured_tables() -> tuple[str, ...]:
    """Tables that noise is added to, in their fixed order."""
    return tuple(table.name for table in phsafe_definitions().measured)


def truncated_tables() -> tuple[str, ...]:
    """Measured tables of persons, each with a tau."""
    return tuple(table.name for table in phsafe_definitions().measured if table.truncated)


def levels_of(table: str) -> tuple[str, ...]:
    """Population group levels of a measured table, in their fixed order.

    Example:
        >>> levels_of("PH2")
        ('usa_*', 'state_*')
    """
    definitions = phsafe_definitions()
    return tuple(definitions.levels(definitions.table(table)))


def published_queries(measurements: Iterable[Measurements]) -> tuple[PublishedQuery, ...]:
    """Everything that a release publishes: the measured tables and the derived ones, in output order.

    PH5_num exists at the levels where PH4 does, PH8_num where PH7 does.

    Source: PHSafe paper, section 5; the Bureau's PHSafe 3.0.0.
    """
    answers = {(answer.query.table, answer.query.level): answer for answer in measurements}
    definitions = phsafe_definitions()
    published = []
    for table in definitions.tables:
        source = table.derived.source if table.derived else table.name
        for level in definitions.levels(table):
            answer = answers.get((source, level))
            if answer is not None:
                published.append(derive(table, answer) if table.derived else PublishedQuery.measured(answer))
    return tuple(published)


def derive(table: TableDefinition, answer: Measurements) -> PublishedQuery:
    """The answers of a derived table at the level of ``answer``, which are those of its source table."""
    if table.derived is None or table.derived.source != answer.query.table:
        raise ValueError(f"{table.name} is not derived from {answer.query.table}")
    domain, values, terms = sum_cells(table, answer.domain, answer.values)
    return PublishedQuery(
        table=table.name,
        level=answer.query.level,
        domain=domain,
        values=values,
        terms=terms,
        law=answer.query.law,
        cost=Fraction(0),
        source=answer.source,
    )


def sum_cells(
    table: TableDefinition, domain: KeyDomain, values: NDArray[np.int64]
) -> tuple[KeyDomain, NDArray[np.int64], NDArray[np.int64]]:
    """Add up the cells of a source table to those of a derived table.

    Args:
        values: int64, shape (domain.size,).
    """
    if table.derived is None:
        raise ValueError(f"{table.name} is measured, not derived")
    *outer, cells = domain.axes
    matrix = np.zeros((len(cells.values), len(table.derived.cells)), dtype=np.int64)
    for column, sources in enumerate(table.derived.cells.values()):
        matrix[[cells.values.index(source) for source in sources], column] = 1
    sums = values.reshape(-1, len(cells.values)) @ matrix
    terms = np.tile(matrix.sum(axis=0), len(sums))
    keys = KeyDomain((*outer, Axis(table.cell_column, tuple(table.derived.cells))))
    return keys, sums.reshape(-1), terms
