"""Areas off the spine, from every form in which they are listed."""

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from censafe.errors import DataError, StorageError, UsageError
from censafe.evaluation.areas import area_kinds, known_areas, read_area_lists
from censafe.evaluation.counts.cell_sets import DefinedAreas
from censafe.evaluation.counts.pairing import (
    Pair,
    PublishedRun,
    pair_files,
    pair_histograms,
    pair_on_spine,
    pair_with_files,
)
from censafe.evaluation.pairs.inputs import OpenedPair, with_lists
from censafe.geography.geocodes import GeocodeForm
from censafe.geography.grfc import BlockAreas
from censafe.geography.spines.tree import LevelRule, build_spine
from censafe.results.histogram_files import read_unit_table
from support.histograms import exact_level, sparse_level
from support.pairs import RULES, SMALL, UNITS, pair_of, population

CODES = np.array(["4400103010011000", "4400103010011001", "4400700010022000", "5000100010011000"])
CENSUS = (LevelRule("US", 0), LevelRule("State", 2), LevelRule("County", 5), LevelRule("Block", 16))
SPINE = build_spine(CODES, CENSUS)


def census_pair() -> Pair:
    grid = population(4, 1)
    names = SPINE.leaf.geounits
    return pair_histograms(
        SMALL,
        SPINE,
        exact_level(names, grid),
        [PublishedRun("1", sparse_level(names, grid))],
    )


def grfc(path: Path, rows: list[str]) -> Path:
    head = "TABBLKST|TABBLKCOU|TABTRACTCE|TABBLKGRPCE|TABBLK|PLACEFP|COUSUBFP|AIANNHCE"
    path.write_text("\n".join([head, *rows]) + "\n", encoding="utf-8")
    return path


def test_the_block_file_lists_places_and_county_subdivisions_by_codes_that_are_unique(tmp_path: Path) -> None:
    path = grfc(
        tmp_path / "GRF-C.txt",
        [
            "44|001|030100|1|1000|14140|05140|9999", "44|001|030100|1|1001|99999|05140|9999",
            "44|007|000100|2|2000|14140|05140|0010", "50|001|000100|1|1000|14140|05140|9999",
        ],
    )  # fmt: skip
    lists = {one.level: one for one in read_area_lists(path, SPINE)}
    assert sorted(lists) == ["aiannh", "cousub", "place"]
    assert lists["place"].names.tolist() == ["4414140", "5014140"]
    assert lists["place"].of_block.tolist() == [0, -1, 0, 1]
    assert lists["cousub"].names.tolist() == ["4400105140", "4400705140", "5000105140"]
    assert lists["aiannh"].names.tolist() == ["0010"]
    known = BlockAreas(
        SPINE.leaf.codes, np.array([9999, 9999, 10, 9999], np.int32), np.array([14140, 99999, 14140, 14140], np.int32),
        np.array([5140] * 4, np.int32),
    )  # fmt: skip
    for one in known_areas(SPINE, known):
        assert one.names.tolist() == lists[one.level].names.tolist()
        assert one.of_block.tolist() == lists[one.level].of_block.tolist()


def test_parquet_lists_have_kinds_in_columns_of_text_that_are_no_levels(tmp_path: Path) -> None:
    path = tmp_path / "areas.parquet"
    columns = {
        "geoid": ["440010301001000", "440010301001001"], "county": ["001", "001"], "state": ["44", "44"], "cd": ["01", ""],
        "sldl": ["066", "066"], "pop": [1.5, 2.5],
    }  # fmt: skip
    pq.write_table(pa.table(columns), path)
    assert area_kinds(path, SPINE) == ("cd", "sldl")
    assert read_area_lists(path, SPINE, ["cd"])[0].of_block.tolist() == [0, -1, -1, -1]
    assert [one.level for one in read_area_lists(path, SPINE, ["sldl"])] == ["sldl"]


def test_named_lists_take_the_place_of_known_ones_and_kinds_choose(tmp_path: Path) -> None:
    path = tmp_path / "areas.csv"
    path.write_text("geocode,place,cd\n4400103010011000,A,1\n", encoding="utf-8")
    known = known_areas(SPINE, BlockAreas(SPINE.leaf.codes, *(np.array([1] * 4, np.int32) for _ in range(3))))
    opened = OpenedPair(census_pair(), lists=known)
    half = DefinedAreas("half", {"a": ("44",), "b": ("50",)})
    found = {one.level: one for one in with_lists(opened, [path], defined=(half,))}
    assert sorted(found) == ["aiannh", "cd", "cousub", "half", "place"]
    assert found["place"].names.tolist() == ["A"]
    assert [one.level for one in with_lists(opened, [path], ["cousub", "cd"])] == ["cousub", "cd"]
    with pytest.raises(UsageError, match="no list of village"):
        with_lists(opened, [path], ["village"])
    with pytest.raises(UsageError, match="two files list areas of one kind: place, cd"):
        with_lists(opened, [path, path])
    clash = DefinedAreas("County", {"a": ("44",)})
    with pytest.raises(UsageError, match="areas County have the name of a level"):
        with_lists(opened, defined=(clash,))


