"""Noisy measurement files of others: odd but right ones are read, wrong ones are refused with level, folder and geounits."""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from censafe.errors import DataError
from censafe.publication.measurements.levels import write_noisy_measurements
from censafe.publication.stamps import STAMP
from censafe.results.measurements.files import level_files
from censafe.results.measurements.level import PublicAnswers, read_answers
from censafe.results.measurements.listing import ListedLevel, list_level, texts
from support.noisy_measurements import DIGEST, LAYOUT, SHAPES, constraints, measured, rewrite

Rows = list[dict[str, Any]]


@pytest.fixture
def level(tmp_path: Path) -> Path:
    path = tmp_path / "Tract.parquet"
    write_noisy_measurements(path, measured(), constraints=constraints(), layout=LAYOUT, plan_digest=DIGEST)
    return path


@dataclass(frozen=True, eq=False)
class Read:
    """All that is read of a level."""

    listed: ListedLevel
    answers: PublicAnswers
    stamped: bool


def read(
    path: Path, queries: Sequence[str] = LAYOUT.queries, shapes: Sequence[tuple[int, ...]] = SHAPES
) -> Read:
    files = level_files(path, "Tract")
    listed = list_level(files)
    return Read(
        listed, read_answers(files, list(files.measured), listed.codes, queries, shapes), files.stamp == STAMP
    )


def same_as_written(found: Read) -> None:
    wanted = measured()
    assert wanted.geounits.tolist() == texts(found.listed.codes).tolist()
    for one, two in zip(wanted.values, found.answers.values, strict=True):
        assert np.array_equal(one, two)
    assert np.array(wanted.variances)[wanted.kinds].tolist() == found.answers.variances.tolist()
    for one in constraints():
        assert one.sign == found.listed.constraints[one.name].sign
        assert np.array_equal(one.values, found.listed.constraints[one.name].values)


def test_our_own_files_are_read(level: Path) -> None:
    found = read(level)
    same_as_written(found)
    assert not found.stamped


