"""Blocks, areas and totals that stand beside stored measurements."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from censafe.errors import CheckError, DataError, StorageError
from censafe.geography.geocodes import ALPHABETS, GeocodeForm
from censafe.geography.grfc import BlockAreas
from censafe.publication.measurements.geography import (
    Blocks,
    ExactTotal,
    read_exact_totals,
    read_geography,
    write_exact_totals,
    write_geography,
)

CODES = np.array([440010001001000, 440010001001001], np.int64)
UNITS = np.array([[3, 0, 1], [0, 2, 0]], np.int32)


@pytest.mark.parametrize("with_areas", [False, True])
def test_blocks_come_back(tmp_path: Path, with_areas: bool) -> None:
    one = np.array([1, 2], np.int32)
    areas = BlockAreas(CODES, one, one + 10, one + 20) if with_areas else None
    path = tmp_path / "g.parquet"
    write_geography(
        path, Blocks(CODES, GeocodeForm(15), UNITS, areas, ("units of 1940",)), stamp="NOT PRIVATE"
    )
    found = read_geography(path)
    assert (found.codes.tolist(), found.form, found.units.tolist(), found.imputed) == (
        CODES.tolist(), GeocodeForm(15), UNITS.tolist(), ("units of 1940",),
    )  # fmt: skip
    assert (found.areas is not None) == with_areas
    if found.areas is not None:
        assert [found.areas.aiannh.tolist(), found.areas.place.tolist(), found.areas.cousub.tolist()] == [
            [1, 2], [11, 12], [21, 22],
        ]  # fmt: skip
    assert pq.read_metadata(path).metadata[b"stamp"] == b"NOT PRIVATE"


def test_keys_of_areas_come_back_with_their_notes(tmp_path: Path) -> None:
    one = np.array([1, 2], np.int32)
    keys = {"prim": CODES * 2, "districts": CODES}
    path = tmp_path / "g.parquet"
    areas = BlockAreas(CODES, one, one, one, keys, ("Prims are made up.",))
    write_geography(path, Blocks(CODES, GeocodeForm(15), UNITS, areas))
    found = read_geography(path).areas
    assert found is not None
    assert {name: key.tolist() for name, key in keys.items()} == {
        name: key.tolist() for name, key in found.keys.items()
    }
    assert found.notes == ("Prims are made up.",)


def test_blocks_come_back_where_no_units_were_counted(tmp_path: Path) -> None:
    write_geography(tmp_path / "g.parquet", Blocks(CODES, GeocodeForm(15), np.zeros((2, 0), np.int32), None))
    found = read_geography(tmp_path / "g.parquet")
    assert (CODES.tolist(), (2, 0)) == (found.codes.tolist(), found.units.shape)


def test_blocks_with_letters_come_back(tmp_path: Path) -> None:
    form = GeocodeForm(4, ALPHABETS["capitals"])
    codes = form.pack(np.array(["E01A", "W01Z"]))
    write_geography(tmp_path / "g.parquet", Blocks(codes, form, UNITS, None))
    found = read_geography(tmp_path / "g.parquet")
    assert (found.codes.tolist(), found.form) == (codes.tolist(), form)
    assert pq.read_table(tmp_path / "g.parquet")["geocode"].to_pylist() == ["E01A", "W01Z"]


def test_other_files_are_no_blocks(tmp_path: Path) -> None:
    pq.write_table(pa.table({"geocode": ["1"]}), tmp_path / "other.parquet")
    for name in ("none.parquet", "other.parquet"):
        with pytest.raises(CheckError, match="missing, damaged or no file of blocks"):
            read_geography(tmp_path / name)
    table = pa.table({"geocode": ["1"]}).replace_schema_metadata({"format": "censafe geography 9"})
    pq.write_table(table, tmp_path / "later.parquet")
    with pytest.raises(CheckError, match="this version reads"):
        read_geography(tmp_path / "later.parquet")


@pytest.mark.parametrize("column", ["geocode", "units_0"])
def test_a_block_without_a_value_is_damage(tmp_path: Path, column: str) -> None:
    path = tmp_path / "blocks.parquet"
    metadata = {"format": "censafe geography 1", "imputed": "[]"}
    columns = {"geocode": ["1", "2"], "units_0": [1, 2]} | {column: [None, None]}
    pq.write_table(pa.table(columns).replace_schema_metadata(metadata), path)
    with pytest.raises(CheckError, match="missing, damaged or no file of blocks"):
        read_geography(path)


def test_totals_come_back_and_short_tables_are_read(tmp_path: Path) -> None:
    totals = (ExactTotal("35", 2117522, "persons", "State", "New Mexico"), ExactTotal("40", 0))
    write_exact_totals(tmp_path / "t.csv", totals)
    assert read_exact_totals(tmp_path / "t.csv") == totals
    write_exact_totals(tmp_path / "t.csv", ())
    assert read_exact_totals(tmp_path / "t.csv") == ()
    (tmp_path / "t.csv").write_text("\ufeffgeocode,name,value\n35, New Mexico ,2117522\n", encoding="utf-8")
    assert read_exact_totals(tmp_path / "t.csv") == (ExactTotal("35", 2117522, name="New Mexico"),)
    (tmp_path / "t.csv").write_text("geocode,value\n35,\x1c7\x1f\n", encoding="utf-8")
    assert read_exact_totals(tmp_path / "t.csv") == (ExactTotal("35", 7),)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("state,value\n35,1\n", "header with geocode and value"),
        ("geocode,value\n35,many\n", r"not whole numbers of 0 or more \(1\), such as 35"),
        ("geocode,value\n35,-1\n", "not whole numbers"),
        ("geocode,value\n35," + "9" * 5000 + "\n", "not whole numbers"),
        ("value,geocode\nmany\n", "not whole numbers.*such as a row without a geocode;"),
        ("geocode,value\n35,1\n35,2\n", r"geounits there twice \(1\), such as 35"),
    ],
)
def test_wrong_totals_are_named(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(DataError, match=message):
        read_exact_totals(tmp_path / "t.csv")
    with pytest.raises(StorageError):
        read_exact_totals(tmp_path / "none.csv")
