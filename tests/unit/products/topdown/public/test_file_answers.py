"""Answers of public files that are read when parents need them: those of the stored level, whatever is read at once and by whom."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from censafe.estimation.topdown.least_squares.objective import StoredAnswers
from censafe.geography.spines.tree import SpineLevel
from censafe.model import SparseLevel
from censafe.model.topdown.families import AnswerReads
from censafe.products.topdown.public import file_answers
from censafe.products.topdown.public.file_answers import FileAnswers
from censafe.publication.measurements.writer import write_noisy_measurements
from censafe.results.measurements.chosen import index_answers
from censafe.results.measurements.files import level_files
from censafe.results.measurements.listing import list_level
from support.noisy_measurements import DIGEST, LAYOUT, SHAPES, constraints, measured

LABELS = (np.zeros(6, np.int32), np.arange(6, dtype=np.int32))
CHILDREN = np.array([0, 3, 4, 7])
SUPPORT = ([1, 4], [2], [0, 3, 5])


@pytest.fixture
def files(tmp_path: Path) -> Path:
    path = tmp_path / "Tract.parquet"
    write_noisy_measurements(path, measured(), constraints=constraints(), layout=LAYOUT, plan_digest=DIGEST)
    return path


def answers(path: Path, *, root: bool = False, most: int = 1 << 20) -> FileAnswers:
    """Seven geounits of three parents, the first and half of the second folder's."""
    found = level_files(path, "Tract")
    listed = list_level(found)
    index = index_answers(found, list(found.measured), listed.codes, LAYOUT.queries, SHAPES)
    cells = np.array([cell for own in SUPPORT for cell in own], np.int32)
    parents = SparseLevel(np.array(["a", "b", "c"]), np.array([0, 2, 3, 6]), cells, np.ones(6, np.int32))
    above = SpineLevel("County", 2, "", np.arange(3), np.zeros(3, np.int32), CHILDREN)
    return FileAnswers(index, LABELS, listed.place, None if root else parents, None if root else above, most)


def wanted(parent: int, cells: list[int] | None = None) -> AnswerReads:
    """What the estimate of a parent asks for."""
    chosen = SUPPORT[parent] if cells is None else cells
    child = np.arange(CHILDREN[parent], CHILDREN[parent + 1])
    query = np.array([0] + [1] * len(chosen), np.int32)
    return AnswerReads(
        np.array([0, len(child)]), child, np.array([0, len(query)]), query, np.array([0, *chosen], np.int32)
    )


@pytest.mark.parametrize("most", [1, 8, 1 << 20])
@pytest.mark.parametrize("workers", [1, 3])
def test_answers_are_those_of_the_stored_level(files: Path, most: int, workers: int) -> None:
    source, stored = answers(files, most=most), StoredAnswers(measured().values)
    with ThreadPoolExecutor(workers) as pool:
        for parent, found in enumerate(pool.map(source.gather, map(wanted, range(3)))):
            assert stored.gather(wanted(parent)).tolist() == found.tolist()


def test_a_folder_is_read_once_and_no_further(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second parent lies in the folder of the third; the first one in another."""
    read, spans = file_answers.read_chosen, []

    def counted(index, chosen):  # type: ignore[no-untyped-def]
        spans.append((chosen.first, chosen.last))
        return read(index, chosen)

    monkeypatch.setattr(file_answers, "read_chosen", counted)
    source = answers(files)
    for parent in (0, 2, 0):
        source.gather(wanted(parent))
    assert spans == [(0, 3), (4, 7)]


def test_a_root_and_a_changed_parent_get_what_they_ask_for(files: Path) -> None:
    stored = StoredAnswers(measured().values)
    assert stored.gather(wanted(0)).tolist() == answers(files, root=True).gather(wanted(0)).tolist()
    other = wanted(2, [1, 2])
    assert stored.gather(other).tolist() == answers(files).gather(other).tolist()
    one = answers(files).answers(1, 4, 6, np.array([0, 5]))
    assert measured().values[1][4:6][:, [0, 5]].tolist() == one.tolist()
