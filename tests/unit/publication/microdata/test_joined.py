"""Files of the rows of two histograms, with a level told apart by the second, for schemas from TOML alone."""

import tomllib
from pathlib import Path

import numpy as np
import pytest

from censafe.errors import CheckError, ConfigError
from censafe.model.entries import Problems
from censafe.model.sparse import SparseLevel
from censafe.model.topdown.histograms import HistogramSchema
from censafe.privacy.loss.budget import parse_toml_exact
from censafe.products.topdown.configuration.outputs import microdata_layout
from censafe.products.topdown.configuration.schema_checks import check_schemas
from censafe.publication.microdata.layouts import MicrodataLayout
from censafe.publication.microdata.writer import row_count, write_microdata
from support.microdata import check_microdata

SCHEMAS = """
[boats]
record = "household"
attributes = [
    { name = "flag", levels = 2 },
    { name = "berth", levels = 3 },
    { name = "kind", levels = 4, table = { crew = [1, 1, 2, 9], sail = ["no", "yes", "yes", "no"] } },
]
[places]
record = "household"
attributes = [{ name = "place", levels = 7, table = { state = [0, 0, 0, 0, 0, 5, 6] } }]
[places.recodes.paid]
attribute = "place"
groups = ["0-1", "2", "3", "4"]
"""
LAYOUT = """
schema = "boats"
file = "boats.txt"
records = "boats"
total = [0, 1]
beside = { schema = "places", rows = { place = "5-6" } }
split = { attribute = "berth", level = 1, by = "paid", answers = "1-3" }
columns = [
    { name = "HARBOR", geocode = 3 },
    { name = "LINE", number = "record" },
    { name = "BERTH", of = "berth", codes = { 1 = "0", 2 = "1", 7 = "2", 3 = "3", 4 = "4" }, beside = "0" },
    { name = "CREW", of = "kind", column = "crew", codes = { 01 = "1", 02 = ["2", "9"] }, beside = "00" },
    { name = "RIG", beside = { of = "place", column = "state" }, cases = [
        { code = "1", when = { flag = 1, kind = { sail = "yes" } } },
        { code = "2", when = { berth = "1, 3-4", kind = [0, 2] } },
        { code = "3" },
    ] },
]
"""
AREAS = np.array(["101", "102", "201"])
UNITS = np.array([[5, 2], [0, 0], [2, 2]])


def schemas() -> dict[str, HistogramSchema]:
    problems = Problems()
    found = check_schemas(parse_toml_exact(SCHEMAS, "own"), "schemas", problems)
    problems.raise_if_any("own")
    return found


def layout(text: str = LAYOUT) -> MicrodataLayout:
    return microdata_layout("mine", tomllib.loads(text), schemas())


def boats() -> SparseLevel:
    shape = (2, 3, 4)
    cells = [np.ravel_multi_index(one, shape) for one in ((0, 1, 0), (1, 1, 2), (1, 2, 3), (0, 0, 1))]
    counts = np.array([3, 2, 1, 1], np.int32)
    return SparseLevel(AREAS, np.array([0, 3, 3, 4]), np.array(cells, np.int32), counts)


def places(told: tuple[int, int, int] = (2, 1, 2)) -> SparseLevel:
    cells = np.array([2, 3, 4, 6, 0, 5, 6], np.int32)
    return SparseLevel(AREAS, np.array([0, 4, 4, 7]), cells, np.array([*told, 1, 1, 1, 2], np.int32))


def test_rows_of_both_histograms_are_written_and_read_back(tmp_path: Path) -> None:
    path = tmp_path / "boats.txt"
    made = list[int]()
    assert write_microdata(path, layout(), boats(), UNITS, places(), made.append).rows == 11
    assert row_count(layout(), boats(), UNITS, places()) == sum(made) == 11
    assert path.read_text().splitlines() == [
        "HARBOR|LINE|BERTH|CREW|RIG", "101|1|2|01|2", "101|2|2|01|2", "101|3|3|01|2", "101|4|4|02|1", "101|5|4|02|1",
        "101|6|7|02|3", "101|7|0|00|6", "201|1|1|01|3", "201|2|0|00|5", "201|3|0|00|6", "201|4|0|00|6",
    ]  # fmt: skip
    check_microdata(path, layout(), boats(), UNITS, places())
    for old, new in (("|3|01|2", "|4|01|2"), ("|0|00|5", "|0|00|6"), ("|2|01|2", "|7|01|2")):
        other = tmp_path / "other.txt"
        other.write_text(path.read_text().replace(old, new, 1))
        with pytest.raises(CheckError, match="not those of the histograms"):
            check_microdata(other, layout(), boats(), UNITS, places())


@pytest.mark.parametrize("told", [(2, 1, 1), (2, 1, 3), (6, 0, 0)])
def test_rows_left_over_or_missing_stop(tmp_path: Path, told: tuple[int, int, int]) -> None:
    with pytest.raises(CheckError, match="1 geounits have boats of a level that is not told apart"):
        write_microdata(tmp_path / "boats.txt", layout(), boats(), UNITS, places(told))


def test_rows_add_up_to_the_published_units(tmp_path: Path) -> None:
    with pytest.raises(CheckError, match="2 geounits have records that do not add up"):
        write_microdata(
            tmp_path / "boats.txt", layout(), boats(), UNITS + np.array([[0, 1], [0, 1], [0, 0]]), places()
        )
    with pytest.raises(ValueError, match="needs the histograms of places"):
        write_microdata(tmp_path / "boats.txt", layout(), boats(), UNITS)


def test_a_level_may_stay_whole(tmp_path: Path) -> None:
    text = LAYOUT.replace("split =", "# split =").replace(', 3 = "3", 4 = "4"', "")
    whole = layout(text.replace("1, 3-4", "1"))
    path = tmp_path / "boats.txt"
    write_microdata(path, whole, boats(), UNITS, places())
    assert [line.split("|")[2] for line in path.read_text().splitlines()[1:]] == list("22222701000")
    check_microdata(path, whole, boats(), UNITS, places())


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('rows = { place = "5-6" }', 'rows = { place = "5-7" }', "place: give distinct levels"),
        ('rows = { place = "5-6" }', 'rows = { plaice = "5-6" }', "give levels of place"),
        ('schema = "places"', 'schema = "plaices"', "beside.schema: allowed is one of boats, places"),
        ('by = "paid"', 'by = "free"', "split.by: "),
        ('answers = "1-3"', 'answers = "1-4"', "answers: give distinct levels"),
        ("level = 1", "level = 3", "berth: give distinct levels"),
        (', by = "paid"', "", "split: give attribute, level, by, answers"),
        (', beside = "0"', "", "BERTH: added and beside stand where"),
        (', beside = "0"', ', beside = "00"', "BERTH, codes: 6 texts of one length"),
        ('beside = "0" }', 'beside = { constant = "0" } }', "beside: allowed is exactly one of"),
        ('column = "crew"', 'column = "crows"', "column: allowed is one of crew, sail"),
        ('["2", "9"]', '"2"', "give one code for each of 1, 2, 9"),
        ('{ code = "3" },', "", "the last case, and no other, is without when"),
        ('sail = "yes"', 'sail = "maybe"', "give distinct values of the column sail"),
        ("total = [0, 1]", 'dealt = "kind"', "beside: not allowed with dealt"),
    ],
)
def test_layouts_that_cannot_be_written_are_refused(old: str, new: str, message: str) -> None:
    assert old in LAYOUT
    with pytest.raises(ConfigError) as caught:
        layout(LAYOUT.replace(old, new))
    assert message in str(caught.value)
