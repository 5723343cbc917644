"""Some answers of noisy measurement files in one pass: those of the whole level, whatever row groups and files they are in."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from censafe.errors import DataError
from censafe.estimation.topdown.least_squares.objective import StoredAnswers
from censafe.model.topdown.answers import AnswerSums
from censafe.publication.measurements.levels import write_noisy_measurements
from censafe.results.measurements.chosen import (
    AnswerIndex,
    ChosenAnswers,
    SummedAnswers,
    index_answers,
    read_chosen,
)
from censafe.results.measurements.files import level_files
from censafe.results.measurements.listing import list_level
from support.noisy_measurements import DIGEST, LAYOUT, SHAPES, constraints, measured, rewrite


@pytest.fixture
def level(tmp_path: Path) -> Path:
    path = tmp_path / "Tract.parquet"
    write_noisy_measurements(path, measured(), constraints=constraints(), layout=LAYOUT, plan_digest=DIGEST)
    return path


def indexed(path: Path) -> AnswerIndex:
    files = level_files(path, "Tract")
    return index_answers(files, list(files.measured), list_level(files).codes, LAYOUT.queries, SHAPES)


def split(path: Path) -> None:
    """Rows in reverse, two in a row group."""
    for file in sorted((path / "DPQuery").rglob("*.parquet")):
        rewrite(file, lambda rows: rows[::-1])
        table = pq.ParquetFile(file).read()
        file.unlink()
        pq.write_table(table, file, row_group_size=2)


def test_the_index_knows_variances_and_where_rows_are(level: Path) -> None:
    split(level)
    found = indexed(level)
    assert np.array(measured().variances)[measured().kinds].tolist() == found.variances.tolist()
    spans = np.concatenate([found.spans[path] for path in sorted(found.spans)])
    assert spans.min() == 0
    assert spans.max() == 6
    assert (spans[:, 0] <= spans[:, 1]).all()
    assert len(spans) > 4


def test_chosen_answers_are_those_of_the_whole_level(level: Path) -> None:
    """Geounits 1 to 5 in two groups: the first asks for the total and two cells, the second for other cells alone."""
    split(level)
    chosen = ChosenAnswers(
        1, np.array([0, 0, 1, 1, 1]), (np.array([0, 1, 1]), np.array([0, 2, 5])),
        (np.array([0]), np.array([1, 4, 0, 3, 5])),
    )  # fmt: skip
    total, cells = read_chosen(indexed(level), chosen)
    values = measured().values
    assert values[0][1:3, 0].tolist() == total.tolist()
    expected = [*values[1][1, [1, 4]], *values[1][2, [1, 4]], *values[1][3:6][:, [0, 3, 5]].ravel()]
    assert expected == cells.tolist()
    assert chosen.starts(1).tolist() == [0, 2, 4, 7, 10, 13]
    assert chosen.last == 6


def test_answers_beyond_32_bits_are_chosen_whole(tmp_path: Path) -> None:
    path, wide = tmp_path / "Tract.parquet", measured(wide=True)
    write_noisy_measurements(path, wide, constraints=constraints(), layout=LAYOUT, plan_digest=DIGEST)
    chosen = ChosenAnswers(
        0, np.zeros(7, np.int64), (np.array([0, 0]), np.array([0, 6])), (np.zeros(0, np.int64), np.arange(6))
    )
    assert np.array_equal(wide.values[1].ravel(), read_chosen(indexed(path), chosen)[1])


def test_rows_of_another_length_and_rows_there_twice_are_named(level: Path) -> None:
    file = level / "DPQuery" / "State=01" / "part-00000.parquet"
    rewrite(file, lambda rows: [row | {"value": row["value"][:-1]} for row in rows])
    chosen = ChosenAnswers(
        0, np.zeros(7, np.int64), (np.array([0, 1]), np.array([0, 0])), (np.array([0]), np.zeros(0, np.int64))
    )
    with pytest.raises(
        DataError, match=r"total: another number of answers than the shape has .* geounits 0101"
    ):
        read_chosen(indexed(level), chosen)
    rewrite(file, lambda rows: [*rows, rows[0]])
    with pytest.raises(
        DataError, match=r"total: rows there twice \(1 rows\), geounits 0101; fix: remove them"
    ):
        indexed(level)


def test_a_missing_query_is_named_without_reading_answers(level: Path) -> None:
    for file in sorted((level / "DPQuery").rglob("*.parquet")):
        rewrite(file, lambda rows: [row for row in rows if row["query_name"] != "total_dpq"])
    with pytest.raises(DataError, match="no rows of total; fix: name a configuration"):
        indexed(level)


def test_sparse_figures_are_those_above_0_and_unwanted_ones_are_left_out(level: Path) -> None:
    files = level_files(level, "Tract")
    dense, few = list_level(files), list_level(files, (), ("age_total_ub",))
    assert dense.codes.tolist() == few.codes.tolist()
    assert not few.constraints
    assert {"age_total_ub"} == set(few.sparse)
    found, wanted = few.sparse["age_total_ub"], dense.constraints["age_total_ub"]
    assert (wanted.sign, 2) == (found.sign, found.figures)
    whole = np.zeros((7, 2), np.int64)
    whole[found.node, found.place] = found.value
    assert np.array_equal(wanted.values, whole)
    assert (found.value > 0).all()
    assert (np.diff(found.node) >= 0).all()


def test_sparse_figures_that_a_geounit_lacks_or_has_twice_are_named(level: Path) -> None:
    file = level / "Constraint" / "State=02" / "part-00000.parquet"
    rewrite(
        file,
        lambda rows: [row for row in rows if row["geocode"] != "0203" or row["query_name"] == "total_con"],
    )
    with pytest.raises(
        DataError, match=r"age_total_ub_con: geounits without a row \(1 rows\), geounits 0203"
    ):
        list_level(level_files(level, "Tract"), ("total",), ("age_total_ub",))
    rewrite(file, lambda rows: [row for row in rows if row["query_name"] == "total_con"])
    with pytest.raises(
        DataError, match=r"age_total_ub_con: geounits without a row \(4 rows\), geounits 0201"
    ):
        list_level(level_files(level, "Tract"), ("total",), ("age_total_ub",))


def test_folders_that_are_not_there_are_named_with_those_that_are(level: Path) -> None:
    assert list(level_files(level, "Tract", ("State=02", "State=002")).constraints) == ["State=02"]
    with pytest.raises(
        DataError, match=r"no files in State=39; the folders are State=01, State=02; fix: name a state"
    ):
        level_files(level, "Tract", ("State=39",))


# Sums of answers of files whose rows are in any order: those of the stored answers, in one pass or in several.


PATTERN = np.array([1, 0, -1, 0, 1, -1, 1])


@pytest.fixture(params=[False, True], ids=["32 bits", "64 bits"])
def wide(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture
def shuffled(tmp_path: Path, wide: bool) -> Path:
    """Rows in random order, two in a row group, those of a query in files of their own."""
    path = tmp_path / "Tract.parquet"
    found = measured(wide=wide)
    write_noisy_measurements(path, found, constraints=constraints(), layout=LAYOUT, plan_digest=DIGEST)
    rng = np.random.default_rng(3)
    for file in sorted((path / "DPQuery").rglob("*.parquet")):
        table = pq.ParquetFile(file).read()
        file.unlink()
        names = np.array(table["query_name"].to_pylist())
        for number, name in enumerate(np.unique(names).tolist()):
            rows = rng.permutation(np.flatnonzero(names == name))
            pq.write_table(table.take(rows), file.with_name(f"part-{number}.parquet"), row_group_size=2)
    return path


def summed(path: Path, most: int = 1 << 20) -> SummedAnswers:
    files = level_files(path, "Tract")
    codes = list_level(files).codes
    return SummedAnswers(index_answers(files, list(files.measured), codes, LAYOUT.queries, SHAPES), most)


def patterns() -> list[AnswerSums]:
    """All answers but one into four sums; the second pattern without the pieces of mark 1."""
    cells = int(np.prod(SHAPES[1]))
    slots = (np.zeros(1, np.int64), np.where(np.arange(cells) == 2, -1, 1 + np.arange(cells) % 3))
    marks = (np.zeros(1, np.int64), np.arange(cells) // (cells // 2))
    whole = AnswerSums.of(slots, marks)
    return [whole, whole.only(whole.first < cells // 2)]


@pytest.mark.parametrize("most", [1, 9, 1 << 20])
def test_sums_are_those_of_the_stored_answers_however_many_are_held(
    shuffled: Path, wide: bool, most: int
) -> None:
    stored = StoredAnswers(measured(wide=wide).values)
    asked, seen = patterns(), []
    for geounits, sums in summed(shuffled, most).rounds(asked, PATTERN):
        for geounit, found in zip(geounits.tolist(), sums, strict=True):
            expected = stored.sums(asked[PATTERN[geounit]], np.array([geounit]))[0]
            assert expected.tolist() == found.tolist()
            seen.append(geounit)
    assert seen == [1, 3, 0, 4, 6]


def test_each_round_reads_the_row_groups_of_its_geounits_alone(
    shuffled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from censafe.results.measurements import chosen as module

    source, real, read = summed(shuffled), module.read_answer_rows, []

    def counted(path, groups):  # type: ignore[no-untyped-def]
        read.extend((path, group) for group in groups)
        return real(path, groups)

    monkeypatch.setattr(module, "read_answer_rows", counted)
    only = np.where(np.arange(7) == 6, 0, -1)
    found = [geounits.tolist() for geounits, _ in source.rounds(patterns()[:1], only)]
    assert found == [[6]]
    groups = {(path, group) for path, spans in source.index.spans.items() for group in range(len(spans))}
    inside = {(path, group) for path, group in groups if source.index.spans[path][group, 1] == 6}
    assert sorted(inside) == sorted(read)
    assert len(read) < len(groups)


def test_short_rows_are_named_and_foreign_patterns_refused(shuffled: Path) -> None:
    for file in sorted((shuffled / "DPQuery" / "State=01").iterdir()):
        rewrite(file, lambda rows: [row | {"value": row["value"][:-1]} for row in rows])
    with pytest.raises(DataError, match="another number of answers than the shape has"):
        list(summed(shuffled).rounds(patterns(), PATTERN))
    with pytest.raises(ValueError, match="share their slots"):
        list(summed(shuffled).rounds([*patterns(), *patterns()], PATTERN))
    assert not list(summed(shuffled).rounds(patterns(), np.full(7, -1)))
