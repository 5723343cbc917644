"""PH5_num and PH8_num: sums of answers that are already measured, at no further loss."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

import numpy as np

from censafe.model import Axis, KeyDomain, Measurements, PublishedQuery
from censafe.products.phsafe.definitions import phsafe_definitions
from censafe.tabulation.definitions import Derivation, TableDefinition

__all__ = ["derive", "published_queries"]


def published_queries(measurements: Iterable[Measurements]) -> tuple[PublishedQuery, ...]:
    """Everything that a release publishes: the measured tables and the derived ones, in output order.

    PH5_num exists at the levels where PH4 does, PH8_num where PH7 does.

    Args:
        measurements: of any tables and levels, in any order.

    Returns:
        One value a table and level. A derived row has the noise of its source rows and says how many draws
        are in it: PH5_num repeats PH4; PH8_num cell 2 adds PH7 cells 2 and 3, and cell 3 repeats PH7 cell 4.

    Source: PHSafe paper, section 5; the Bureau's PHSafe 3.0.0.
    """
    found = {(answer.query.table, answer.query.level): answer for answer in measurements}
    definitions = phsafe_definitions()
    published = []
    for table in definitions.tables:
        source = table.derived.source if table.derived else table.name
        for level in definitions.levels(table):
            answer = found.get((source, level))
            if answer is not None:
                published.append(derive(table, answer) if table.derived else PublishedQuery.measured(answer))
    return tuple(published)


def derive(table: TableDefinition, answer: Measurements) -> PublishedQuery:
    """The answers of a derived table at the level of ``answer``, which are those of its source table.

    Args:
        table: a derived table.
        answer: measurements of its source; cells are the last axis of the domain.

    Raises:
        ValueError: the table is not derived, or not from the table of ``answer``.
    """
    if table.derived is None or table.derived.source != answer.query.table:
        raise ValueError(f"{table.name} is not derived from {answer.query.table}")
    *outer, cells = answer.domain.axes
    sums = _sums(table.derived, cells.values)
    domain = KeyDomain((*outer, Axis(table.cell_column, tuple(table.derived.cells))))
    values = answer.values.reshape(-1, len(cells.values)) @ sums
    terms = np.tile(sums.sum(axis=0), len(values))
    return PublishedQuery(
        table=table.name,
        level=answer.query.level,
        domain=domain,
        values=values.reshape(-1),
        terms=terms,
        law=answer.query.law,
        cost=Fraction(0),
        source=answer.source,
    )


def _sums(derivation: Derivation, cells: Sequence[str]) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """0/1 matrix: source cell by derived cell."""
    matrix = np.zeros((len(cells), len(derivation.cells)), dtype=np.int64)
    for column, sources in enumerate(derivation.cells.values()):
        for source in sources:
            matrix[cells.index(source), column] = 1
    return matrix
