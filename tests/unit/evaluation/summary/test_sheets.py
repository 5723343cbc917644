"""The workbook of summary metrics: places, stamps, numbers, formats and links, as openpyxl reads them."""

from pathlib import Path

import pyarrow as pa
import pytest
from openpyxl import Workbook, load_workbook

from censafe.evaluation.confidential import COMPARED
from censafe.evaluation.summary.counts import SummarySources
from censafe.evaluation.summary.filling import fill_book
from censafe.evaluation.summary.sheets import write_workbook
from censafe.evaluation.summary.tables import shipped_book
from support.summary import PUBLISHED, TRUE, adults, pl94_pair

SHEETS = ["Updated BAP", "Updated Use Cases", "Full DHC Use Cases", "Impossible & Improbable Metrics"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("book")
    tables = fill_book(shipped_book(), SummarySources((pl94_pair(adults(TRUE), adults(PUBLISHED)),)))
    write_workbook(path, {"epl": pa.table({"level": ["County"], "epl": [float("nan")]})}, tables)
    return path


@pytest.fixture(scope="module")
def book(folder: Path) -> Workbook:
    return load_workbook(folder / "workbook.xlsx")


def test_sheets_are_the_bureaus_and_every_one_is_stamped(book: Workbook) -> None:
    assert ["Contents", *SHEETS, "epl", "columns"] == book.sheetnames
    assert {COMPARED} == {sheet["A1"].value for sheet in book.worksheets}


@pytest.mark.parametrize(
    ("row", "label", "units"),
    [
        (7, "All counties", 5), (19, "All incorporated places", None), (32, "All tracts", 5),
        (38, 'Blocks classified as "urban" in the 2010 Census', None), (45, "All municipios in Puerto Rico", 1),
        (51, "All tracts in Puerto Rico", 1),
    ],
)  # fmt: skip
def test_numbers_stand_where_the_bureaus_program_writes_them(
    book: Workbook, row: int, label: str, units: int | None
) -> None:
    sheet = book["Updated BAP"]
    assert [label, units] == [sheet.cell(row, column).value for column in (1, 2)]


def test_values_are_numbers_with_formats_that_fit_them(book: Workbook) -> None:
    cells = book["Updated BAP"][7][1:10]
    assert [cell.data_type for cell in cells] == ["n"] * 9
    assert [5, 3, pytest.approx(4.753946), 45, pytest.approx(7.667654), 43, 1, 2, 0] == [
        cell.value for cell in cells
    ]
    assert ["#,##0", *["#,##0.00"] * 5, *["#,##0"] * 3] == [cell.number_format for cell in cells]
    texts = {
        cell.value
        for name in SHEETS
        for row in book[name].iter_rows(min_row=3, min_col=2)
        for cell in row
        if cell.data_type == "s"
    }
    heads = {column.label for table in shipped_book().tables for column in table.columns}
    assert {"Not in this product"} == {
        text.split(":")[0].split(",")[0].rstrip(".") for text in texts - heads
    } - {"No such areas in these files"}


def test_every_table_stands_on_its_sheet_with_all_its_rows(book: Workbook) -> None:
    for name in SHEETS:
        words = [row[0].value for row in book[name].iter_rows(min_row=3)]
        for table in (one for one in shipped_book().tables if one.sheet == name):
            start = words.index(f"{table.number.rstrip('.')}. {table.title}")
            assert [line.label for line in table.lines] == words[start + 4 : start + 4 + len(table.lines)]
            assert f"Universe: {table.universe}" == words[start + 1]


def test_sheets_are_readable(book: Workbook) -> None:
    for name in SHEETS:
        sheet = book[name]
        assert sheet.freeze_panes == "B3"
        assert sheet.column_dimensions["A"].width > 50
        assert sheet.column_dimensions["B"].width > 12
    assert 14 * 5 < book["Updated BAP"].row_dimensions[6].height < 250


def test_contents_link_every_table_and_say_what_is_missing(book: Workbook) -> None:
    rows = list(book["Contents"].iter_rows(min_row=4, max_col=6))
    assert len(rows) == 183
    place = next(row for row in rows if row[0].value == "Table 3.a")
    assert [cell.value for cell in place[1:5]] == [
        1,
        0,
        "Updated BAP",
        "Not in this product: needs housing units.",
    ]
    linked = place[0].hyperlink.location
    sheet, cell = linked.rsplit("!", 1)
    assert book[sheet.strip("'")][cell].value.startswith("Table 3.a. Occupancy")


def test_the_same_tables_make_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    tables = fill_book(shipped_book(), SummarySources((pl94_pair(adults(TRUE), adults(PUBLISHED)),)))
    write_workbook(tmp_path, {"epl": pa.table({"level": ["County"], "epl": [float("nan")]})}, tables)
    assert (folder / "workbook.xlsx").read_bytes() == (tmp_path / "workbook.xlsx").read_bytes()
