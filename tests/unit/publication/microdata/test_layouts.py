"""A file of microdata that the package does not know, from TOML alone."""

import tomllib
from pathlib import Path

import numpy as np
import pytest

from censafe.errors import CheckError, ConfigError
from censafe.model import Attribute, ProtectedUnit, Recode, Schema
from censafe.model.sparse import SparseLevel
from censafe.model.topdown.histograms import HistogramSchema
from censafe.products.topdown.configuration.outputs import microdata_layout
from censafe.publication.microdata.layouts import MicrodataLayout
from censafe.publication.microdata.writer import row_count, write_microdata
from support.histograms import flat_index
from support.microdata import check_microdata

SCHEMA = HistogramSchema(
    Schema("mine", (Attribute("sex", 2), Attribute("place", 4), Attribute("age", 3))),
    ProtectedUnit.PERSON,
    {"adult": Recode("adult", "age", ((0,), (1, 2)), partition=True)},
)
MINE = """
schema = "mine"
file = "mine.txt"
records = "persons"
columns = [
    { name = "LINE", number = "record" },
    { name = "VERSION", constant = "1" },
    { name = "PLACE", of = "place", codes = { 000 = "0", 101 = "1, 3", 997 = "2" } },
    { name = "REGION", geocode = 1 },
    { name = "AGE", of = "age", first = 98, width = 3 },
    { name = "WHO", of = "sex * adult", codes = ["11", "12", "21", "22"] },
    { name = "AREA", geocode = 2 },
]
"""
DEALT = """
schema = "mine"
file = "homes.txt"
records = "homes"
kinds = 4
dealt = "place"
columns = [
    { name = "PERSONS", number = "held" },
    { name = "AREA", geocode = 3 },
    { name = "HOME", number = "unit" },
    { name = "KIND", of = "unit", codes = ["H", "I", "J", "K"] },
]
"""
AREAS = np.array(["101", "102", "201"])
UNITS = np.array([[2, 1, 0, 0], [0, 0, 0, 0], [0, 0, 1, 1]])


def layout(text: str) -> MicrodataLayout:
    return microdata_layout("mine", tomllib.loads(text), {"mine": SCHEMA})


def level() -> SparseLevel:
    cells = [flat_index(SCHEMA.schema, one) for one in ([0, 0, 2], [1, 1, 0], [0, 2, 0], [1, 3, 1])]
    return SparseLevel(
        AREAS, np.array([0, 2, 2, 4]), np.array(cells, np.int32), np.array([3, 1, 1, 2], np.int32)
    )


def test_columns_stand_in_any_order_and_are_read_back(tmp_path: Path) -> None:
    path = tmp_path / "mine.txt"
    assert row_count(layout(MINE), level(), UNITS) == 7
    assert write_microdata(path, layout(MINE), level(), UNITS).rows == 7
    assert path.read_text().splitlines() == [
        "LINE|VERSION|PLACE|REGION|AGE|WHO|AREA",
        "1|1|000|1|100|12|01",
        "2|1|000|1|100|12|01",
        "3|1|000|1|100|12|01",
        "4|1|101|1|098|21|01",
        "1|1|997|2|098|11|01",
        "2|1|101|2|099|22|01",
        "3|1|101|2|099|22|01",
    ]
    check_microdata(path, layout(MINE), level(), UNITS)
    path.write_text(path.read_text().replace("|997|", "|101|"))
    with pytest.raises(CheckError, match="not those of the histograms"):
        check_microdata(path, layout(MINE), level(), UNITS)
    path.write_text(path.read_text().replace("|098|", "|999|"))
    with pytest.raises(CheckError, match="AGE has a code outside"):
        check_microdata(path, layout(MINE), level(), UNITS)


def test_records_are_dealt_to_units_of_any_attribute(tmp_path: Path) -> None:
    path = tmp_path / "homes.txt"
    assert row_count(layout(DEALT), level(), UNITS) == 5
    assert write_microdata(path, layout(DEALT), level(), UNITS).rows == 5
    assert path.read_text().splitlines() == [
        "PERSONS|AREA|HOME|KIND", "2|101|1|H", "1|101|2|H", "1|101|3|I", "1|201|1|J", "2|201|2|K",
    ]  # fmt: skip
    persons = MINE.replace(
        'records = "persons"', 'records = "persons"\ndealt = "place"'
    ).replace('name = "VERSION", constant = "1"', 'name = "HOME", number = "unit"')  # fmt: skip
    write_microdata(tmp_path / "p", layout(persons), level(), UNITS)
    check_microdata(tmp_path / "p", layout(persons), level(), UNITS)
    lines = (tmp_path / "p").read_text().splitlines()[1:]
    assert [line.split("|")[:2] for line in lines] == [
        ["1", "1"], ["1", "2"], ["2", "1"], ["1", "3"], ["1", "1"], ["1", "2"], ["2", "2"],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('schema = "mine"', 'schema = "yours"', "schema: allowed is one of mine"),
        ('file = "mine.txt"', 'file = "mine.txt"\nfill = 1', "unknown keys fill"),
        ("geocode = 1 }", "geocode = 1, width = 2 }", "REGION: unknown keys width"),
        ('constant = "1"', 'constant = "1", geocode = 1', "VERSION: allowed is exactly one of"),
        ('number = "record"', 'number = "held"', "LINE, number: allowed here is record"),
        ('of = "sex * adult"', 'of = "sex * tall"', "WHO, of: "),
        ('"21", "22"]', '"21"]', "WHO, codes: 4 texts of one length"),
        ('"21", "22"]', '"21", "2"]', "WHO, codes: 4 texts of one length"),
        ('101 = "1, 3"', '101 = "1"', "PLACE, codes: 4 texts of one length"),
        ('101 = "1, 3"', '101 = "1-3"', "PLACE, codes: 2 stands twice"),
    ],
)
def test_layouts_that_cannot_be_written_are_refused(old: str, new: str, message: str) -> None:
    assert old in MINE
    with pytest.raises(ConfigError) as caught:
        layout(MINE.replace(old, new))
    assert message in str(caught.value)
