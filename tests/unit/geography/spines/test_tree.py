"""The spine: levels from prefixes, sums along it, exact sums of shares, and parts of a tree as trees of their own."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from censafe.errors import BudgetError, DataError
from censafe.geography.geocodes import pack_geocodes, unpack_geocodes
from censafe.geography.spines.paths import LevelShares, check_path_sums
from censafe.geography.spines.sums import sum_histograms, sum_vectors
from censafe.geography.spines.tree import (
    E2E_1940,
    PL94_PR,
    PL94_US,
    LevelRule,
    build_spine,
    levels_above,
    subtree,
    subtrees,
)
from censafe.model.sparse import ExactHistograms, SparseLevel
from support.histograms import exact_level, public_level
from support.level_shares import even_shares

CODES = np.array(
    [
        "5000100010011001", "4400100010011000", "4400100010011001", "4400100010022000", "4400700030033001",
    ]
)  # fmt: skip


def _random_spine(seed: int, blocks: int = 400):
    stream = np.random.default_rng(seed)
    numbers = np.unique(stream.integers(0, 10**5, blocks))
    rules = (LevelRule("US", 0), LevelRule("A", 1), LevelRule("B", 3), LevelRule("C", 5))
    return build_spine(np.array([f"{number:05d}" for number in numbers]), rules)


def _random_histograms(spine, cells: int, seed: int) -> tuple[ExactHistograms, np.ndarray]:
    stream = np.random.default_rng(seed)
    dense = stream.poisson(0.3, (spine.leaf.nodes, cells)) * (stream.random((spine.leaf.nodes, 1)) < 0.7)
    return exact_level(spine.leaf.geounits, dense), dense


def test_levels_of_the_redistricting_spine_are_the_prefixes_in_order():
    spine = build_spine(CODES, PL94_US)
    assert spine.names == ("US", "State", "County", "Tract", "Block_Group", "Block")
    assert spine.levels[1].geounits.tolist() == ["44", "50"]
    assert spine.levels[2].geounits.tolist() == ["44001", "44007", "50001"]
    assert spine.leaf.geounits.tolist() == sorted(CODES.tolist())
    assert spine.levels[0].parent.tolist() == [-1]
    assert spine.levels[0].geounits.tolist() == [""]


def test_parents_and_children_point_at_each_other():
    spine = _random_spine(1)
    for above, below in zip(spine.levels, spine.levels[1:], strict=False):
        for node in range(above.nodes):
            children = range(above.first_child[node], above.first_child[node + 1])
            assert len(children) > 0
            assert (below.parent[children.start : children.stop] == node).all()
            assert all(below.geounits[c].startswith(above.geounits[node]) for c in children)
        assert above.first_child[-1] == below.nodes
    assert (spine.leaf.first_child == 0).all()


def test_ancestors_agree_with_walking_up():
    spine = _random_spine(2)
    walked = np.arange(spine.leaf.nodes)
    for depth in range(len(spine.levels) - 1, -1, -1):
        assert np.array_equal(spine.ancestors(depth), walked)
        walked = spine.levels[depth].parent[walked]


def test_a_parent_of_one_child_is_flagged():
    spine = build_spine(CODES, PL94_US)
    assert spine.levels[0].single_child.tolist() == [False]
    assert spine.levels[1].single_child.tolist() == [False, True]
    assert spine.levels[3].single_child.tolist() == [False, True, True]
    assert not spine.leaf.single_child.any()


def test_spine_of_1940_has_a_constant_at_its_root():
    spine = build_spine(np.array(["4400010001", "4400010002"]), E2E_1940)
    assert [level.geounits.tolist() for level in spine.levels] == [
        ["1"],
        ["44"],
        ["440001"],
        ["4400010001", "4400010002"],
    ]


def test_one_state_may_be_the_root_but_two_may_not():
    assert build_spine(CODES[1:], PL94_PR).levels[0].geounits.tolist() == ["44"]
    with pytest.raises(DataError, match="2 geounits at level State"):
        build_spine(CODES, PL94_PR)


@pytest.mark.parametrize(
    ("codes", "message"),
    [
        (["440010001001100"], "1 are not of the right form"),
        (["44001000100110000"], "1 are not of the right form"),
        (["44001000100110X0", "4400100010011000"], "1 are not of the right form"),
        (["4400100010011000", "4400100010011000"], "1 blocks are given twice"),
        ([], "no blocks"),
    ],
)
def test_geocodes_that_make_no_tree_are_refused(codes, message):
    with pytest.raises(DataError, match=message):
        build_spine(np.array(codes, np.str_), PL94_US)


def test_prefixes_that_do_not_grow_are_refused():
    with pytest.raises(ValueError, match="must grow"):
        build_spine(np.array(["44"]), (LevelRule("A", 2), LevelRule("B", 2)))


def test_geocodes_as_numbers_give_the_same_spine_and_round_trip():
    numbers = pack_geocodes(CODES, 16)
    assert unpack_geocodes(numbers, 16).tolist() == CODES.tolist()
    assert build_spine(numbers, PL94_US).leaf.geounits.tolist() == sorted(CODES.tolist())


@pytest.mark.parametrize("seed", range(3))
def test_histograms_add_up_as_a_dense_sum_does(seed):
    spine = _random_spine(seed)
    blocks, dense = _random_histograms(spine, 24, seed)
    summed = sum_histograms(spine, blocks, 24)
    for depth, (level, histograms) in enumerate(zip(spine.levels, summed, strict=True)):
        expected = np.zeros((level.nodes, 24), np.int64)
        np.add.at(expected, spine.ancestors(depth), dense)
        actual = np.zeros_like(expected)
        node = np.repeat(np.arange(level.nodes), np.diff(histograms.node_ptr))
        actual[node, histograms.cell] = histograms.count
        assert np.array_equal(expected, actual)
        assert len(histograms.cell) == np.count_nonzero(expected)
        rising = np.diff(histograms.cell.astype(np.int64) + 24 * node) > 0
        assert rising.all()
        assert isinstance(histograms, ExactHistograms)


def test_public_histograms_stay_public():
    spine = _random_spine(5)
    exact, _ = _random_histograms(spine, 6, 5)
    public = public_level(exact)
    assert all(isinstance(level, SparseLevel) for level in sum_histograms(spine, public, 6))


def test_sums_above_32_bits_and_strange_blocks_are_refused():
    spine = build_spine(np.array(["1", "2"]), (LevelRule("US", 0), LevelRule("Block", 1)))
    pointer, cell = np.array([0, 1, 2]), np.zeros(2, np.int32)
    large = SparseLevel(spine.leaf.geounits, pointer, cell, np.full(2, 2**30 + 1, np.int32))
    with pytest.raises(DataError, match="32 bits"):
        sum_histograms(spine, large, 1)
    other = SparseLevel(np.array(["1", "3"]), pointer, cell, np.ones(2, np.int32))
    with pytest.raises(ValueError, match="not those of the blocks"):
        sum_histograms(spine, other, 1)


def test_vectors_add_up_at_every_level():
    spine = _random_spine(6)
    values = np.random.default_rng(6).integers(0, 9, (spine.leaf.nodes, 8)).astype(np.int32)
    for depth, (level, sums) in enumerate(zip(spine.levels, sum_vectors(spine, values), strict=True)):
        expected = np.zeros((level.nodes, 8), np.int64)
        np.add.at(expected, spine.ancestors(depth), values)
        assert np.array_equal(expected, sums)
    with pytest.raises(ValueError, match="each block"):
        sum_vectors(spine, values[1:])


def test_even_shares_that_add_up_pass_and_others_do_not():
    spine = _random_spine(7)
    shares = (Fraction(104, 4099), Fraction(1440, 4099), Fraction(447, 4099), Fraction(2108, 4099))
    check_path_sums(spine, even_shares(spine, shares), Fraction(1))
    with pytest.raises(BudgetError, match=f"paths to {spine.leaf.nodes} of {spine.leaf.nodes}"):
        check_path_sums(spine, even_shares(spine, shares), Fraction(1) + Fraction(1, 10**30))


def test_a_passed_over_parent_gives_its_share_to_its_only_child():
    spine = _random_spine(8)
    third = Fraction(1, 4)
    shares = list(even_shares(spine, (third,) * 4))
    single = spine.levels[2].single_child
    assert single.any()
    assert not single.all()
    shares[2] = LevelShares((third, Fraction(0)), single.astype(np.int32))
    shares[3] = LevelShares((third, 2 * third), single[spine.leaf.parent].astype(np.int32))
    check_path_sums(spine, shares, Fraction(1))
    for too_much in (0, 1):
        one_wrong = shares[3].index.copy()
        one_wrong[np.flatnonzero(one_wrong != too_much)[0]] = too_much
        with pytest.raises(BudgetError, match="paths to 1 of"):
            check_path_sums(spine, [*shares[:3], LevelShares(shares[3].values, one_wrong)], Fraction(1))


def test_a_negative_share_is_refused_even_where_paths_add_up():
    spine = _random_spine(9)
    with pytest.raises(BudgetError, match="negative"):
        check_path_sums(
            spine, even_shares(spine, (Fraction(2), Fraction(-1), Fraction(0), Fraction(0))), Fraction(1)
        )


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
