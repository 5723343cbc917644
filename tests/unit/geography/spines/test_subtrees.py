"""Parts of a tree as trees of their own."""

from itertools import pairwise

import numpy as np
import pytest

from censafe.geography.spines.tree import PL94_US, build_spine, levels_above, subtree, subtrees

BLOCKS = np.array(
    [
        f"{state:02}{county:03}{tract:06}{group}{group}{block:03}"
        for state, counties in ((1, 2), (2, 1), (4, 3), (5, 1))
        for county in range(1, counties + 1)
        for tract in range(1, county + 2)
        for group in (1, 2)
        for block in range(group + 1)
    ]
)
SPINE = build_spine(BLOCKS, PL94_US)


@pytest.mark.parametrize(("first", "last"), [(0, 1), (1, 3), (3, 4), (0, 4)])
def test_a_part_is_the_tree_of_its_blocks(first: int, last: int) -> None:
    part = subtree(SPINE, 1, first, last)
    found = part.spine(SPINE)
    codes = SPINE.levels[1].geounits[first:last].tolist()
    wanted = build_spine(np.array([block for block in BLOCKS if block[:2] in codes]), PL94_US)
    assert part.name == codes[0]
    assert found.names == tuple(rule.name for rule in PL94_US[1:])
    for one, other in zip(wanted.levels[1:], found.levels, strict=True):
        assert one.geounits.tolist() == other.geounits.tolist()
        assert one.first_child.tolist() == other.first_child.tolist()
    assert found.levels[0].parent.tolist() == [-1] * (last - first)
    for one, other in zip(wanted.levels[2:], found.levels[1:], strict=True):
        assert one.parent.tolist() == other.parent.tolist()


def test_parts_keep_together_what_has_common_files() -> None:
    alone = subtrees(SPINE, 1, ())
    assert [part.spans[0] for part in alone] == [(0, 1), (1, 2), (2, 3), (3, 4)]
    assert [part.spans[-1] for part in alone][1:] == [
        (one.spans[-1][1], other.spans[-1][1]) for one, other in pairwise(alone)
    ]
    joined = subtrees(SPINE, 1, [np.array([2, 1]), np.array([2]), np.zeros(0, np.int64)])
    assert [part.spans[0] for part in joined] == [(0, 1), (1, 3), (3, 4)]
    assert [part.spans[0] for part in subtrees(SPINE, 1, [np.array([0, 3])])] == [(0, 4)]


def test_the_levels_above_have_nothing_below() -> None:
    found = levels_above(SPINE, 1)
    assert found.names == ("US", "State")
    assert found.leaf.first_child.tolist() == [0] * 5
    assert found.leaf.parent.tolist() == SPINE.levels[1].parent.tolist()
