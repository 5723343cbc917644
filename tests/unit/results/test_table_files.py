"""Tables of the Census API, tidycensus, NHGIS and this package give their numbers again; what they lack is named."""

import csv
import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from censafe.api.tables import tables
from censafe.errors import CensafeError
from censafe.products.topdown.census_tables.microdata_source import open_source
from support.shared import shared_data

COUNTIES = {"44001": ("Bristol County", [10, 4]), "44007": ("Providence County", [30, 14])}
VARIABLES = ("H1_001N", "P1_001N")


def write(path: Path, rows: list[list[str]], mark: str = ",") -> Path:
    stream = io.StringIO()
    csv.writer(stream, delimiter=mark, lineterminator="\n").writerows(rows)
    path.write_text(stream.getvalue(), encoding="utf-8")
    return path


def api_rows() -> list[list[str]]:
    rows = [[name, *map(str, values), code[:2], code[2:]] for code, (name, values) in COUNTIES.items()]
    return [["NAME", *VARIABLES, "state", "county"], *rows]


def api_csv(folder: Path) -> Path:
    return write(folder / "api.csv", api_rows())


def api_json(folder: Path) -> Path:
    (folder / "api.json").write_text(json.dumps(api_rows()), encoding="utf-8")
    return folder / "api.json"


def data_census_gov(folder: Path) -> Path:
    rows = [[f"0500000US{code}", name, *map(str, values)] for code, (name, values) in COUNTIES.items()]
    return write(folder / "DECENNIALDHC2020.csv", [["GEO_ID", "NAME", *VARIABLES], *rows])


def tidycensus(folder: Path) -> Path:
    rows = [
        [code, name, variable, str(value)]
        for code, (name, values) in COUNTIES.items()
        for variable, value in zip(VARIABLES, values, strict=True)
    ]
    return write(folder / "long.csv", [["GEOID", "NAME", "variable", "value"], *rows])


def tidycensus_wide(folder: Path) -> Path:
    rows = [[code, name, *map(str, values)] for code, (name, values) in COUNTIES.items()]
    return write(folder / "wide.tsv", [["GEOID", "NAME", *VARIABLES], *rows], "\t")


def nhgis(folder: Path) -> Path:
    rows = [
        [f"G{code[:2]}0{code[2:]}0", "2020", name, *map(str, values)]
        for code, (name, values) in COUNTIES.items()
    ]
    head = [
        ["GISJOIN", "YEAR", "NAME", "U9X001", "U7H001"],
        ["GIS Join Match Code", "Data File Year", "Area Name", "Total", "Total"],
    ]
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerows([*head, *rows])
    codebook = "".join(
        f"{number}. Total\n   Universe:    x\n   Source code: {table}\n   NHGIS code:  {code}\n \n"
        for number, (table, code) in enumerate((("H1", "U9X"), ("P1", "U7H")), 1)
    )
    with zipfile.ZipFile(folder / "nhgis0001_csv.zip", "w") as archive:
        archive.writestr("nhgis0001_csv/nhgis0001_ds258_2020_county.csv", stream.getvalue())
        archive.writestr("nhgis0001_csv/nhgis0001_ds258_2020_county_codebook.txt", codebook)
    return folder / "nhgis0001_csv.zip"


FORMS: dict[str, tuple[Callable[[Path], Path], str]] = {
    "Census API, CSV": (api_csv, "tables of areas (a row an area)"),
    "Census API, JSON": (api_json, "tables of areas (a row an area)"),
    "data.census.gov": (data_census_gov, "tables of areas (a row an area)"),
    "tidycensus": (tidycensus, "tables of areas (a row an area and cell)"),
    "tidycensus, wide": (tidycensus_wide, "tables of areas (a row an area)"),
    "NHGIS": (nhgis, "tables of areas (NHGIS), zipped"),
}


@pytest.mark.parametrize("form", FORMS)
def test_numbers_of_others(tmp_path: Path, form: str) -> None:
    write_form, words = FORMS[form]
    path = write_form(tmp_path)
    assert open_source(path).recognized == words
    for table, place in (("H1", 0), ("P1", 1)):
        rows = tables(path, table, "county").arrow.to_pylist()
        assert {row["GEOID"]: (row["NAME"], row["value"]) for row in rows} == {
            code: (name, values[place]) for code, (name, values) in COUNTIES.items()
        }
    with pytest.raises(CensafeError, match=r"table P12: .* lacks P12_001, .*; there are P1, H1; fix"):
        tables(path, "P12", "county")
    with pytest.raises(
        CensafeError, match="areas of a list are made of blocks, and there are numbers of county alone"
    ):
        tables(path, "P1", areas=write(tmp_path / "list.csv", [["GEOID20", "x"], ["440010301001000", "1"]]))


def test_the_redistricting_tables_of_a_state(tmp_path: Path) -> None:
    path = shared_data("population/il2020_tracts_pl94.parquet")
    source = open_source(path)
    assert (source.product, source.levels) == ("pl94", ("tract",))
    published = pq.read_table(path)
    found = tables(path, "P2", "tract", wide=True).arrow
    assert found["P2_005N"].to_pylist() == published.sort_by("geoid")["P2_005"].to_pylist()


@pytest.mark.parametrize("wide", [True, False])
def test_tables_written_here_are_read_again(tmp_path: Path, wide: bool) -> None:
    whole = shared_data("population/pl94_ri2018")
    written = tables(whole, "H1", "block", wide=wide).arrow
    pa_csv.write_csv(written, tmp_path / "h1.csv")
    assert (
        tables(tmp_path / "h1.csv", "H1", "block", wide=wide).arrow["GEOID"].to_pylist()
        == written["GEOID"].to_pylist()
    )
    name = "H1_002N" if wide else "value"
    assert (
        tables(tmp_path / "h1.csv", "H1", "block", wide=wide).arrow[name].to_pylist()
        == written[name].to_pylist()
    )


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([["GEOID", "P1_001N"], ["1001", "5"]], "codes of areas are not GEOIDs of 2, 5, .* such as 1001"),
        ([["GEOID", "P1_001N"], ["44001", "5"], ["44001", "6"]], "1 rows repeat an area of the level county"),
        ([["GEOID", "variable", "value"], ["44001", "P1_001N", "5"], ["44001", "P1_001N", "6"]], "1 rows repeat an area and cell"),
        ([["GEOID", "P1_001N"], ["44001", "1,234"]], "1 numbers with thousands separators"),
        ([["GEOID", "P1_001N"], ["44001", ""], ["44003", "4"]], "1 areas have empty cells"),
        ([["GISJOIN", "U7H001"], ["G4400010", "5"]], "no published results are recognized"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(tmp_path: Path, rows: list[list[str]], message: str) -> None:
    with pytest.raises(CensafeError, match=message):
        tables(write(tmp_path / "t.csv", rows), "P1", "county")
