from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from censafe.errors import CheckError, ReleaseError, StorageError
from censafe.model import SparseLevel
from censafe.publication.measurements import final_levels as finished_levels
from censafe.publication.measurements.final_levels import (
    FinishedLevel,
    read_finished_level,
    write_finished_level,
)
from censafe.publication.stamps import STAMP

GEOUNITS = np.array(["4401", "4402", "4403", "5001"], np.str_)
LEVEL = SparseLevel(
    GEOUNITS,
    np.array([0, 2, 2, 5, 6], np.int64),
    np.array([1, 4, 0, 1, 5, 2], np.int32),
    np.array([3, 1, 2, 7, 9, 1], np.int32),
)
REPORT = {"level": "County", "gap_most": 1.5e-9, "solved": {"ok": 3}}
PLAN = "ab" * 32


def finished(source="seeded"):
    return FinishedLevel.of("persons_County", LEVEL, REPORT, source)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    target = tmp_path / "measurements" / "persons_County.parquet"
    write_finished_level(target, finished(), plan_digest=PLAN, stamp=STAMP)
    return target


@pytest.mark.parametrize("chunk", [1 << 22, 2, 1])
def test_a_level_comes_back_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int) -> None:
    monkeypatch.setattr(finished_levels, "_CHUNK", chunk)
    path = tmp_path / "level.parquet"
    write_finished_level(path, finished(), plan_digest=PLAN, stamp=STAMP)
    found = read_finished_level(path, plan_digest=PLAN)
    level = found.level(GEOUNITS)
    assert found.part == "persons_County"
    assert found.report == REPORT
    assert (found.source, found.private) == ("seeded", False)
    assert level.node_ptr.tolist() == LEVEL.node_ptr.tolist()
    assert level.cell.tolist() == LEVEL.cell.tolist()
    assert level.count.tolist() == LEVEL.count.tolist()
    assert path.stat().st_mode & 0o222 == 0


def test_a_level_without_records_comes_back(tmp_path: Path) -> None:
    empty = np.zeros(0, np.int32)
    level = SparseLevel(GEOUNITS, np.zeros(5, np.int64), empty, empty)
    write_finished_level(tmp_path / "e.parquet", FinishedLevel.of("p", level, {}, "system"), plan_digest=PLAN)
    found = read_finished_level(tmp_path / "e.parquet")
    assert found.private
    assert found.level(GEOUNITS).total == 0


def test_other_plans_and_other_geounits_are_refused(path: Path) -> None:
    with pytest.raises(CheckError, match="belongs to plan"):
        read_finished_level(path, plan_digest="cd" * 32)
    found = read_finished_level(path, plan_digest=PLAN)
    for other in (GEOUNITS[:3], np.array(["4401", "4402", "4404", "5001"])):
        with pytest.raises(CheckError, match="of other geounits"):
            found.level(other)


def test_changed_content_is_refused(path: Path) -> None:
    table = pq.read_table(path)
    counts = table.column("count").to_numpy().copy()
    counts[0] += 1
    changed = table.set_column(2, "count", pa.array(counts, pa.int32()))
    path.chmod(0o644)
    pq.write_table(changed, path)
    with pytest.raises(CheckError, match="does not match the digest"):
        read_finished_level(path)


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("cell", pa.array([1, 4, 0, 1, 5, 2], pa.timestamp("ms"))),
        ("geounit", pa.array([0, 0, 2, 2, 2, 1 << 40], pa.int64())),
        ("geounit", pa.array([0, 0, 2, 2, 2, 1 << 29], pa.int32())),
        ("geounit", pa.array([-1, 0, 2, 2, 2, 3], pa.int32())),
    ],
)
def test_columns_of_another_kind_and_geounits_that_are_none_are_refused(
    path: Path, column: str, values: pa.Array
) -> None:
    """The types are those of the file, and a number of a geounit must not ask for all memory."""
    table = pq.read_table(path)
    place = table.column_names.index(column)
    path.chmod(0o644)
    pq.write_table(table.set_column(place, column, values), path)
    with pytest.raises(CheckError, match="not the file of a finished level"):
        read_finished_level(path)


