"""The project's description of the summary metrics against the Bureau's workbook: words, shapes and order of all 183 tables."""

import json
from typing import Any

import pytest

from censafe.evaluation.summary.reading import shipped_book
from censafe.evaluation.summary.tables import SummaryTable
from support.shared import shared_data

LEFT_OUT = {"Use Case Table 5.a": 1}
"""A county that the Bureau's classes leave out: presumably Kalawao, where nobody is under 18; here it is in the lowest class."""


@pytest.fixture(scope="module")
def reference() -> dict[str, Any]:
    text = shared_data("evaluation/hdsr_reference.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)["detailed_summary_metrics"]
    return found


def rows_of(table: SummaryTable, following: str) -> list[tuple[str, bool]]:
    """Words of the rows and whether they carry numbers; the workbook ends a table with the heading of the next section."""
    rows = [(line.label, bool(line.areas)) for line in table.lines]
    return rows + ([(following, False)] if following else [])


def test_every_table_has_the_words_and_the_shape_of_the_bureaus(reference: dict[str, Any]) -> None:
    tables = shipped_book().tables
    sections = [*(table.section for table in tables[1:]), ""]
    published = reference["DHC_2023_04_03"]
    assert list(published) == [table.number for table in tables]
    for table, following in zip(tables, sections, strict=True):
        one = published[table.number]
        assert [one[name] for name in ("sheet", "title", "universe", "geography")] == [
            table.sheet, table.title, table.universe, table.geography,
        ]  # fmt: skip
        assert one["columns"] == [column.label for column in table.columns]
        assert [(row[0], len(row) > 1) for row in one["rows"]] == rows_of(table, following)


def test_the_core_tables_of_the_swapping_runs_have_the_same_shape(reference: dict[str, Any]) -> None:
    tables = {table.number: table for table in shipped_book().tables}
    for run in ("swap_LO_5", "swap_HI_50"):
        for number, one in reference[run].items():
            assert one["columns"] == [column.label for column in tables[number].columns]
            assert [row[0] for row in one["rows"]] == [line.label for line in tables[number].lines]


def test_size_classes_partition_the_areas_as_the_published_numbers_of_units_do(
    reference: dict[str, Any],
) -> None:
    """Where every class of a kind of areas is in a table, their published numbers of units add up to that of all areas."""
    checked = 0
    for table in shipped_book().tables:
        if table.columns[0].metric != "n_units" or table.number in ("Table 15.a", "Table 15.b"):
            continue
        rows = reference["DHC_2023_04_03"][table.number]["rows"][: len(table.lines)]
        groups: dict[Any, dict[Any, int]] = {}
        for line, row in zip(table.lines, rows, strict=True):
            if line.areas and line.size.label and line.measure == "counts":
                groups.setdefault((line.areas, line.request), {})[line.size.low, line.size.high] = row[1]
        for classes in groups.values():
            whole = classes.pop((None, None), None)
            if classes and whole is not None:
                lows, highs = zip(*sorted(classes, key=lambda ends: ends[0] or 0), strict=True)
                assert lows[0] == 0
                assert (*lows[1:], None) == highs
                assert whole - sum(classes.values()) == LEFT_OUT.get(table.number, 0), table.number
                checked += 1
    assert checked > 300
