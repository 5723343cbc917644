"""Published counts of facilities decide who can live where: against dictionaries, and against every split there is."""

from dataclasses import replace
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest

from censafe.errors import CheckError, DataError
from censafe.estimation.topdown.operator.facilities import FacilityRule, facility_sums
from censafe.estimation.topdown.operator.settle import split_open
from support.facilities import (
    AGE,
    CELLS,
    KIND,
    KINDS,
    MAJOR,
    RACE,
    RACES,
    Housed,
    housed,
    reachable,
    rule,
    slow_sums,
)


def sums(given, minimum=1):
    both = facility_sums(given.spine, given.published, given.facilities, rule(minimum))
    return [SimpleNamespace(decided=decided, open=rows) for decided, rows in zip(*both, strict=True)]


@pytest.mark.parametrize("minimum", [0, 1])
@pytest.mark.parametrize("seed", range(8))
def test_sums_equal_to_dictionaries(seed, minimum):
    given = housed(seed, (2, 3, 2))
    _, published, kind = rule().groups()
    for depth, found in enumerate(sums(given, minimum)):
        decided, opened, least = slow_sums(given, depth, minimum)
        level = found.decided
        node = np.repeat(np.arange(level.nodes), np.diff(level.node_ptr))
        keys = zip(node.tolist(), published[level.cell].tolist(), kind[level.cell].tolist(), strict=True)
        assert decided == dict(zip(keys, level.count.tolist(), strict=True))
        rows = found.open
        keys = zip(
            rows.area.tolist(), rows.place.tolist(), rows.kinds.tolist(), rows.published.tolist(), strict=True
        )
        assert opened == dict(zip(keys, rows.count.tolist(), strict=True))
        assert least == {(a, b, k): n for a, b, k, n in rows.least.tolist()}
        nodes = given.spine.levels[depth].nodes
        assert rows.pointer.tolist() == [int((rows.area < n).sum()) for n in range(nodes + 1)]
        assert rows.least_pointer.tolist() == [int((rows.least[:, 0] < n).sum()) for n in range(nodes + 1)]


GROUPS = {(int(MAJOR[k]) * RACES + r, k): r * KINDS + k for k in range(KINDS) for r in range(RACES)}


def accepted(found, span, total):
    """The split of open records of consecutive geounits to a total (race by kind); None where there is none."""
    wanted = np.zeros((span[1] - span[0], RACES * KINDS))
    return split_open(replace(found.open, split=None), span, GROUPS, wanted, np.array(total, np.int64))


def open_of(given, area, depth):
    place = given.blocks_of(depth)
    return [
        (kinds, races)
        for block, kinds, races in given.sums_of_blocks()
        if place[block] == area and len(kinds) > 1
    ]


def candidates(records):
    """All splits of open records by race among the kinds of the second group, within some records of each."""
    total = [sum(races[race] for _, races in records) for race in range(RACES)]
    for one, two in product(*(range_of(number) for number in total)):
        yield (0, *one, 0, *two)


def range_of(number):
    return [(a, b, number - a - b) for a in range(number + 1) for b in range(number + 1 - a)]


def few_records(seed, shape=(3,), minimum=0):
    """Blocks of which two or three kinds are open, with up to five records."""
    for tried in range(seed * 1000, seed * 1000 + 1000):
        given = housed(tried, shape, most=2, rare=0.75)
        number = sum(sum(races.values()) for _, races in open_of(given, 0, 0))
        if len(open_of(given, 0, 0)) >= 2 and 3 <= number <= 6:
            return given
    raise AssertionError("no such population")


@pytest.mark.parametrize("seed", range(5))
def test_without_least_counts_exactly_those_splits_that_all_blocks_can_follow(seed):
    given = few_records(seed)
    found = sums(given, 0)
    records = open_of(given, 0, 0)
    possible = reachable(records, 0)
    tried = list(candidates(records))
    assert {one for one in tried if accepted(found[0], (0, 1), one) is not None} == possible & set(tried)
    last = given.spine.leaf.nodes
    assert {one for one in tried if accepted(found[1], (0, last), one) is not None} == possible & set(tried)


@pytest.mark.parametrize("seed", range(5))
def test_with_least_counts_areas_accept_exactly_what_their_blocks_can_follow(seed):
    given = few_records(seed, minimum=1)
    found = sums(given, 1)
    records, last = open_of(given, 0, 0), given.spine.leaf.nodes
    possible, tried = reachable(records, 1), list(candidates(records))
    for level, span in ((found[0], (0, 1)), (found[1], (0, last))):
        assert {one for one in tried if accepted(level, span, one) is not None} == possible & set(tried)