def test_numbers_behind_tables_of_another_type_are_refused(tmp_path: Path) -> None:
    path, states = tmp_path / "level.parquet", np.arange(6.0).reshape(3, 2)
    empty = np.zeros(0, np.int32)
    level = SparseLevel(GEOUNITS, np.zeros(5, np.int64), empty, empty)
    held = replace(FinishedLevel.of("p", level, {}, "system"), states=states)
    write_finished_level(path, held, plan_digest=PLAN)
    assert np.array_equal(read_finished_level(path).states, states)
    table = pq.read_table(path)
    place = len(table.column_names) - 1
    path.chmod(0o644)
    pq.write_table(
        table.set_column(place, table.column_names[place], pa.array(range(6), pa.timestamp("ms"))), path
    )
    with pytest.raises(CheckError, match="not the file of a finished level"):
        read_finished_level(path)


def test_other_files_are_refused(path: Path, tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="missing"):
        read_finished_level(tmp_path / "none.parquet")
    plain = tmp_path / "plain.parquet"
    pq.write_table(pa.table({"a": [1]}), plain)
    with pytest.raises(CheckError, match="not the file of a finished level"):
        read_finished_level(plain)
    metadata = pq.read_schema(path).metadata
    header = metadata[b"censafe"].replace(b"finished level 1", b"finished level 9")
    pq.write_table(
        pq.read_table(path).replace_schema_metadata({**metadata, b"censafe": header}),
        tmp_path / "new.parquet",
    )
    with pytest.raises(CheckError, match="this version reads"):
        read_finished_level(tmp_path / "new.parquet")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"nodes": 4', b'"nodes": 1099511627776'),
        (b'"nodes": 4', b'"nodes": -2'),
        (b"plan_digest", b"plan_other"),
    ],
)
def test_a_header_that_was_changed_is_refused(path: Path, tmp_path: Path, old: bytes, new: bytes) -> None:
    metadata = pq.read_schema(path).metadata
    header = metadata[b"censafe"].replace(b'":4', b'": 4').replace(b'":', b'": ').replace(b":  ", b": ")
    assert old in header
    table = pq.read_table(path).replace_schema_metadata({**metadata, b"censafe": header.replace(old, new)})
    pq.write_table(table, tmp_path / "new.parquet")
    with pytest.raises(CheckError, match="not the file of a finished level"):
        read_finished_level(tmp_path / "new.parquet")


def test_the_stamp_must_fit_the_source(tmp_path: Path) -> None:
    with pytest.raises(ReleaseError, match="not private"):
        write_finished_level(tmp_path / "a.parquet", finished(), plan_digest=PLAN)
    with pytest.raises(ReleaseError, match="must not be stamped"):
        write_finished_level(tmp_path / "b.parquet", finished("system"), plan_digest=PLAN, stamp=STAMP)
    assert list(tmp_path.iterdir()) == []


def test_a_split_is_stored_and_protected(tmp_path):
    split = np.arange(12).reshape(4, 3)
    path = tmp_path / "a.parquet"
    write_finished_level(path, replace(finished(), split=split), plan_digest=PLAN, stamp=STAMP)
    assert np.array_equal(read_finished_level(path, plan_digest=PLAN).split, split)
    table = pq.read_table(path)
    changed = table.schema.metadata[b"censafe"].replace(b'"shape":[4,3]', b'"shape":[3,4]')
    assert changed != table.schema.metadata[b"censafe"]
    path.unlink()
    pq.write_table(table.replace_schema_metadata(table.schema.metadata | {b"censafe": changed}), path)
    with pytest.raises(CheckError, match="changed"):
        read_finished_level(path)
