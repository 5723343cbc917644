import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from censafe.errors import CheckError, ReleaseError, StorageError
from censafe.model import NoiseLaw, QueryPlan
from censafe.model.level_measurements import LevelBudgets, LevelMeasurements
from censafe.publication import level_measurement_files as files
from censafe.publication.atomic import sha256_file
from censafe.publication.level_measurement_files import read_level_measurements, write_level_measurements

DIGEST = "ab" * 32
LAW = NoiseLaw.laplace(Fraction(7, 3))


def measured(source: str = "system") -> LevelMeasurements:
    rng = np.random.default_rng(4)
    queries = tuple(
        QueryPlan(f"persons.{name}", "Tract", LAW, Fraction(2, 9)) for name in ("total", "adult * race")
    )
    values = (rng.integers(-9, 9, (5, 1)).astype(np.int32), rng.integers(-(2**40), 2**40, (5, 6)))
    codes = np.array([f"{row:03}" for row in range(5)], np.str_)
    moved = Fraction(4, 9)
    budgets = LevelBudgets(
        np.array([0, 0, 1, 0, 2], np.int32),
        ((LAW, LAW), (NoiseLaw.laplace(Fraction(7, 6)),) * 2, (None, None)),
        ((Fraction(2, 9),) * 2, (moved, moved), (Fraction(0),) * 2),
    )
    variances = ((10.5, 10.5), (2.25, 2.25), (np.inf, np.inf))
    return LevelMeasurements(
        "persons_Tract", codes, queries, ((1, 1), (2, 3)), budgets, variances, values, source  # type: ignore[arg-type]
    )  # fmt: skip


@pytest.mark.parametrize("chunk", [4, 1 << 22])
def test_what_is_read_is_what_was_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int
) -> None:
    monkeypatch.setattr(files, "_GROUP_ANSWERS", chunk)
    path, wanted = tmp_path / "measurements" / "m.parquet", measured()
    assert write_level_measurements(path, wanted, plan_digest=DIGEST) == sha256_file(path)
    assert path.stat().st_mode & 0o222 == 0
    found = read_level_measurements(path, plan_digest=DIGEST)
    assert (found.part, found.queries, found.shapes, found.variances, found.source) == (
        wanted.part, wanted.queries, wanted.shapes, wanted.variances, wanted.source,
    )  # fmt: skip
    assert found.budgets.same_as(wanted.budgets)
    assert np.array_equal(found.geounits, wanted.geounits)
    for one, two in zip(found.values, wanted.values, strict=True):
        assert one.dtype == two.dtype
        assert np.array_equal(one, two)


def test_the_file_has_the_columns_of_the_published_measurement_files(tmp_path: Path) -> None:
    write_level_measurements(
        tmp_path / "m.parquet", measured("seeded"), plan_digest=DIGEST, stamp="NOT PRIVATE"
    )
    table = pq.read_table(tmp_path / "m.parquet")
    assert table.schema.metadata[b"stamp"] == b"NOT PRIVATE"
    rows = table.to_pylist()
    assert len(rows) == 10
    assert rows[5] == {
        "geocode": "000", "kind": 0, "query_name": "adult * race_dpq", "query_shape": [2, 3],
        "value": measured().values[1][0].tolist(), "variance": 10.5, "plb": "2/9", "law": "Two-Sided Geometric",
    }  # fmt: skip


def test_a_stamp_must_fit(tmp_path: Path) -> None:
    with pytest.raises(ReleaseError):
        write_level_measurements(tmp_path / "m.parquet", measured("seeded"), plan_digest=DIGEST)
    with pytest.raises(ReleaseError):
        write_level_measurements(tmp_path / "m.parquet", measured(), plan_digest=DIGEST, stamp="NOT PRIVATE")


def _rewrite(path: Path, column: str, change: object) -> None:
    table = pq.read_table(path)
    values = table[column].to_pylist()
    values[0] = change
    place = table.column_names.index(column)
    path.unlink()
    column_type = table.field(place).type
    changed = table.set_column(place, table.field(place), pa.array(values, column_type))
    pq.write_table(changed, path, row_group_size=5)


@pytest.mark.parametrize(
    ("column", "change"), [("value", [77]), ("geocode", "999"), ("kind", 1), ("value", [1, 2])]
)
def test_a_changed_file_is_told(tmp_path: Path, column: str, change: object) -> None:
    path = tmp_path / "m.parquet"
    write_level_measurements(path, measured(), plan_digest=DIGEST)
    _rewrite(path, column, change)
    with pytest.raises(CheckError, match="changed"):
        read_level_measurements(path)


def test_a_changed_header_is_told(tmp_path: Path) -> None:
    path = tmp_path / "m.parquet"
    write_level_measurements(path, measured(), plan_digest=DIGEST)
    table = pq.read_table(path)
    metadata = dict(table.schema.metadata)
    header = json.loads(metadata[b"censafe"])
    header["variances"][0][0] = (1.0).hex()
    metadata[b"censafe"] = json.dumps(header).encode()
    path.unlink()
    pq.write_table(table.replace_schema_metadata(metadata), path, row_group_size=5)
    with pytest.raises(CheckError, match="changed"):
        read_level_measurements(path)


def test_foreign_missing_and_other_plans_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="missing"):
        read_level_measurements(tmp_path / "none.parquet")
    (tmp_path / "text.parquet").write_text("text")
    with pytest.raises(CheckError, match="not a measurement file"):
        read_level_measurements(tmp_path / "text.parquet")
    write_level_measurements(tmp_path / "m.parquet", measured(), plan_digest=DIGEST)
    with pytest.raises(CheckError, match="belongs to plan"):
        read_level_measurements(tmp_path / "m.parquet", plan_digest="cd" * 32)


def test_measurements_must_fit_their_shapes() -> None:
    one = measured()
    with pytest.raises(ValueError, match="one shape"):
        replace(one, shapes=one.shapes[:1])
    with pytest.raises(ValueError, match="product of the shape"):
        replace(one, shapes=((1, 1), (2, 2)))
