"""Codes by which areas are joined to files of the Census Bureau and of NHGIS."""

import numpy as np
import pyarrow as pa
import pytest

from censafe.geography.identifiers import (
    are_census_levels,
    block_column,
    geocode_texts,
    geoids,
    gisjoins,
    region_geoids,
    region_gisjoins,
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
