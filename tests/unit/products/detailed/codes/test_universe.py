"""The map of combinations to iterations: its rows, its chunks, and what it refuses."""

import numpy as np
import pytest

from censafe.products.detailed.codes import universe
from censafe.products.detailed.codes.universe import iteration_rows
from support.safetab_universes import make_universe

UNIVERSE = make_universe(
    ("alone", {1001, 1002}),
    ("combination", {1001}),
    ("combination", {1002}),
    ("ethnicity", {1001, 1003}),
)


def rows_of(combinations: list[list[int]]) -> list[list[int]]:
    rows = iteration_rows(UNIVERSE, 2, "coarse", np.array(combinations, dtype=np.int16))
    return [part.tolist() for part in np.split(rows.ordinals, rows.indptr[1:-1])]


def test_rows_of_one_two_and_repeated_codes() -> None:
    assert rows_of(
        [
            [1001, 0, 1002],
            [1001, 1002, 1003],
            [1002, 1002, 1001],
            [1001, 1003, 1002],
            [1003, 0, 1002],
            [0, 0, 1001],
        ]
    ) == [[0, 1], [0, 1, 2, 3], [0, 2, 3], [1], [], [3]]


def test_chunks_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(1).choice([0, 1001, 1002, 1003], (100, 3))
    whole = iteration_rows(UNIVERSE, 2, "coarse", draw)
    monkeypatch.setattr(universe, "_CHUNK", 7)
    pieces = iteration_rows(UNIVERSE, 2, "coarse", draw)
    assert whole.indptr.tolist() == pieces.indptr.tolist()
    assert whole.ordinals.tolist() == pieces.ordinals.tolist()


def test_nothing_in_nothing_out() -> None:
    rows = iteration_rows(UNIVERSE, 2, "coarse", np.empty((0, 3), dtype=np.int32))
    assert (rows.indptr.tolist(), rows.ordinals.size, rows.most) == ([0], 0, 0)


@pytest.mark.parametrize("code", [1004, -1, 20_000, 1])
def test_codes_that_are_not_listed_are_counted_and_refused(code: int) -> None:
    with pytest.raises(ValueError, match="2 combinations hold codes that are not in the code list"):
        rows_of([[1001, 0, 1001], [code, 0, 1001], [1001, 0, code]])


def test_two_candidates_of_one_kind_are_refused() -> None:
    with pytest.raises(ValueError, match="iteration 0001 shares a code"):
        iteration_rows(
            make_universe(("alone", {1001}), ("alone", {1001, 1002})), 2, "coarse", np.empty((0, 3), np.int32)
        )