def test_markers_wide_integers_any_order_and_any_number_of_files_are_read(level: Path) -> None:
    for table in ("DPQuery", "Constraint"):
        for state in ("State=01", "State=02"):
            file = level / table / state / "part-00000.parquet"
            held: Rows = []
            rewrite(file, lambda rows, held=held: held.extend(rows) or rows[::-1][: len(rows) // 2])
            other = file.with_name("8f3a.snappy.float.parquet")
            other.write_bytes(file.read_bytes())
            rewrite(other, lambda _, held=held: held[: len(held) - len(held) // 2])
            (level / table / state / "_SUCCESS").write_text("")
            (level / table / state / ".part-00000.parquet.crc").write_text("x")
    same_as_written(read(level))


def test_rows_of_a_geounit_after_one_another_and_odd_columns_are_read(level: Path) -> None:
    """As other engines write them: by geounit, the columns in another order, one more, folders within folders."""
    for table in ("DPQuery", "Constraint"):
        for state in ("State=01", "State=02"):
            file = level / table / state / "part-00000.parquet"
            rewrite(file, lambda rows: sorted(rows, key=lambda row: row["geocode"], reverse=True))
            held = pq.read_table(file, partitioning=None)
            codes = pa.array([code[:2] for code in held["geocode"].to_pylist()]).dictionary_encode()
            odd = held.select(held.column_names[::-1]).append_column("State", codes)
            file.unlink()
            inner = file.parent / "County=x" / "c000.snappy.parquet"
            inner.parent.mkdir()
            pq.write_table(odd, inner, row_group_size=3, use_dictionary=["geocode"])
    same_as_written(read(level))


def test_answers_beyond_32_bits_are_kept(tmp_path: Path) -> None:
    path, wide = tmp_path / "Tract.parquet", measured(wide=True)
    write_noisy_measurements(path, wide, constraints=constraints(), layout=LAYOUT, plan_digest=DIGEST)
    found = read(path).answers.values
    assert [one.dtype for one in found] == [np.int16, np.int64]
    assert np.array_equal(wide.values[1], found[1])


@pytest.mark.parametrize(
    ("largest", "kind"), [(2**15 - 1, np.int16), (2**15, np.int32), (-(2**31) - 1, np.int64)]
)
def test_answers_take_no_more_room_than_they_need(level: Path, largest: int, kind: type) -> None:
    change(level, "DPQuery", lambda rows: [{**rows[0], "value": [largest]}, *rows[1:]])
    found = read(level).answers.values
    assert found[0].dtype == kind
    wanted = measured().values[0].astype(np.int64)
    wanted[3] = largest
    assert np.array_equal(wanted, found[0])


@pytest.mark.parametrize("places", [("State=01",), ("State=02",), ("State=01", "State=02"), ()])
def test_folders_are_read_one_by_one(level: Path, places: tuple[str, ...]) -> None:
    files = level_files(level, "Tract")
    listed = list_level(files)
    assert listed.places == ("State=01", "State=02")
    assert listed.place.tolist() == [0, 0, 0, 1, 1, 1, 1]
    here = np.isin(np.array(listed.places)[listed.place], places)
    found = read_answers(files, places, listed.codes[here], LAYOUT.queries, SHAPES)
    for one, two in zip(measured().values, found.values, strict=True):
        assert np.array_equal(one[here], two)


def test_tables_of_which_one_has_no_folders_are_read_together(level: Path) -> None:
    for state in ("State=01", "State=02"):
        (level / "DPQuery" / state / "part-00000.parquet").rename(level / "DPQuery" / f"{state}.parquet")
        (level / "DPQuery" / state).rmdir()
    assert list_level(level_files(level, "Tract")).places == ("",)
    same_as_written(read(level))


def test_areas_that_only_one_table_has_are_named(level: Path) -> None:
    shutil.rmtree(level / "Constraint" / "State=02")
    with pytest.raises(
        DataError, match=r"level Tract, .*DPQuery: files in State=02, but none there in .*Constraint"
    ):
        read(level)


def test_a_geounit_in_two_folders_is_named(level: Path) -> None:
    held: Rows = []
    rewrite(level / "Constraint" / "State=01" / "part-00000.parquet", lambda rows: held.extend(rows) or rows)
    change(level, "Constraint", lambda rows: [*rows, *(row for row in held if row["geocode"] == "0102")])
    with pytest.raises(DataError, match=r"geounits in two folders \(1 rows\), geounits 0102; fix: remove"):
        read(level)


def test_a_figure_that_one_state_lacks_is_named(level: Path) -> None:
    change(level, "Constraint", lambda rows: [row for row in rows if row["query_name"] != "total_con"])
    with pytest.raises(DataError, match=r"total_con: geounits without a row \(4 rows\), geounits 0201, 0202"):
        read(level)


def test_files_without_a_column_are_named(level: Path) -> None:
    file = level / "DPQuery" / "State=02" / "part-00000.parquet"
    table = pq.read_table(file, partitioning=None)
    file.unlink()
    pq.write_table(table.drop(["variance"]), file)
    with pytest.raises(DataError, match="columns missing: variance"):
        read(level)
    pq.write_table(table.append_column("geocode", table["geocode"]), file)
    with pytest.raises(DataError, match="columns repeated: geocode"):
        read(level)
    pq.write_table(table.replace_schema_metadata({b"stamp": b"\x88"}), file)
    read(level)  # whose stamp is none of ours


def test_names_that_are_no_text_are_refused(level: Path) -> None:
    file = level / "Constraint" / "State=02" / "part-00000.parquet"
    table = pq.read_table(file, partitioning=None)
    names = table.schema.get_field_index("query_name")
    file.unlink()
    pq.write_table(table.set_column(names, "query_name", pa.array([True] * table.num_rows)), file)
    with pytest.raises(DataError, match="no Parquet file of noisy measurements"):
        read(level)
    file.unlink()
    pq.write_table(table.append_column("odd_name", table["geocode"]), file)
    file.write_bytes(file.read_bytes().replace(b"odd_name", b"odd_n\x95me"))
    with pytest.raises(DataError, match="no Parquet file of noisy measurements"):
        read(level)


def test_queries_of_one_shape_are_told_apart_by_their_names(level: Path) -> None:
    found = read(level, ("total", "race * age"))
    assert np.array_equal(measured().values[1], found.answers.values[1])
    with pytest.raises(DataError, match=r"no rows of other"):
        read(level, (*LAYOUT.queries, "other"), (*SHAPES, (2, 3)))


def change(level: Path, table: str, edit: Callable[[Rows], Rows]) -> None:
    rewrite(level / table / "State=02" / "part-00000.parquet", edit)


def first_variance(value: float | None) -> Callable[[Rows], Rows]:
    return lambda rows: [{**rows[0], "variance": value}, *rows[1:]]


WRONG: dict[str, tuple[str, Callable[[Rows], Rows], str]] = {
    "null variance": ("DPQuery", first_variance(None), r"variances that are missing, infinite .* \(1 rows\), geounits 0201"),
    "infinite variance": ("DPQuery", first_variance(float("inf")), r"variances that are missing, infinite"),
    "zero variance": ("DPQuery", first_variance(0.0), r"variances that are missing, infinite or not above 0"),
    "row twice": ("DPQuery", lambda rows: [*rows, rows[0]], r"total: rows there twice \(1 rows\), geounits 0201"),
    "constraint twice": ("Constraint", lambda rows: [*rows, rows[0]], r"age_total_ub_con: rows there twice .*0201"),
    "constraint missing": ("Constraint", lambda rows: rows[1:], r"age_total_ub_con: geounits without a row .*0201"),
    "other area": (
        "DPQuery",
        lambda rows: [{**row, "geocode": "09" + row["geocode"][2:]} for row in rows],
        r"geounits that the constraints lack \(8 rows\), geounits 0901, 0902, 0903, 0904",
    ),
    "partly": ("DPQuery", lambda rows: rows[1:], r"geounits with rows of some queries only \(1 rows\), geounits 0201"),
    "short value": (
        "DPQuery",
        lambda rows: [*rows[:-1], {**rows[-1], "value": [1, 2]}],
        r"age \* race: another number of answers than the shape has \(1 rows\), geounits 0204",
    ),
    "other product": (
        "DPQuery",
        lambda rows: [{**rows[0], "query_shape": [2, 1], "value": [1, 2], "query_name": "sex_dpq"}, *rows[1:]],
        r"sex_dpq with shape \(2, 1\) at geounit 0201 is no query that the configuration measures",
    ),
    "code length": (
        "Constraint",
        lambda rows: [*rows, {**rows[0], "geocode": "02011"}],
        r"codes of different lengths \(1 rows\), geounits 02011",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_wrong_rows_are_named(level: Path, case: str) -> None:
    table, edit, message = WRONG[case]
    change(level, table, edit)
    with pytest.raises(DataError, match=message) as caught:
        read(level)
    assert f"level Tract, {level / table}" in str(caught.value)


def test_missing_folders_and_broken_files_are_named(level: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"level Tract: there are no files in .*none/Constraint"):
        read(tmp_path / "none")
    file = level / "DPQuery" / "State=02" / "part-00000.parquet"
    file.chmod(0o644)
    file.write_bytes(file.read_bytes()[:-40])
    with pytest.raises(DataError, match="cut short or damaged"):
        read(level)
    file.write_text("no Parquet")
    with pytest.raises(DataError, match="no Parquet file"):
        read(level)


def test_a_level_without_measured_rows_is_left_to_the_tree(level: Path) -> None:
    for state in ("State=01", "State=02"):
        (level / "DPQuery" / state / "part-00000.parquet").unlink()
    assert np.isinf(read(level).answers.variances).all()
