from pathlib import Path

import numpy as np
import pytest

from censafe.errors import DataError, StorageError
from censafe.estimation.detailed.area_classes import _BlockSets, _verified, area_classes, read_block_list
from censafe.geography.grfc import NO_AIANNH, NO_PLACE, Areas

TYPES = ("USA", "STATE", "COUNTY", "TRACT", "PLACE", "AIANNH")


def _areas(rows: list[tuple[int, int, int, int, int, int]]) -> Areas:
    """Blocks as (state, county, tract, block, place, AIANNH)."""
    rows = sorted(rows)
    keys = [((s * 1000 + c) * 1_000_000 + t) * 10_000 + b for s, c, t, b, _, _ in rows]
    return Areas(
        np.array(keys, np.int64),
        np.array([row[4] for row in rows], np.int32),
        np.array([row[5] for row in rows], np.int32),
        tuple(sorted({f"{row[0]:02}" for row in rows})),
    )


# Washington D.C. is a state, a county and a place; county 44001 has one tract with land and one with water only; place
# 4400010 is tract 44003000100; AIANNH 1234 is made of blocks of two places.
AREAS = _areas(
    [
        (11, 1, 100, 1000, 50000, NO_AIANNH),
        (11, 1, 200, 1000, 50000, NO_AIANNH),
        (44, 1, 100, 1000, NO_PLACE, NO_AIANNH),
        (44, 1, 100, 1001, NO_PLACE, NO_AIANNH),
        (44, 1, 9900, 1, NO_PLACE, NO_AIANNH),
        (44, 3, 100, 1000, 10, 1234),
        (44, 3, 100, 1001, 10, NO_AIANNH),
        (44, 3, 200, 1000, 20, 1234),
        (44, 3, 200, 1001, 30, NO_AIANNH),
    ]
)


def test_classes_are_areas_of_different_types_with_equal_blocks() -> None:
    expected = (
        (("STATE", "11"), ("COUNTY", "11001"), ("PLACE", "1150000")),
        (("TRACT", "44003000100"), ("PLACE", "4400010")),
    )
    assert expected == area_classes(AREAS, TYPES).classes


def test_blocks_of_a_public_list_do_not_count() -> None:
    water = np.array([440010099000001], np.int64)
    pair = (("COUNTY", "44001"), ("TRACT", "44001000100"))
    assert pair in area_classes(AREAS, TYPES, empty=water).classes


def test_areas_left_without_blocks_are_in_no_class() -> None:
    assert area_classes(AREAS, TYPES, empty=AREAS.keys).classes == ()


def test_a_collision_of_hashes_is_found_out_block_by_block() -> None:
    blocks = _BlockSets(np.arange(4), np.array([0, 2, 4]), np.zeros(2, np.uint64))
    same = _BlockSets(np.arange(2), np.array([0, 2]), np.zeros(1, np.uint64))
    assert list(_verified([(0, 0, 0), (0, 1, 1), (1, 0, 2)], [blocks, same])) == [[0, 2]]


def test_classes_agree_with_comparing_all_sets() -> None:
    rng = np.random.default_rng(8)
    rows = {
        (int(s), int(c), int(t), int(b)): (int(p), int(a))
        for s, c, t, b, p, a in zip(
            rng.integers(1, 4, 40), rng.integers(1, 4, 40), rng.integers(1, 3, 40), rng.integers(1, 3, 40),
            rng.choice([10, 20, NO_PLACE], 40), rng.choice([5, 6, NO_AIANNH], 40), strict=True,
        )
    }  # fmt: skip
    areas = _areas([(*key, *value) for key, value in rows.items()])
    sets: dict[frozenset[int], list[tuple[str, str]]] = {}
    for kind in TYPES:
        for ordinal, name in enumerate(areas.regions(kind)):
            blocks = frozenset(np.flatnonzero(areas.ordinals(kind) == ordinal).tolist())
            sets.setdefault(blocks, []).append((kind, name))
    expected = {tuple(members) for members in sets.values() if len(members) > 1}
    assert expected
    assert expected == set(area_classes(areas, TYPES).classes)


def test_a_list_of_blocks_is_read_with_leading_zeros(tmp_path: Path) -> None:
    path = tmp_path / "water.txt"
    path.write_text("block\n440010099000001\n010010099000001\n440010099000001\n", encoding="utf-8")
    assert read_block_list(path).tolist() == [10010099000001, 440010099000001]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("440010099000001\n", "header must be 'block'"),
        (
            "block\n4400100990000\n44001009900000x\n",
            "2 lines are not block codes; allowed: exactly 15 digits",
        ),
        ("", "not a list of blocks"),
        ("block\n1,2\n", "not a list of blocks"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "water.txt"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=message):
        read_block_list(path)
    with pytest.raises(StorageError, match="check that it exists"):
        read_block_list(tmp_path / "absent.txt")
