"""Combinations are numbered without loss, and compiled kernels do what their source says."""

from types import ModuleType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from censafe.population.detailed import encode as combos
from censafe.population.detailed import kernels
from censafe.population.detailed.encode import Combinations

CODE = st.sampled_from([0, 1, 1000, 1001, 4096, 8191, 9999])
RECORDS = st.lists(st.lists(CODE, min_size=9, max_size=9), min_size=1, max_size=40)


def packed(codes: NDArray[np.int32], most: int = 8) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    rows = codes.shape[1]
    high, low = np.empty(rows, np.uint64), np.empty(rows, np.uint64)
    known, faults = np.ones(10_000, bool), np.zeros(rows, np.uint32)
    kernels.pack_codes(codes, known, most, np.zeros(rows, np.int32), faults, high, low)
    return high, low


@given(records=RECORDS, most=st.integers(1, 8))
def test_codes_survive_packing_and_numbering(records: list[list[int]], most: int) -> None:
    codes = np.array(records, np.int32).T.copy()
    combinations = Combinations()
    ordinals = combinations.number(*packed(codes, most))
    expected = np.vstack([codes[:most], codes[8:]]).T
    assert np.array_equal(expected, combinations.codes(most)[ordinals])
    assert combinations.count == len(np.unique(expected, axis=0))
    first_seen = list(dict.fromkeys(ordinals.tolist()))
    assert list(range(combinations.count)) == first_seen


def test_many_combinations_make_the_table_grow() -> None:
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 10_000, (9, 100_000)).astype(np.int32)
    codes[:, 50_000:] = codes[:, :50_000]
    combinations = Combinations()
    first = combinations.number(*packed(codes))
    assert combinations.count == 50_000
    assert np.array_equal(first[:50_000], first[50_000:])
    assert np.array_equal(codes.T[:50_000], combinations.codes(8))
    assert np.array_equal(first, combinations.number(*packed(codes)))


def interpret(monkeypatch: pytest.MonkeyPatch, *modules: ModuleType) -> None:
    for module in modules:
        for name, kernel in list(vars(module).items()):
            if hasattr(kernel, "py_func") and name != "_slot":  # its product wraps around on purpose
                monkeypatch.setattr(module, name, kernel.py_func)


def test_interpreted_kernels_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(7)
    rows = 400
    block = np.stack([rng.integers(44, 46, rows), rng.integers(1, 3, rows), rng.integers(1, 4, rows),
                      rng.integers(0, 5, rows)]).astype(np.int32)  # fmt: skip
    keep = np.zeros(100, bool)
    keep[44] = True
    keys = np.array([((44 * 1000 + 1) * 10**6 + t) * 10**4 + b for t in (1, 3) for b in range(4)], np.int64)
    tracts, starts = keys[::4] // 10_000, np.array([0, 4, 8])
    codes = rng.choice(np.array([-1, 0, 1000, 2000], np.int32), (9, rows))
    known = np.zeros(10_000, bool)
    known[1000] = True

    def run() -> list[NDArray[np.generic]]:
        faults = (rng_faults.integers(0, 2, rows) << 3).astype(np.uint32)
        ordinal, decoded = np.empty(rows, np.int32), np.empty(rows, np.int32)
        high, low = np.empty(rows, np.uint64), np.empty(rows, np.uint64)
        kernels.decode_texts(np.array([7, -1], np.int32), (block[0] - 44), 5, -1, decoded, faults)
        kernels.find_blocks(block, keep, 1 << 3, keys, tracts, starts, faults, ordinal)
        kernels.pack_codes(codes, known, 3, ordinal, faults, high, low)
        combinations = Combinations()
        return [faults, ordinal, decoded, high, low, combinations.number(high, low)]

    rng_faults = np.random.default_rng(8)
    compiled = run()
    interpret(monkeypatch, kernels, combos)
    rng_faults = np.random.default_rng(8)
    for expected, actual in zip(compiled, run(), strict=True):
        assert np.array_equal(expected, actual)
    faults, ordinal = compiled[0], compiled[1]
    assert set(np.unique(ordinal).tolist()) == {-2, -1, *range(8)}
    for bit in (3, 5, kernels.AFTER_NULL, kernels.FIRST_UNKNOWN, kernels.TOO_MANY, kernels.BLOCK_ABSENT):
        assert (faults.astype(np.int64) & (1 << bit)).any()
