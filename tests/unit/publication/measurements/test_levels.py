"""Noisy measurements in the Bureau's layout: written, read back, and refused when they are not what was written."""

import shutil
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from censafe.errors import CheckError, ReleaseError, StorageError
from censafe.publication.atomic import sha256_path
from censafe.publication.measurements import levels as nmf_layout
from censafe.publication.measurements import levels as nmf_writer
from censafe.publication.measurements.levels import (
    read_constraints,
    read_noisy_measurements,
    slices,
    write_noisy_measurements,
)
from support.noisy_measurements import DIGEST, LAYOUT, SHAPES, constraints, measured


def write(folder: Path, source: str = "system", *, wide: bool = False) -> Path:
    path = folder / "US_Person_PL_PROD" / "Tract.parquet"
    write_noisy_measurements(
        path,
        measured(source, wide=wide),  # type: ignore[arg-type]
        constraints=constraints(),
        layout=LAYOUT,
        plan_digest=DIGEST,
        stamp=None if source == "system" else "NOT PRIVATE",
    )
    return path


@pytest.mark.parametrize(("group", "file"), [(1 << 22, 1 << 25), (4, 15)])
@pytest.mark.parametrize("wide", [False, True])
def test_what_is_read_is_what_was_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, group: int, file: int, wide: bool
) -> None:
    monkeypatch.setattr(nmf_writer, "_GROUP_ANSWERS", group)
    monkeypatch.setattr(nmf_layout, "_FILE_ANSWERS", file)
    path, wanted = write(tmp_path, wide=wide), measured(wide=wide)
    found = read_noisy_measurements(path, plan_digest=DIGEST)
    assert (wanted.part, wanted.queries, wanted.shapes, wanted.variances, wanted.source) == (
        found.part, found.queries, found.shapes, found.variances, found.source,
    )  # fmt: skip
    assert found.budgets.same_as(wanted.budgets)
    assert wanted.geounits.tolist() == found.geounits.tolist()
    for one, two in zip(wanted.values, found.values, strict=True):
        assert one.dtype == two.dtype
        assert np.array_equal(one, two)
    exact = read_constraints(path, plan_digest=DIGEST)
    assert {one.name: one.values.tolist() for one in constraints()} == {
        name: values.tolist() for name, values in exact.items()
    }


def test_the_rows_are_those_of_the_published_files(tmp_path: Path) -> None:
    path, found = write(tmp_path, "seeded"), measured()
    assert {"State=01", "State=02"} == {one.name for one in (path / "DPQuery").iterdir()}
    rows = pq.read_table(path / "DPQuery", partitioning=None).to_pylist()
    assert list(rows[0]) == [
        "geocode", "query_name", "query_shape", "value", "variance", "sign", "plb", "age", "race",
    ]  # fmt: skip
    assert len(rows) == 2 * 6  # no row of the geounit that was passed over
    last = [row for row in rows if row["geocode"] == "0204" and row["query_name"] == "age * race_dpq"]
    assert last == [
        {
            "geocode": "0204", "query_name": "age * race_dpq", "query_shape": [2, 3],
            "value": found.values[1][6].tolist(), "variance": 40.0, "sign": "=", "plb": 4 / 9, "age": "age",
            "race": "race",
        }
    ]  # fmt: skip
    exact = pq.read_table(path / "Constraint", partitioning=None).to_pylist()
    assert {row["geocode"] for row in exact} == set(found.geounits.tolist())
    assert [row for row in exact if row["geocode"] == "0103"] == [
        {
            "geocode": "0103", "query_name": "age_total_ub_con", "query_shape": [2, 1],
            "value": [4 * 99_999, 5 * 99_999], "variance": 0.0, "sign": "<=", "plb": 0.0, "age": "age", "race": "*",
        },
        {
            "geocode": "0103", "query_name": "total_con", "query_shape": [1, 1], "value": [2], "variance": 0.0,
            "sign": "=", "plb": 0.0, "age": "*", "race": "*",
        },
    ]  # fmt: skip


