"""Damaged Parquet files that Arrow reads and that break whoever uses them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from censafe.attack.reading import read_table_file
from censafe.errors import DataError
from censafe.model.parquet_tables import read_whole
from censafe.population.blocks.dhc.numbers import batches_of
from censafe.population.findings import Finding
from support.damaged_parquet import ROWS, write_places_outside


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "damaged.parquet"
    write_places_outside(found, {"MAFID": range(ROWS)}, "RTYPE", "3")
    return found


def test_places_outside_of_a_dictionary_are_found(path: Path) -> None:
    assert len(pq.read_table(path)) == ROWS
    with pytest.raises(pa.ArrowInvalid, match="out of bounds"):
        read_whole(path)


def test_records_of_the_dhc_are_not_read_from_such_a_file(path: Path) -> None:
    found: list[Finding] = []
    assert list(batches_of(path, ("MAFID", "RTYPE"), found)) == []
    assert [one.problem for one in found] == ["the content cannot be read"]


def test_an_attackers_table_is_not_read_from_such_a_file(path: Path) -> None:
    with pytest.raises(DataError, match=r"damaged\.parquet"):
        read_table_file(path)
