from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from censafe.errors import CheckError, ReleaseError, StorageError
from censafe.model import Definition
from censafe.publication.atomic import sha256_file
from censafe.publication.measurements.vectors import read_measurements, write_measurements
from support.publication import make_measurements, make_plan


@pytest.mark.parametrize("definition", list(Definition))
def test_a_part_comes_back_exactly(tmp_path: Path, definition: Definition) -> None:
    plan = make_plan(definition)
    measured = make_measurements(plan)
    path = tmp_path / "m" / "part.parquet"
    digest = write_measurements(path, measured, plan_digest=plan.digest())
    assert sha256_file(path) == digest
    found = read_measurements(path, plan_digest=plan.digest())
    assert [m.query for m in measured] == [m.query for m in found]
    assert [m.domain for m in measured] == [m.domain for m in found]
    assert [m.source for m in found] == ["system"] * 4
    for expected, actual in zip(measured, found, strict=True):
        np.testing.assert_array_equal(expected.values, actual.values)
        assert np.int64 == actual.values.dtype


def test_columns_and_metadata_can_be_read_by_anybody(tmp_path: Path) -> None:
    plan = make_plan()
    write_measurements(tmp_path / "p.parquet", make_measurements(plan), plan_digest=plan.digest())
    table = pq.read_table(tmp_path / "p.parquet")
    names = "table level REGION_ID ITERATION_CODE CELL value law parameter cost source"
    assert names.split() == table.column_names
    assert {"1/10", "1/5", "1/7", "3/10"} == set(table["cost"].to_pylist())
    assert table["parameter"][0].as_py() == "2420/1"
    metadata = table.schema.metadata
    assert plan.digest().encode() == metadata[b"plan_digest"]
    assert (metadata[b"source"], metadata[b"private"]) == (b"system", b"true")


def test_the_same_measurements_give_the_same_bytes(tmp_path: Path) -> None:
    plan = make_plan()
    digests = {
        write_measurements(tmp_path / name, make_measurements(plan), plan_digest=plan.digest())
        for name in ("a.parquet", "b.parquet")
    }
    assert len(digests) == 1


def test_a_test_key_needs_the_stamp_and_carries_it(tmp_path: Path) -> None:
    plan = make_plan()
    path = tmp_path / "p.parquet"
    seeded = make_measurements(plan, "seeded")
    with pytest.raises(ReleaseError, match="test key"):
        write_measurements(path, seeded, plan_digest=plan.digest())
    with pytest.raises(ReleaseError, match="must not be stamped"):
        write_measurements(path, make_measurements(plan), plan_digest=plan.digest(), stamp="NOT PRIVATE")
    assert list(tmp_path.iterdir()) == []
    write_measurements(path, seeded, plan_digest=plan.digest(), stamp="NOT PRIVATE")
    table = pq.read_table(path)
    assert table.schema.metadata[b"stamp"] == b"NOT PRIVATE"
    assert table.schema.metadata[b"private"] == b"false"
    assert {"seeded"} == set(table["source"].to_pylist())
    assert not any(m.private for m in read_measurements(path))


def _change_value(table: pa.Table) -> pa.Table:
    changed = pc.add(table["value"], pa.scalar(1, pa.int64()))
    return table.set_column(table.column_names.index("value"), "value", changed)


def _change_key(table: pa.Table) -> pa.Table:
    regions = pa.array(["09"] * table.num_rows)
    return table.set_column(table.column_names.index("REGION_ID"), "REGION_ID", regions)


def _drop_row(table: pa.Table) -> pa.Table:
    return table.slice(1)


def _pass_as_private(table: pa.Table) -> pa.Table:
    metadata = dict(table.schema.metadata)
    metadata[b"source"] = b"system"
    metadata[b"censafe"] = metadata[b"censafe"].replace(b'"source":"seeded"', b'"source":"system"')
    return table.replace_schema_metadata(metadata)


def _other_law(table: pa.Table) -> pa.Table:
    metadata = dict(table.schema.metadata)
    metadata[b"censafe"] = metadata[b"censafe"].replace(b'"2420/1"', b'"2421/1"')
    return table.replace_schema_metadata(metadata)


@pytest.mark.parametrize("damage", [_change_value, _change_key, _drop_row, _pass_as_private, _other_law])
def test_a_changed_file_is_refused(tmp_path: Path, damage) -> None:
    plan = make_plan()
    path = tmp_path / "p.parquet"
    write_measurements(
        path, make_measurements(plan, "seeded"), plan_digest=plan.digest(), stamp="NOT PRIVATE"
    )
    changed = damage(pq.read_table(path))
    assert not changed.equals(pq.read_table(path), check_metadata=True)
    path.chmod(0o644)
    pq.write_table(changed, path)
    with pytest.raises(CheckError, match="changed"):
        read_measurements(path)


def test_files_that_are_not_measurements_are_refused(tmp_path: Path) -> None:
    plan = make_plan()
    path = tmp_path / "p.parquet"
    with pytest.raises(StorageError, match="missing"):
        read_measurements(path)
    path.write_bytes(b"PAR1 not really")
    with pytest.raises(CheckError, match="damaged"):
        read_measurements(path)
    pq.write_table(pa.table({"value": [1]}), path)
    with pytest.raises(CheckError, match="not a measurement file"):
        read_measurements(path)
    path.unlink()
    write_measurements(path, make_measurements(plan), plan_digest=plan.digest())
    table = pq.read_table(path)
    path.chmod(0o644)
    for metadata in (None, {b"censafe": b"\xff"}, {**table.schema.metadata, b"censafe": b"[" * 100_000}):
        pq.write_table(table.replace_schema_metadata(metadata), path)
        with pytest.raises(CheckError, match="not a measurement file"):
            read_measurements(path)


def test_another_plans_file_is_refused(tmp_path: Path) -> None:
    plan = make_plan()
    path = tmp_path / "p.parquet"
    write_measurements(path, make_measurements(plan), plan_digest=plan.digest())
    with pytest.raises(CheckError, match="belongs to plan"):
        read_measurements(path, plan_digest=make_plan(tau=6).digest())
