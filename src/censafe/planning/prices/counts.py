"""How many tables and statistics a plan publishes, and how many of them are not sums of others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from censafe.model import CellQuery
from censafe.planning.prices.rows import PlanReport, PlanRow


@dataclass(frozen=True)
class TableCounts:
    """Numbers of a release."""

    tables: int
    statistics: int
    independent: int

    def times(self, number: int) -> TableCounts:
        """Of so many geounits."""
        return TableCounts(self.tables * number, self.statistics * number, self.independent * number)

    def plus(self, other: TableCounts) -> TableCounts:
        """Of both."""
        return TableCounts(
            self.tables + other.tables,
            self.statistics + other.statistics,
            self.independent + other.independent,
        )

    def text(self, most: str = "") -> str:
        """In words.

        Example:
            >>> TableCounts(2, 5000, 4000).text()
            '2 tables with 5,000 statistics, of which 4,000 are independent'
        """
        return (
            f"{most}{self.tables:,} {'table' if self.tables == 1 else 'tables'} with {most}{self.statistics:,} statistics, of which {most}{self.independent:,} are "
            "independent"
        )


def counts_of_queries(queries: Sequence[CellQuery], allowed: NDArray[np.bool_]) -> TableCounts:
    """Tables, statistics and independent statistics of the queries at one geounit.

    Args:
        allowed: cells that may hold records, shape (cells,); answers without such cells are always 0 and not independent.
    """
    independent = _independent(queries, allowed)
    return TableCounts(len(queries), sum(query.answers for query in queries), independent)


def _independent(queries: Sequence[CellQuery], allowed: NDArray[np.bool_]) -> int:
    if any(query.answers == len(allowed) for query in queries):
        return int(allowed.sum())
    labels = np.unique(np.stack([query.label[allowed] for query in queries]), axis=1)
    answers = [len(np.unique(label)) for label in labels]
    if max(answers) == labels.shape[1]:
        return labels.shape[1]
    rows = [label == answer for label in labels for answer in np.unique(label)]
    return int(np.linalg.matrix_rank(np.array(rows, np.float64)))


def with_counts(report: PlanReport) -> PlanReport:
    """The report with a sentence on its numbers of tables and statistics; for plans of tables, not of histograms.

    Where regions are known, a statistic is independent when it has noise of its own. Otherwise all numbers are bounds: every group
    has its most detailed table, whose cells are independent, and whose totals are their sums.
    """
    if report.answers is not None:
        groups = {
            (row.facts.table, row.facts.level): (row.facts.regions or 0) * row.facts.iterations
            for row in report.rows
        }
        own = sum(row.answers or 0 for row in report.rows if not row.derived and row.terms == 1)
        sentence = f"Published: {TableCounts(sum(groups.values()), report.answers, own).text()} (have noise of their own)."
    elif report.answers_at_most is not None:
        counted = [row for row in report.rows if row.facts.at_most is not None]
        groups_at_most = sum(row.facts.groups_at_most or 0 for row in counted)
        cells = sum((row.facts.groups_at_most or 0) * _cells(report, row) for row in counted)
        sentence = (
            f"Published: {TableCounts(groups_at_most, report.answers_at_most, cells).text('at most ')} "
            "(cells of the most detailed table)."
        )
    else:
        return report
    return replace(report, notes=(*report.notes, sentence))


def _cells(report: PlanReport, row: PlanRow) -> int:
    """Cells of the most detailed table of a measured one: the terms of its largest sum."""
    key = (row.facts.source, row.facts.level)
    return max(other.terms for other in report.rows if (other.facts.source, other.facts.level) == key)
