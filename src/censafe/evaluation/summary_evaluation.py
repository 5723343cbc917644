"""CONFIDENTIAL. The tables of the summary metrics beside the frames of an evaluation."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from censafe.evaluation.histograms.frames import stacked
from censafe.evaluation.outputs import wide_metrics
from censafe.evaluation.summary_counts import SummarySources
from censafe.evaluation.summary_filling import FilledTable, fill_book, summary_frame, summary_long
from censafe.evaluation.summary_reading import shipped_book
from censafe.evaluation.summary_tables import SummaryBook

__all__ = ["SHEETLESS", "summarise"]

SHEETLESS = ("metrics_long", "summary_tables")
"""Frames that the workbook does without: it has the same numbers in sheets of their own."""


def summarise(
    sources: SummarySources, frames: Mapping[str, pa.Table], book: SummaryBook | None = None
) -> tuple[tuple[FilledTable, ...], dict[str, pa.Table]]:
    """Fill tables, and add their numbers to the frames.

    Args:
        sources: what the tables are filled from.
        frames: of the evaluation; ``metrics_long`` and ``metrics_wide`` grow where they are among them.
        book: of tables; the shipped one without.

    Returns:
        Filled tables for the workbook, and all frames, ``summary_tables`` among them.
    """
    tables = fill_book(book or shipped_book(), sources)
    long = summary_long(tables, sources.runs)
    if "metrics_long" in frames:
        long = stacked([frames["metrics_long"], long])
    more = {"metrics_long": long, "metrics_wide": wide_metrics(long), "summary_tables": summary_frame(tables)}
    return tables, {**frames, **more}
