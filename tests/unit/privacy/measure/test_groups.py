"""The mechanism for listed groups, and the value types that pass both mechanisms."""

import pickle
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from censafe.errors import ReleaseError
from censafe.model import GroupBlock, GroupLevel, GroupMeasurements, NoiseLaw, TableVariant
from censafe.privacy.keys import ReleaseKey, derive_part_key
from censafe.privacy.measure.groups import ListedGroups, count_listed_groups, measure_groups
from censafe.privacy.measure.rows import AddressedNoise, Chosen, checked_sum, noisy_cells
from censafe.privacy.noise.sampler import draw
from support.group_sources import Source, laws, part_key, queries, small_variants, some_counts

REGIONS, ITERATIONS = 19, 11
COUNTS = some_counts(REGIONS, ITERATIONS, 6, seed=2)
VARIANTS = small_variants()[:3]


def listed(share: float = 0.5, *, most: int = 2) -> ListedGroups:
    rng = np.random.default_rng(3)
    region, iteration = np.nonzero(rng.random((REGIONS, ITERATIONS)) < share)
    stat_level = rng.integers(0, most + 1, len(region)).astype(np.int8)
    return ListedGroups(region.astype(np.int32), iteration.astype(np.int32), stat_level, VARIANTS)


def measured(some: ListedGroups, kind: str = "gaussian", **options: Any) -> GroupMeasurements:
    (query,) = queries(laws(kind, "3"))
    return measure_groups(Source(COUNTS), some, query, "t3", part_key(), **options)


@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
def test_every_listed_group_is_answered_with_the_noise_of_its_address(kind: str) -> None:
    some = listed()
    found = measured(some, kind)
    where = np.arange(REGIONS, dtype=np.uint64)
    noise = draw(*laws(kind, "3"), part_key(), query=0, geounits=where, answers=ITERATIONS * 5)
    np.testing.assert_array_equal(some.region, found.region)
    np.testing.assert_array_equal(some.iteration, found.iteration)
    np.testing.assert_array_equal(some.stat_level, found.stat_level)
    assert found.stage1 is None
    for row, (region, iteration) in enumerate(zip(some.region, some.iteration, strict=True)):
        variant = VARIANTS[some.stat_level[row]]
        cells = COUNTS[region, iteration]
        exact = [int(cells[variant.slots == slot].sum()) for slot in range(len(variant.cells))]
        expected = exact + noise[region, 5 * iteration : 5 * iteration + len(exact)]
        assert expected.tolist() == found.values[found.indptr[row] : found.indptr[row + 1]].tolist()


def test_groups_beyond_65_536_answers_of_a_region_have_noise_of_their_own() -> None:
    """A region has as many answers as iterations times the cells of a table, which are more than 100,000 in the nation."""
    (law,), variant = laws("gaussian", "3"), VARIANTS[2]
    iterations = np.array([0, 1, 13_107, 13_108, 26_214, 26_215, 52_428, 52_429])
    regions = np.array([0, 1, 65_536, 65_537, 1 << 20])
    rows = np.zeros((int(regions[-1]) + 1, 1), np.int32)
    block = GroupBlock(
        0, np.broadcast_to(rows, (len(rows), int(iterations[-1]) + 1)), np.zeros((1, 6), np.int32)
    )
    chosen = Chosen(np.repeat(regions, len(iterations)), np.tile(iterations, len(regions)))
    noise = AddressedNoise((law,), part_key())
    noise.key.usage.claim_geounits([0], 0, [b"answers"])
    found = noisy_cells(block, chosen, variant, noise, 0, 5)
    for row, (region, iteration) in enumerate(zip(chosen.region, chosen.iteration, strict=True)):
        geounit = np.array([region], np.uint64)
        expected = draw(
            law, part_key(), query=0, geounits=geounit, answers=5 * int(iteration) + len(variant.cells)
        )
        assert found[row].tolist() == expected[0, 5 * iteration :].tolist()


