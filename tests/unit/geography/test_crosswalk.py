"""Crosswalks of blocks: forms of codes and areas, and what is refused."""

from pathlib import Path

import numpy as np
import pytest

from censafe.errors import DataError, StorageError
from censafe.geography.crosswalk import read_crosswalk

CODES = np.array([100100020011001, 4400100010011000, 4400100010022000])


def write(folder: Path, lines: str) -> Path:
    path = folder / "primgeo_crosswalk_2020tabblk.csv"
    path.write_text(lines, encoding="utf-8")
    return path


def test_the_layout_of_the_bureau_has_blocks_of_15_digits(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "tabblk,primgeo\n440010001002000,440019999900007\n440010001001000,440019999999999\n"
        "010010002001001,010019999900100\n440010001001999,1\n",
    )
    with_one_digit = read_crosswalk(path, ("prim",), CODES)["prim"]
    # areas of several lengths: places in the order of their texts
    assert with_one_digit.tolist() == [0, 3, 2]
    path.write_text(path.read_text().replace(",1\n", ",440019999999998\n"))
    assert read_crosswalk(path, ("prim",), CODES)["prim"].tolist() == [
        10019999900100,
        440019999999999,
        440019999900007,
    ]


def test_several_columns_of_own_areas_are_read(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        '\ufeff"block",district,prim\n0100100020011001,north,07\n4400100010011000,"south, east",09\n4400100010022000,north,07\n',
    )
    found = read_crosswalk(path, ("district", "prim"), CODES)
    assert found["district"].tolist() == [0, 1, 0]
    assert found["prim"].tolist() == [7, 9, 7]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("block,prim\n", "no blocks"),
        ("geocode,prim\n1,2\n", "column missing: block; allowed: a header with block or tabblk"),
        ("block,area\n0100100020011001,2\n", "column missing: prim; allowed: a header with prim or primgeo"),
        ("block,prim\n0100100020011001,2\n010010002001001,2\n", "1 rows have geocodes of another form"),
        ("block,prim\n01001000200110,2\n", "1 rows have geocodes of another form"),
        ("block,prim\n0100100020011001,2\n0100100020011001,2\n", "1 blocks are given twice, such as 0100100020011001"),
        ("block,prim\n0100100020011001,2\n4400100010011000,2\n", "1 blocks of the data are not in the crosswalk, such as 4400100010022000"),
        ("block,prim\n0100100020011001,2\n4400100010011000,\n4400100010022000,1\n", "prim: 1 blocks have no area, such as 4400100010011000"),
        ("block,prim\n0100100020011001,2,3\n", "1 rows of the crosswalk have not as many fields as the header"),
    ],
)  # fmt: skip
def test_tables_that_break_a_rule_are_refused(tmp_path: Path, lines: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_crosswalk(write(tmp_path, lines), ("prim",), CODES)


def test_a_table_that_is_not_there_is_a_storage_error(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="does not exist or cannot be read"):
        read_crosswalk(tmp_path / "absent.csv", ("prim",), CODES)
