"""Noisy measurements of tables and of population groups on disk."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from censafe.errors import CheckError, ReleaseError, StorageError
from censafe.model import Definition, GroupMeasurements
from censafe.publication.atomic import sha256_file
from censafe.publication.measurements.tables import (
    read_group_measurements,
    read_measurements,
    write_group_measurements,
    write_measurements,
)
from support.group_measurements import households, level, persons
from support.publication import make_measurements, make_plan

DIGEST = "ab" * 32
STATES = level("state_2", [f"{n:02}" for n in range(1, 21)], detailed_only=["2002"])
CASES = {
    "persons": persons(STATES),
    "pure": persons(STATES, kind="puredp"),
    "seeded": persons(STATES, source="seeded"),
    "households": households(STATES),
    "nothing": persons(STATES, share=0.0),
    "no households": households(STATES, share=0.0),
}


def _write(path: Path, found: GroupMeasurements) -> str:
    stamp = "NOT PRIVATE" if found.source == "seeded" else None
    return write_group_measurements(path, found, plan_digest=DIGEST, stamp=stamp)  # type: ignore[arg-type]


def _equal(one: GroupMeasurements, two: GroupMeasurements) -> bool:
    arrays = ("region", "iteration", "stat_level", "indptr", "values")
    same = all(np.array_equal(getattr(one, name), getattr(two, name)) for name in arrays)
    stage1 = (
        one.stage1 is two.stage1 is None if one.stage1 is None or two.stage1 is None
        else np.array_equal(one.stage1, two.stage1)
    )  # fmt: skip
    levels = np.array_equal(one.level.regions, two.level.regions) and np.array_equal(
        one.level.detailed_only, two.level.detailed_only
    )
    names = [
        (m.level.name, m.level.region_type, m.level.iterations, m.table, m.laws, m.costs, m.source)
        for m in (one, two)
    ]
    return same and stage1 and levels and names[0] == names[1]


@pytest.mark.parametrize("name", CASES)
def test_what_is_read_is_what_was_written(tmp_path: Path, name: str) -> None:
    path = tmp_path / "measurements" / "state_2.parquet"
    digest = _write(path, CASES[name])
    assert digest == sha256_file(path)
    assert path.stat().st_mode & 0o222 == 0
    assert _equal(CASES[name], read_group_measurements(path, plan_digest=DIGEST))
    assert _equal(CASES[name], read_group_measurements(path))


def test_the_file_can_be_read_without_censafe(tmp_path: Path) -> None:
    path = tmp_path / "m.parquet"
    _write(path, CASES["persons"])
    table = pq.read_table(path)
    assert table.column_names == ["region_id", "iteration", "stat_level", "stage1", "cells"]
    row = table.slice(0, 1).to_pylist()[0]
    found = CASES["persons"]
    assert row["region_id"] == str(found.level.regions[found.region[0]])
    assert row["cells"] == found.values[: found.indptr[1]].tolist()
    only = [row["stage1"] for row in table.to_pylist() if row["iteration"] == "2002"]
    assert set(only) == {None}
    assert table.schema.metadata[b"private"] == b"true"
    assert b"stamp" not in table.schema.metadata


def test_a_test_key_is_stamped_and_nothing_else_is(tmp_path: Path) -> None:
    path = tmp_path / "m.parquet"
    with pytest.raises(ReleaseError, match="not private"):
        write_group_measurements(path, CASES["seeded"], plan_digest=DIGEST)
    with pytest.raises(ReleaseError, match="must not be stamped"):
        write_group_measurements(path, CASES["persons"], plan_digest=DIGEST, stamp="NOT PRIVATE")
    assert not path.exists()
    _write(path, CASES["seeded"])
    metadata = pq.read_schema(path).metadata
    assert (metadata[b"private"], metadata[b"stamp"], metadata[b"source"]) == (
        b"false",
        b"NOT PRIVATE",
        b"seeded",
    )


def _changed(table: pa.Table, name: str, values: pa.Array) -> pa.Table:
    return table.set_column(table.column_names.index(name), name, values)


def _with_metadata(table: pa.Table, key: bytes, value: bytes) -> pa.Table:
    return table.replace_schema_metadata({**table.schema.metadata, key: value})


TAMPERS = {
    "a cell": lambda t: _changed(
        t, "cells", pa.array([[c + (i == 0) for c in cells] for i, cells in enumerate(t["cells"].to_pylist())], t["cells"].type)
    ),
    "a first total": lambda t: _changed(t, "stage1", pa.array([1, *t["stage1"].to_pylist()[1:]], pa.int64())),
    "a total of a group that has none": lambda t: _changed(t, "stage1", t["stage1"].fill_null(4)),
    "a stat level": lambda t: _changed(t, "stat_level", pa.array([3, *t["stat_level"].to_pylist()[1:]], pa.int8())),
    "a region": lambda t: _changed(t, "region_id", pa.array(["99", *t["region_id"].to_pylist()[1:]])),
    "a row left out": lambda t: t.slice(1),
    "two rows exchanged": lambda t: t.take([1, 0, *range(2, len(t))]),
    "a further column": lambda t: t.append_column("note", pa.array(["x"] * len(t))),
    "a column left out": lambda t: t.drop_columns(["cells"]),
    "the source": lambda t: _with_metadata(t, b"source", b"seeded"),
    "the plan": lambda t: _with_metadata(t, b"plan_digest", b"cd" * 32),
    "the digest": lambda t: _with_metadata(t, b"content_digest", b"00" * 32),
    "a cost in the header": lambda t: _with_metadata(
        t, b"censafe", json.dumps({**json.loads(t.schema.metadata[b"censafe"]), "costs": {}}).encode()
    ),
    "the header": lambda t: _with_metadata(t, b"censafe", b"{}"),
    "all metadata": lambda t: t.replace_schema_metadata(None),
    "the format": lambda t: _with_metadata(
        t, b"censafe", json.dumps({**json.loads(t.schema.metadata[b"censafe"]), "format": "x"}).encode()
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TAMPERS)
def test_any_change_is_noticed(tmp_path: Path, name: str) -> None:
    path = tmp_path / "m.parquet"
    _write(path, CASES["persons"])
    table = pq.read_table(path)
    path.unlink()
    pq.write_table(TAMPERS[name](table), path)
    with pytest.raises(CheckError):
        read_group_measurements(path)


def test_another_plan_a_missing_and_a_damaged_file_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.parquet"
    with pytest.raises(StorageError, match="missing"):
        read_group_measurements(path)
    _write(path, CASES["persons"])
    with pytest.raises(CheckError, match="belongs to plan abab"):
        read_group_measurements(path, plan_digest="cd" * 32)
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(CheckError, match="damaged"):
        read_group_measurements(path)


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
