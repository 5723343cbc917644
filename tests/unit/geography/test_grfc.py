from pathlib import Path

import pytest

from censafe.errors import DataError, StorageError
from censafe.geography.grfc import read_grfc
from support.shared import shared_data

COLUMNS = ("TABBLKST", "TABBLK")


def write(folder: Path, content: bytes) -> Path:
    path = folder / "grfc_tab20_44.txt"
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    "content",
    [
        b"TABBLKST|OTHER|TABBLK\n44|x|0001\n44|y|0002\n",
        b"\xef\xbb\xbfTABBLKST|OTHER|TABBLK\r\n44|x|0001\r\n44|y|0002",
    ],
)
def test_columns_are_read_as_text(tmp_path: Path, content: bytes) -> None:
    table = read_grfc(write(tmp_path, content), ("TABBLK", "TABBLKST"))
    assert table.to_pydict() == {"TABBLK": ["0001", "0002"], "TABBLKST": ["44", "44"]}


def test_missing_columns_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="TABBLK, PLACEFP"):
        read_grfc(write(tmp_path, b"TABBLKST|X\n44|1\n"), ("TABBLKST", "TABBLK", "PLACEFP"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b"TABBLKST|TABBLK|TABBLKST\n44|0001|45\n", "columns repeated: TABBLKST"),
        (b"TABBLKST|TABBLK\n", "no blocks"),
        (b"TABBLKST|TABBLK \n44|0001\n", "rows differ from the header"),
        (b"TABBLKST|TABBLK\n44|0001|9\n", "differ from the header"),
        (b"TABBLKST|TABBLK\n44|\xff\n", "differ from the header"),
        (b"\xff\xfe|TABBLK\n44|1\n", "not UTF-8"),
    ],
)
def test_broken_files_are_reported(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_grfc(write(tmp_path, content), COLUMNS)


def test_a_file_that_is_not_there_is_a_storage_error(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="cannot be opened"):
        read_grfc(tmp_path / "absent.txt", COLUMNS)


def test_the_reference_block_files_are_read() -> None:
    table = read_grfc(shared_data("population/households/GRF-C.txt"), ("TABBLKST", "PLACEFP"))
    assert table.num_rows == 50_255
    assert set(table["TABBLKST"].unique().to_pylist()) == {"44", "50"}