def test_every_file_carries_its_seal_and_is_read_only(tmp_path: Path) -> None:
    path = write(tmp_path, "seeded")
    files = [file for file in path.rglob("*") if file.is_file()]
    assert len(files) == 4
    for file in files:
        metadata = pq.read_metadata(file).metadata
        assert metadata[b"plan_digest"] == DIGEST.encode()
        assert metadata[b"part"] == b"persons_Tract"
        assert (metadata[b"source"], metadata[b"stamp"]) == (b"seeded", b"NOT PRIVATE")
        assert b'"cost":"4/9"' in metadata[b"censafe"]
        assert len(metadata[b"content_digest"]) == 64
        assert file.stat().st_mode & 0o222 == 0


def test_the_stamp_must_fit_and_nothing_is_written_twice(tmp_path: Path) -> None:
    path = write(tmp_path)
    before = sha256_path(path)
    with pytest.raises(StorageError, match="exists already"):
        write(tmp_path)
    assert sha256_path(path) == before
    for source, stamp in (("seeded", None), ("system", "NOT PRIVATE")):
        with pytest.raises(ReleaseError):
            write_noisy_measurements(
                tmp_path / "other",
                measured(source),  # type: ignore[arg-type]
                constraints=constraints(),
                layout=LAYOUT,
                plan_digest=DIGEST,
                stamp=stamp,  # type: ignore[arg-type]
            )
    with pytest.raises(ValueError, match="one row for every geounit"):
        write_noisy_measurements(
            tmp_path / "other", measured(), constraints=constraints(3), layout=LAYOUT, plan_digest=DIGEST
        )
    assert [path.parent] == list(tmp_path.iterdir())


def test_a_stop_in_the_middle_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(nmf_writer, "_write", stop)
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path)
    assert list((tmp_path / "US_Person_PL_PROD").iterdir()) == []


def truncate(file: Path) -> None:
    file.chmod(0o644)
    file.write_bytes(file.read_bytes()[:-40])


def change_an_answer(file: Path) -> None:
    table = pq.read_table(file, partitioning=None)
    rows = table.to_pylist()
    rows[-1]["value"][0] += 1
    file.unlink()
    pq.write_table(table.from_pylist(rows, schema=table.schema), file)


def add_rows(file: Path) -> None:
    shutil.copyfile(file, file.with_name("part-00009.parquet"))


@pytest.mark.parametrize("damage", [truncate, change_an_answer, add_rows, Path.unlink])
@pytest.mark.parametrize("table", ["DPQuery", "Constraint"])
def test_changed_files_are_refused(tmp_path: Path, damage: object, table: str) -> None:
    path = write(tmp_path)
    damage(path / table / "State=02" / "part-00000.parquet")  # type: ignore[operator]
    with pytest.raises(CheckError, match=r"(r|R)estore it from a copy"):
        read_noisy_measurements(path, plan_digest=DIGEST)


def test_another_plan_or_no_folder_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path)
    with pytest.raises(CheckError, match="belongs to plan"):
        read_noisy_measurements(path, plan_digest="cd" * 32)
    with pytest.raises(StorageError, match="missing"):
        read_constraints(tmp_path / "none")
    (tmp_path / "text").mkdir()
    with pytest.raises(CheckError, match="not a folder of noisy measurements"):
        read_noisy_measurements(tmp_path / "text")


def test_files_share_a_partition_evenly() -> None:
    codes = np.array([f"01{one:02}" for one in range(10)])
    found = slices(codes, 2, nmf_layout._FILE_ANSWERS // 3)
    assert [(one.first, one.last, one.number) for one in found] == [
        (0, 2, 0),
        (2, 5, 1),
        (5, 7, 2),
        (7, 10, 3),
    ]
    assert slices(codes, 0, 1)[0].path(Path("x"), "DPQuery") == Path("x/DPQuery/part-00000.parquet")
    assert sum(map(np.prod, SHAPES)) == 7
