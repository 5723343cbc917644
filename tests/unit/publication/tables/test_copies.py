"""Comma-separated copies hold the rows of their Parquet files."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from censafe.geography.area_names import AreaNames
from censafe.model.sparse import SparseLevel
from censafe.publication.microdata.histograms import write_histograms
from censafe.publication.tables.copies import write_csv_copy


def test_a_copy_of_histograms_has_labels_and_codes(tmp_path: Path) -> None:
    level = SparseLevel(
        np.array(["44001", "44003"]),
        np.array([0, 2, 3]),
        np.array([0, 2, 1], np.int32),
        np.array([3, 1, 2], np.int32),
    )
    names = AreaNames({"44001": "Bristol, a county", "44003": "=Kent"})
    write_histograms(tmp_path / "a.parquet", level, schema="own", areas=names)
    write_csv_copy(tmp_path / "a.parquet", tmp_path / "a.csv", labels=("men", "women", "-"))
    with (tmp_path / "a.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.reader(stream))
    assert rows == [
        ["geocode", "GEOID", "GISJOIN", "NAME", "cell", "count", "label"],
        ["44001", "44001", "G4400010", "Bristol, a county", "0", "3", "men"],
        ["44001", "44001", "G4400010", "Bristol, a county", "2", "1", "'-"],
        ["44003", "44003", "G4400030", "'=Kent", "1", "2", "women"],
    ]


def test_a_copy_without_labels_has_the_same_columns(tmp_path: Path) -> None:
    level = SparseLevel(np.array(["a1"]), np.array([0, 1]), np.array([1], np.int32), np.array([4], np.int32))
    write_histograms(tmp_path / "a.parquet", level, schema="own")
    write_csv_copy(tmp_path / "a.parquet", tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_text(encoding="utf-8") == '"geocode","cell","count"\n"a1",1,4\n'
