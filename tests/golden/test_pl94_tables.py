"""Redistricting tables computed from histograms equal the published ones, item by item."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest

from censafe.geography.area_names import AreaNames
from censafe.geography.spines.sums import sum_histograms
from censafe.geography.spines.tree import PL94_PR
from censafe.model.sparse import SparseLevel
from censafe.model.topdown.pl94 import item_names
from censafe.population.blocks import pl94_layout, read_blocks
from censafe.publication.tables.pl94 import TableLevel, table_items, write_pl94_tables
from support.histograms import PL94
from support.shared import shared_data

SUMMARY_LEVELS = {"140": "Tract", "150": "Block_Group", "750": "Block"}


def _public(histograms) -> SparseLevel:
    return SparseLevel(histograms.geounits, histograms.node_ptr, histograms.cell, histograms.count)


@pytest.fixture(scope="module")
def providence() -> dict[str, TableLevel]:
    data = read_blocks(shared_data("population/pl94_ri2018"), pl94_layout(PL94, PL94_PR))
    assert data.units is not None
    persons = sum_histograms(data.spine, _public(data.persons), PL94.cells)
    units = sum_histograms(data.spine, _public(data.units), 2)
    return {name: TableLevel(name, p, u) for name, p, u in zip(data.spine.names, persons, units, strict=True)}


def _published(folder: Path) -> dict[str, dict[str, list[int]]]:
    """By summary level and geocode the 301 items, read without any of the code under test."""
    items: dict[str, list[int]] = {}
    for segment in ("1", "2", "3"):
        for line in (folder / f"ri0000{segment}2018_2020Style.pl").read_text("latin1").splitlines():
            fields = line.split("|")
            items.setdefault(fields[4], []).extend(int(value) for value in fields[5:])
    found: dict[str, dict[str, list[int]]] = {level: {} for level in SUMMARY_LEVELS}
    for line in (folder / "rigeo2018_2020Style.pl").read_text("latin1").splitlines():
        fields = line.split("|")
        if fields[2] in found:
            geoid = fields[9]
            code = geoid if fields[2] != "750" else geoid[:11] + geoid[11] + geoid[11:]
            values = items[fields[7]]
            # the segments hold P1 P2, P3 P4 H1 and P5; H1 comes last here
            ordered = [*values[:288], *values[291:], *values[288:291]]
            found[fields[2]][code] = ordered
    return found


@pytest.mark.parametrize("summary_level", SUMMARY_LEVELS)
def test_tables_of_providence_equal_the_published_ones(providence, summary_level):
    published = _published(shared_data("population/pl94_ri2018"))[summary_level]
    level = providence[SUMMARY_LEVELS[summary_level]]
    assert sorted(published) == level.persons.geounits.tolist()
    expected = np.array([published[code] for code in level.persons.geounits.tolist()])
    assert np.array_equal(expected, table_items(level, 0, level.persons.nodes))


def test_tables_of_illinois_tracts_equal_the_published_ones():
    published = pq.read_table(shared_data("population/il2020_tracts_pl94.parquet"))
    cells = pq.read_table(shared_data("population/il2020_tracts_cells.parquet")).to_pydict()
    codes = np.array(published["geoid"].to_pylist())
    assert (np.diff(np.searchsorted(codes, codes)) > 0).all()
    tract = np.searchsorted(codes, np.array(cells["geoid"]))
    cell = _cells(cells)
    order = np.lexsort((cell, tract))
    pointer = np.searchsorted(tract[order], np.arange(len(codes) + 1)).astype(np.int64)
    persons = SparseLevel(
        codes, pointer, cell[order].astype(np.int32), np.array(cells["n"])[order].astype(np.int32)
    )
    actual = table_items(TableLevel("Tract", persons), 0, len(codes))
    names = [name for name in item_names() if name[:2] in ("P1", "P2", "P3", "P4")]
    expected = np.stack([published[name].to_numpy() for name in names], axis=1)
    assert np.array_equal(expected, actual[:, :288])


def _cells(cells):
    va, hisp, race = (np.array(cells[name]) for name in ("va", "hisp", "race63"))
    return va * 126 + hisp * 63 + race - 1


def test_wide_and_tidy_files_hold_the_same_items(providence, tmp_path, monkeypatch):
    monkeypatch.setattr("censafe.publication.tables.pl94._CHUNK", 10)
    levels = [providence["Tract"], providence["Block_Group"]]
    wide = write_pl94_tables(tmp_path / "wide", levels, form="wide", stamp="NOT PRIVATE")
    tidy = write_pl94_tables(tmp_path / "tidy", levels, file_format="csv")
    assert [path.name for path in (*wide, *tidy)] == [
        "Tract.parquet", "Block_Group.parquet", "Tract.csv", "Block_Group.csv",
    ]  # fmt: skip
    for level, wide_path, tidy_path in zip(levels, wide, tidy, strict=True):
        table = pq.read_table(wide_path)
        assert table.column_names == ["geocode", *item_names()]
        assert table.schema.metadata[b"stamp"] == b"NOT PRIVATE"
        assert table["geocode"].to_pylist() == level.persons.geounits.tolist()
        expected = table_items(level, 0, level.persons.nodes)
        assert np.array_equal(expected, np.stack([table[n].to_numpy() for n in item_names()], axis=1))
        rows = pc.read_csv(tidy_path)
        assert rows.column_names == ["geocode", "table", "item", "count"]
        assert np.array_equal(expected.reshape(-1), rows["count"].to_numpy())
        names = [
            f"{t}_{i:03d}" for t, i in zip(rows["table"].to_pylist(), rows["item"].to_pylist(), strict=True)
        ]
        assert names == list(item_names()) * level.persons.nodes


def test_without_occupancy_there_is_no_h1(providence, tmp_path):
    level = TableLevel("Tract", providence["Tract"].persons)
    (path,) = write_pl94_tables(tmp_path / "t", [level], form="wide")
    assert pq.read_schema(path).names == ["geocode", *item_names()[:298]]
    with pytest.raises(ValueError, match="same geounits"):
        TableLevel("Tract", level.persons, providence["Block"].occupancy)


@pytest.mark.parametrize(("form", "file_format"), [("wide", "parquet"), ("tidy", "csv")])
def test_tables_have_the_codes_that_join_them(providence, tmp_path, form, file_format):
    level = providence["Block_Group"]
    codes = level.persons.geounits
    names = AreaNames({str(codes[0]): "Block Group 1, here"})
    (path,) = write_pl94_tables(
        tmp_path / "t", [level], form=form, file_format=file_format, areas=names, stamp="NOT PRIVATE"
    )
    texts = pc.ConvertOptions(column_types=dict.fromkeys(("geocode", "GEOID"), pa.string()))
    table = pq.read_table(path) if file_format == "parquet" else pc.read_csv(path, convert_options=texts)
    assert table.column_names[:4] == ["geocode", "GEOID", "GISJOIN", "NAME"]
    step = table.num_rows // len(codes)
    assert table["GEOID"].to_pylist()[::step] == codes.tolist()
    assert table["GISJOIN"].to_pylist()[0] == f"G{codes[0][:2]}0{codes[0][2:5]}0{codes[0][5:]}"
    assert table["NAME"].to_pylist()[0] == "Block Group 1, here"
    assert set(table["NAME"].to_pylist()[step:]) == {""}
