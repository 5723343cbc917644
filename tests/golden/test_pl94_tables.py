"""Redistricting tables computed from histograms equal the published ones, item by item."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest

from censafe.geography.identifiers import AreaNames
from censafe.geography.spines.sums import sum_histograms
from censafe.geography.spines.tree import PL94_PR
from censafe.model.sparse import SparseLevel
from censafe.population.blocks.layout import BlockData
from censafe.publication.atomic import sha256_file
from censafe.publication.microdata.histograms import write_histograms
from censafe.publication.tables.pl94 import TableLevel, write_pl94_tables
from support.block_layouts import pl94_layout, read_blocks
from support.histograms import PL94, public_level, units_table, write_table
from support.microdata import check_pl94_persons, check_pl94_units, write_pl94_persons, write_pl94_units
from support.pl94_items import ITEMS, NAMES, items_of
from support.shared import shared_data

SUMMARY_LEVELS = {"140": "Tract", "150": "Block_Group", "750": "Block"}


@pytest.fixture(scope="module")
def providence() -> dict[str, TableLevel]:
    data = read_blocks(shared_data("population/pl94_ri2018"), pl94_layout(PL94, PL94_PR))
    assert data.units is not None
    persons = sum_histograms(data.spine, public_level(data.persons), PL94.cells)
    units = sum_histograms(data.spine, public_level(data.units), 2)
    return {
        name: TableLevel(name, (p, u)) for name, p, u in zip(data.spine.names, persons, units, strict=True)
    }


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
    assert sorted(published) == level.geounits.tolist()
    expected = np.array([published[code] for code in level.geounits.tolist()])
    assert np.array_equal(expected, items_of(*level.histograms))


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
    actual = items_of(persons)
    names = [name for name in NAMES if name[:2] in ("P1", "P2", "P3", "P4")]
    expected = np.stack([published[name].to_numpy() for name in names], axis=1)
    assert np.array_equal(expected, actual[:, :288])


def _cells(cells):
    va, hisp, race = (np.array(cells[name]) for name in ("va", "hisp", "race63"))
    return va * 126 + hisp * 63 + race - 1


def test_files_and_their_copies_hold_the_same_items(providence, tmp_path, monkeypatch):
    monkeypatch.setattr("censafe.publication.tables.pl94._CHUNK", 10)
    levels = [providence["Tract"], providence["Block_Group"]]
    written = write_pl94_tables(tmp_path / "t", tmp_path / "copies", levels, ITEMS, stamp="NOT PRIVATE")
    assert [path.name for path in written] == [
        "Tract.parquet", "Block_Group.parquet", "Tract.csv", "Block_Group.csv",
    ]  # fmt: skip
    assert all(sha256_file(path) == digest for path, digest in written.items())
    for level, path, copy in zip(levels, list(written)[:2], list(written)[2:], strict=True):
        table, rows = pq.read_table(path), pc.read_csv(copy)
        assert table.column_names == rows.column_names == ["geocode", *NAMES]
        assert table.schema.metadata[b"stamp"] == b"NOT PRIVATE"
        assert table["geocode"].to_pylist() == level.geounits.tolist()
        expected = items_of(*level.histograms)
        for one in (table, rows):
            assert np.array_equal(expected, np.stack([one[n].to_numpy() for n in NAMES], axis=1))


def test_without_occupancy_there_is_no_h1(providence, tmp_path):
    level = TableLevel("Tract", providence["Tract"].histograms[:1])
    (path,) = list(write_pl94_tables(tmp_path / "t", tmp_path / "copies", [level], ITEMS[:1]))[:1]
    assert pq.read_schema(path).names == ["geocode", *NAMES[:298]]
    with pytest.raises(ValueError, match="same geounits"):
        TableLevel("Tract", (level.histograms[0], providence["Block"].histograms[1]))


def test_tables_have_the_codes_that_join_them(providence, tmp_path):
    level = providence["Block_Group"]
    codes = level.geounits
    names = AreaNames({str(codes[0]): "Block Group 1, here"})
    path, copy = write_pl94_tables(
        tmp_path / "t", tmp_path / "copies", [level], ITEMS, areas=names, stamp="NOT PRIVATE"
    )
    texts = pc.ConvertOptions(column_types=dict.fromkeys(("geocode", "GEOID"), pa.string()))
    for table in (pq.read_table(path), pc.read_csv(copy, convert_options=texts)):
        assert table.column_names[:4] == ["geocode", "GEOID", "GISJOIN", "NAME"]
        assert table["GEOID"].to_pylist() == codes.tolist()
        assert table["GISJOIN"].to_pylist()[0] == f"G{codes[0][:2]}0{codes[0][2:5]}0{codes[0][5:]}"
        assert table["NAME"].to_pylist()[0] == "Block Group 1, here"
        assert set(table["NAME"].to_pylist()[1:]) == {""}


# Published redistricting data through all files of TopDown and back: nothing is lost on the way.


LAYOUT = pl94_layout(PL94, PL94_PR)


@pytest.fixture(scope="module")
def records_of_providence() -> BlockData:
    return read_blocks(shared_data("population/pl94_ri2018"), LAYOUT)


def _occupied(data) -> np.ndarray:
    node = np.repeat(np.arange(data.units.nodes), np.diff(data.units.node_ptr))
    return np.bincount(node, data.units.count * (data.units.cell == 1), data.units.nodes).astype(int)


def _write_units(folder, data) -> None:
    write_table(
        folder / "units.parquet",
        units_table(data.persons.geounits.tolist(), data.facilities.tolist(), _occupied(data)),
    )


def _require_same(expected, actual) -> None:
    for name in ("geounits", "node_ptr", "cell", "count"):
        assert np.array_equal(getattr(expected.persons, name), getattr(actual.persons, name))
        assert np.array_equal(getattr(expected.units, name), getattr(actual.units, name))
    assert np.array_equal(expected.facilities, actual.facilities)


def test_block_histograms_written_are_an_input_again(records_of_providence, tmp_path):
    write_histograms(
        tmp_path / "histogram.parquet", public_level(records_of_providence.persons), schema="pl94_persons"
    )
    _write_units(tmp_path, records_of_providence)
    _require_same(records_of_providence, read_blocks(tmp_path, LAYOUT))


def test_microdata_are_an_input_of_records(records_of_providence, tmp_path):
    import pyarrow as pa
    import pyarrow.csv as pc
    import pyarrow.parquet as pq

    write_pl94_persons(tmp_path / "persons.txt", public_level(records_of_providence.persons))
    text = pa.string()
    columns = ("TABBLKST", "TABBLKCOU", "TABTRACTCE", "TABBLKGRPCE", "TABBLK")
    table = pc.read_csv(
        tmp_path / "persons.txt",
        parse_options=pc.ParseOptions(delimiter="|"),
        convert_options=pc.ConvertOptions(column_types=dict.fromkeys(columns, text)),
    ).to_pydict()
    geocode = ["".join(parts) for parts in zip(*(table[name] for name in columns), strict=True)]
    records = {"geocode": geocode}
    for name, column, first in (
        ("hhgq", "GQTYPE_PL", 0),
        ("votingage", "VOTING_AGE", 1),
        ("hispanic", "CENHISP", 1),
        ("cenrace", "CENRACE", 1),
    ):
        records[name] = np.array(table[column]) - first
    pq.write_table(pa.table(records), tmp_path / "histogram.parquet")
    _write_units(tmp_path, records_of_providence)
    _require_same(records_of_providence, read_blocks(tmp_path, LAYOUT))


def test_microdata_of_persons_and_units_pass_their_checks(records_of_providence, tmp_path):
    persons, units = public_level(records_of_providence.persons), public_level(records_of_providence.units)
    assert write_pl94_persons(tmp_path / "p", persons) == 29_225
    assert write_pl94_units(tmp_path / "u", units, records_of_providence.facilities) == 11_425 + 9
    check_pl94_persons(tmp_path / "p", persons)
    check_pl94_units(tmp_path / "u", units, records_of_providence.facilities)