def test_lists_that_are_none_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "areas.csv"
    path.write_text("code;place\n4400103010011000;A\n", encoding="utf-8")
    with pytest.raises(DataError, match="no column of geocodes"):
        read_area_lists(path, SPINE, ["place"])
    path.write_text("geocode\n4400103010011000\n", encoding="utf-8")
    with pytest.raises(DataError, match="no column of area codes"):
        read_area_lists(path, SPINE)
    path.write_text("geocode,place\n44,A\n", encoding="utf-8")
    with pytest.raises(
        DataError, match=r"codes in column geocode that are not GEOIDs of 15 digits, .* \(1\)"
    ):
        read_area_lists(path, SPINE, ["place"])
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(DataError, match=r"broken\.parquet: the table of areas is neither text with a header"):
        read_area_lists(tmp_path / "broken.parquet", SPINE)
    with pytest.raises(StorageError, match=r"none\.csv"):
        read_area_lists(tmp_path / "none.csv", SPINE)


def test_a_truth_that_was_read_is_the_list_of_blocks(tmp_path: Path) -> None:
    pair = pair_of(population(6, 1), [])
    columns = {"cell": pa.array([1], pa.int32()), "count": pa.array([2], pa.int32())}
    good, foreign = tmp_path / "good.parquet", tmp_path / "foreign.parquet"
    pq.write_table(pa.table({"geocode": pair.spine.leaf.geounits[:1].tolist(), **columns}), good)
    pq.write_table(pa.table({"geocode": ["9901"], **columns}), foreign)
    found = pair_with_files(pair, RULES, {"a": good})
    assert (found.runs[0].run_id, found.runs[0].histograms.count.tolist()) == ("a", [2])
    with pytest.raises(
        DataError, match="1 Block geounits are not in the list of areas, the first at level State"
    ):
        pair_with_files(pair, RULES, {"a": foreign})


def test_files_that_end_early_or_are_cut_otherwise_are_refused(tmp_path: Path) -> None:
    truth = tmp_path / "truth.parquet"
    columns = {"geocode": ["1001"], "cell": pa.array([1], pa.int32()), "count": pa.array([2], pa.int32())}
    pq.write_table(pa.table(columns), truth)
    cut = tmp_path / "cut.parquet"
    cut.write_bytes(truth.read_bytes()[:-20])
    with pytest.raises((DataError, StorageError), match=r"cut\.parquet"):
        pair_files(SMALL, RULES, truth, {"a": cut})
    semicolons = tmp_path / "semicolons.csv"
    semicolons.write_text("geocode;cell;count\n1001;1;2\n", encoding="utf-8")
    assert pair_files(SMALL, RULES, truth, {"a": semicolons}).confidential.count.tolist() == [2]
    units = tmp_path / "units.csv"
    units.write_text("geocode,gq0,occupied\n1001,2\n", encoding="utf-8")
    with pytest.raises(
        DataError, match=r"units\.csv: 1 rows of the table of units have not as many fields as the header"
    ):
        read_unit_table(units, GeocodeForm(4))
    units.write_text("geocode,gq0,occupied\n1001,2,1\n", encoding="utf-8")
    pair = pair_files(SMALL, RULES, truth, {"a": truth})
    assert pair_on_spine(pair, UNITS, units, [units]).confidential.count.tolist() == [1, 1]
    with pytest.raises(DataError, match="a table of units tells occupied and vacant ones only"):
        pair_on_spine(pair, SMALL, units, [units])
    with pytest.raises(UsageError, match="give one for each"):
        pair_on_spine(pair, UNITS, units, [])


@pytest.mark.parametrize(
    "text",
    [
        "GEOID,area,area\n440010301001000,1,2\n",
        "GEOID;;\n440010301001000;1;2\n",
        ",GEOID\nx,440010301001000\n",
        "GEOID,area\n,7\n",
    ],
)
def test_messages_about_lists_name_what_they_are_about(tmp_path: Path, text: str) -> None:
    path = tmp_path / "list.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError) as caught:
        read_area_lists(path, SPINE)
    assert not re.search(r"such as *[,;.]|: :|  |''|, *,", str(caught.value))