@pytest.mark.parametrize("seed", range(6))
def test_a_split_keeps_published_sums_the_parent_and_what_facilities_need(seed):
    given = housed(seed, (2, 4), most=6, rare=0.8)
    found = sums(given)
    rows, last = found[2].open, given.spine.leaf.nodes
    root, blocks = split_open(
        rows, (0, last), GROUPS, np.random.default_rng(seed).random((last, 8)) * 4, None
    )
    rows = replace(rows, split=blocks)
    split = split_open(rows, (0, last), GROUPS, np.zeros((last, 8)), root.sum(axis=0))[0]
    assert np.array_equal(split.sum(axis=0), root.sum(axis=0))
    for one in (root, split):
        assert one.min() >= 0
        for block, kinds, races in given.sums_of_blocks():
            if len(kinds) > 1 and 0 not in kinds:
                grid = one[block].reshape(RACES, KINDS)
                assert grid.sum(axis=1).tolist() == [races[0], races[1]]
                assert [int(grid[:, k].sum() > 0) for k in range(KINDS)] == [
                    int(k in kinds) for k in range(KINDS)
                ]


def test_a_split_is_the_nearest_to_the_estimate():
    given = few_records(1)
    found, records = sums(given, 0), open_of(given, 0, 0)
    rng = np.random.default_rng(0)
    for _ in range(5):
        wanted = rng.random((1, RACES * KINDS)) * 3
        split = split_open(found[0].open, (0, 1), GROUPS, wanted, None)[0]
        cost = np.abs(split - wanted)[:, [1, 2, 3, 5, 6, 7]].sum()
        best = min(
            np.abs(np.array(one) - wanted[0])[[1, 2, 3, 5, 6, 7]].sum() for one in reachable(records, 0)
        )
        assert cost == pytest.approx(best, abs=1e-6)


def two_blocks(first, second, facilities):
    """Two blocks of one area; records (kind, race) of each."""
    spine = housed(3, (2,)).spine
    assert spine.leaf.nodes == 2
    truth = np.zeros((2, CELLS), np.int64)
    for block, records in enumerate((first, second)):
        for kind, race in records:
            truth[block, np.flatnonzero((kind == KIND) & (race == RACE) & (AGE == 0))[0]] += 1
    return Housed(spine, truth, np.array(facilities))


def test_blocks_of_one_kind_each_are_decided_at_every_level():
    # dhc.md 11.5: block 1 has only kind 34 and a White person, block 2 only kind 35 and a Black person
    given = two_blocks([(1, 0)], [(2, 1)], [[0, 1, 0, 0], [0, 0, 1, 0]])
    _, published, kind = rule().groups()
    for found in sums(given):
        groups = [(int(published[g]), int(kind[g])) for g in found.decided.cell]
        assert (groups, found.decided.count.tolist()) == ([(2, 1), (3, 2)], [1, 1])
        assert len(found.open.count) == 0


def test_one_more_kind_leaves_a_block_open_and_the_area_knows_it():
    given = two_blocks([(1, 0), (2, 0)], [(2, 1)], [[0, 1, 1, 0], [0, 0, 1, 0]])
    root = sums(given)[0]
    assert accepted(root, (0, 1), (0, 1, 1, 0, 0, 0, 0, 0)) is not None
    assert accepted(root, (0, 1), (0, 2, 0, 0, 0, 0, 0, 0)) is None  # kind 2 of the first block needs one
    assert accepted(root, (0, 1), (0, 1, 0, 1, 0, 0, 0, 0)) is None  # there is no kind 3


def test_data_that_cannot_be_are_refused():
    given = two_blocks([(1, 0)], [(2, 1)], [[0, 0, 0, 0], [0, 0, 1, 0]])
    with pytest.raises(DataError, match="1 blocks have records of a kind of which they have no facility"):
        sums(given)
    given = two_blocks([(1, 0)], [(2, 1)], [[0, 2, 0, 0], [0, 0, 1, 0]])
    with pytest.raises(DataError, match="1 blocks have fewer records than facilities of kind 1"):
        sums(given)
    given = two_blocks([(1, 0), (1, 1)], [(2, 1)], [[0, 1, 1, 1], [0, 0, 1, 0]])
    with pytest.raises(DataError, match="1 blocks have fewer records than all of their facilities need"):
        sums(given)


def test_kinds_that_published_sums_share_in_part_are_refused():
    given = two_blocks([(1, 0)], [(2, 1)], [[0, 1, 0, 0], [0, 0, 1, 0]])
    apart = FacilityRule(np.array([0, 0, 1, 1], np.int32), np.array([0, 1, 1, 2], np.int32), (0, 1, 1, 1))
    with pytest.raises(CheckError, match="all of their kinds of facility in common"):
        facility_sums(given.spine, given.published, given.facilities, apart)
