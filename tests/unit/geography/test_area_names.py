"""Names of areas are read from the files that people have."""

from pathlib import Path

import numpy as np
import pytest

from censafe.errors import DataError, StorageError
from censafe.geography.identifiers import AreaNames, names_text, read_area_names, region_names

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
