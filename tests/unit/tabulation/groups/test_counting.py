"""Sorting records by block and counting them in groups."""

import pickle
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from censafe.errors import DataError
from censafe.model import GroupLevel
from censafe.tabulation.groups import counting as group_kernels
from censafe.tabulation.groups.counting import Batch, ExactGroups, GroupedRecords, RegionBlocks, sort_by_block

BLOCKS, COMBOS, CELLS, ITERATIONS = 13, 7, 5, 4


class Rows(NamedTuple):
    """Iterations of every combination."""

    indptr: NDArray[np.int64]
    ordinals: NDArray[np.int32]


def batch(records: int, seed: int = 1) -> Batch:
    rng = np.random.default_rng(seed)
    return Batch(
        rng.integers(-1, BLOCKS, records).astype(np.int32),
        rng.integers(0, COMBOS, records).astype(np.int32),
        rng.integers(0, CELLS, records).astype(np.uint8),
    )


def split(whole: Batch, pieces: int) -> list[Batch]:
    columns = (np.array_split(column, pieces) for column in (whole.block, whole.combo, whole.cell))
    return [Batch(*part) for part in zip(*columns, strict=True)]


def sorted_(whole: Batch, pieces: int = 1) -> GroupedRecords:
    return sort_by_block([whole.block], split(whole, pieces), blocks=BLOCKS, cells=CELLS, combos=COMBOS)


def rows() -> Rows:
    lists: list[list[int]] = [[], [0], [1, 3], [0, 1, 2, 3], [2], [2, 3], [0, 2]]
    return Rows(np.cumsum([0, *map(len, lists)]), np.array([one for some in lists for one in some], np.int32))


def level(regions: int = 3) -> GroupLevel:
    names = np.array([f"{region:02d}" for region in range(regions)], np.str_)
    return GroupLevel("tract_1", "TRACT", 1, names, tuple("abcd"), np.zeros(ITERATIONS, np.bool_))


REGION = np.array([0, 2, -1, 0, 1, 1, 2, 0, -1, 2, 1, 0, 0], np.int32)


def expected(whole: Batch) -> NDArray[np.int64]:
    counts = np.zeros((3, ITERATIONS, CELLS), np.int64)
    some = rows()
    for block, combo, cell in zip(whole.block, whole.combo, whole.cell, strict=True):
        if block >= 0 and REGION[block] >= 0:
            for group in some.ordinals[some.indptr[combo] : some.indptr[combo + 1]]:
                counts[REGION[block], group, cell] += 1
    return counts


@pytest.mark.parametrize("pieces", [1, 2, 5])
@pytest.mark.parametrize("records", [0, 1, 500])
def test_records_are_sorted_by_block_and_none_is_lost(records: int, pieces: int) -> None:
    whole = batch(records)
    found = sorted_(whole, pieces)
    assert (found.records, found.lost) == (int((whole.block >= 0).sum()), int((whole.block < 0).sum()))
    codes = whole.combo.astype(np.int64) * 8 + whole.cell
    for block in range(BLOCKS):
        inside = found.codes[found.starts[block] : found.starts[block + 1]]
        assert sorted(codes[whole.block == block].tolist()) == sorted(inside.tolist())


@pytest.mark.parametrize("pieces", [1, 3])
def test_counts_equal_a_plain_loop(pieces: int) -> None:
    whole = batch(800)
    groups = ExactGroups(level(), RegionBlocks.of(REGION, 3), sorted_(whole, pieces), *rows())
    assert groups.cells == CELLS
    np.testing.assert_array_equal(expected(whole), groups.block(0, 3).dense)
    np.testing.assert_array_equal(expected(whole)[1:2], groups.block(1, 2).dense)


def test_the_kernels_do_the_same_when_they_are_interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = batch(200)
    compiled = ExactGroups(level(), RegionBlocks.of(REGION, 3), sorted_(whole, 2), *rows()).block(0, 3)
    for name in ("count_blocks", "place_records", "count_groups"):
        monkeypatch.setattr(group_kernels, name, getattr(group_kernels, name).py_func)
    plain = ExactGroups(level(), RegionBlocks.of(REGION, 3), sorted_(whole, 2), *rows()).block(0, 3)
    np.testing.assert_array_equal(compiled.rows, plain.rows)
    np.testing.assert_array_equal(compiled.counts, plain.counts)


def test_blocks_of_regions_may_come_in_any_order() -> None:
    found = RegionBlocks.of(REGION, 4)
    listed = [found.blocks[found.starts[region] : found.starts[region + 1]].tolist() for region in range(4)]
    assert listed == [np.flatnonzero(region == REGION).tolist() for region in range(4)]
    in_order = RegionBlocks.of(np.sort(REGION), 4)
    assert in_order.blocks.tolist() == list(range(2, BLOCKS))


def test_an_empty_region_has_empty_groups() -> None:
    groups = ExactGroups(level(4), RegionBlocks.of(REGION, 4), sorted_(batch(50)), *rows())
    assert not groups.block(3, 4).totals.any()


