"""Damaged Parquet files that Arrow reads and that break whoever uses them."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from censafe.attack.reading import read_table_file
from censafe.errors import DataError
from censafe.geography.files import read_validated
from censafe.population.blocks.columns import batches
from censafe.population.blocks.dhc.source import column_blocks, column_numbers
from censafe.population.blocks.lookup import block_table
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
        read_validated(path)


def test_records_of_the_dhc_with_such_places_have_no_valid_value_there(path: Path) -> None:
    found: list[Finding] = []
    (batch,) = batches(path, (("MAFID", "RTYPE"),), (), found, coded=True)
    assert column_numbers(batch.column("RTYPE"), 0).tolist() == [-1] * ROWS
    table, _ = block_table(np.frombuffer(b"3" * 22, np.uint8).reshape(1, 22).copy(), np.zeros(1, np.int32))
    assert column_blocks(batch.column("RTYPE"), table).tolist() == [-1] * ROWS
    assert not found


def test_an_attackers_table_is_not_read_from_such_a_file(path: Path) -> None:
    with pytest.raises(DataError, match=r"damaged\.parquet"):
        read_table_file(path)
