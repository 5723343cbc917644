"""Every table and cell of the published layout of the DHC is defined, under its name, label and title."""

import csv

import pytest

from censafe.products.topdown.census_tables.definitions import census_tables
from censafe.products.topdown.census_tables.segments import segment_layout
from support.shared import shared_data

# typing errors of the published layout: the eighteenth iteration of PCT7 is called PCO7C, and a label of P12G is that of the line before
RENAMED = {"PCO7C": "PCT7C"}
MISPRINTED = {("P12G", 47): "75 to 79 years"}


def rows(name: str) -> list[dict[str, str]]:
    with shared_data(f"dhc/{name}.csv").open(encoding="utf-8") as stream:
        found = list(csv.DictReader(stream))
    return [{**row, "table": RENAMED.get(row["table"], row["table"])} for row in found]


def test_every_table_is_there_with_its_title_and_lowest_areas() -> None:
    published = {row["table"]: row for row in rows("dhc_tables")}
    tables = census_tables("dhc")
    assert set(tables) == set(published)
    assert len(tables) == 249
    for name, table in tables.items():
        own = published[name]
        assert table.title.upper() == own["title"].upper() or name.startswith("P13"), (
            name
        )  # medians name no race
        if name != "PCT7C":  # stands among the tables of counties with its wrong name
            assert table.lowest == own["geography"], name
        assert table.needs or len(table.lines) == int(own["cells"]), name


def test_every_cell_is_there_with_its_label() -> None:
    tables, cells = census_tables("dhc"), 0
    for row in rows("dhc_cells"):
        table, place = tables[row["table"]], int(row["cell"]) - 1
        if table.needs:
            assert row["table"] in ("H2", "P2")
            continue
        label = MISPRINTED.get((row["table"], place + 1), row["label"])
        mine = table.lines[place].label
        assert mine == label or (row["table"].startswith("PCO") and place == 0 and mine.endswith(label)), row
        assert table.variables[place] == f"{row['table']}_{place + 1:03d}N"
        cells += 1
    assert cells == 9067 - 8


def test_every_table_is_in_its_segment() -> None:
    layout = segment_layout()
    for number, names in enumerate(layout.segments, 1):
        assert list(names) == [row["table"] for row in rows("dhc_tables") if row["segment"] == str(number)]
    assert sum(map(len, layout.segments)) == 249
    cells = {row["table"]: int(row["cells"]) for row in rows("dhc_tables")}
    assert layout.empty == {name: cells[name] for name in layout.empty}


@pytest.mark.parametrize("name", ["P2", "H2"])
def test_what_the_records_do_not_tell_is_said(name: str) -> None:
    assert "urban or rural" in census_tables("dhc")[name].needs