@pytest.mark.parametrize("groups_at_once", [1, 30])
@pytest.mark.parametrize("threads", [1, 3])
def test_blocks_of_work_and_threads_do_not_matter(groups_at_once: int, threads: int) -> None:
    some = listed()
    one, other = measured(some), measured(some, groups_at_once=groups_at_once, threads=threads)
    for name in ("region", "iteration", "stat_level", "indptr", "values"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def test_a_group_that_is_not_listed_changes_nothing() -> None:
    few, all_of_them = listed(0.2, most=0), listed(1.1, most=0)
    found, everything = measured(few), measured(all_of_them)
    assert len(all_of_them.region) == REGIONS * ITERATIONS
    chosen = few.region * ITERATIONS + few.iteration
    np.testing.assert_array_equal(everything.values[chosen], found.values)


def test_no_group_is_a_legal_list() -> None:
    found = measured(listed(0.0))
    assert (len(found.region), len(found.values), found.indptr.tolist()) == (0, 0, [0])


def test_without_noise_the_cells_are_the_true_ones() -> None:
    some = listed(1.1, most=0)
    found = count_listed_groups(Source(COUNTS), some)
    np.testing.assert_array_equal(COUNTS.sum(axis=2).reshape(-1), found.values)


def test_the_source_follows_the_key() -> None:
    assert measured(listed()).source == "seeded"
    (query,) = queries(laws("gaussian", "3"))
    with ReleaseKey.from_system() as key:
        part = derive_part_key(key, "0" * 64, b"", "tract_2_t3")
        found = measure_groups(Source(COUNTS), listed(), query, "t4", part)
        repeated = measure_groups(Source(COUNTS), listed(), query, "t4", part, groups_at_once=5)
        for other in (listed(1.1, most=0), listed()):
            counts = COUNTS if other.variants != listed().variants else COUNTS + (COUNTS > 0)
            with pytest.raises(ReleaseError, match="belongs to other answers"):
                measure_groups(Source(counts), other, query, "t4", part)
    np.testing.assert_array_equal(found.values, repeated.values)
    assert (found.source, found.table) == ("unaccounted", "t4")
    assert (found.laws, found.costs) == ({"cells": query.law}, {"cells": query.cost})


def test_a_table_of_six_cells_has_no_addresses() -> None:
    (query,) = queries(laws("gaussian", "3"))
    with pytest.raises(ValueError, match="at most 5"):
        measure_groups(Source(COUNTS), replace(listed(), variants=small_variants()), query, "t3", part_key())


@pytest.mark.parametrize(("name", "most"), [("region", REGIONS), ("iteration", ITERATIONS)])
def test_a_group_outside_the_level_is_refused(name: str, most: int) -> None:
    some = listed()
    wrong = getattr(some, name).copy()
    wrong[-1] = most
    with pytest.raises(ValueError, match=f"{name} that is not of the level"):
        measured(replace(some, **{name: wrong}))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"region": np.array([1, 0], np.int32)}, "sorted"),
        ({"region": np.array([1, 1], np.int32), "iteration": np.array([4, 4], np.int32)}, "each group once"),
        ({"stat_level": np.array([0, 3], np.int8)}, "stat levels 0 to 2"),
        ({"stat_level": np.array([0, -1], np.int8)}, "stat levels 0 to 2"),
        ({"stat_level": np.array([0], np.int8)}, "a region, an iteration and a stat level"),
    ],
)
def test_a_list_that_makes_no_sense_is_refused(change: dict[str, Any], message: str) -> None:
    good: dict[str, Any] = {
        "region": np.array([0, 1], np.int32),
        "iteration": np.array([4, 2], np.int32),
        "stat_level": np.array([0, 2], np.int8),
        "variants": VARIANTS,
    }
    ListedGroups(**good)
    with pytest.raises(ValueError, match=message):
        ListedGroups(**{**good, **change})


