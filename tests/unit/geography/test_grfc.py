"""The tabulation block file: regions of blocks, areas off the spine, and what is refused."""

from pathlib import Path

import numpy as np
import pytest

from censafe.errors import DataError, StorageError
from censafe.geography.grfc import Areas, read_areas, read_grfc
from censafe.geography.regions import REGION_TYPES
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


HEADER = "TABBLKST|TABBLKCOU|TABTRACTCE|TABBLKGRPCE|TABBLK|PLACEFP|AIANNHCE\n"


def grfc(folder: Path, *rows: str, header: str = HEADER) -> Path:
    path = folder / "GRF-C.txt"
    path.write_text(header + "".join(row + "\n" for row in rows))
    return path


def areas_of(path: Path, states: tuple[str, ...]) -> Areas:
    areas, problems = read_areas((path,), states)
    assert not problems
    return areas


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    return grfc(
        tmp_path, "44|001|000100|1|1001|99999|0002", "02|001|000100|1|1001|00100|0002",
        "72|003|000100|1|1001|00100|0007", "44|001|000100|1|1000|14140|9999",
        "44|003|000200|1|1000|14140|9999", "01|003|000200|1|1000|14140|9999",
    )  # fmt: skip


def test_regions_and_ordinals_of_every_type(mixed: Path) -> None:
    areas = areas_of(mixed, ("02", "44", "72"))
    assert areas.keys.tolist() == [
        20010001001001, 440010001001000, 440010001001001, 440030002001000, 720030001001001,
    ]  # fmt: skip
    expected = {
        "USA": (("1",), [0, 0, 0, 0, -1]),
        "STATE": (("02", "44"), [0, 1, 1, 1, -1]),
        "COUNTY": (("02001", "44001", "44003"), [0, 1, 1, 2, -1]),
        "TRACT": (("02001000100", "44001000100", "44003000200"), [0, 1, 1, 2, -1]),
        "PLACE": (("0200100", "4414140"), [0, 1, -1, 1, -1]),
        "AIANNH": (("0002",), [0, -1, 0, -1, -1]),
        "PR-STATE": (("72",), [-1, -1, -1, -1, 0]),
        "PR-COUNTY": (("72003",), [-1, -1, -1, -1, 0]),
        "PR-TRACT": (("72003000100",), [-1, -1, -1, -1, 0]),
        "PR-PLACE": (("7200100",), [-1, -1, -1, -1, 0]),
    }
    assert expected == {
        kind.name: (areas.regions(kind.name), areas.ordinals(kind.name).tolist()) for kind in REGION_TYPES
    }
    assert all(areas.ordinals(kind.name).dtype == np.int32 for kind in REGION_TYPES)


def test_blocks_and_regions_are_found_by_their_numbers(mixed: Path) -> None:
    areas = areas_of(mixed, ("02", "44"))
    wanted = np.array([440030002001000, 10030002001000, 20010001001001, 999999999999999])
    assert areas.find(wanted).tolist() == [3, -1, 0, -1]
    assert areas.find_regions("COUNTY", np.array([44003, 1003])).tolist() == [2, -1]
    assert areas.find_regions("PR-COUNTY", np.array([72003])).tolist() == [-1]


def test_restricted_areas_have_only_regions_that_keep_a_block(mixed: Path) -> None:
    areas = areas_of(mixed, ("02", "44")).restrict(np.array([False, True, True, False]))
    assert areas.regions("COUNTY") == ("44001",)
    assert areas.ordinals("PLACE").tolist() == [0, -1]


def test_duplicate_blocks_are_counted_and_stop(tmp_path: Path) -> None:
    row = "44|001|000100|1|1001|99999|9999"
    path = grfc(tmp_path, row, "44|001|000100|1|1000|99999|9999", row, row)
    areas, problems = read_areas((path,), ("44",))
    assert "TABBLK: rows whose block has a row already (2 rows)" in problems[0].text()
    assert areas.blocks == 2
    assert [(problem.rule, problem.rows) for problem in problems] == [("duplicate-block", 2)]
    assert not read_areas((path,), ("44", "02"))[1][1:]


def test_all_malformed_columns_are_reported_together(tmp_path: Path) -> None:
    path = grfc(
        tmp_path,
        "44|1|000100|1|1001|9999|",
        "44|001|000100|1|1001|9999|9999",
        "44|001|00010x|1|1001|99999|9999",
    )
    areas, problems = read_areas((path,), ("44",))
    assert areas.blocks == 1
    assert areas.regions("PLACE") == ()
    assert [(problem.column, problem.rows) for problem in problems] == [
        ("TABBLKCOU", 1), ("TABTRACTCE", 1), ("PLACEFP", 2), ("AIANNHCE", 1),
    ]  # fmt: skip


def test_no_block_of_the_states_stops(mixed: Path) -> None:
    _, (problem,) = read_areas((mixed,), ("50",))
    assert "no block lies in a state of the filter" in problem.text()


def test_columns_must_come_in_order(tmp_path: Path) -> None:
    header = "TABBLKCOU|TABBLKST|TABTRACTCE|TABBLKGRPCE|TABBLK|PLACEFP|AIANNHCE\n"
    with pytest.raises(DataError, match="another order"):
        areas_of(grfc(tmp_path, "001|44|000100|1|1001|99999|9999", header=header), ("44",))


@pytest.mark.parametrize("row", ["44|001|000100|1|1001|99999", "44|001|000100|1|\xff001|99999|9999"])
def test_rows_that_cannot_be_read_stop(tmp_path: Path, row: str) -> None:
    path = tmp_path / "GRF-C.txt"
    path.write_bytes((HEADER + row + "\n").encode("latin-1"))
    with pytest.raises(DataError, match="differ from the header in their number of values, or are not UTF-8"):
        areas_of(path, ("44",))


def test_real_blocks(tmp_path: Path) -> None:
    areas = areas_of(shared_data("population/households/GRF-C.txt"), ("44", "50"))
    assert areas.blocks == 50_255
    assert {name: len(areas.regions(name)) for name in ("STATE", "COUNTY", "TRACT", "PLACE", "AIANNH")} == {
        "STATE": 2, "COUNTY": 19, "TRACT": 443, "PLACE": 36, "AIANNH": 1,
    }  # fmt: skip
    assert int((areas.ordinals("PLACE") < 0).sum()) == 11_441 + 24_606
