"""Tables of the areas that blocks lie in."""

from pathlib import Path

import numpy as np
import pytest

from censafe.errors import DataError, StorageError
from censafe.estimation.topdown.intervals.areas import read_block_areas
from censafe.geography.geocodes import GeocodeForm

BLOCKS = np.array([10, 11, 12, 20])


def listed(folder: Path, *lines: str) -> Path:
    path = folder / "areas.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_kinds_in_the_order_of_their_columns(tmp_path):
    path = listed(
        tmp_path,
        "place,geocode,district",
        "0700,0011,b",
        ",0010,a",
        " 0700 ,0020,a",
        "1,9999,z",
        "0500,0012,",
    )
    kinds, remarks = read_block_areas(path, BLOCKS, GeocodeForm(4))
    assert [kind.name for kind in kinds] == ["place", "district"]
    assert [kind.codes.tolist() for kind in kinds] == [["0500", "0700"], ["a", "b"]]
    assert [kind.area_of.tolist() for kind in kinds] == [[-1, 1, 0, 1], [0, 1, -1, 0]]
    assert remarks == (
        f"{path.name}: 1 of 5 rows are of blocks that this run does not have, such as 9999, and are passed over.",
        f"{path.name}: 1 of 4 blocks are in no area of place.",
        f"{path.name}: 1 of 4 blocks are in no area of district.",
    )


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (("geocode", "0010"), "a column for each kind of area"),
        (("block,place", "0010,1"), "has a header with geocode"),
        (("geocode,place,place", "0010,1,2"), "each once"),
        (("geocode,place", "10,1"), "codes in column geocode that are not 4 decimal digits"),
        (("geocode,place", "0010,1", "0010,2"), r"blocks there twice \(1\), such as 0010"),
        (("geocode,place", "0099,1"), "none of the 1 rows is a block of this run"),
        (("geocode,place", "0010,1,2"), "as many fields in every row"),
    ],
)
def test_tables_that_break_a_rule(tmp_path, lines, words):
    with pytest.raises(DataError, match=words):
        read_block_areas(listed(tmp_path, *lines), BLOCKS, GeocodeForm(4))


def test_a_table_that_is_not_there(tmp_path):
    with pytest.raises(StorageError, match="cannot be read"):
        read_block_areas(tmp_path / "none.csv", BLOCKS, GeocodeForm(4))


@pytest.mark.parametrize(
    ("column", "code"),
    [
        ("geocode", "4400103010011000"),
        ("geocode", "440010301001000"),
        ("GEOID20", "440010301001000"),
        ("GEOID", "440010301001000"),
        ("GISJOIN", "G44000100301001000"),
    ],
)
def test_blocks_are_named_by_any_of_their_codes(tmp_path, column, code):
    path = listed(tmp_path, f"GISJOIN_OF_COUNTY,{column},district", f"G4400010,{code},a")
    kinds, _ = read_block_areas(path, np.array([4400103010011000]), GeocodeForm(16))
    assert [(kind.name, kind.area_of.tolist()) for kind in kinds] == [
        ("GISJOIN_OF_COUNTY", [0]),
        ("district", [0]),
    ]


def test_other_codes_of_blocks_are_no_kinds_of_areas(tmp_path):
    path = listed(
        tmp_path,
        "GISJOIN,GEOID20,place",
        "G44000100301001000,440010301001000,1",
        "G44000100301001001,440010301001001,2",
    )
    kinds, _ = read_block_areas(path, np.array([4400103010011000, 4400103010011001]), GeocodeForm(16))
    assert [kind.name for kind in kinds] == ["place"]
