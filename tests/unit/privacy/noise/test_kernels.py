import os
import subprocess
import sys

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from censafe.model.compiled import compiled
from censafe.privacy.noise import kernels, numpy_kernels
from censafe.privacy.noise.tables import NoiseTable
from support.noise import law

GOLDEN_DRAWS = {
    ("gaussian", "4"): "2 -1 3 0 2 1 0 0 0 0 -1 3 -3 -1 0 2 -2 -1 1 1 1 0 -3 -3",
    ("gaussian", "214437516707/177339451520"): "1 -1 2 0 1 1 1 0 0 0 -1 2 -2 -1 0 1 -1 0 1 1 0 0 -2 -2",
    ("laplace", "10/3"): "5 -2 6 1 4 3 0 1 5 -1 -3 6 -6 -3 -1 3 -3 -1 3 2 2 1 -6 -6",
}
SMALL_LAWS = [
    ("gaussian", "4"),
    ("gaussian", "1/3"),
    ("gaussian", "100"),
    ("laplace", "10/3"),
    ("laplace", "1/7"),
]


@pytest.mark.parametrize("kernel", [kernels.map_words, numpy_kernels.map_words], ids=["compiled", "numpy"])
@pytest.mark.parametrize("case", GOLDEN_DRAWS, ids=lambda case: "-".join(case))
def test_golden_draws(kernel: object, case: tuple[str, str]) -> None:
    keystream = (
        Cipher(algorithms.AES(bytes(range(32))), modes.CTR(bytes(16))).encryptor().update(bytes(24 * 8))
    )
    words = np.frombuffer(keystream, dtype="<u8")
    assert words[:4].tolist() == [
        0xD09F492AB60090F2,
        0x80772EDD6A9AF3A9,
        0xE59FB94AAE765DF0,
        0x3D36C248319BF6A6,
    ]
    table, out = NoiseTable.for_law(law(*case)).alias, np.empty(24, dtype=np.int64)
    assert kernel(words, table.entries, table.bits, 63, out) == 0  # type: ignore[operator]
    assert [int(value) for value in GOLDEN_DRAWS[case].split()] == out.tolist()


@pytest.mark.parametrize("width", [16, 17, 18, 19, 20])
@pytest.mark.parametrize("case", SMALL_LAWS, ids=lambda case: "-".join(case))
def test_all_words_give_exactly_the_integer_weights(case: tuple[str, str], width: int) -> None:
    table = NoiseTable.build(law(*case), width=width)
    words = np.arange(1 << (width + 1), dtype=np.uint64)
    out = np.empty(len(words), dtype=np.int64)
    flag = kernels.map_words(words, table.alias.entries, table.alias.bits, width, out)
    residual = table.alias.residual_outcome
    counts = [*table.weights.counts, *[0] * (residual - len(table.weights.counts)), table.weights.residual]
    found = np.bincount(out + residual, minlength=2 * residual + 1)
    assert counts[:0:-1] == found[:residual].tolist()
    assert 2 * counts[0] == found[residual]
    assert counts[1:] == found[residual + 1 :].tolist()
    assert flag == int(table.weights.residual > 0)
    twin = np.empty_like(out)
    assert numpy_kernels.map_words(words, table.alias.entries, table.alias.bits, width, twin) == flag
    assert np.array_equal(out, twin)


def edge_words(table: NoiseTable) -> np.ndarray:
    """All zeros, all ones, and for every column the fractions at both sides of its threshold, both signs."""
    bits, width = table.alias.bits, table.alias.width
    largest = (1 << (width - bits)) - 1
    words = [0, 1, (1 << 64) - 1, (1 << 64) - 2]
    for column, entry in enumerate(table.alias.entries.tolist()):
        threshold = entry >> bits
        for fraction in {0, max(threshold - 1, 0), threshold, min(threshold + 1, largest), largest}:
            y = column << (width - bits) | fraction
            words += [y << 1, y << 1 | 1]
    return np.array(words, dtype=np.uint64)


@pytest.mark.parametrize(
    "case", [*SMALL_LAWS, ("gaussian", "92416"), ("laplace", "300")], ids=lambda case: "-".join(case)
)
def test_compiled_and_numpy_kernels_agree_bit_for_bit(case: tuple[str, str]) -> None:
    table = NoiseTable.for_law(law(*case))
    fresh = np.frombuffer(np.random.default_rng(7).bytes(8 * 200_000), dtype=np.uint64)
    for words in (fresh, edge_words(table), fresh[:0], fresh[:1]):
        compiled, plain = np.empty(len(words), dtype=np.int64), np.empty(len(words), dtype=np.int64)
        flags = [
            kernel.map_words(words, table.alias.entries, table.alias.bits, 63, out)
            for kernel, out in ((kernels, compiled), (numpy_kernels, plain))
        ]
        assert flags[0] == flags[1]
        assert np.array_equal(compiled, plain)


@pytest.mark.parametrize("per_row", [1, 2, 3, 7, 100])
@pytest.mark.parametrize("first", [0, 1, 13, 150])
def test_counters_and_dropped_halves_agree(per_row: int, first: int) -> None:
    rng = np.random.default_rng(3)
    geounits = rng.integers(0, 1 << 63, 400).astype(np.uint64) * np.uint64(2)
    head = 5 << 32 | 1 << 48 | 2 << 56
    one, two = np.zeros((123, 2), dtype=np.uint64), np.ones((123, 2), dtype=np.uint64)
    kernels.fill_counters(geounits, first, per_row, head, one)
    numpy_kernels.fill_counters(geounits, first, per_row, head, two)
    assert np.array_equal(one, two)
    assert one[0].tolist() == [head | first % per_row, int(geounits[first // per_row])]
    words = rng.integers(0, 1 << 63, 246).astype(np.uint64)
    left, right = words.copy(), words.copy()
    remaining = kernels.drop_odd_halves(left, first, 123, per_row)
    assert remaining == numpy_kernels.drop_odd_halves(right, first, 123, per_row)
    assert np.array_equal(left[:remaining], right[:remaining])
    dropped = sum((first + block) % per_row == per_row - 1 for block in range(123))
    assert 246 - dropped == remaining


def test_laws_and_keys_load_no_compiler() -> None:
    code = (
        "import sys, censafe.privacy.measure.mechanisms, censafe.privacy.keys; print('numba' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=dict(os.environ)
    )
    assert done.stdout.strip() == "False"


def test_kernels_compile_where_no_folder_takes_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bool] = []

    def nowhere(signature: object, *, cache: bool = False, **_options: bool) -> object:
        asked.append(cache)
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return lambda function: function

    monkeypatch.setattr("numba.njit", nowhere)

    def same(number: int) -> int:
        return number

    assert compiled("int64(int64)")(same).dispatcher is same
    assert asked == [True, False]


def test_kernels_release_the_interpreter_and_cache_their_code() -> None:
    for kernel in (kernels.fill_counters, kernels.drop_odd_halves, kernels.map_words):
        assert kernel.targetoptions["nogil"]
        assert len(kernel.signatures) == 1
        assert kernel.stats.cache_path
