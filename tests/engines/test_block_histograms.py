"""Block histograms counted on the workers of every engine: the same cells and the same messages as in this process."""

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from censafe.errors import DataError
from censafe.population.blocks.layout import BlockData
from censafe.population.blocks.source import block_files, read_block_files
from censafe.products.topdown.configuration.config import load_config
from censafe.products.topdown.configuration.layout import histogram_layout
from censafe.tabulation.engine.tasks import EngineTasks
from support.topdown_inputs import write_1940

LAYOUT = histogram_layout(load_config("e2e-1940"))


@pytest.fixture(autouse=True)
def small_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("censafe.population.blocks.histogram_files._TASK_ROWS", 400)


def read(folder: Path, workers: EngineTasks | None) -> list[Any]:
    found: BlockData = read_block_files(block_files(folder), LAYOUT, workers=workers)
    assert found.persons is not None
    held = (found.persons.node_ptr, found.persons.cell, found.persons.count, found.facilities)
    return [array.tolist() for array in held]


def rewritten(folder: Path, rows: pa.Table) -> Path:
    """The rows in two files with small row groups, the second of another type and without the last column where it may be."""
    (folder / "histogram.parquet").unlink()
    (folder / "histogram").mkdir()
    half = len(rows) // 2
    pq.write_table(rows.slice(0, half), folder / "histogram" / "a.parquet", row_group_size=150)
    second = rows.slice(half)
    second = second.set_column(0, "geocode", second["geocode"].cast(pa.string()).dictionary_encode())
    pq.write_table(second, folder / "histogram" / "b.parquet", row_group_size=200)
    return folder


def test_cells_are_the_same(tmp_path: Path, workers: EngineTasks) -> None:
    folder = write_1940(tmp_path / "data")
    expected = read(folder, None)
    assert expected == read(folder, workers)
    rows = pq.read_table(folder / "histogram.parquet")
    assert expected == read(rewritten(folder, rows), workers)


def test_rows_of_single_persons_may_be_alike_and_blocks_may_be_empty(
    tmp_path: Path, workers: EngineTasks
) -> None:
    folder = write_1940(tmp_path / "data")
    rows = pq.read_table(folder / "histogram.parquet")
    counts = rows["count"].to_pylist()
    persons = rows.take(
        pa.array([row for row, count in enumerate(counts) for _ in range(count)])
    ).drop_columns("count")
    expected = read(folder, None)
    pq.write_table(persons, folder / "histogram.parquet", row_group_size=500)
    assert expected == read(folder, workers)
    skewed = rows.slice(0, 1)
    pq.write_table(skewed, folder / "histogram.parquet")
    messages = []
    for where in (None, workers):
        try:
            messages.append(str(read(folder, where)))
        except DataError as error:
            messages.append(str(error))
    assert messages[0] == messages[1]


def broken(rows: pa.Table, chance: random.Random) -> pa.Table:
    """Faults of every kind: places that are none, blocks of others, cells and counts outside, rows given twice."""
    columns = {name: rows[name].to_pylist() for name in rows.column_names}
    for row in range(0, len(rows), 7):
        name = chance.choice(("geocode", "cell", "count", "geocode"))
        columns[name][row] = {
            "geocode": chance.choice(("0100", "9900100001", "01x0100001", None)),
            "cell": chance.choice((-1, 192, None)),
            "count": chance.choice((-5, None)),
        }[name]
    table = pa.table({name: pa.array(values) for name, values in columns.items()})
    return pa.concat_tables([table, table.slice(1, 5)])


def test_messages_are_the_same(tmp_path: Path, workers: EngineTasks) -> None:
    folder = write_1940(tmp_path / "data")
    rows = pq.read_table(folder / "histogram.parquet")
    twice = rewritten(folder, pa.concat_tables([rows, rows.slice(3, 4)]))
    messages = []
    for where in (None, workers):
        with pytest.raises(
            DataError, match=r"rows with the block and cell of another row \(4 rows\)"
        ) as error:
            read(twice, where)
        messages.append(str(error.value))
    other = rewritten(write_1940(tmp_path / "other"), broken(rows, random.Random(3)))
    for where in (None, workers):
        with pytest.raises(DataError, match="unknown-block") as error:
            read(other, where)
        messages.append(str(error.value))
    assert messages[0] == messages[1]
    assert messages[2] == messages[3]
    (other / "histogram" / "b.parquet").write_bytes(b"PAR1")
    pq.write_table(rows.drop_columns("cell"), other / "histogram" / "a.parquet")
    for where in (None, workers):
        with pytest.raises(DataError, match="columns missing") as error:
            read(other, where)
        messages.append(str(error.value))
    assert messages[4] == messages[5]
