"""Tables of any product are read as they are, matched by their keys, and cut into levels."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from censafe.errors import DataError, StorageError
from censafe.evaluation.counts.cells import MatchedCells
from censafe.evaluation.pairs.tables import match_tables
from support.shared import shared_data


def text(path: Path, *lines: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_columns_of_codes_are_read_as_their_values(tmp_path: Path) -> None:
    areas = pa.array(["b", "a"])
    pq.write_table(pa.table({"area": areas.dictionary_encode(), "count": [2, 1]}), tmp_path / "true.parquet")
    pq.write_table(pa.table({"area": areas, "count": [5, 1]}), tmp_path / "public.parquet")
    _, facts, _ = match_tables(tmp_path / "true.parquet", tmp_path / "public.parquet")
    assert facts == {"only_true": 0, "only_published": 0}


@pytest.mark.parametrize("name", ["pop", "COUNT", "Persons 2020"])
@pytest.mark.parametrize("mark", [",", "|"])
def test_counts_may_stand_in_any_column_of_a_text_file(tmp_path: Path, name: str, mark: str) -> None:
    true = text(tmp_path / "a.csv", mark.join(["area", name]), mark.join(["01", "5"]), mark.join(["02", "7"]))
    public = text(
        tmp_path / "b.csv", mark.join(["area", name]), mark.join(["01", "6"]), mark.join(["02", "7"])
    )
    cells, _, _ = match_tables(true, public, count=name)
    assert cells["all"].residual.tolist() == [1, 0]


def test_a_text_file_and_parquet_with_numbers_or_empty_keys_are_compared(tmp_path: Path) -> None:
    true = text(tmp_path / "a.csv", "year,part,count", "2020,,5", "2021,x,7")
    pq.write_table(
        pa.table({"year": [2021, 2020], "part": ["x", None], "count": [7, 6], "classification": ["a", "a"]}),
        tmp_path / "b.parquet",
    )
    cells, facts, _ = match_tables(true, tmp_path / "b.parquet")
    assert cells["all"].residual.tolist() == [1, 0]
    assert facts == {"only_true": 0, "only_published": 0}


def test_folders_of_parquet_files_are_compared_file_by_file(tmp_path: Path) -> None:
    for side, more in (("a", 0), ("b", 2)):
        (tmp_path / side).mkdir()
        for level, code in (("State", "44"), ("County", "44001")):
            table = pa.table({"geocode": [code, code], "item": [1, 2], "count": [5, 3 + more]})
            pq.write_table(table, tmp_path / side / f"{level}.parquet")
    cells, _, _ = match_tables(tmp_path / "a", tmp_path / "b", by=("file",))
    assert {name: own.residual.tolist() for name, own in cells.items()} == {
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
    with pytest.raises(
        DataError, match="1 lines of the table have bytes that are not text in UTF-8, the first is line 2"
    ):
        match_tables(tmp_path / "d.csv", good, count="pop")


@pytest.mark.parametrize(
    ("lines", "words"),
    [
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


Matched = tuple[dict[str, MatchedCells], dict[str, int], list[str]]


def frame(folder: Path, *sides: tuple[str, ...], **options: object) -> Matched:
    true, public = (
        text(folder / f"{name}.csv", *lines) for name, lines in zip(("true", "public"), sides, strict=True)
    )
    return match_tables(true, public, **options)  # type: ignore[arg-type]


def test_other_counts_of_wide_tables_are_no_keys() -> None:
    folder = shared_data("public_cases/03_pair_wide_columns_as_keys")
    cells, facts, notes = match_tables(folder / "t.csv", folder / "p.csv", count="pop")
    assert cells["all"].residual.tolist() == [1] * 5
    assert facts == {"only_true": 0, "only_published": 0}
    assert notes == ["rows are matched by GEOID20; pop_hisp are not keys"]


@pytest.mark.parametrize(
    ("true", "public", "keys"),
    [
        (("GEOID,pop,a,b", "01,5,1,7", "02,7,1,8"), ("GEOID,pop,a,b", "01,5,2,9", "02,7,2,9"), "GEOID; a, b are not keys"),
        (("area,pop,a", "1,5,1", "2,7,3"), ("area,pop,a", "1,5,4", "2,7,5"), "area; a are not keys"),
        (("area,item,pop", "1,1,5", "1,2,7"), ("area,item,pop", "1,1,5", "1,2,7"), "area, item"),
        (("place,group,age,pop,a", "x,1,1,5,9", "x,1,2,5,8", "x,2,1,5,7"), ("place,group,age,pop,a", "x,1,1,5,1", "x,1,2,5,2", "x,2,1,5,3"),
         "place, group, age; a are not keys"),
        (("GEOID,NAME,pop", "01,Ca\u00f1on,5"), ("GEOID,NAME,pop", "01,Canon,5"), "GEOID"),
        (("GEOID,pop,share", "01,5,0.51"), ("GEOID,pop,share", "01,5,0.52"), "GEOID; share are not keys"),
        (("GEOID,sex,pop", "01,1,5", "01,2,5"), ("geoid,Sex,pop", "01,1,5", "01,2,5"), "GEOID, sex"),
        (("GEOID,pop,new", "01,5,1"), ("GEOID,pop,old", "01,5,2"), "GEOID"),
        (("GISJOIN,pop", "G4400010,5"), ("GEO_ID,pop", "0500000US44001,5"), "GISJOIN"),
        (("geocode,pop", "4400103010011000,5"), ("GEOID20,pop", "440010301001000,5"), "geocode"),
    ],
)  # fmt: skip
def test_keys_are_what_both_sides_share_as_codes_attributes_and_texts(
    tmp_path: Path, true: tuple[str, ...], public: tuple[str, ...], keys: str
) -> None:
    cells, facts, notes = frame(tmp_path, true, public, count="pop")
    assert facts == {"only_true": 0, "only_published": 0}
    assert cells["all"].residual.tolist() == [0] * (len(true) - 1)
    assert notes[-1] == f"rows are matched by {keys}"


@pytest.mark.parametrize(
    ("true", "public", "words"),
    [
        (("GEOID,pop", "01001,5"), ("GEOID,pop", "1001,5"), "1 of them would match if leading zeros did not count"),
        (("place,pop", "Ca\u00f1on City,5"), ("place,pop", "CANON  CITY,5"), "1 of them would match if accents, capitals, blanks and points did not count"),
        (("GEOID,pop", "01,5", "02,5"), ("GEOID,pop", "01,5", "03,5"), r"2 of 3 rows are on one side only \(1 in true.csv, 1 in public.csv\); matched by GEOID; allowed: 5%"),
        (("GEOID20,pop", "01,5"), ("GEOID10,pop", "02,5"), "2 of 2 rows are on one side only"),
        (("a,pop", "x,5"), ("b,pop", "x,5"), "no column is a key on both sides; the columns are a, pop and b, pop"),
        (("GEOID,pop", "01,5", "01,6"), ("GEOID,pop", "01,5"), r"true.csv: 1 rows repeat the key of another row \(GEOID\)"),
        (("GEOID,pop,a", "01,5,1", "01,6,2"), ("GEOID,pop,a", "01,5,3", "01,6,4"), r"repeat the key of another row \(GEOID\)"),
        (("GEOID,pop", "01,5"), ("GEOID,pop", "01,-555555555"), r"public.csv: column pop .*: 1 annotation codes -555555555 \(controlled estimate\); fix"),
        (("GEOID,pop", '01,"1,234"'), ("GEOID,pop", "01,5"), "true.csv: column pop .*: 1 numbers with thousands separators; fix"),
        (("GEOID,pop", "01,5.5"), ("GEOID,pop", "01,5"), "true.csv: column pop holds values that are not whole numbers: 1 fractions"),
        (("GEOID,pop", "01,"), ("GEOID,pop", "01,5"), "true.csv: every row of column pop is withheld"),
        (("GEOID,pop", "01,(X)"), ("GEOID,pop", "01,5"), "true.csv: column pop .*: 1 texts that are not numbers; fix"),
    ],
)  # fmt: skip
def test_what_does_not_match_is_named(
    tmp_path: Path, true: tuple[str, ...], public: tuple[str, ...], words: str
) -> None:
    with pytest.raises(DataError, match=words):
        frame(tmp_path, true, public, count="pop")


def test_unmatched_rows_count_as_zero_where_they_are_few_or_meant_to(tmp_path: Path) -> None:
    rows = [f"{place:02},5" for place in range(40)]
    cells, _, notes = frame(tmp_path, ("GEOID,pop", *rows), ("GEOID,pop", *rows[1:]), count="pop")
    assert cells["all"].residual.tolist() == [-5] + [0] * 39
    assert notes[-1] == (
        "1 of 40 rows are on one side only (1 in true.csv, 0 in public.csv) and count as 0 on the other"
    )
    _, facts, _ = frame(
        tmp_path, ("GEOID,pop", *rows), ("GEOID,pop", "99,1"), count="pop", unmatched_as_zero=True
    )
    assert facts == {"only_true": 40, "only_published": 1}


def test_vintages_in_the_names_of_columns_are_said(tmp_path: Path) -> None:
    _, _, notes = frame(tmp_path, ("GEOID20,pop", "01,5"), ("GEOID10,pop", "01,5"), count="pop")
    assert notes[0] == "GEOID20 of the truth is GEOID10 as published, codes of 2020 and of 2010"
