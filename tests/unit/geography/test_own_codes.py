"""Lists of areas by the codes of a run's own records: text of any kind, levels above the lowest, and what does not match."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from censafe.errors import DataError
from censafe.geography.area_lists import read_block_areas
from censafe.geography.geocodes import GeocodeForm
from censafe.geography.own_codes import AreaCodes, AreaLevel

LEAVES = ["101", "102", "201", "202", "203"]
CODES = AreaCodes(
    ("Région", "grid"),
    (
        AreaLevel("Region", np.array(["1", "2"]), (("Île",), ("Nord",))),
        AreaLevel(
            "Grid",
            np.array(LEAVES),
            (("Île", "N1:E 1"), ("Île", "-5"), ("Nord", "N1:E 1"), ("Nord", "007"), ("Nord", "08")),
        ),
    ),
)
OWN = AreaCodes.of_text(CODES.files["areas.csv"])


def zones(tmp_path: Path, *lines: str, own: AreaCodes = OWN) -> tuple[dict[str, list[str]], tuple[str, ...]]:
    """Geocodes of the lowest areas by zone, and the remarks."""
    path = tmp_path / "list.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    (kind,), remarks = read_block_areas(path, np.array(LEAVES, np.int64), GeocodeForm(3), own)
    leaves = np.array(LEAVES)
    return {code: leaves[kind.area_of == place].tolist() for place, code in enumerate(kind.codes)}, remarks


def test_the_file_of_a_run_holds_all_codes() -> None:
    assert OWN.files == CODES.files
    assert OWN.names == CODES.names
    assert OWN.lowest.own["102"] == "-5"
    assert OWN.lowest.own["101"] == "101"  # two areas have its code


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (("Région;grid;zone", "Île;N1:E 1;a", "Nord;N1:E 1;ß", "Nord;007;a"), {"a": ["101", "202"], "ß": ["201"]}),
        (("GRID,zone", "-5,a", "007 ,b"), {"a": ["102"], "b": ["202"]}),
        (("GEOID,zone", "-5,a", "007,b"), {"a": ["102"], "b": ["202"]}),
        (("geocode,zone", "102,a", "202,b"), {"a": ["102"], "b": ["202"]}),
        (("région,zone", "Nord,n"), {"n": ["201", "202", "203"]}),
        (("level,geocode,Région,grid,zone", "Region,1,Île,,x", "Grid,102,Île,-5,y"), {"y": ["102"]}),
    ],
)  # fmt: skip
def test_areas_are_named_by_their_own_codes(
    tmp_path: Path, lines: tuple[str, ...], expected: dict[str, list[str]]
) -> None:
    assert zones(tmp_path, *lines)[0] == expected


def test_a_column_that_was_cut_has_the_codes_of_the_lowest_level(tmp_path: Path) -> None:
    own = AreaCodes(("code_1", "code_3"), CODES.levels)
    assert zones(tmp_path, "code,zone", "007,a", own=own)[0] == {"a": ["202"]}


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (("grid,zone", "N1:E 1,a"), "1 codes are those of several areas of the level Grid, such as N1:E 1; fix: give the columns of the areas above (Région)"),
        (("grid,zone", "7,a", "8,a", "-5,a"), "2 codes of the level Grid lost their leading zeros, such as 7 for 007"),
        (("grid,zone", "x,a", "y,a"), "none of the 2 rows is of an area of the level Grid of this run; its codes are such as x, y; allowed: codes such as"),
        (("geocode,zone", "999,a"), "none of the 1 rows is an area of the level Grid of this run"),
        (("cell,zone", "007,a"), "no column of codes; allowed: a header with geocode or Région, grid"),
        (("Région,grid", "Nord,007"), "no column of areas"),
        (("grid,zone", "007,a", "007,b"), "areas of the level Grid there twice (1), such as 007 in a and b"),
    ],
)  # fmt: skip
def test_what_does_not_match_is_said_with_numbers(tmp_path: Path, lines: tuple[str, ...], words: str) -> None:
    with pytest.raises(DataError) as error:
        zones(tmp_path, *lines)
    assert words in str(error.value)


def test_rows_of_other_areas_are_passed_over(tmp_path: Path) -> None:
    found, remarks = zones(tmp_path, "grid,zone", "007,a", "x,a", "y,a")
    assert found == {"a": ["202"]}
    assert remarks == (
        "list.csv: 2 of 3 rows are of no area of the level Grid of this run, such as x, and are passed over; fewer than half are areas of this run: check "
        "that the list has the same areas.",
        "list.csv: 4 of 5 areas of the level Grid are in no area of zone.",
    )


def test_geocodes_of_sixteen_digits_are_no_census_blocks(tmp_path: Path) -> None:
    geocodes = np.array(["0001000000000001", "9999000000000001"])
    own = AreaCodes(("area",), (AreaLevel("Area", geocodes, (("a",), ("b",))),))
    path = tmp_path / "list.csv"
    path.write_text("area,zone\na,z\nb,z\n", encoding="utf-8")
    (kind,), _ = read_block_areas(path, geocodes.astype(np.int64), GeocodeForm(16), own)
    assert kind.area_of.tolist() == [0, 0]
