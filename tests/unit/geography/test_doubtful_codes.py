"""Codes of blocks that may be those of other places are refused by every reader, with their number."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from censafe.errors import DataError
from censafe.evaluation.areas import read_area_lists
from censafe.geography.area_lists import read_block_areas, read_listed_blocks
from censafe.geography.crosswalk import read_crosswalk
from censafe.geography.geocodes import GeocodeForm
from censafe.geography.identifiers import AreaNames, doubtful_blocks, read_area_names
from censafe.geography.regions import VINTAGES, county_numbers
from censafe.geography.spines.tree import PL94_PR, build_spine
from censafe.results.histogram_files import geocode_numbers, read_block_cells
from support.shared import shared_data

BLOCK = GeocodeForm(16)
LOST = ("100302010011000", "100302010022000")  # 0100302010011000 and ...: read as GEOIDs they are of state 10
CODES = np.array([int(f"0{one}") for one in LOST])


def written(folder: Path, header: str, rows: list[str]) -> Path:
    path = folder / "codes.csv"
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return path


def test_the_list_of_counties_has_those_of_the_2020_census() -> None:
    published = pq.read_table(shared_data("population/us_county_2020.parquet"))["geoid"].to_pylist()
    listed = set(county_numbers("2020").tolist())
    assert set(map(int, published)) <= listed
    assert {one // 1000 for one in listed - set(map(int, published))} == {60, 66, 69, 72, 78}
    changed = {
        one
        for vintage in VINTAGES
        for one in set(county_numbers().tolist()) - set(county_numbers(vintage).tolist())
    }
    assert {one // 1000 for one in changed} == {2, 9, 46, 51}


@pytest.mark.parametrize(
    ("codes", "short", "rules"),
    [
        ([4400103010011000], [False], {}),
        ([4400103010011000, 1000104010011000], [True, True], {}),
        ([4400103010021000], [False], {"nesting": 1}),
        ([4500203010011000, 4400103010011000], [False, False], {"unknown-county": 1}),
        ([6001400110011000], [True], {"unknown-county": 1}),
        ([-1, 4400103010011000], [True, True], {}),
        # 0206000010011000 of Alaska without its zero is 206000010011000, of no county of Kansas
        ([2060000100111000], [True], {"lost-zero": 1}),
    ],
)  # fmt: skip
def test_codes_are_compared_with_counties_and_with_themselves(
    codes: list[int], short: list[bool], rules: dict[str, int]
) -> None:
    found = doubtful_blocks(np.array(codes), np.array(short))
    assert {one.rule: int(one.rows.sum()) for one in found} == rules


def test_a_code_that_is_right_in_both_readings_is_in_doubt() -> None:
    # 15 digits of county 20131 of Kansas or, with a zero before them, of county 02013 of Alaska
    with pytest.raises(
        DataError, match="1 codes of 15 digits that are geocodes of 16 digits without their leading zero"
    ):
        geocode_numbers(pa.array(["201310001011000"]), BLOCK, "a.csv, geocode")
    assert geocode_numbers(pa.array(["201310001011000", "201310001012000"]), BLOCK).min() > 0


def test_every_reader_refuses_geocodes_without_their_zero(tmp_path: Path) -> None:
    message = "2 codes of 15 digits that are geocodes of 16 digits without their leading zero"
    listed = written(tmp_path, "GEOID,ward", [f"{one},1" for one in LOST])
    spine = build_spine(CODES, PL94_PR)
    readers = [
        lambda: read_listed_blocks(listed, BLOCK),
        lambda: read_block_areas(listed, CODES, BLOCK),
        lambda: read_area_lists(listed, spine),
        lambda: read_crosswalk(written(tmp_path, "block,prim", [f"{one},5" for one in LOST]), ("prim",), CODES),
        lambda: read_block_cells(written(tmp_path, "geocode,cell,count", [f"{one},0,1" for one in LOST]), BLOCK),
    ]  # fmt: skip
    for read in readers:
        with pytest.raises(DataError, match=message):
            read()
    names = written(tmp_path, "geocode,NAME", [f"{LOST[0]},a", "1001,b", "1,c"])
    with pytest.raises(DataError, match="2 codes are GEOIDs without their leading zero"):
        read_area_names(names)


def test_codes_of_other_countries_are_not_compared_with_counties(tmp_path: Path) -> None:
    listed = written(tmp_path, "geocode,ward", ["9900100201001000,1", "9900100201021000,2"])
    assert len(read_listed_blocks(listed, BLOCK).numbers) == 2


def test_names_that_match_nothing_are_counted_and_those_of_a_level_are_not() -> None:
    areas = {"State": np.array(["44"]), "County": np.array(["44001", "44003", "44005"])}
    said = AreaNames({"09110": "Capitol", "44001": "Bristol"}).remark(areas)
    assert said.startswith(
        "Names: 1 of 4 areas got a name of the 2 that were given (State 0 of 1, County 1 of 3)"
    )
    assert not AreaNames({"44001": "Bristol", "44003": "Kent"}).remark(areas)
    assert not AreaNames().remark(areas)
