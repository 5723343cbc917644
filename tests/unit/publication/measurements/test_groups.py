import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from censafe.errors import CheckError, ReleaseError, StorageError
from censafe.model import GroupMeasurements
from censafe.publication.atomic import sha256_file
from censafe.publication.measurements.groups import read_group_measurements, write_group_measurements
from support.group_measurements import households, level, persons

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
