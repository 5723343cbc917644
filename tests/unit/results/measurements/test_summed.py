"""Sums of answers of files whose rows are in any order: those of the stored answers, in one pass or in several."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from censafe.errors import DataError
from censafe.estimation.topdown.least_squares.objective import StoredAnswers
from censafe.model.topdown.answer_sums import AnswerSums
from censafe.publication.measurements.writer import write_noisy_measurements
from censafe.results.measurements.chosen import SummedAnswers, index_answers
from censafe.results.measurements.files import level_files
from censafe.results.measurements.listing import list_level
from support.noisy_measurements import DIGEST, LAYOUT, SHAPES, constraints, measured, rewrite

PATTERN = np.array([1, 0, -1, 0, 1, -1, 1])


@pytest.fixture(params=[False, True], ids=["32 bits", "64 bits"])
def wide(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture
def level(tmp_path: Path, wide: bool) -> Path:
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
    level: Path, wide: bool, most: int
) -> None:
    stored = StoredAnswers(measured(wide=wide).values)
    asked, seen = patterns(), []
    for geounits, sums in summed(level, most).rounds(asked, PATTERN):
        for geounit, found in zip(geounits.tolist(), sums, strict=True):
            expected = stored.sums(asked[PATTERN[geounit]], np.array([geounit]))[0]
            assert expected.tolist() == found.tolist()
            seen.append(geounit)
    assert seen == [1, 3, 0, 4, 6]


def test_each_round_reads_the_row_groups_of_its_geounits_alone(
    level: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from censafe.results.measurements import chosen as module

    source, real, read = summed(level), module.read_answer_rows, []

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


def test_short_rows_are_named_and_foreign_patterns_refused(level: Path) -> None:
    for file in sorted((level / "DPQuery" / "State=01").iterdir()):
        rewrite(file, lambda rows: [row | {"value": row["value"][:-1]} for row in rows])
    with pytest.raises(DataError, match="another number of answers than the shape has"):
        list(summed(level).rounds(patterns(), PATTERN))
    with pytest.raises(ValueError, match="share their slots"):
        list(summed(level).rounds([*patterns(), *patterns()], PATTERN))
    assert not list(summed(level).rounds(patterns(), np.full(7, -1)))
