"""Answers of public files that are read when parents need them: those of the stored level, whatever is read at once and by whom."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from censafe.errors import DataError
from censafe.estimation.topdown.least_squares.objective import StoredAnswers
from censafe.geography.grfc import BlockAreas
from censafe.geography.spines.choice import SpineChoice, build_run_spine
from censafe.geography.spines.tree import PL94_US, SpineLevel, build_spine
from censafe.model import SparseLevel
from censafe.model.topdown.answers import AnswerReads
from censafe.products.topdown.public import file_answers
from censafe.products.topdown.public.file_answers import FileAnswers
from censafe.products.topdown.public.files import spine_above_blocks, spine_of_files
from censafe.products.topdown.public.tables import areas_above_blocks
from censafe.publication.measurements.levels import write_noisy_measurements
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


# The tree over codes of public files.


FOLDER = Path("files")
BLOCKS = np.array(
    [
        state * 10**14 + county * 10**11 + tract * 10**5 + 10**4 + block
        for state in (35, 40) for county in (1, 3) for tract in (100, 200) for block in (1000, 1001, 1002)
    ],
    np.int64,
)  # fmt: skip


def spine_of(geounits, rules, folder=FOLDER):  # type: ignore[no-untyped-def]
    """The tree of codes given as text, which may be of several lengths only from level to level."""
    codes = [
        np.array([list(code.encode()) for code in level.tolist()], np.uint8).reshape(len(level), -1)
        for level in geounits
    ]
    return spine_of_files(codes, rules, folder)


def parted() -> tuple[list[np.ndarray], object]:
    rng = np.random.default_rng(2)
    none = np.full(len(BLOCKS), 99999, np.int32)
    areas = BlockAreas(BLOCKS, np.where(rng.random(len(BLOCKS)) < 0.4, 10, 9999).astype(np.int32), none, none)
    run = build_run_spine(build_spine(BLOCKS, PL94_US), SpineChoice("optimized", None, {}), areas)
    return [level.geounits for level in run.spine.levels], run


def test_the_tree_of_a_parted_spine_comes_back_from_its_codes() -> None:
    codes, run = parted()
    found = spine_of(codes, PL94_US)
    for one, other in zip(run.spine.levels, found.spine.levels, strict=True):  # type: ignore[attr-defined]
        assert one.geounits.tolist() == other.geounits.tolist()
        assert one.parent.tolist() == other.parent.tolist()
        assert one.first_child.tolist() == other.first_child.tolist()
    assert run.order.tolist() == found.order.tolist()  # type: ignore[attr-defined, union-attr]
    assert BLOCKS.tolist() == found.standard.leaf.codes.tolist()


def test_the_widths_of_codes_come_from_the_files() -> None:
    """A larger fan-out takes more digits; nothing but the last 16 of a block is fixed."""
    codes, run = parted()
    wider = [
        np.array([code[:9] + "0" + code[9:] if depth > 2 else code for code in level.tolist()])
        for depth, level in enumerate(codes)
    ]
    found = spine_of(wider, PL94_US)
    assert [level.prefix_digits + level.digits for level in found.spine.levels] == [
        len(level[0]) for level in wider
    ]
    for one, other in zip(run.spine.levels, found.spine.levels, strict=True):  # type: ignore[attr-defined]
        assert one.parent.tolist() == other.parent.tolist()
    assert found.spine.leaf.geounits.tolist() == wider[-1].tolist()


def test_standard_codes_give_the_standard_tree() -> None:
    standard = build_spine(BLOCKS, PL94_US)
    found = spine_of([level.geounits for level in standard.levels], PL94_US)
    assert found.spine is found.standard
    assert found.order is None


def test_codes_that_are_not_nested_or_no_digits_are_named() -> None:
    codes = parted()[0]
    with pytest.raises(
        DataError, match=r"level Tract, files: codes begin with that of no geounit .* such as"
    ):
        spine_of([*codes[:2], codes[2][1:], *codes[3:]], PL94_US)
    with pytest.raises(
        DataError, match=r"level County, files: no geounit lies in those of level State \(1 geounits\)"
    ):
        last = codes[1][-1]
        keep = [
            np.array([code for code in level.tolist() if not code.startswith(last)]) for level in codes[2:]
        ]
        spine_of([*codes[:2], *keep], PL94_US)
    wrong = np.char.replace(codes[5], codes[5][0][-4:], "10x0", count=1)
    with pytest.raises(DataError, match="codes have other characters than the configuration says"):
        spine_of([*codes[:5], wrong], PL94_US)
    short = [np.array([""]), *(np.array([f"1{'0' * depth}"]) for depth in range(5))]
    with pytest.raises(DataError, match="codes have 5 digits; allowed: 16 or more"):
        spine_of(short, PL94_US)


@pytest.mark.parametrize("blocks_inside", [True, False])
def test_files_without_blocks_make_up_states_and_counties_that_no_area_divides(blocks_inside: bool) -> None:
    """State 35 has no block in an American Indian area; which county such blocks of state 40 lie in, codes above the blocks do not say."""
    none = np.full(len(BLOCKS), 99999, np.int32)
    inside = (np.arange(len(BLOCKS)) % 5 == 0) & (BLOCKS // 10**14 == 40) & blocks_inside
    areas = BlockAreas(BLOCKS, np.where(inside, 10, 9999).astype(np.int32), none, none)
    whole = build_run_spine(build_spine(BLOCKS, PL94_US), SpineChoice("optimized", None, {}), areas)
    names = [level.geounits for level in whole.spine.levels[1:3]]
    codes = [np.array([list(code.encode()) for code in level.tolist()], np.uint8) for level in names]
    run = spine_above_blocks(codes, PL94_US[1:3], FOLDER)
    assert names[1].tolist() == run.spine.leaf.geounits.tolist()
    assert run.standard.levels[1].geounits.tolist() == ["35", "40"]
    (state, county), remarks = areas_above_blocks(run)
    held = [("35", "40")[one] for one in state.area_of.tolist()]
    assert [code[1:3] for code in names[1].tolist()] == held
    expected = ["35001", "35003"] if blocks_inside else ["35001", "35003", "40001", "40003"]
    assert expected == county.codes.tolist()
    for code, area in zip(names[1].tolist(), county.area_of.tolist(), strict=True):
        own = code[1:3] + code[5:8]
        assert (own in expected and code[3:5] == "10") == (area >= 0)
        assert area < 0 or county.codes[area] == own
    assert (["2 counties of 1 states that American Indian areas divide (40)" in one for one in remarks]) == (
        [True] if blocks_inside else []
    )
