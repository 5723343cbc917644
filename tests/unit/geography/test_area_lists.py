"""Tables of the areas that blocks lie in."""

import re
import zipfile
from pathlib import Path

import numpy as np
import pytest

from censafe.errors import DataError, StorageError
from censafe.geography.area_lists import read_block_areas
from censafe.geography.geocodes import GeocodeForm

BLOCKS = np.array([10, 11, 12, 20])


def listed(folder: Path, *lines: str) -> Path:
    path = folder / "areas.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_kinds_in_the_order_of_their_columns(tmp_path):
    path = listed(
        tmp_path, "place,geocode,district", "0700,0011,b", ",0010,a", " 0700 ,0020,a", "1,9999,z",
        "0500,0012,",
    )  # fmt: skip
    kinds, remarks = read_block_areas(path, BLOCKS, GeocodeForm(4))
    assert [kind.name for kind in kinds] == ["place", "district"]
    assert [kind.codes.tolist() for kind in kinds] == [["0500", "0700"], ["a", "b"]]
    assert [kind.area_of.tolist() for kind in kinds] == [[-1, 1, 0, 1], [0, 1, -1, 0]]
    assert remarks == (
        f"{path.name}: 1 of 5 rows are of blocks that this run does not have, such as 9999, and are passed over.",
        f"{path.name}: 1 areas of place have no block of this run and no numbers, such as 1.",
        f"{path.name}: 1 of 4 blocks are in no area of place.",
        f"{path.name}: 1 areas of district have no block of this run and no numbers, such as z.",
        f"{path.name}: 1 of 4 blocks are in no area of district.",
    )


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (("geocode", "0010"), "a column for each kind of area"),
        (("code,place,x", "0010,1,2"), "no column of geocodes; allowed: a header with geocode"),
        (("geocode,place,place", "0010,1,2"), "columns that are there twice: place"),
        (("geocode,place", "10,1"), "codes in column geocode that are not 4 decimal digits"),
        (("geocode,place", "0010,1", "0010,2"), r"blocks there twice \(1\), such as 0010 in 1 and 2; fix"),
        (("geocode,a,b", "0010,1,", "0010,1,3"), r"such as 0010 in none and 3; fix"),
        (("geocode,place", "0010,1", "0010,1"), r"blocks there twice \(1\), such as 0010; fix"),
        (("geocode,place", "0010,"), "place: no block of this run is in an area of it"),
        (("geocode,place", "0099,1", "0010,"), "place: no block of this run is in an area of it"),
        (("geocode,place",), "has a header and no rows"),
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


BUREAU = np.array([4400103010011000, 4400103010011001, 4400303010011000, 5000103010011000])


@pytest.mark.parametrize(
    ("lines", "kinds"),
    [
        (("BLOCKID|DISTRICT", "440010301001000|01", "440030301001000|ZZ", "500010301001000|01"),
         {"DISTRICT": (["4401", "5001"], [0, -1, -1, 1])}),
        (("BLOCKID|COUNTYFP|DISTRICT", "440010301001000|001|00001A", "440030301001000|003|00001A"),
         {"DISTRICT": (["4400100001A", "4400300001A"], [0, -1, 1, -1])}),
        (("BLOCKID|PLACEFP", "440010301001000|59000", "440010301001001|", "500010301001000|59000"),
         {"PLACEFP": (["4459000", "5059000"], [0, -1, -1, 1])}),
        (("BLOCKID|COUNTYFP|COUSUBFP", "440010301001000|001|05140", "440030301001000|003|05140"),
         {"COUSUBFP": (["4400105140", "4400305140"], [0, -1, 1, -1])}),
        (("BLOCKID|AIANNHCE|COMPTYPE", "440010301001000|2415|R", "440030301001000|2415|T"),
         {"AIANNHCE": (["2415"], [0, -1, 0, -1])}),
        (("GEOID, CDFP", "440010301001000,01", "500010301001000,00"), {"CDFP": (["4401", "5000"], [0, -1, -1, 1])}),
        (("GEOID,SLDLST,ward", "440010301001000,ZZZ,ZZ", "500010301001000,ADD,7"),
         {"SLDLST": (["50ADD"], [-1, -1, -1, 0]), "ward": (["7"], [-1, -1, -1, 0])}),
        (("GEOID,DISTRICT,COUNTYFP", "440010301001000,a,001", "500010301001000,a,001"),
         {"DISTRICT": (["a"], [0, -1, -1, 0]), "COUNTYFP": (["44001", "50001"], [0, -1, -1, 1])}),
        (("GEOID\tward", "440010301001000\t1"), {"ward": (["1"], [0, -1, -1, -1])}),
    ],
)  # fmt: skip
def test_codes_within_a_state_of_the_bureaus_files_become_geoids(tmp_path, lines, kinds):
    found, _ = read_block_areas(listed(tmp_path, *lines), BUREAU, GeocodeForm(16))
    assert {one.name: (one.codes.tolist(), one.area_of.tolist()) for one in found} == kinds


