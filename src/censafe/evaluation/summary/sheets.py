"""CONFIDENTIAL. Filled tables of the summary metrics, of a pair or of runs of TopDown, as sheets of a workbook."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import xlsxwriter

from censafe.evaluation.areas import ComparedAreas, known_areas
from censafe.evaluation.confidential import Confidentiality
from censafe.evaluation.counts.frames import stacked
from censafe.evaluation.counts.pairing import PublishedRun
from censafe.evaluation.outputs import column_meaning, wide_metrics
from censafe.evaluation.summary.counts import SummarySources, kinds_of_units
from censafe.evaluation.summary.filling import FilledTable, fill_book, summary_frame, summary_long
from censafe.evaluation.summary.tables import SummaryBook, shipped_book
from censafe.evaluation.topdown.runs import EvaluatedPopulation
from censafe.model.safe_text import WORKBOOK_OPTIONS
from censafe.publication.atomic import atomic_bytes

CONTENTS: Final = "Contents"
_WORDS: Final = (
    "Words of tables are the Bureau's: the 2010 Census publicly available tabulations stand for the true counts compared here, the "
    "post-disclosure protected tabulations for the published ones."
)
_LABELS, _NUMBERS = 64, 18
_LETTERS, _LINE = 17, 14.5  # of a column head: letters a line, and points of its height
_DECIMALS: Final = frozenset(
    {
        "mean_ae", "rmse", "mape", "malpe", "cv", "me", "median_reduction", "median_age_change", "sex_ratio_change",
        "percent_met_true", "percent_met_published",
    }
)  # fmt: skip
_SHARES: Final = frozenset({"taes"})


_LINE_BELOW: Final = {"bottom": 1, "bottom_color": "#d0d0d0"}
_FORMATS: Final[Mapping[str, Mapping[str, Any]]] = {
    "stamp": {"bold": True, "font_color": "#8c1414"},
    "title": {"bold": True, "font_size": 12},
    "plain": {"font_color": "#505050"},
    "note": {"italic": True, "font_color": "#8c1414"},
    "head": {
        "bold": True, "text_wrap": True, "valign": "bottom", "bg_color": "#e8edf3", "border": 1, "border_color": "#c0c8d0",
    },
    "label": {"text_wrap": True, "valign": "top", **_LINE_BELOW},
    "heading": {"bold": True, "bg_color": "#f4f4f4"},
    "empty": {"bg_color": "#ececec", **_LINE_BELOW},
    "link": {"font_color": "#0b4a8f", "underline": 1},
    "whole": {"num_format": "#,##0", **_LINE_BELOW},
    "decimal": {"num_format": "#,##0.00", **_LINE_BELOW},
    "share": {"num_format": "0.000000", **_LINE_BELOW},
}  # fmt: skip
_Formats = Mapping[str, Any]
"""Formats of cells by name, as the workbook knows them."""


def add_summary_sheets(book: Any, tables: Sequence[FilledTable], mark: str) -> None:
    """Add a sheet of contents and the sheets of the tables to a workbook.

    A table takes a line for each of title, universe, geography and column heads, then its rows, then an empty line; the first
    starts at line 3, so that numbers stand where they stand in the Bureau's workbook. What is not in the product is grey and
    empty, and the line of the universe states why.
    """
    formats = {name: book.add_format(dict(options)) for name, options in _FORMATS.items()}
    contents = book.add_worksheet(CONTENTS)
    starts: dict[tuple[str, str], int] = {}
    for name in dict.fromkeys(one.table.sheet for one in tables):
        starts |= _sheet(book, name, [one for one in tables if one.table.sheet == name], formats, mark)
    runs = max((len(one.runs) for filled in tables for one in filled.rows), default=1)
    words = [_WORDS, f"Every number is the mean over {runs} published runs."] if runs > 1 else [_WORDS]
    contents.write(0, 0, mark, formats["stamp"])
    contents.write(1, 0, " ".join(words), formats["plain"])
    contents.write_row(
        2, 0, ["Table", "Rows", "With numbers", "Sheet", "Missing", "Title"], formats["heading"]
    )
    for at, filled in enumerate(tables, 3):
        table = filled.table
        link = f"internal:'{table.sheet}'!A{starts[table.sheet, table.number] + 1}"
        contents.write_url(at, 0, link, formats["link"], table.number.rstrip("."))
        contents.write_row(at, 1, [len(filled.rows), filled.filled, table.sheet, filled.note, table.title])
    contents.freeze_panes(3, 1)
    contents.autofilter(2, 0, 2 + len(tables), 5)
    for place, width in enumerate((24, 8, 14, 32, 60, 90)):
        contents.set_column(place, place, width)


def _sheet(
    book: Any, name: str, tables: Sequence[FilledTable], formats: _Formats, mark: str
) -> dict[tuple[str, str], int]:
    """Write one sheet; the line of every table by sheet and number."""
    sheet = book.add_worksheet(name)
    sheet.write(0, 0, mark, formats["stamp"])
    sheet.write(1, 0, name, formats["title"])
    sheet.set_column(0, 0, _LABELS)
    sheet.set_column(1, max(len(one.table.columns) for one in tables), _NUMBERS)
    sheet.freeze_panes(2, 1)
    at = 2
    starts: dict[tuple[str, str], int] = {}
    for filled in tables:
        if filled.table.section:
            sheet.write(at, 0, filled.table.section, formats["title"])
            at += 1
        starts[name, filled.table.number] = at
        at = _table(sheet, at, filled, formats) + 1
    return starts


def _table(sheet: Any, at: int, filled: FilledTable, formats: _Formats) -> int:
    """Write one table; the line after it."""
    table = filled.table
    sheet.write(at, 0, f"{table.number.rstrip('.')}. {table.title}", formats["title"])
    sheet.write(at + 1, 0, f"Universe: {table.universe}", formats["plain"])
    if filled.note:
        sheet.write(at + 1, 1, filled.note, formats["note"])
    sheet.write(at + 2, 0, f"Geography: {table.geography}", formats["plain"])
    sheet.write_row(at + 3, 0, ["", *(column.label for column in table.columns)], formats["head"])
    longest = max(len(column.label) for column in table.columns)
    sheet.set_row(at + 3, _LINE * -(-longest // _LETTERS))
    at += 4
    for line in filled.lines:
        if line.line.areas:
            sheet.write(at, 0, line.line.label, formats["label"])
            for place, column in enumerate(table.columns, 1):
                value = line.value(column.metric)
                if value is None:
                    sheet.write_blank(at, place, None, formats["empty"])
                else:
                    sheet.write_number(at, place, value, formats[_kind(column.metric, value)])
        else:
            sheet.write_row(at, 0, [line.line.label, *[""] * len(table.columns)], formats["heading"])
        at += 1
    return at


def _kind(metric: str, value: float) -> str:
    """Name of the format of a number; a count is a mean over runs where there are several."""
    if metric in _SHARES:
        return "share"
    return "decimal" if metric in _DECIMALS or not value.is_integer() else "whole"


def summarize(
    sources: SummarySources, frames: Mapping[str, pa.Table], book: SummaryBook | None = None
) -> tuple[tuple[FilledTable, ...], dict[str, pa.Table]]:
    """Fill tables, and add their numbers to the frames."""
    tables = fill_book(book or shipped_book(), sources)
    long = summary_long(tables, sources.runs)
    if "metrics_long" in frames:
        long = stacked([frames["metrics_long"], long])
    more = {"metrics_long": long, "metrics_wide": wide_metrics(long), "summary_tables": summary_frame(tables)}
    return tables, {**frames, **more}


def topdown_sources(
    population: EvaluatedPopulation,
    runs: Mapping[str, Sequence[PublishedRun]],
    lists: Sequence[ComparedAreas] = (),
) -> SummarySources:
    """What the tables are filled from: the truth and the runs of some histograms, and areas off the spine."""
    facts = population.loaded.facts
    pairs = tuple(population.pairs[name].with_runs(own) for name, own in runs.items())
    known = () if facts.areas is None else known_areas(pairs[0].spine, facts.areas)
    named = {one.level for one in lists}
    lists = (*lists, *(one for one in known if one.level not in named))
    return SummarySources(pairs, tuple(lists), kinds_of_units(population.main.schema, facts.facilities))


def budget_sheet(
    population: EvaluatedPopulation, runs: Sequence[PublishedRun], sheet: str
) -> tuple[FilledTable, ...]:
    """The tables that the first histogram fills, all on one sheet, such as that of a budget."""
    tables = fill_book(shipped_book(), topdown_sources(population, {population.main.name: runs}))
    return tuple(FilledTable(replace(one.table, sheet=sheet), one.lines) for one in tables if one.filled)


_FILE: Final = "workbook.xlsx"
_MOST_ROWS: Final = 1_000_000
_LONGEST_NAME: Final = 31
_NEVER: Final = datetime(2020, 1, 1, tzinfo=UTC)  # the same frames make the same bytes


def write_workbook(
    folder: Path,
    frames: Mapping[str, pa.Table],
    summary: Sequence[FilledTable] = (),
    *,
    confidentiality: Confidentiality = Confidentiality.COMPARED,
) -> str:
    """Write ``workbook.xlsx``: tables of summary metrics; frames with stamp, names of columns and rows; what columns mean."""
    buffer = io.BytesIO()
    book = xlsxwriter.Workbook(buffer, {**WORKBOOK_OPTIONS, "nan_inf_to_errors": False})
    book.set_properties({"created": _NEVER, "status": confidentiality.value})
    bold, stamp = book.add_format({"bold": True}), book.add_format({"bold": True, "font_color": "#8c1414"})
    marked = (confidentiality.value, stamp)
    if summary:
        add_summary_sheets(book, summary, confidentiality.value)
    columns: dict[str, None] = {}
    for name, frame in frames.items():
        if frame.num_rows <= _MOST_ROWS:
            rows = [[_cell_value(value) for value in row.values()] for row in frame.to_pylist()]
            _frame_sheet(book, name, frame.column_names, rows, bold, marked)
            columns |= dict.fromkeys(frame.column_names)
    meanings = [[name, *column_meaning(name)] for name in columns]
    _frame_sheet(book, "columns", ["column", "meaning", "unit"], meanings, bold, marked)
    book.close()
    with atomic_bytes(folder / _FILE) as stream:
        stream.write(buffer.getvalue())
    return _FILE


def _frame_sheet(
    book: Any, name: str, head: list[str], rows: list[list[Any]], bold: Any, marked: tuple[str, Any]
) -> None:
    sheet = book.add_worksheet(name[:_LONGEST_NAME])
    sheet.write(0, 0, *marked)
    sheet.write_row(1, 0, head, bold)
    for place, row in enumerate(rows, 2):
        sheet.write_row(place, 0, row)
    sheet.freeze_panes(2, 0)
    sheet.autofilter(1, 0, 1 + max(1, len(rows)), len(head) - 1)
    for place, name_of_column in enumerate(head):
        longest = max((len(str(row[place])) for row in rows[:200]), default=0)
        sheet.set_column(place, place, min(60, max(len(name_of_column), longest) + 2))


def _cell_value(value: Any) -> Any:
    """What a cell can hold; an empty text for what is not a number."""
    if isinstance(value, float) and not math.isfinite(value):
        return "" if math.isnan(value) else "infinite"
    return "" if value is None else value
