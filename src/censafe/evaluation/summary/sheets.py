"""CONFIDENTIAL. Filled tables of the summary metrics, of a pair or of runs of TopDown, as sheets of a workbook."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa

from censafe.evaluation.areas.areas import ComparedAreas
from censafe.evaluation.areas.files import known_areas
from censafe.evaluation.counts.frames import stacked
from censafe.evaluation.counts.pairing import PublishedRun
from censafe.evaluation.outputs import wide_metrics
from censafe.evaluation.summary.counts import SummarySources, kinds_of_units
from censafe.evaluation.summary.filling import FilledTable, fill_book, summary_frame, summary_long
from censafe.evaluation.summary.reading import shipped_book
from censafe.evaluation.summary.tables import SummaryBook
from censafe.evaluation.topdown.population import EvaluatedPopulation

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
    empty, and the line of the universe says why.
    """
    formats = {name: book.add_format(dict(options)) for name, options in _FORMATS.items()}
    contents = book.add_worksheet(CONTENTS)
    starts: dict[tuple[str, str], int] = {}
    for name in dict.fromkeys(one.table.sheet for one in tables):
        starts |= _sheet(book, name, [one for one in tables if one.table.sheet == name], formats, mark)
    _contents(contents, tables, starts, formats, mark)


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
    for one in filled.lines:
        if one.line.areas:
            sheet.write(at, 0, one.line.label, formats["label"])
            for place, column in enumerate(table.columns, 1):
                value = one.value(column.metric)
                if value is None:
                    sheet.write_blank(at, place, None, formats["empty"])
                else:
                    sheet.write_number(at, place, value, formats[_kind(column.metric, value)])
        else:
            sheet.write_row(at, 0, [one.line.label, *[""] * len(table.columns)], formats["heading"])
        at += 1
    return at


def _kind(metric: str, value: float) -> str:
    """Name of the format of a number; a count is a mean over runs where there are several."""
    if metric in _SHARES:
        return "share"
    return "decimal" if metric in _DECIMALS or not value.is_integer() else "whole"


def _contents(
    sheet: Any,
    tables: Sequence[FilledTable],
    starts: Mapping[tuple[str, str], int],
    formats: _Formats,
    mark: str,
) -> None:
    runs = max((len(one.runs) for filled in tables for one in filled.rows), default=1)
    words = [_WORDS, f"Every number is the mean over {runs} published runs."] if runs > 1 else [_WORDS]
    sheet.write(0, 0, mark, formats["stamp"])
    sheet.write(1, 0, " ".join(words), formats["plain"])
    sheet.write_row(2, 0, ["Table", "Rows", "With numbers", "Sheet", "Missing", "Title"], formats["heading"])
    for at, filled in enumerate(tables, 3):
        table = filled.table
        link = f"internal:'{table.sheet}'!A{starts[table.sheet, table.number] + 1}"
        sheet.write_url(at, 0, link, formats["link"], table.number.rstrip("."))
        sheet.write_row(at, 1, [len(filled.rows), filled.filled, table.sheet, filled.note, table.title])
    sheet.freeze_panes(3, 1)
    sheet.autofilter(2, 0, 2 + len(tables), 5)
    for place, width in enumerate((24, 8, 14, 32, 60, 90)):
        sheet.set_column(place, place, width)


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
    given = {one.level for one in lists}
    lists = (*lists, *(one for one in known if one.level not in given))
    return SummarySources(pairs, tuple(lists), kinds_of_units(population.main.schema, facts.facilities))


def budget_sheet(
    population: EvaluatedPopulation, runs: Sequence[PublishedRun], sheet: str
) -> tuple[FilledTable, ...]:
    """The tables that the first histogram fills, all on one sheet, such as that of a budget."""
    tables = fill_book(shipped_book(), topdown_sources(population, {population.main.name: runs}))
    return tuple(FilledTable(replace(one.table, sheet=sheet), one.lines) for one in tables if one.filled)