@pytest.mark.parametrize("code", ["44001030100100", "4.4E+14", "440010301001000.5", ""])
def test_codes_that_a_spreadsheet_changed_are_named(tmp_path, code):
    path = listed(tmp_path, "GEOID,ward", f'"{code}",a', "440010301001000,b")
    with pytest.raises(DataError, match=r"GEOIDs of 15 digits, geocodes of 16 digits or GISJOIN codes \(1\)"):
        read_block_areas(path, BUREAU, GeocodeForm(16))


def test_text_of_another_encoding_is_refused(tmp_path):
    path = tmp_path / "areas.csv"
    path.write_bytes("GEOID,ward\n440010301001000,Cañón\n".encode("latin-1"))
    with pytest.raises(
        DataError,
        match="1 lines of the table of areas have bytes that are not text in UTF-8, the first is line 2",
    ):
        read_block_areas(path, BUREAU, GeocodeForm(16))


RI = np.array([4400103010011000, 4400103010011001, 4400700010022003])
ASSIGNED = {
    "BlockAssign_ST44_RI_CD.txt": "BLOCKID|DISTRICT\n440010301001000|01\n440010301001001|01\n440070001002003|02\n",
    "BlockAssign_ST44_RI_SLDU.txt": "BLOCKID|DISTRICT\n440010301001000|032\n440070001002003|001\n",
    "BlockAssign_ST44_RI_VTD.txt": "BLOCKID|COUNTYFP|DISTRICT\n440010301001000|001|BA0101\n",
    "BlockAssign_ST44_RI_INCPLACE_CDP.txt": "BLOCKID|PLACEFP\n440010301001000|05140\n440010301001001|\n",
    "BlockAssign_ST44_RI_AIANNH.txt": "BLOCKID|AIANNHCE|COMPTYP\n440070001002003|2320|R\n",
    "NAMES_ST44_RI_CD.txt": "STATEFP|CDFP|NAME\n44|01|District 1\n",
}


def test_an_archive_of_block_assignment_files_has_all_their_kinds(tmp_path):
    with zipfile.ZipFile(tmp_path / "BlockAssign_ST44_RI.zip", "w") as archive:
        for name, words in ASSIGNED.items():
            archive.writestr(name, words)
    kinds, _ = read_block_areas(tmp_path / "BlockAssign_ST44_RI.zip", RI, GeocodeForm(16))
    assert {one.name: one.codes.tolist() for one in kinds} == {
        "AIANNHCE": ["2320"], "CD": ["4401", "4402"], "PLACEFP": ["4405140"], "SLDU": ["44001", "44032"], "VTD": ["44001BA0101"],
    }  # fmt: skip
    assert [one.area_of.tolist() for one in kinds if one.name == "CD"] == [[0, 0, 1]]


HEADLESS = "there is no header; column 1 is read as blocks and the other as areas"
OF_2010 = "column GEOID10 has blocks of 2010"


@pytest.mark.parametrize(
    ("words", "kind", "codes", "remark"),
    [
        ("440010301001000,7\n440010301001001,8\n", "area", ["7", "8"], HEADLESS),
        ("G44000100301001000\t7\nG44000100301001001\t8\n", "area", ["7", "8"], HEADLESS),
        ("7|440010301001000\n8|440010301001001\n", "area", ["7", "8"], "column 2 is read as blocks"),
        ("GEOID10,ward\n440010301001000,7\n", "ward", ["7"], OF_2010),
        ("BLOCKID10,ward\n440010301001000,7\n", "ward", ["7"], "column BLOCKID10 has blocks of 2010"),
        ("GEOID20,GEOID10,ward\n440010301001000,440010301001999,7\n", "ward", ["7"], "1 of 3 blocks|2 of 3 blocks"),
        ("GISJOIN;ward\nG44000100301001000;7\n", "ward", ["7"], "2 of 3 blocks"),
        ("TABBLKST|TABBLKCOU|TABTRACTCE|TABBLK|PLACEFP|REGIONCE\n44|001|030100|1000|05140|1\n", "PLACEFP", ["4405140"], ""),
    ],
)  # fmt: skip
def test_lists_of_every_form(tmp_path, words, kind, codes, remark):
    path = tmp_path / "list.txt"
    path.write_text(words, encoding="utf-8")
    (found,), remarks = read_block_areas(path, RI, GeocodeForm(16))
    assert (found.name, found.codes.tolist()) == (kind, codes)
    assert re.search(remark, " ".join(remarks))


def test_an_archive_without_blocks_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "names.zip", "w") as archive:
        for name in ("a.txt", "b.txt"):
            archive.writestr(name, "STATEFP|NAME\n44|x\n")
    with pytest.raises(DataError, match=r"none of its 2 tables \(a\.txt, b\.txt\) has a column of blocks"):
        read_block_areas(tmp_path / "names.zip", RI, GeocodeForm(16))
