"""Histograms carry the codes that join them to other files."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from censafe.geography.identifiers import AreaNames
from censafe.model.sparse import SparseLevel
from censafe.publication.microdata.histograms import read_histograms, write_histograms

BLOCKS = np.array(["4400103010011000", "4400103010012001"])
GEOIDS = ["440010301001000", "440010301002001"]
GISJOINS = ["G44000100301001000", "G44000100301002001"]


def some_level() -> SparseLevel:
    return SparseLevel(
        BLOCKS, np.array([0, 2, 3]), np.array([0, 5, 1], np.int32), np.array([3, 1, 2], np.int32)
    )


def test_histograms_have_the_codes_and_are_read_back(tmp_path: Path) -> None:
    path = tmp_path / "persons_Block.parquet"
    write_histograms(path, some_level(), schema="own", areas=AreaNames())
    table = pq.read_table(path)
    assert table.column_names == ["geocode", "GEOID", "GISJOIN", "NAME", "cell", "count"]
    assert table["GEOID"].to_pylist() == [GEOIDS[0], *GEOIDS]
    assert table["GISJOIN"].to_pylist() == [GISJOINS[0], *GISJOINS]
    found = read_histograms(path, BLOCKS)
    assert found.count.tolist() == [3, 1, 2]
    assert found.node_ptr.tolist() == [0, 2, 3]


def test_areas_of_other_geographies_have_none(tmp_path: Path) -> None:
    write_histograms(tmp_path / "a.parquet", some_level(), schema="own")
    assert pq.read_schema(tmp_path / "a.parquet").names == ["geocode", "cell", "count"]
