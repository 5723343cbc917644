"""Tables of any product are read as they are, matched by their keys, and cut into levels."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from censafe.errors import DataError, StorageError
from censafe.evaluation.pairs.tables import match_tables


def text(path: Path, *lines: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_columns_of_codes_are_read_as_their_values(tmp_path: Path) -> None:
    areas = pa.array(["b", "a"])
    pq.write_table(pa.table({"area": areas.dictionary_encode(), "count": [2, 1]}), tmp_path / "true.parquet")
    pq.write_table(pa.table({"area": areas, "count": [5, 1]}), tmp_path / "public.parquet")
    matched = match_tables(tmp_path / "true.parquet", tmp_path / "public.parquet")
    assert dict(matched.facts) == {"only_true": 0, "only_published": 0}


@pytest.mark.parametrize("name", ["pop", "COUNT", "Persons 2020"])
@pytest.mark.parametrize("mark", [",", "|"])
def test_counts_may_stand_in_any_column_of_a_text_file(tmp_path: Path, name: str, mark: str) -> None:
    true = text(tmp_path / "a.csv", mark.join(["area", name]), mark.join(["01", "5"]), mark.join(["02", "7"]))
    public = text(
        tmp_path / "b.csv", mark.join(["area", name]), mark.join(["01", "6"]), mark.join(["02", "7"])
    )
    cells = match_tables(true, public, count=name).cells["all"]
    assert cells.residual.tolist() == [1, 0]


def test_a_text_file_and_parquet_with_numbers_or_empty_keys_are_compared(tmp_path: Path) -> None:
    true = text(tmp_path / "a.csv", "year,part,count", "2020,,5", "2021,x,7")
    pq.write_table(
        pa.table({"year": [2021, 2020], "part": ["x", None], "count": [7, 6], "classification": ["a", "a"]}),
        tmp_path / "b.parquet",
    )
    matched = match_tables(true, tmp_path / "b.parquet")
    assert matched.cells["all"].residual.tolist() == [1, 0]
    assert dict(matched.facts) == {"only_true": 0, "only_published": 0}


def test_folders_of_parquet_files_are_compared_file_by_file(tmp_path: Path) -> None:
    for side, more in (("a", 0), ("b", 2)):
        (tmp_path / side).mkdir()
        for level, code in (("State", "44"), ("County", "44001")):
            table = pa.table({"geocode": [code, code], "item": [1, 2], "count": [5, 3 + more]})
            pq.write_table(table, tmp_path / side / f"{level}.parquet")
    matched = match_tables(tmp_path / "a", tmp_path / "b", by=("file",))
    assert {name: cells.residual.tolist() for name, cells in matched.cells.items()} == {
        "County": [0, 2],
        "State": [0, 2],
    }


def test_what_is_no_table_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    good = text(tmp_path / "a.csv", "area,pop", "01,5")
    with pytest.raises(StorageError, match="holds no CSV or Parquet file"):
        match_tables(tmp_path / "empty", good)
    with pytest.raises(DataError, match="no column people"):
        match_tables(good, good, count="people")
    with pytest.raises(DataError, match="not whole numbers"):
        match_tables(good, text(tmp_path / "c.csv", "area,pop", "01,many"), count="pop")
    (tmp_path / "d.csv").write_bytes(b"area,pop\n\xff\xfe,1\n")
    with pytest.raises(DataError, match="not a table"):
        match_tables(tmp_path / "d.csv", good, count="pop")


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (("id;count", "1;3"), "public.csv: the file is semicolon-delimited; allowed: comma or pipe"),
        (("id,id,count", "1,1,3"), "public.csv: columns repeated: id"),
        (("id,count",), "public.csv: the table has no rows"),
        (("id,count", "1," + "9" * 60), "public.csv: column count holds values above"),
        (("id,count", "1,-1e300"), "public.csv: column count holds values above"),
    ],
)
def test_tables_of_another_form_are_named(tmp_path: Path, lines: tuple[str, ...], words: str) -> None:
    true, public = text(tmp_path / "true.csv", "id,count", "1,3"), text(tmp_path / "public.csv", *lines)
    with pytest.raises(DataError, match=words):
        match_tables(true, public)