@pytest.mark.parametrize("second", [batch(50), batch(49), batch(50, seed=2)])
def test_records_that_change_between_the_passes_are_noticed(second: Batch) -> None:
    def attempt() -> GroupedRecords:
        return sort_by_block([batch(50).block], [second], blocks=BLOCKS, cells=CELLS, combos=COMBOS)

    if np.array_equal(second.block, batch(50).block):
        assert attempt().records
    else:
        with pytest.raises(DataError, match="changed while they were read"):
            attempt()


@pytest.mark.parametrize(("combo", "cell"), [([0, COMBOS], [0, 0]), ([-1, 0], [0, 0]), ([0, 0], [0, CELLS])])
def test_a_combination_or_a_cell_out_of_range_stops(combo: list[int], cell: list[int]) -> None:
    wrong = Batch(np.array([0, 0], np.int32), np.array(combo, np.int32), np.array(cell, np.uint8))
    with pytest.raises(DataError, match="does not exist"):
        sorted_(wrong)


def test_too_many_combinations_are_refused() -> None:
    with pytest.raises(OverflowError, match="room"):
        sort_by_block([], [], blocks=1, cells=46, combos=(1 << 26) + 1)


def test_records_and_counts_stay_confidential() -> None:
    found = sorted_(batch(50))
    groups = ExactGroups(level(), RegionBlocks.of(REGION, 3), found, *rows())
    assert repr(found) == "GroupedRecords(cells=5)"
    assert repr(batch(3)) == "Batch()"
    for secret in (found, groups):
        with pytest.raises(TypeError, match="confidential"):
            pickle.dumps(secret)


@pytest.mark.parametrize(("first", "stop"), [(-1, 1), (0, 4), (2, 2), (2, 1)])
def test_regions_that_do_not_exist_have_no_block(first: int, stop: int) -> None:
    groups = ExactGroups(level(), RegionBlocks.of(REGION, 3), sorted_(batch(5)), *rows())
    with pytest.raises(ValueError, match="no regions"):
        groups.block(first, stop)


def _arguments(**changed: Any) -> tuple[Any, ...]:
    good = {
        "level": level(),
        "regions": RegionBlocks.of(REGION, 3),
        "rows": rows(),
    }
    whole = {**good, **changed}
    return whole["level"], whole["regions"], sorted_(batch(5)), *whole["rows"]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"level": level(4)}, "has 4 regions"),
        ({"rows": Rows(np.zeros(3, np.int64), np.zeros(0, np.int32))}, "one list of groups"),
        ({"rows": Rows(np.arange(COMBOS + 1), np.full(COMBOS, ITERATIONS, np.int32))}, "4 iterations and no more"),
    ],
)  # fmt: skip
def test_what_does_not_belong_together_is_refused(changed: dict[str, Any], message: str) -> None:
    ExactGroups(*_arguments())
    with pytest.raises(ValueError, match=message):
        ExactGroups(*_arguments(**changed))


def test_two_billion_records_are_refused() -> None:
    many = np.broadcast_to(np.uint32(0), (1 << 31,))  # takes no memory
    found = GroupedRecords(np.zeros(BLOCKS + 1, np.int64), many, CELLS, COMBOS, 0)
    with pytest.raises(OverflowError, match="fewer than"):
        ExactGroups(level(), RegionBlocks.of(REGION, 3), found, *rows())


def test_counts_of_regions_are_kept_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[int, int]] = []
    counted = ExactGroups._counted

    def noted(self: ExactGroups, first: int, stop: int) -> Any:
        calls.append((first, stop))
        return counted(self, first, stop)

    monkeypatch.setattr(ExactGroups, "_counted", noted)
    parts = sorted_(batch(500)), *rows()
    groups = ExactGroups(level(), RegionBlocks.of(REGION, 3), *parts)
    assert groups.block(0, 2) is groups.block(0, 2)
    assert not np.array_equal(groups.block(2, 3).dense, groups.block(0, 2).dense[:1])
    assert calls == [(0, 2), (2, 3)]
    with pytest.raises(ValueError, match="read-only"):
        groups.block(0, 2).counts[0] = 1
    room = groups.block(0, 2).nbytes
    monkeypatch.setattr(group_kernels, "_MOST_BYTES", room)
    small = ExactGroups(level(), RegionBlocks.of(REGION, 3), *parts)
    calls.clear()
    for _ in range(2):
        assert np.array_equal(small.block(0, 2).dense, groups.block(0, 2).dense)
        assert np.array_equal(small.block(2, 3).dense, groups.block(2, 3).dense)
    assert calls == [(0, 2), (2, 3), (2, 3)]
    monkeypatch.setattr(group_kernels, "_FEW_REGIONS", 2)
    many = ExactGroups(level(), RegionBlocks.of(REGION, 3), *parts)
    calls.clear()
    assert many.block(0, 2) is not many.block(0, 2)
    assert calls == [(0, 2), (0, 2)]
