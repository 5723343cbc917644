"""Layouts of fixed-width records, and their columns of text."""

from itertools import pairwise
from pathlib import Path

import duckdb
import numpy as np
import pyarrow.parquet as pq
import pytest

from censafe.population.files import fixed_width
from censafe.population.files.fixed_text import stage_lines
from censafe.population.files.fixed_width import fixed_layout, layouts_document, line_numbers
from support.fixed_width import unit_2020

NAMES = ("cef_unit", "cef_per", "ipums_household", "ipums_person")
UNITS = [
    unit_2020(100000001, 2, "B1"),
    unit_2020(" 00000002", 0, "B2"),
    unit_2020(100000003, 1, "ä"),
]


def staged(path: Path, name: str = "phsafe_unit") -> tuple[dict[str, list[str]], list[str]]:
    target = path.with_suffix(".parquet")
    with duckdb.connect() as con:
        found = stage_lines(con, path, name, target)  # type: ignore[arg-type]
    return pq.read_table(target).to_pydict(), [one.text() for one in found]


def written(folder: Path, text: str) -> Path:
    path = folder / "CEF20_UNIT_44.txt"
    path.write_text(text, encoding="utf-8", newline="")
    return path


@pytest.mark.parametrize("name", NAMES)
def test_fields_lie_in_their_record_and_do_not_overlap(name: str) -> None:
    layout = fixed_layout(name)  # type: ignore[arg-type]
    places = sorted((field.start, field.start + field.width) for field in layout.fields.values())
    assert places[-1][1] <= layout.width
    assert all(stop <= start for (_, stop), (start, _) in pairwise(places))
    assert all(field.meaning for field in layout.fields.values())


def test_columns_of_text_are_fields_of_their_layout() -> None:
    document = layouts_document()
    for name in document.keys() - set(NAMES):
        own = document[name]
        assert set(own["columns"]) <= set(fixed_layout(own["layout"]).fields)
        assert set(own.get("blank", ())) <= set(own["columns"])


@pytest.mark.parametrize(
    ("text", "number", "bad"),
    [("501", 501, False), (" 99", 99, True), ("   ", 0, False), ("5 1", -1, True), ("50x", -1, True)],
)
def test_numbers_are_read_by_their_layout(text: str, number: int, bad: bool) -> None:
    layout = fixed_layout("cef_unit")
    line = np.frombuffer(unit_2020(1, 1, "B", quarters=text).encode(), np.uint8)
    numbers, other = line_numbers(line, layout.width, layout.fields)
    quarters = numbers["QGQTYP"]
    assert (quarters.tolist(), numbers["TEN"].tolist(), other) == ([number], [-1], 0)
    assert bad == (layout.fields["QGQTYP"].levels_at(quarters)[0] < 0)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("chunk", [100, 1 << 22])
def test_columns_of_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str, chunk: int) -> None:
    monkeypatch.setattr(fixed_width, "CHUNK_BYTES", chunk)
    path = written(tmp_path, "\ufeff" + end.join([UNITS[0], "", UNITS[1], UNITS[2]]))
    columns, found = staged(path)
    assert found == []
    assert columns["MAFID"] == ["100000001", "2", "100000003"]
    assert columns["FINAL_POP"] == ["2", "0", "1"]
    assert [text.strip() for text in columns["OIDTB"]] == ["B1", "B2", "ä"]
    assert (columns["HHRACE"], columns["TEN"]) == (["00"] * 3, [" "] * 3)
    assert staged(path, "safetab_unit")[0]["HHRACE"] == ["Null"] * 3


@pytest.mark.parametrize("last", ["x", "äx"])
def test_lines_that_are_left_out_are_counted_and_placed(tmp_path: Path, last: str) -> None:
    path = written(tmp_path, "\n".join(["short", *UNITS[:2], "", UNITS[0] + last]) + "\n")
    columns, found = staged(path)
    assert columns["MAFID"] == ["100000001", "2"]
    assert found == [
        "CEF20_UNIT_44.txt: lines of wrong length, first at line 1, 5 (2 rows) [rows]; allowed: 76 characters in every line; "
        "fix: a file that was cut short must be copied again"
    ]


def test_bytes_that_are_no_characters_are_counted_and_placed(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_bytes(f"{UNITS[0]}\n".encode() + b"\xff" + f"{UNITS[1][1:]}\n".encode())
    columns, found = staged(path)
    assert columns["MAFID"] == ["100000001"]
    assert found == [
        "x.txt: rows that are not UTF-8, first at line 2 (1 row) [rows]; allowed: 76 characters of UTF-8 text in every line; "
        "fix: correct or remove these lines; a file that was cut short must be copied again"
    ]
