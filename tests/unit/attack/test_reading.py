"""Files of persons that an attack cannot read are refused with the file, the column and no value."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from censafe.attack.reading import read_people
from censafe.errors import DataError

MICRODATA = {
    "TABBLKST": ["50"], "TABBLKCOU": ["007"], "TABTRACTCE": ["000100"], "TABBLK": ["1001"],
    "QSEX": ["1"], "QAGE": ["30"], "CENHISP": ["1"], "CENRACE": ["01"],
}  # fmt: skip


def written(path: Path, **changed: list[str]) -> Path:
    columns = MICRODATA | changed
    path.write_text("|".join(columns) + "\n" + "|".join(one[0] for one in columns.values()) + "\n")
    return path


def test_microdata_are_read(tmp_path: Path) -> None:
    people = read_people(written(tmp_path / "persons.txt"))
    assert [int(one[0]) for one in (people.sex, people.age, people.race, people.hispanic)] == [0, 30, 0, 0]


@pytest.mark.parametrize("name", ["QSEX", "QAGE", "CENHISP", "CENRACE"])
@pytest.mark.parametrize("value", ["", "/", "-1", "\u00b2", "9" * 30, "1.5", "300"])
def test_codes_that_are_none_are_refused(tmp_path: Path, name: str, value: str) -> None:
    with pytest.raises(DataError, match=f"persons.txt: 1 persons without a valid {name}"):
        read_people(written(tmp_path / "persons.txt", **{name: [value]}))


def test_lists_and_columns_given_twice_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "persons.parquet"
    table = pa.table(MICRODATA)
    for odd in (
        table.set_column(4, "QSEX", pa.array([[1]])),
        table.append_column("QSEX", table["QSEX"]),
        table.set_column(4, "QSEX", pa.array([b"1"])),
    ):
        pq.write_table(odd, path)
        with pytest.raises(DataError, match=r"persons.parquet: .*QSEX|nor a Parquet file"):
            read_people(path)


def test_a_header_that_is_no_text_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "persons.txt")
    path.write_bytes(path.read_bytes().replace(b"QAGE", b"QAG\xe8"))
    with pytest.raises(
        DataError, match="1 lines of the table have bytes that are not text in UTF-8, the first is line 1"
    ):
        read_people(path)


def test_places_outside_of_the_words_of_a_file_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = pa.DictionaryArray.from_arrays(pa.array([255], pa.uint8()), pa.array(["1"]), safe=False)
    pq.write_table(pa.table({"sex": ["1"]}), tmp_path / "persons.parquet")  # whose size is looked at first
    monkeypatch.setattr(pq, "read_table", lambda _path: pa.table({"sex": words}))
    with pytest.raises(DataError, match="nor a Parquet file"):
        read_people(tmp_path / "persons.parquet")
