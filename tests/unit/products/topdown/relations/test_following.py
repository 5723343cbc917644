"""Housing units that follow the households of their blocks."""

import numpy as np
import pytest

from censafe.estimation.topdown.operator.parent import level_sums
from censafe.model import SparseLevel
from censafe.products.topdown.relations.blocks import following
from support.histograms import sparse_level

LABEL = np.array([0, 1, 2, 2, -1, -1], np.int32)


def world(seed: int, blocks: int = 200) -> tuple[SparseLevel, np.ndarray]:
    """Random blocks over six cells, and sums that a third of them do not have."""
    rng = np.random.default_rng(seed)
    dense = rng.poisson(1.5, (blocks, len(LABEL)))
    level = sparse_level(np.array([f"{n:04}" for n in range(blocks)]), dense)
    wanted = level_sums(level, LABEL, 3)
    change = rng.random(blocks) < 0.3
    wanted[change] = rng.permuted(wanted[change], axis=1)
    return level, wanted


def dense_of(level: SparseLevel) -> np.ndarray:
    found = np.zeros((level.nodes, len(LABEL)), np.int64)
    found[np.repeat(np.arange(level.nodes), np.diff(level.node_ptr)), level.cell] = level.count
    return found


@pytest.mark.parametrize("seed", range(5))
def test_sums_are_those_wanted_and_the_rest_stays(seed: int) -> None:
    level, wanted = world(seed)
    found = following(level, LABEL, wanted)
    assert np.array_equal(level_sums(found, LABEL, 3), wanted)
    before, after = dense_of(level), dense_of(found)
    assert np.array_equal(before[:, LABEL < 0], after[:, LABEL < 0])
    same = (level_sums(level, LABEL, 3) == wanted).all(axis=1)
    assert same.any() and not same.all()
    assert np.array_equal(before[same], after[same])
    assert (found.count > 0).all()
    assert all(
        (np.diff(found.cell[first:last]) > 0).all()
        for first, last in zip(found.node_ptr, found.node_ptr[1:], strict=False)
    )


def test_cells_of_a_group_share_its_change_as_all_blocks_do() -> None:
    """A thousand blocks that get a record each, where one of ten records is of the second cell."""
    blocks = 1001
    counts = np.array([900, 100], np.int32)
    level = SparseLevel(
        np.array([f"{n:04}" for n in range(blocks)]),
        np.array([0, *([2] * blocks)]),
        np.array([2, 3], np.int32),
        counts,
    )
    wanted = np.zeros((blocks, 3), np.int64)
    wanted[0, 2], wanted[1:, 2] = 1000, 1
    found = dense_of(following(level, LABEL, wanted))
    assert found[0].tolist() == [0, 0, 900, 100, 0, 0]
    assert abs(int(found[1:, 3].sum()) - 100) <= 2
