from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from censafe.errors import DataError
from support.phsafe_inputs import check, write_parquet_folder


def edited(folder: Path, change: object) -> Path:
    write_parquet_folder(folder)
    table = pq.read_table(folder / "persons.parquet")
    pq.write_table(change(table), folder / "persons.parquet")  # type: ignore[operator]
    return folder


@pytest.mark.parametrize("integers", [False, True])
def test_text_and_integers_are_valid(tmp_path: Path, integers: bool) -> None:
    folder = write_parquet_folder(tmp_path / "data", integers=integers)
    assert check(folder, strict=True).findings == ()


def test_the_order_of_columns_is_free(tmp_path: Path) -> None:
    folder = edited(tmp_path / "data", lambda table: table.select(table.column_names[::-1]))
    assert check(folder, strict=True).findings == ()


def test_dictionary_columns_are_text(tmp_path: Path) -> None:
    folder = edited(
        tmp_path / "data", lambda table: table.set_column(5, "RELSHIP", table["RELSHIP"].dictionary_encode())
    )
    assert check(folder, strict=True).findings == ()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda table: table.drop_columns(["QAGE"]), "persons.parquet: QAGE: columns missing"),
        (lambda table: table.append_column("NAME", table["QAGE"]), "NAME: unexpected columns"),
        (
            lambda table: table.set_column(2, "QAGE", table["QAGE"].cast(pa.float64())),
            "QAGE: type is neither text nor integer",
        ),
    ],
)
def test_wrong_schemas_are_refused(tmp_path: Path, change: object, message: str) -> None:
    with pytest.raises(DataError) as caught:
        check(edited(tmp_path / "data", change))
    assert message in str(caught.value)


def test_a_record_in_the_place_of_names_is_not_shown(tmp_path: Path) -> None:
    """A table made of text without a header has the values of its first record as names."""
    names = ["RTYPE", "MAFID", "000123456", "CENHISP", "CENRACE", "RELSHIP"]
    with pytest.raises(DataError) as caught:
        check(edited(tmp_path / "data", lambda table: table.rename_columns(names)))
    assert "persons.parquet: 1 unexpected columns" in str(caught.value)
    assert "000123456" not in str(caught.value)


def test_names_that_are_no_text_are_refused(tmp_path: Path) -> None:
    folder = write_parquet_folder(tmp_path / "data")
    for name in ("persons", "units", "geo"):
        path = folder / f"{name}.parquet"
        pq.write_table(pq.read_table(path), path, store_schema=False)
        path.write_bytes(path.read_bytes().replace(b"MAFID", b"M\xb4FID"))
    with pytest.raises(DataError, match=r"units\.parquet: the file is not a whole Parquet file"):
        check(folder)


def test_integer_codes_are_checked_against_the_domain(tmp_path: Path) -> None:
    folder = write_parquet_folder(tmp_path / "data", integers=True)
    table = pq.read_table(folder / "geo.parquet")
    values = [8, *table["REGIONCE"].to_pylist()[1:]]
    widths = [-1, *table["PLACEFP"].to_pylist()[1:]]
    table = table.set_column(7, "REGIONCE", pa.array(values)).set_column(9, "PLACEFP", pa.array(widths))
    pq.write_table(table, folder / "geo.parquet")
    assert {(f.column, f.rows) for f in check(folder).findings} == {("REGIONCE", 1), ("PLACEFP", 1)}


def test_a_cut_file_is_refused(tmp_path: Path) -> None:
    folder = write_parquet_folder(tmp_path / "data")
    content = (folder / "units.parquet").read_bytes()
    (folder / "units.parquet").write_bytes(content[: len(content) // 2])
    with pytest.raises(DataError, match=r"units\.parquet: the file is not a whole Parquet file"):
        check(folder)


def test_files_of_one_table_must_agree_in_types(tmp_path: Path) -> None:
    folder = write_parquet_folder(tmp_path / "data")
    other = write_parquet_folder(tmp_path / "other", integers=True)
    (folder / "persons").mkdir()
    (folder / "persons.parquet").rename(folder / "persons" / "a.parquet")
    (other / "persons.parquet").rename(folder / "persons" / "b.parquet")
    with pytest.raises(DataError, match="the type differs between files"):
        check(folder)


@pytest.mark.parametrize("name", ["units", "geo"])
def test_tables_without_rows_are_refused(tmp_path: Path, name: str) -> None:
    folder = write_parquet_folder(tmp_path / "data", **{name: []})
    with pytest.raises(DataError, match=rf"{name}\.parquet: the table has no rows"):
        check(folder)
