"""What the engine holds of the records, and where it writes what does not fit into memory."""

from __future__ import annotations

import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from censafe.population.records.reader import RecordData, read_records
from censafe.products.run.scratch import private_scratch
from support.own_records import READ, layout_of, own_config, text_of

HEADER = ("Région", "grid", "born", "sex")
AREAS = [(f"R{place % 7}", f"N{place:04d}") for place in range(2000)]
READ_LISTED = READ.replace('"records"', '"areas.csv"')
READ_PARQUET = READ_LISTED.replace(".csv", ".parquet")
COPIES = 100


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Persons of some of the listed areas, as text and many times as many as Parquet, whose pages are small."""
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    rows = [
        (*AREAS[place % 1500], f"{1930 + place % 95}-07-{1 + place % 28:02d}", "FM"[place // 7 % 2])
        for place in range(5000)
    ]
    (data / "persons.csv").write_text(text_of(rows, header=HEADER), encoding="utf-8")
    (data / "areas.csv").write_text(text_of(AREAS, header=HEADER[:2]), encoding="utf-8")
    persons = pa.table(dict(zip(HEADER, map(pa.array, zip(*rows, strict=True)), strict=True)))
    pq.write_table(pa.concat_tables([persons] * COPIES), data / "persons.parquet", row_group_size=len(rows))
    areas = dict(zip(HEADER, map(pa.array, zip(*AREAS, strict=True)), strict=False))
    pq.write_table(pa.table(areas), data / "areas.parquet")
    return tmp_path


def read_at(folder: Path, read: str, scratch: Path, memory: str | None = None) -> RecordData:
    layout = layout_of(folder, own_config(read))
    return read_records(layout, folder / "data", scratch, threads=1, memory=memory)


@contextmanager
def observed(monkeypatch: pytest.MonkeyPatch, after: Callable[[Any, str], object]) -> Iterator[None]:
    """Call a function with the engine and the text of every statement that coded rows, right after it."""
    connect = duckdb.connect

    class Observed:
        def __init__(self, con: duckdb.DuckDBPyConnection) -> None:
            self._con = con

        def execute(self, query: str) -> duckdb.DuckDBPyConnection:
            result = self._con.execute(query)
            if query.startswith("CREATE OR REPLACE TEMP TABLE coded_"):
                after(self._con, query)
            return result

        def __getattr__(self, name: str) -> Any:
            return getattr(self._con, name)

    with monkeypatch.context() as patch:
        patch.setattr(duckdb, "connect", lambda *names, **options: Observed(connect(*names, **options)))
        yield


def test_records_are_looked_up_in_the_list_of_areas_and_not_the_list_in_the_records(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine takes a text file for some dozens of rows, and the list, the longer one then, would be looked up in a table of all records."""
    plans: list[str] = []
    with observed(
        monkeypatch, lambda con, query: plans.append(con.execute(f"EXPLAIN {query}").fetchall()[0][1])
    ):
        scratch = folder / "scratch"
        scratch.mkdir()
        assert read_at(folder, READ_LISTED, scratch).blocks is not None
    (plan,) = plans
    assert plan.count("Join Type: LEFT") == 3  # areas and two attributes
    assert "Join Type: RIGHT" not in plan


def test_a_coded_row_has_the_smallest_types(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    columns: dict[str, str] = {}

    def described(con: Any, query: str) -> None:
        rows = con.execute("DESCRIBE coded_persons").fetchall()
        columns.update((name, kind) for name, kind, *_ in rows)

    with observed(monkeypatch, described):
        scratch = folder / "scratch"
        scratch.mkdir()
        read_at(folder, READ_LISTED, scratch)
    assert columns == {
        "leaf": "INTEGER", "level_of_0": "TINYINT", "level_of_1": "TINYINT", "is_header": "BOOLEAN",
        "no_key": "BOOLEAN", "no_household": "BOOLEAN",
    }  # fmt: skip


def test_rows_that_do_not_fit_into_memory_go_to_the_private_folder_and_are_removed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with private_scratch(folder / "data", folder) as scratch:
        expected = read_at(folder, READ_PARQUET, scratch)
    before, spilled = sorted(folder.rglob("*")), list[Path]()
    with (
        observed(monkeypatch, lambda con, query: spilled.extend(set(folder.rglob("*")) - set(before))),
        private_scratch(folder / "data", folder) as scratch,
    ):
        read = read_at(folder, READ_PARQUET, scratch, "16MB")
        assert stat.S_IMODE(scratch.stat().st_mode) == 0o700
    files = [path for path in spilled if path.name.startswith("duckdb_temp_storage")]
    assert files
    assert [path for path in files if not path.is_relative_to(scratch)] == []
    assert sorted(folder.rglob("*")) == before
    assert read.blocks is not None and expected.blocks is not None
    one, other = read.blocks.others["residents"], expected.blocks.others["residents"]
    assert [*one.node_ptr, *one.cell, *one.count] == [*other.node_ptr, *other.cell, *other.count]
    assert read.findings == expected.findings
