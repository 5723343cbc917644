"""Spines of runs: parted states, optimized block groups, budgets that move, distances of areas from the spine, and what is refused."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from censafe.errors import BudgetError, DataError
from censafe.geography.grfc import BlockAreas
from censafe.geography.spines.choice import (
    BypassRule,
    SpineChoice,
    build_run_spine,
    entity_distances,
    inside_areas,
    standard_levels,
)
from censafe.geography.spines.paths import RunSpine, check_path_sums
from censafe.geography.spines.prim import block_groups
from censafe.geography.spines.sums import reordered, sum_histograms
from censafe.geography.spines.tree import PL94_PR, PL94_US, LevelRule, build_spine
from support.histograms import sparse_level
from support.topdown_areas import block_codes, random_areas

SHARES = {"persons": tuple(Fraction(n, 36) for n in (1, 2, 3, 5, 10, 15))}
GAUSSIAN = BypassRule(pure=False)


def a_spine(name: str, bypass: BypassRule | None = None, *, seed: int = 1, patterns: bool = True) -> RunSpine:
    rng = np.random.default_rng(seed)
    codes = block_codes((4, 44, 48), rng)
    kinds = rng.integers(0, 3, len(codes)) if patterns else None
    areas = random_areas(codes, rng)
    return build_run_spine(build_spine(codes, PL94_US), SpineChoice(name, bypass, SHARES), areas, kinds)


def path_of_blocks(run: RunSpine) -> np.ndarray:
    """Exact sums of shares on the path of every block, walked block by block."""
    sums = []
    for block in range(run.spine.leaf.nodes):
        node, total = block, Fraction(0)
        for level, shares in zip(run.spine.levels[::-1], run.shares["persons"][::-1], strict=True):
            total += shares.values[shares.index[node]]
            node = int(level.parent[node])
        sums.append(total)
    return np.array(sums)


@pytest.mark.parametrize("name", ["standard", "aian", "optimized"])
@pytest.mark.parametrize("rule", [None, GAUSSIAN, BypassRule(pure=True)])
def test_levels_nest_and_every_path_spends_the_total(name, rule):
    run = a_spine(name, rule)
    spine = run.spine
    assert spine.names == run.standard.names
    for above, below in zip(spine.levels, spine.levels[1:], strict=False):
        children = np.repeat(np.arange(above.nodes), np.diff(above.first_child))
        assert np.array_equal(children, below.parent)
        assert (np.diff(above.first_child) > 0).all()
        assert len(np.unique(below.geounits)) == below.nodes
        if name != "standard":
            prefix = np.char.startswith(below.geounits, above.geounits[below.parent])
            assert prefix.all()
    assert set(path_of_blocks(run)) == {Fraction(1)}


@pytest.mark.parametrize("name", ["aian", "optimized"])
def test_states_are_parted_by_areas_and_blocks_keep_their_codes(name):
    run = a_spine(name)
    blocks = run.spine.leaf.geounits
    assert sorted(text[-16:] for text in blocks.tolist()) == run.standard.leaf.geounits.tolist()
    assert np.array_equal(run.standard.leaf.codes[run.order], run.spine.leaf.codes)
    rng = np.random.default_rng(1)
    codes = block_codes((4, 44, 48), rng)
    rng.integers(0, 3, len(codes))
    inside = inside_areas(random_areas(codes, rng).aiannh)[run.order]
    assert [text[0] for text in blocks.tolist()] == [str(int(flag)) for flag in inside]
    assert run.spine.levels[1].geounits.tolist() == ["004", "044", "048", "104", "144", "148"]
    assert [len(level.geounits[0]) for level in run.spine.levels] == [0, 3, 9, 13, 15, 31]
    assert all(text[3:5] == "10" for text in run.spine.levels[2].geounits.tolist())


def test_optimized_block_groups_have_one_entity_area_and_pattern_and_are_short_enough():
    rng = np.random.default_rng(1)
    codes = block_codes((4, 44, 48), rng)
    kinds = rng.integers(0, 3, len(codes))
    areas = random_areas(codes, rng)
    choice = SpineChoice("optimized", None, SHARES, fanout_cutoff=0)
    run = build_run_spine(build_spine(codes, PL94_US), choice, areas, kinds)
    spine = run.spine
    group, tract = spine.ancestors(4), spine.ancestors(3)
    blocks = np.bincount(tract)
    inside = inside_areas(areas.aiannh)
    for node in range(spine.levels[4].nodes):
        members = run.order[group == node]
        own = tract[group == node][0]
        assert len(members) <= int(np.sqrt(blocks[own])) + 1
        state, flag = codes[members][0] // 10**14, inside[members][0]
        entity = areas.cousub if state == 44 and not flag else areas.place
        keys = {(int(entity[b]), int(areas.aiannh[b]) if flag else 9999, int(kinds[b])) for b in members}
        assert len(keys) == 1
        assert members.tolist() == sorted(members.tolist())


def test_patterns_play_no_part_without_persons():
    run = a_spine("optimized", patterns=False)
    assert run.spine.levels[4].nodes < a_spine("optimized").spine.levels[4].nodes


def test_a_bypassed_parent_takes_the_share_of_its_only_child():
    codes = np.array([4_001_000100_1_1000, 4_001_000100_2_2000, 4_001_000100_2_2001, 4_001_000200_1_1000])
    run = build_run_spine(build_spine(codes, PL94_US), SpineChoice("standard", GAUSSIAN, SHARES))
    texts = [[shares.values[i] * 36 for i in shares.index] for shares in run.shares["persons"]]
    # US -> State -> County -> {tract of two block groups, tract of one block}: the first three hold one child each
    assert texts == [[6], [0], [0], [5, 30], [25, 10, 0], [0, 15, 15, 0]]
    assert run.spine is run.standard


def test_pure_dp_splits_a_parent_whose_children_hold_more():
    rules = (LevelRule("US", 0), LevelRule("A", 1), LevelRule("B", 2), LevelRule("C", 3))
    tree = build_spine(np.array(["100", "101", "110", "200", "201", "300"]), rules)
    shares = {"persons": tuple(Fraction(n, 10) for n in (1, 2, 3, 4))}
    rule = BypassRule(pure=True, most_children=4)
    run = build_run_spine(tree, SpineChoice("standard", rule, shares))
    # area 1 would give the root five children, area 2 gives it four
    assert run.spine.levels[1].geounits.tolist() == ["10", "20", "21", "30"]
    assert run.spine.levels[2].geounits.tolist() == ["100", "101", "110", "200", "201", "300"]
    assert run.spine.leaf.geounits.tolist() == tree.leaf.geounits.tolist()
    assert run.spine.levels[0].first_child.tolist() == [0, 4]
    fewer = build_run_spine(tree, SpineChoice("standard", BypassRule(pure=True, most_children=3), shares))
    assert fewer.spine.levels[1].geounits.tolist() == ["1", "2", "3"]


def test_a_parent_is_split_only_where_every_histogram_gains():
    rules = (LevelRule("US", 0), LevelRule("A", 1), LevelRule("B", 2))
    tree = build_spine(np.array(["10", "11", "12", "20", "21"]), rules)
    gains = (Fraction(1, 5), Fraction(1, 5), Fraction(3, 5))
    even = (Fraction(1, 5), Fraction(3, 5), Fraction(1, 5))
    rule = BypassRule(pure=True)
    alone = build_run_spine(tree, SpineChoice("standard", rule, {"persons": gains}))
    both = build_run_spine(tree, SpineChoice("standard", rule, {"persons": gains, "units": even}))
    assert alone.spine.levels[1].nodes == 5
    assert both.spine.levels[1].nodes == 2


@pytest.mark.parametrize("name", ["aian", "optimized"])
def test_what_is_published_are_sums_over_the_standard_levels(name):
    run = a_spine(name, GAUSSIAN)
    rng = np.random.default_rng(3)
    blocks = sparse_level(run.standard.leaf.geounits, rng.poisson(0.6, (run.standard.leaf.nodes, 7)))
    expected = sum_histograms(run.standard, blocks, 7)
    walked = sum_histograms(run.spine, reordered(blocks, run.order, run.spine.leaf.geounits), 7)
    for level, held in zip(expected, standard_levels(run, walked, 7), strict=True):
        assert np.array_equal(level.geounits, held.geounits)
        assert np.array_equal(level.node_ptr, held.node_ptr)
        assert np.array_equal(level.cell, held.cell)
        assert np.array_equal(level.count, held.count)
    with pytest.raises(ValueError, match="once"):
        reordered(blocks, np.zeros(run.standard.leaf.nodes, np.int64), run.standard.leaf.geounits)


def test_a_run_of_one_state_has_two_roots():
    rng = np.random.default_rng(5)
    codes = block_codes((4,), rng)
    shares = {"persons": (Fraction(1, 5),) * 5}
    choice = SpineChoice("optimized", GAUSSIAN, shares)
    run = build_run_spine(build_spine(codes, PL94_PR), choice, random_areas(codes, rng))
    assert run.spine.levels[0].geounits.tolist() == ["004", "104"]
    assert run.spine.levels[0].parent.tolist() == [-1, -1]


def test_ranges_of_codes_tell_areas_apart():
    codes = np.array([1, 4799, 4800, 4989, 5000, 5999, 6000, 7999, 8000, 8999, 9000, 9499, 9500, 9998, 9999])
    expected = [True] * 8 + [False, False, True, True, False, False, False]
    assert inside_areas(codes.astype(np.int32)).tolist() == expected


@pytest.mark.parametrize("code", [4990, 4999, 0, -1, 10000])
def test_codes_of_no_area_are_refused(code):
    with pytest.raises(DataError, match="1 blocks have codes of no type of area"):
        inside_areas(np.array([9999, code], np.int32))


def test_areas_must_be_there_and_be_those_of_the_blocks():
    rng = np.random.default_rng(1)
    codes = block_codes((4,), rng)
    spine, areas = build_spine(codes, PL94_US), random_areas(codes, rng)
    with pytest.raises(DataError, match="does not say in which American Indian area"):
        build_run_spine(spine, SpineChoice("aian", None, SHARES))
    fewer = BlockAreas(codes[1:], areas.aiannh[1:], areas.place[1:], areas.cousub[1:])
    with pytest.raises(DataError, match=rf"1 blocks of the data have no areas .* {codes[0]:016d}"):
        build_run_spine(spine, SpineChoice("aian", None, SHARES), fewer)


def test_a_path_that_spends_too_much_is_refused():
    run = a_spine("optimized", GAUSSIAN)
    with pytest.raises(BudgetError, match="do not add up to 35/36"):
        check_path_sums(run.spine, run.shares["persons"], Fraction(35, 36))


def test_runs_of_a_group_are_cut_at_the_fanout():
    order, starts = block_groups(np.array([0]), np.zeros(10, np.int64), 0)
    assert order.tolist() == list(range(10))
    assert np.diff(starts, append=10).tolist() == [4, 4, 2]  # int(sqrt(10) + 0) + 1


RULES = (LevelRule("US", 0), LevelRule("State", 1), LevelRule("Tract", 2), LevelRule("Block", 3))
TREES = (
    ("111", "112", "113", "121", "122", "211", "212", "213"),
    ("111", "112", "113", "114", "115", "116"),
    ("111", "121", "131", "211", "311"),
    ("111",),
)


@pytest.mark.parametrize("codes", TREES)
def test_every_subset_has_the_least_sum_of_coefficients(codes):
    spine = build_spine(np.array(codes), RULES)
    chains = [spine.ancestors(depth) for depth in range(3)]
    sizes = [level.nodes for level in spine.levels[:-1]]
    # coefficients of the geounits above the blocks; those of the blocks follow from them
    grid = np.array(list(product((-1, 0, 1), repeat=sum(sizes))))
    edges = np.cumsum([0, *sizes])
    covered = sum(grid[:, edges[d] : edges[d + 1]][:, chains[d]] for d in range(3))
    price = np.abs(grid).sum(axis=1)
    for bits in range(1, 1 << len(codes)):
        members = bits >> np.arange(len(codes)) & 1
        least = int((price + np.abs(members - covered).sum(axis=1)).min())
        areas, distances = entity_distances(spine, np.where(members, 7, -1))
        assert areas.tolist() == [7]
        assert distances.tolist() == [least]


def test_several_areas_at_once_have_the_distances_that_they_have_alone():
    rng = np.random.default_rng(8)
    spine = build_spine(np.array([f"{code:03d}" for code in rng.choice(1000, 300, replace=False)]), RULES)
    entity = rng.integers(-1, 9, 300)
    areas, distances = entity_distances(spine, entity)
    for area, distance in zip(areas.tolist(), distances.tolist(), strict=True):
        assert entity_distances(spine, np.where(entity == area, 3, -1))[1].tolist() == [distance]


def test_no_area_has_no_distance():
    spine = build_spine(np.array(TREES[0]), RULES)
    areas, distances = entity_distances(spine, np.full(8, -1))
    assert len(areas) == len(distances) == 0