def test_a_sum_beyond_64_bits_is_an_error_without_a_value() -> None:
    large = np.array([2**62, 5])
    assert checked_sum(large, np.array([2**62 - 1, -9])).tolist() == [2**63 - 1, -4]
    with pytest.raises(OverflowError) as stop:
        checked_sum(large, np.array([2**62, 0]))
    assert not any(character.isdigit() for character in str(stop.value).replace("64", ""))
    with pytest.raises(OverflowError):
        checked_sum(np.array([-(2**62) - 1]), np.array([-(2**62)]))


def test_a_block_hides_its_counts_and_cannot_be_pickled() -> None:
    block = Source(COUNTS).block(2, 5)
    assert repr(block) == "GroupBlock(first=2)"
    np.testing.assert_array_equal(COUNTS[2:5], block.dense)
    np.testing.assert_array_equal(COUNTS[2:5].sum(axis=2), block.totals)
    with pytest.raises(TypeError, match="confidential"):
        pickle.dumps(block)


@pytest.mark.parametrize(
    ("rows", "counts"),
    [
        (np.zeros((1, 1), np.int64), np.zeros((1, 6), np.int32)),
        (np.zeros(1, np.int32), np.zeros((1, 6), np.int32)),
        (np.zeros((1, 1), np.int32), np.zeros((1, 6), np.int64)),
        (np.zeros((1, 1), np.int32), np.ones((1, 6), np.int32)),
    ],
)
def test_a_malformed_block_is_refused(rows: Any, counts: Any) -> None:
    with pytest.raises(ValueError, match="of a block must be"):
        GroupBlock(0, rows, counts)


@pytest.mark.parametrize(
    "slots", [np.array([0, 2], np.int16), np.array([0, 1], np.int64), np.array([0, 0], np.int16)]
)
def test_a_variant_puts_every_cell_in_a_slot(slots: Any) -> None:
    with pytest.raises(ValueError, match="one of the 2 cells"):
        TableVariant("two", ("a", "b"), slots)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"regions": np.array(["02", "01"])}, "regions"),
        ({"regions": np.array(["01", "01"])}, "regions"),
        ({"iterations": ("1002", "1001")}, "iterations"),
        ({"detailed_only": np.zeros(3, np.bool_)}, "detailed_only"),
    ],
)
def test_a_level_is_sorted(change: dict[str, Any], message: str) -> None:
    good: dict[str, Any] = {
        "name": "state_1",
        "region_type": "STATE",
        "iteration_level": 1,
        "regions": np.array(["01", "02"]),
        "iterations": ("1001", "1002"),
        "detailed_only": np.zeros(2, np.bool_),
    }
    assert GroupLevel(**good).groups == 4
    with pytest.raises(ValueError, match=message):
        GroupLevel(**{**good, **change})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"region": np.array([0, 1])}, "region"),
        ({"stat_level": np.zeros(1, np.int8)}, "stat_level"),
        ({"stage1": np.zeros(2, np.int32)}, "stage1"),
        ({"indptr": np.array([0, 1])}, "indptr"),
        ({"indptr": np.array([0, 2, 2])}, "indptr"),
        ({"indptr": np.array([0, 1, 3])}, "indptr"),
        ({"values": np.zeros(2, np.int32)}, "values"),
        ({"region": np.array([0, 19], np.int32)}, "region"),
        ({"region": np.array([1, 0], np.int32)}, "sorted"),
        ({"region": np.array([0, 0], np.int32)}, "sorted"),
    ],
)
def test_malformed_measurements_are_refused(change: dict[str, Any], message: str) -> None:
    good: dict[str, Any] = {
        "level": Source(COUNTS).level,
        "table": "t3",
        "region": np.array([0, 1], np.int32),
        "iteration": np.array([4, 4], np.int32),
        "stat_level": np.zeros(2, np.int8),
        "stage1": None,
        "indptr": np.array([0, 1, 2]),
        "values": np.array([7, -9]),
        "laws": {"cells": NoiseLaw.gaussian(Fraction(1))},
        "costs": {"cells": Fraction(1)},
        "source": "seeded",
    }
    assert GroupMeasurements(**good).sums.tolist() == [7, -9]
    with pytest.raises(ValueError, match=message):
        GroupMeasurements(**{**good, **change})
