import numpy as np

from censafe.estimation.topdown.least_squares.objective import LevelObjective, reads_of_cells
from censafe.model.topdown.families import Families

CELLS, GEOUNITS = 60, 40


def objective(kinds=3, seed=1):
    rng = np.random.default_rng(seed)
    labels = [rng.integers(0, size, CELLS).astype(np.int32) for size in (1, 4, 25)]
    labels.append(np.arange(CELLS, dtype=np.int32))
    values = [rng.integers(-80, 80, (GEOUNITS, int(label.max()) + 1)).astype(np.int32) for label in labels]
    values[1] = values[1].astype(np.int64) << 40
    variances = rng.random((kinds, len(labels))) * 9 + 0.1
    variances[0, 2] = np.inf
    return LevelObjective.of(labels, variances, values, rng.integers(0, kinds, GEOUNITS).astype(np.int32))


def families(seed=2):
    """Parents of all sizes: of one cell, of no children, of many of both; children in a row."""
    rng = np.random.default_rng(seed)
    children, cells = [4, 1, 0, 20, 15], [7, 1, 3, 60, 12]
    return Families(
        np.cumsum([0, *children]).astype(np.int64),
        np.arange(sum(children), dtype=np.int64),
        np.cumsum([0, *cells]).astype(np.int64),
        np.concatenate([np.sort(rng.choice(CELLS, size, replace=False)) for size in cells]).astype(np.int32),
    )


def test_right_sides_of_many_parents_are_the_bits_of_one_parent_after_another():
    level, some = objective(), families()
    found, start = level.right_sides(some), 0
    for parent in range(some.parents):
        first, last = (int(one) for one in some.child_ptr[parent : parent + 2])
        support = some.cell[some.cell_ptr[parent] : some.cell_ptr[parent + 1]].astype(np.int64)
        size = (last - first) * len(support)
        if size:
            alone = level.equations(first, last, support)[2]
            assert np.array_equal(alone.reshape(-1), found[start : start + size])
        start += size
    assert start == len(found)


def test_children_need_not_be_all_of_them():
    level = objective()
    support = np.array([3, 8, 9, 40], np.int32)
    one = Families(
        np.array([0, 7]),
        np.arange(5, 12),
        np.array([0, len(support)]),
        np.ascontiguousarray(support, np.int32),
    )
    whole = level.right_sides(one).reshape(7, 4)
    some = Families(np.array([0, 3]), np.array([6, 7, 11]), np.array([0, 4]), support)
    assert np.array_equal(whole[[1, 2, 6]], level.right_sides(some).reshape(3, 4))


def test_exactly_the_answers_with_a_cell_are_wanted_once_and_rising():
    level, some = objective(), families()
    wanted, place = reads_of_cells(some, level.label_matrix)
    for parent in range(some.parents):
        answers = slice(int(wanted.answer_ptr[parent]), int(wanted.answer_ptr[parent + 1]))
        cells = slice(int(some.cell_ptr[parent]), int(some.cell_ptr[parent + 1]))
        expected = [
            (query, answer)
            for query, label in enumerate(level.labels)
            for answer in sorted(set(label[some.cell[cells]].tolist()))
        ]
        named = list(zip(wanted.query[answers].tolist(), wanted.answer[answers].tolist(), strict=True))
        assert expected == named
        for query, label in enumerate(level.labels):
            chosen = [named[one] for one in place[query, cells]]
            assert [(query, int(label[cell])) for cell in some.cell[cells]] == chosen
