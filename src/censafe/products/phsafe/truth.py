"""CONFIDENTIAL. PHSafe's true counts, with margins and without truncation or noise."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from censafe.products.phsafe.definitions import phsafe_definitions
from censafe.tabulation.tables.counting import ITERATION_AXIS, REGION_AXIS, CountAccumulator
from censafe.tabulation.tables.definitions import EVERYONE

__all__ = ["TruthRow", "TruthTable", "truth_tables"]


@dataclass(frozen=True, order=True)
class TruthRow:
    """CONFIDENTIAL. One true count that is not zero."""

    region_type: str
    region_id: str
    iteration: str
    cell: str
    count: int = field(repr=False)


@dataclass(frozen=True)
class TruthTable:
    """CONFIDENTIAL. The true counts of one table.

    Args:
        table: for example ``PH3``.
        cell_column: name of the cell column in the Bureau's layout.
        iterated: whether the Bureau's layout has an ITERATION_CODE column.
        rows: counts that are not zero, in the order of levels, regions, iterations and cells.
    """

    table: str
    cell_column: str
    iterated: bool
    rows: tuple[TruthRow, ...] = field(repr=False)


def truth_tables(accumulator: CountAccumulator) -> dict[str, TruthTable]:
    """CONFIDENTIAL. The true tables of an accumulator of mode ``truth``: all cells, margins included.

    The universes are those of the reference's ground truth, which differ from a release's for PH1_num and
    PH8_num; a record that meets no detailed cell still counts in the margins that it meets.

    Raises:
        DataError: no region is left.
    """
    definitions = phsafe_definitions()
    counts = accumulator.finish()
    truth = {}
    for name in dict.fromkeys(table for table, _ in counts):
        table = definitions.table(name)
        rows: list[TruthRow] = []
        for level, (geography, _) in definitions.levels(table).items():
            exact = counts[name, level]
            keys = [exact.domain.column(axis) for axis in (REGION_AXIS, table.cell_column)]
            codes = (
                exact.domain.column(ITERATION_AXIS)
                if table.iterated
                else np.full(exact.domain.size, EVERYONE)
            )
            for row in np.flatnonzero(exact.values).tolist():
                region, cell = (str(column[row]) for column in keys)
                rows.append(
                    TruthRow(geography.region_type, region, str(codes[row]), cell, int(exact.values[row]))
                )
        truth[name] = TruthTable(name, table.cell_column, table.iterated, tuple(rows))
    return truth
