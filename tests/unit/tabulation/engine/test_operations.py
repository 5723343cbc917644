"""Relational operations on small tables."""

import stat
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

from censafe.errors import StorageError
from censafe.tabulation.engine import (
    connect,
    count_by,
    drop_non_unique,
    matches,
    recode,
    repeated_keys,
    stored,
    where,
)
from censafe.tabulation.engine import tasks as tasks_module
from censafe.tabulation.engine.tasks import EngineTasks
from support.engines import Losing, Repeating


@pytest.fixture(scope="module")
def backend(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    opened = connect(tmp_path_factory.mktemp("engine"), threads=1, memory="500MB")
    yield opened
    opened.disconnect()


def table(backend: Any, name: str, **columns: list[int | None]) -> Any:
    arrow = pa.table({column: pa.array(values, pa.int64()) for column, values in columns.items()})
    backend.con.register("incoming", arrow)
    backend.raw_sql(f"CREATE OR REPLACE TEMP TABLE {name} AS SELECT * FROM incoming")
    backend.con.unregister("incoming")
    return backend.table(name)


def pairs(result: Any, *columns: str) -> list[tuple[Any, ...]]:
    return sorted(zip(*(result[column].to_pylist() for column in columns), strict=True))


def test_everything_is_written_below_the_work_folder(tmp_path: Path) -> None:
    work = tmp_path / "new" / "work"
    opened = connect(work, threads=3, memory="200MB")
    settings = {
        name: opened.raw_sql(f"SELECT current_setting('{name}')").fetchone()[0]
        for name in (
            "temp_directory",
            "threads",
            "preserve_insertion_order",
            "autoinstall_known_extensions",
            "enable_external_file_cache",
        )
    }
    files = [row[0] for row in opened.raw_sql("SELECT path FROM duckdb_databases()").fetchall() if row[0]]
    opened.disconnect()
    assert stat.S_IMODE(work.stat().st_mode) == 0o700
    assert Path(settings["temp_directory"]).is_relative_to(work)
    assert files and all(Path(file).is_relative_to(work) for file in files)
    assert (
        settings["threads"],
        settings["preserve_insertion_order"],
        settings["autoinstall_known_extensions"],
        settings["enable_external_file_cache"],
    ) == (3, False, False, False)


def test_missing_values_match_nothing(backend: Any) -> None:
    codes = table(backend, "codes", code=[1, 2, 3, 5, None])
    assert sorted(codes.filter(matches(codes.code, {2, 3, 5})).to_pyarrow()["code"].to_pylist()) == [2, 3, 5]
    assert codes.filter(matches(codes.code, ())).to_pyarrow().num_rows == 0
    assert codes.filter(where(codes, {})).to_pyarrow().num_rows == 5


def test_recode_numbers_groups_and_leaves_the_rest_at_zero(backend: Any) -> None:
    codes = table(backend, "recoded", code=[20, 21, 22, 23, 30, None])
    grouped = codes.mutate(group=recode(codes.code, [{20, 21, 23}, {30}])).to_pyarrow()
    assert pairs(grouped.slice(0, 5), "code", "group") == [(20, 1), (21, 1), (22, 0), (23, 1), (30, 2)]
    assert grouped["group"].to_pylist()[5] == 0
    assert codes.mutate(group=recode(codes.code, [])).to_pyarrow()["group"].to_pylist() == [0] * 6


def test_every_row_of_a_repeated_or_missing_key_is_dropped(backend: Any) -> None:
    units = table(backend, "units", key=[1, 2, 2, 3, 4, 4, 4, None], value=[10, 20, 21, 30, 40, 41, 41, 50])
    unique = drop_non_unique(units, "key", repeated_keys(units, "key")).to_pyarrow()
    assert pairs(unique, "key", "value") == [(1, 10), (3, 30)]


def test_one_row_changes_the_unique_rows_by_at_most_one(backend: Any) -> None:
    before: set[tuple[int, ...]] = set()
    for size in range(6):
        rows = table(backend, "growing", key=[7] * size, value=list(range(size)))
        after = set(
            pairs(drop_non_unique(rows, "key", repeated_keys(rows, "key")).to_pyarrow(), "key", "value")
        )
        assert len(before ^ after) <= 1
        before = after


def test_counts_and_sums_by_key(backend: Any) -> None:
    rows = table(backend, "counted", key=[1, 1, 2, 2], value=[5, None, None, None])
    counted = count_by(rows, ["key"], ["value"])
    assert pairs(counted, "key", "rows", "sum_value") == [(1, 2, 5), (2, 2, 0)]


def names_in(backend: Any) -> list[str]:
    found = backend.con.execute("SELECT table_name FROM information_schema.tables").fetchall()
    return sorted(name for (name,) in found)


def test_stored_tables_are_dropped_even_after_an_error(backend: Any) -> None:
    rows = table(backend, "source", key=[1, 2, 3])
    before = names_in(backend)
    with pytest.raises(RuntimeError, match="stop"), stored("held", rows.filter(rows.key > 1)) as held:
        assert held.to_pyarrow().num_rows == 2
        raise RuntimeError("stop")
    assert before == names_in(backend)


def test_a_notebook_needs_no_widgets(tmp_path: Path) -> None:
    code = f"""
from pathlib import Path
from censafe.tabulation.engine.embedded import open_embedded
open_embedded(Path({str(tmp_path / "work")!r}), threads=1).con.sql("SELECT 41 + 1").fetchone()[0]
"""
    document = new_notebook(cells=[new_code_cell(code)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the kernel's client
        NotebookClient(document, timeout=120, kernel_name="python3").execute()
    assert document.cells[0].outputs[-1]["data"]["text/plain"] == "42"


# Work for an engine's workers, done by the embedded engine: every result once, in the order of the parcels.


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    opened = connect(tmp_path_factory.mktemp("engine"), threads=1)
    yield opened
    opened.disconnect()


def doubled(parcel: tuple[int, str]) -> bytes:
    number, text = parcel
    return f"{2 * number} {text}".encode()


PARCELS = [(number, "shared") for number in range(40)]
RESULTS = [f"{2 * number} shared".encode() for number in range(40)]


@pytest.mark.parametrize("wrapped", [None, Repeating])
def test_results_come_once_and_in_the_order_of_the_parcels(engine: Any, tmp_path: Path, wrapped: Any) -> None:
    tasks = EngineTasks(engine if wrapped is None else wrapped(engine), tmp_path, 1)
    assert list(tasks.results(doubled, PARCELS, ("shared",))) == RESULTS
    assert list(tmp_path.rglob("*")) == []
    assert list(tasks.results(doubled, [])) == []


def test_a_missing_result_stops_what_waits_for_it(engine: Any, tmp_path: Path) -> None:
    tasks = EngineTasks(Losing(engine), tmp_path, 1)
    with pytest.raises(StorageError, match="1 of 40 results of workers are missing"):
        list(tasks.results(doubled, PARCELS, ("shared",)))
    assert list(tmp_path.rglob("*")) == []


def test_a_worker_of_another_version_does_nothing(tmp_path: Path) -> None:
    file = tmp_path / "0.pickle"
    tasks_module._write(tmp_path / "common.pickle", (), ())
    tasks_module._write(file, PARCELS[0], ())
    (batch,) = tasks_module._done(doubled, 0, file, tasks_module.__version__)
    assert batch.to_pydict() == {"number": [0], "result": [RESULTS[0]]}
    with pytest.raises(RuntimeError, match="worker of another version"):
        list(tasks_module._done(doubled, 0, file, "0.0.1"))
