"""Published redistricting data through all files of TopDown and back: nothing is lost on the way."""

import numpy as np
import pytest

from censafe.geography.spines.tree import PL94_PR
from censafe.population.blocks.layout import BlockData, pl94_layout
from censafe.population.blocks.source import read_blocks
from censafe.publication.microdata.histograms import write_histograms
from support.histograms import PL94, public_level, units_table, write_table
from support.microdata import check_pl94_persons, check_pl94_units, write_pl94_persons, write_pl94_units
from support.shared import shared_data

LAYOUT = pl94_layout(PL94, PL94_PR)


@pytest.fixture(scope="module")
def providence() -> BlockData:
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


def test_block_histograms_written_are_an_input_again(providence, tmp_path):
    write_histograms(tmp_path / "histogram.parquet", public_level(providence.persons), schema="pl94_persons")
    _write_units(tmp_path, providence)
    _require_same(providence, read_blocks(tmp_path, LAYOUT))


def test_microdata_are_an_input_of_records(providence, tmp_path):
    import pyarrow as pa
    import pyarrow.csv as pc
    import pyarrow.parquet as pq

    write_pl94_persons(tmp_path / "persons.txt", public_level(providence.persons))
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
    _write_units(tmp_path, providence)
    _require_same(providence, read_blocks(tmp_path, LAYOUT))


def test_microdata_of_persons_and_units_pass_their_checks(providence, tmp_path):
    persons, units = public_level(providence.persons), public_level(providence.units)
    assert write_pl94_persons(tmp_path / "p", persons) == 29_225
    assert write_pl94_units(tmp_path / "u", units, providence.facilities) == 11_425 + 9
    check_pl94_persons(tmp_path / "p", persons)
    check_pl94_units(tmp_path / "u", units, providence.facilities)
