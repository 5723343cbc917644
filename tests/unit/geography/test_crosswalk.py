"""Crosswalks of blocks: forms of codes and areas, Prims and school districts, and what is refused."""

from pathlib import Path

import numpy as np
import pytest

from censafe.errors import DataError, StorageError
from censafe.geography.crosswalk import read_crosswalk, with_prim_keys
from censafe.geography.grfc import BlockAreas, block_codes, read_grfc
from support.shared import shared_data

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


HEADER = "OIDTABBLK|TABBLKST|TABBLKCOU|TABTRACTCE|TABBLK|AIANNHCE|PLACEFP|PLACEFS|COUSUBFP|COUSUBFS|SDUNILEA|SDSECLEA|SDELMLEA"
ROWS = (
    "a|44|001|000100|1000|9999|11000|A|05140|S|00010|99999|99999",
    "b|44|001|000100|1001|9999|11000|S|05141|A||99999|00020",
    "c|48|001|000100|1000|9999|11000|F|05142|S|99999|99999|99999",
    "d|48|003|000100|1000|9999|11000||05143|N|99999|99999|99999",
    "e|72|001|000100|1000|9999|11000|A|05144|A|00010|99999|99999",
)
# the block that gives its county county subdivisions need not be in the data
GRFC_CODES = np.array([44001000100 * 10**5 + 11000, 48001000100 * 10**5 + 11000, 48003000100 * 10**5 + 11000])


def areas(codes: np.ndarray = GRFC_CODES) -> BlockAreas:
    none = np.full(len(codes), 99999, np.int32)
    return BlockAreas(codes, np.full(len(codes), 9999, np.int32), none, none)


def write_grfc(folder: Path, *rows: str, header: str = HEADER, name: str = "GRF-C.txt") -> Path:
    path = folder / name
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


def test_prims_follow_the_status_of_all_blocks_of_the_files(tmp_path: Path) -> None:
    found = with_prim_keys(areas(), [write_grfc(tmp_path, *reversed(ROWS))])
    assert found.keys["prim"].tolist() == [440010514011000, 480019999911000, 480039999999999]
    assert found.keys["districts"].tolist() == [(10 * 10**5 + 99999) * 10**5 + 99999, 10**15 - 1, 10**15 - 1]
    assert len(found.notes) == 1
    assert "No crosswalk of blocks to Prims was given" in found.notes[0]


def test_several_files_are_one_table(tmp_path: Path) -> None:
    paths = [write_grfc(tmp_path, *ROWS[:2]), write_grfc(tmp_path, *ROWS[2:], name="GRF-C_2.txt")]
    one = with_prim_keys(areas(), [write_grfc(tmp_path, *ROWS, name="GRF-C_all.txt")])
    assert one.keys["prim"].tolist() == with_prim_keys(areas(), paths).keys["prim"].tolist()


def test_a_crosswalk_goes_before_the_rule(tmp_path: Path) -> None:
    crosswalk = tmp_path / "crosswalk.csv"
    crosswalk.write_text(
        "block,prim\n" + "".join(f"{code:016d},{n}\n" for n, code in enumerate(GRFC_CODES.tolist()))
    )
    found = with_prim_keys(areas(), [write_grfc(tmp_path, *ROWS)], crosswalk)
    assert found.keys["prim"].tolist() == [0, 1, 2]
    assert found.notes == ("Prims are those of the crosswalk crosswalk.csv.",)
    assert set(found.keys) == {"prim", "districts"}
    assert set(with_prim_keys(areas(), [], crosswalk).keys) == {"prim"}


def test_files_without_the_columns_give_no_keys(tmp_path: Path) -> None:
    short = "TABBLKST|TABBLKCOU|TABTRACTCE|TABBLK|PLACEFP|COUSUBFP|AIANNHCE"
    assert (
        with_prim_keys(areas(), [write_grfc(tmp_path, "44|001|000100|1000|1|2|3", header=short)]).keys == {}
    )
    assert with_prim_keys(areas(), []).keys == {}
    path = shared_data("population/GRF-C_ri2020.txt")
    codes = np.sort(block_codes(read_grfc(path, ("TABBLKST", "TABBLKCOU", "TABTRACTCE", "TABBLK"))))
    found = with_prim_keys(areas(codes), [path])
    assert (found.keys, found.notes) == ({}, ())


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (ROWS[1:], "1 blocks of the data are not here; .* such as 4400100010011000"),
        ((*ROWS, ROWS[0]), "1 blocks are given twice; .* such as 4400100010011000"),
        ((*ROWS, ROWS[0].replace("|1000|", "|100|")), "TABBLK: 1 codes of another form"),
        ((*ROWS, ROWS[0].replace("|1000|", "|1002|").replace("|A|", "|AB|")), "PLACEFS: 1 rows have codes of another form"),
        ((*ROWS, ROWS[0].replace("|1000|", "|1002|").replace("|00010|", "|10|")), "SDUNILEA: 1 rows have codes of another form"),
    ],
)  # fmt: skip
def test_block_files_that_break_a_rule_are_refused(
    tmp_path: Path, rows: tuple[str, ...], message: str
) -> None:
    with pytest.raises(DataError, match=message):
        with_prim_keys(areas(), [write_grfc(tmp_path, *rows)])
