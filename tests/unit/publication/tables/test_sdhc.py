"""Published noisy tables of S-DHC that were changed or cut."""

from pathlib import Path

import pytest

from censafe.errors import DataError
from censafe.publication.tables.sdhc import read_noisy_table

HEADER = "REGION_TYPE|REGION_ID|PH3_DATA_CELL|NOISE_DISTRIBUTION|VARIANCE|COUNT"


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_a_column_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    file = written(tmp_path / "ph3.csv", f"{HEADER}|COUNT\nUSA|1|1|Discrete Gaussian|2|3|3\n")
    with pytest.raises(DataError, match="columns repeated: 1"):
        read_noisy_table("ph3", [file])


def test_a_table_without_rows_is_read(tmp_path: Path) -> None:
    cells, stamped = read_noisy_table("ph3", [written(tmp_path / "ph3.csv", f"{HEADER}\n")])
    assert (len(cells.region), stamped) == (0, False)
