"""An evaluation as one workbook: the Bureau's summary metrics, then a sheet a frame; every sheet stamped."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import xlsxwriter

from censafe.evaluation.confidential import Confidentiality
from censafe.evaluation.outputs import column_meaning
from censafe.evaluation.summary.filling import FilledTable
from censafe.evaluation.summary.sheets import add_summary_sheets
from censafe.model.safe_text import WORKBOOK_OPTIONS
from censafe.publication.atomic import atomic_bytes

_FILE: Final = "workbook.xlsx"
_MOST_ROWS: Final = 1_000_000
_LONGEST_NAME: Final = 31
_NEVER: Final = datetime(2020, 1, 1, tzinfo=UTC)  # the same frames make the same bytes


def write_workbook(
    folder: Path,
    frames: Mapping[str, pa.Table],
    summary: Sequence[FilledTable] = (),
    *,
    standing: Confidentiality = Confidentiality.COMPARED,
) -> str:
    """Write ``workbook.xlsx``: tables of summary metrics; frames with stamp, names of columns and rows; what columns mean."""
    buffer = io.BytesIO()
    book = xlsxwriter.Workbook(buffer, {**WORKBOOK_OPTIONS, "nan_inf_to_errors": False})
    book.set_properties({"created": _NEVER, "status": standing.value})
    bold, stamp = book.add_format({"bold": True}), book.add_format({"bold": True, "font_color": "#8c1414"})
    marked = (standing.value, stamp)
    if summary:
        add_summary_sheets(book, summary, standing.value)
    columns: dict[str, None] = {}
    for name, frame in frames.items():
        if frame.num_rows <= _MOST_ROWS:
            rows = [[_plain(value) for value in row.values()] for row in frame.to_pylist()]
            _sheet(book, name, frame.column_names, rows, bold, marked)
            columns |= dict.fromkeys(frame.column_names)
    meanings = [[name, *column_meaning(name)] for name in columns]
    _sheet(book, "columns", ["column", "meaning", "unit"], meanings, bold, marked)
    book.close()
    with atomic_bytes(folder / _FILE) as stream:
        stream.write(buffer.getvalue())
    return _FILE


def _sheet(
    book: Any, name: str, head: list[str], rows: list[list[Any]], bold: Any, marked: tuple[str, Any]
) -> None:
    sheet = book.add_worksheet(name[:_LONGEST_NAME])
    sheet.write(0, 0, *marked)
    sheet.write_row(1, 0, head, bold)
    for place, row in enumerate(rows, 2):
        sheet.write_row(place, 0, row)
    sheet.freeze_panes(2, 0)
    sheet.autofilter(1, 0, 1 + max(1, len(rows)), len(head) - 1)
    for place, one in enumerate(head):
        longest = max((len(str(row[place])) for row in rows[:200]), default=0)
        sheet.set_column(place, place, min(60, max(len(one), longest) + 2))


def _plain(value: Any) -> Any:
    """What a cell can hold; an empty text for what is not a number."""
    if isinstance(value, float) and not math.isfinite(value):
        return "" if math.isnan(value) else "infinite"
    return "" if value is None else value
