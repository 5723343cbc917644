"""Names from data make one part of a path, and no two of them the same."""

from __future__ import annotations

import csv
import io
import re
import zipfile
from pathlib import Path

import pyarrow as pa
import pytest
import xlsxwriter
from hypothesis import given
from hypothesis import strategies as st

import censafe
from censafe.model.safe_text import (
    WORKBOOK_OPTIONS,
    csv_cell,
    csv_table,
    csv_text,
    file_name,
    stays_inside,
    text_of_cell,
)


@given(st.text())
def test_a_name_is_one_part_of_a_path_inside_its_folder(text: str) -> None:
    folder = Path("/folder")
    path = (folder / f"{file_name(text)}.csv").resolve()
    assert folder == path.parent
    assert stays_inside(path.name)
    assert not path.name.startswith(".")
    assert len(path.name) < 128


@given(st.lists(st.text(), unique=True, min_size=2, max_size=2))
def test_different_texts_have_different_names(texts: list[str]) -> None:
    assert len({file_name(text) for text in texts}) == 2


@pytest.mark.parametrize("name", ["Block_Group", "school district", "placefp", "A-1"])
def test_plain_names_stay_as_they_are(name: str) -> None:
    assert name == file_name(name)


@pytest.mark.parametrize("name", ["../x", "a/../../x", "/x", "", ".", "a\0b"])
def test_paths_that_lead_outside_are_told_apart(name: str) -> None:
    assert not stays_inside(name)


# No cell of a CSV file or a workbook is a formula or a link.


FORMULAS = (
    "=1+1", "+A1", "-A1", "@SUM(A1)", "\t=1", "\r=1", "-1-cmd|'/C calc'!A1", "\uff1d1+1", "=", "-", "--1",
)  # fmt: skip
PLAIN = ("a=b", "-1", "+1.5e3", "-.5", "44001", "", "under 5", "'quoted'", "-2.", "1-2")


@pytest.mark.parametrize("text", FORMULAS)
def test_formulas_get_an_apostrophe_and_come_back(text: str) -> None:
    assert csv_cell(text) == f"'{text}"
    assert text_of_cell(csv_cell(text)) == text


@pytest.mark.parametrize("text", PLAIN)
def test_numbers_and_plain_text_stay_as_they_are(text: str) -> None:
    assert csv_cell(text) == text == text_of_cell(text)


@given(st.lists(st.text() | st.sampled_from(FORMULAS + PLAIN), max_size=5))
def test_tables_and_rows_are_changed_alike(texts: list[str]) -> None:
    expected = [csv_cell(text) for text in texts]
    plain = pa.array(texts, pa.string())
    table = csv_table(pa.table({"=head": plain, "coded": plain.dictionary_encode()}))
    assert table.column_names == ["'=head", "coded"]
    assert table.column(0).to_pylist() == table.column(1).to_pylist() == expected
    rows = csv.reader(io.StringIO(csv_text([["-head", *texts]]), newline=""))
    assert list(rows) == [["'-head", *expected]]


def test_missing_texts_and_numbers_pass_through() -> None:
    table = pa.table({"a": ["=1", None], "n": [-1, None]})
    assert csv_table(table).to_pydict() == {"a": ["'=1", None], "n": [-1, None]}


def test_workbooks_hold_texts_as_texts() -> None:
    stream = io.BytesIO()
    book = xlsxwriter.Workbook(stream, WORKBOOK_OPTIONS)
    book.add_worksheet().write_row(0, 0, [*FORMULAS, "{=A1}", "https://example.org", "internal:a", "12"])
    book.close()
    with zipfile.ZipFile(stream) as parts:
        sheet = parts.read("xl/worksheets/sheet1.xml").decode()
    assert re.findall("<f>|<hyperlink|<c r=.[A-Z]+1.><v>", sheet) == []
    assert sheet.count('t="s"') == len(FORMULAS) + 4


def test_all_files_are_written_through_this_module() -> None:
    """Other writers are those of the Bureau's layouts, of tables without free text, and of private examples."""
    source = Path(censafe.__file__).parent
    found = {
        path.relative_to(source).as_posix()
        for path in source.rglob("*.py")
        if re.search(r"csv\.writer\(|csv\.DictWriter\(|Workbook\((?!.*WORKBOOK_OPTIONS)", path.read_text())
        or re.search(r"write_csv\((?!csv_table)|\.CSVWriter\(", path.read_text())
    }
    assert found == {
        "model/safe_text.py",
        "population/examples.py",
        "publication/intervals.py",
        "publication/tables/csv_rows.py",
        "publication/tables/pl94.py",
        "publication/tables/bureau.py",
        "products/topdown/census_tables/segments.py",
        "products/topdown/census_tables/writing.py",
        "products/topdown/labels.py",
    }
