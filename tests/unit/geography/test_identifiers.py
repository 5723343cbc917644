"""Codes by which areas are joined to files of the Census Bureau and of NHGIS, and names of areas."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from censafe.errors import DataError, StorageError
from censafe.geography.identifiers import (
    AreaNames,
    are_census_levels,
    block_column,
    geocode_texts,
    geoids,
    gisjoins,
    names_text,
    read_area_names,
    region_geoids,
    region_gisjoins,
    region_names,
)

GEOCODE = "4400103010011000"
GEOID = "440010301001000"
GISJOIN = "G44000100301001000"


@pytest.mark.parametrize(
    ("geocode", "geoid", "gisjoin"),
    [
        ("44", "44", "G440"),
        ("44001", "44001", "G4400010"),
        ("44001030100", "44001030100", "G4400010030100"),
        ("440010301001", "440010301001", "G44000100301001"),
        (GEOID, GEOID, GISJOIN),
        (GEOCODE, GEOID, GISJOIN),
        ("1", "", ""),
        ("440001", "", ""),
    ],
)
def test_codes_of_every_level(geocode: str, geoid: str, gisjoin: str) -> None:
    codes = np.array([geocode, geocode])
    assert [geoid] * 2 == geoids(codes).tolist()
    assert [gisjoin] * 2 == gisjoins(codes).tolist()


def test_no_areas_have_no_codes() -> None:
    assert geoids(np.zeros(0, "U16")).tolist() == gisjoins(np.zeros(0, "U16")).tolist() == []
    assert geoids(np.array([""])).tolist() == gisjoins(np.array([""])).tolist() == [""]


@pytest.mark.parametrize(
    ("kind", "region", "geoid", "gisjoin"),
    [
        ("USA", "1", "", ""),
        ("STATE", "72", "72", "G720"),
        ("COUNTY", "44001", "44001", "G4400010"),
        ("TRACT", "44001030100", "44001030100", "G4400010030100"),
        ("PLACE", "4459000", "4459000", "G44059000"),
        ("AIANNH", "0010", "0010", ""),
    ],
)
def test_regions_of_the_detailed_files(kind: str, region: str, geoid: str, gisjoin: str) -> None:
    assert [geoid] == region_geoids(kind, np.array([region])).tolist()
    assert [gisjoin] == region_gisjoins(kind, np.array([region])).tolist()


def test_every_form_of_a_block_is_its_geocode() -> None:
    texts = pa.array([GEOCODE, GEOID, GISJOIN, f" {GEOID} ", "440010301", None, "G44100100301001000"])
    assert geocode_texts(texts, 16).to_pylist() == [
        GEOCODE, GEOCODE, GEOCODE, GEOCODE, "440010301", None, "G44100100301001000"
    ]  # fmt: skip
    assert geocode_texts(texts, 15).to_pylist()[1:3] == [GEOID, GEOID]
    assert geocode_texts(texts, 10).to_pylist()[1:3] == [GEOID, GISJOIN]


def test_the_first_known_column_is_taken() -> None:
    assert block_column(["GISJOIN", "geocode"]) == "geocode"
    assert block_column(["GISJOIN", "GEOID"]) == "GEOID"
    assert block_column(["place"]) is None


def test_levels_of_1940_are_not_those_of_the_census_blocks() -> None:
    assert are_census_levels((0, 2, 5, 11, 12, 16))
    assert not are_census_levels((0, 2, 6, 10))


GAZETTEER = "USPS\tGEOID\tANSICODE\tNAME\tALAND   \nRI\t44001\t01219777\tBristol County\t62550804\n"
BLOCKS = {"440010301001000": "Main Street"}


def written(folder: Path, text: str) -> Path:
    path = folder / "names.txt"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (GAZETTEER, {"44001": "Bristol County"}),
        ("GEO_ID,NAME\nid,Geographic Area Name\n0500000US44001,Bristol\n", {"id": "Geographic Area Name", "44001": "Bristol"}),
        ('GISJOIN,NAME\nG4400010,"Bristol"\nG440,Rhode Island\nG44059000,Providence\n', {"44001": "Bristol", "44": "Rhode Island", "4459000": "Providence"}),
        ("geocode|NAMELSAD|NAME\n4400103010011000|Main Street|x\n", BLOCKS),
        ("\ufeffGEOID20,NAME20\n440010301001000,Main Street\n440010301001001,\n", BLOCKS),
        ("GISJOIN,NAME\nG44000100301001000,Main Street\n", BLOCKS),
    ],
)  # fmt: skip
def test_files_of_many_makers_give_names_by_geoid(tmp_path: Path, text: str, names: dict[str, str]) -> None:
    assert read_area_names(written(tmp_path, text)) == names


def test_codes_of_ones_own_stay_as_they_are(tmp_path: Path) -> None:
    own = {"4400103010011000": "a", "G440": "b", "=1+1": "=2"}
    assert read_area_names(written(tmp_path, names_text(own, census=False)), census=False) == own


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file of names is empty"),
        ("GEOID,title\n44,x\n", "a file of names has a header"),
        ("GEOID,NAME\n44,\n", "no area is named"),
        ("GEOID,NAME\n44,x\n44,y\n", "1 areas have two names, such as 44"),
    ],
)
def test_what_names_nothing_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_area_names(written(tmp_path, text))


def test_what_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StorageError):
        read_area_names(tmp_path / "none.csv")
    (tmp_path / "bytes.csv").write_bytes(b"GEOID,NAME\n44,\xff\n")
    with pytest.raises(DataError, match="UTF-8"):
        read_area_names(tmp_path / "bytes.csv")


def test_given_names_stand_beside_regions_and_areas() -> None:
    given = {"44001": "Bristol County", "4459000": "Providence", "440010301001000": "Main Street"}
    assert region_names("PLACE", np.array(["4459000", "4459001"]), given).tolist() == ["Providence", ""]
    assert region_names("STATE", np.array(["44"]), given).tolist() == ["Rhode Island"]
    assert AreaNames(given).of_level("place", np.array(["4459000"]))["NAME"].tolist() == ["Providence"]
    assert AreaNames(given).names(np.array(["4400103010011000"])).tolist() == ["Main Street"]
