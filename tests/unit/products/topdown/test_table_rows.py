"""What estimates of tables say of themselves on disk: intervals, standard deviations, and whether they are private."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow.parquet as pq
import pytest

from censafe.errors import CheckError
from censafe.products.topdown.table_estimates.estimates import TableEstimates, TableRows

ROWS = TableRows(
    "County", np.array(["44001", "44003"]), ("P1", "P1"), ("P1_001", "P1_002"),
    np.array([[10.0, -2.5], [0.0, 7.0]]), np.array([[4.0, 9.0], [0.0, 25.0]]),
)  # fmt: skip


def written(folder: Path, stamp: str | None) -> pq.ParquetFile:
    made = SimpleNamespace(rows=[ROWS], choice=SimpleNamespace(tables=()))
    TableEstimates.write(made, folder, stamp)  # type: ignore[arg-type]
    return pq.ParquetFile(folder / "table_estimates.parquet")


def test_intervals_are_those_of_the_normal_law_about_the_estimate(tmp_path: Path) -> None:
    found = written(tmp_path, None).read().to_pylist()
    assert [one["estimate"] for one in found] == [10.0, -2.5, 0.0, 7.0]
    assert [one["sd"] for one in found] == [2.0, 3.0, 0.0, 5.0]
    for one in found:
        for level, factor in (("90", 1.6448536), ("95", 1.9599640)):
            assert one[f"lo{level}"] == pytest.approx(one["estimate"] - factor * one["sd"], abs=1e-6)
            assert one[f"hi{level}"] == pytest.approx(one["estimate"] + factor * one["sd"], abs=1e-6)


@pytest.mark.parametrize(("stamp", "private"), [(None, b"true"), ("NOT PRIVATE", b"false")])
def test_estimates_of_a_test_key_are_stamped(tmp_path: Path, stamp: str | None, private: bytes) -> None:
    metadata = written(tmp_path, stamp).schema_arrow.metadata
    assert metadata[b"private"] == private
    assert metadata.get(b"stamp") == (None if stamp is None else stamp.encode())


@pytest.mark.parametrize("case", ["tables are not wanted", "none are there", "of another shape"])
def test_states_of_other_tables_are_not_taken_for_those_of_a_stopped_run(case: str) -> None:
    load = SimpleNamespace(part=SimpleNamespace(name="persons_County"))
    states = None if case == "none are there" else np.zeros((3, 4))
    sums = None if case == "tables are not wanted" else SimpleNamespace(shape=lambda _: (3, 5))
    made = SimpleNamespace(sums=lambda _: sums)
    with pytest.raises(CheckError, match="linear estimates of these tables and areas"):
        TableEstimates.take(made, load, states)  # type: ignore[arg-type]
