import subprocess
import sys
import threading
from collections.abc import Callable
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from censafe.errors import ReleaseError
from censafe.model import NoiseLaw
from censafe.privacy.measure.claims import Claim
from censafe.privacy.noise import numpy_kernels, sampler
from censafe.privacy.noise.sampler import add_noise, draw, draw_cells
from censafe.privacy.noise.tables import NoiseTable
from censafe.privacy.noise.weights import residual_magnitude
from censafe.privacy.noise.words import AddressedWords, Lane
from support.noise import known_part_key, law, seeded_part_key

FORK = """
import os, numpy as np
from fractions import Fraction
from censafe.model import NoiseLaw
from censafe.privacy.keys import derive_part_key
from censafe.privacy.keys import TestKey
from censafe.privacy.noise.sampler import draw
key = derive_part_key(TestKey(6), "0" * 64, b"inputs", "part")
for rows in ((0, 1, 2), (3, 4, 5, 6)):
    reader, writer = os.pipe()
    if os.fork() == 0:
        units = np.array(rows, dtype=np.uint64)
        noise = draw(NoiseLaw.gaussian(Fraction(100)), key, query=2, geounits=units, answers=5)
        os.write(writer, " ".join(map(str, noise.reshape(-1).tolist())).encode())
        os._exit(0)
    os.wait()
    print(os.read(reader, 10000).decode())
"""
LAWS = [law("gaussian", 4), law("gaussian", "10000000000/108241"), law("laplace", "10/3")]
LAWS += [law("gaussian", 10**12), law("laplace", 10**6)]
GEOUNITS = np.array([0, 3, 5, 1 << 40, (1 << 64) - 1, 77], dtype=np.uint64)


def by_address(noise: NoiseLaw, query: int, geounit: int, answer: int) -> int:
    """One draw of a direct law, straight from the definition of its address."""
    words = AddressedWords(known_part_key())
    table = NoiseTable.for_law(noise)
    word = words.block(query, Lane.DIRECT, 0, answer // 2, geounit)[answer % 2]
    out = np.empty(1, dtype=np.int64)
    flag = numpy_kernels.map_words(
        np.array([word], dtype=np.uint64), table.alias.entries, table.alias.bits, 63, out
    )
    assert not flag
    return int(out[0])


@pytest.mark.parametrize("answers", [1, 2, 7, 12])
@pytest.mark.parametrize("noise", LAWS[:3], ids=str)
def test_every_draw_is_the_word_of_its_address(noise: NoiseLaw, answers: int) -> None:
    found = draw(noise, known_part_key(), query=9, geounits=GEOUNITS, answers=answers)
    expected = [[by_address(noise, 9, int(g), i) for i in range(answers)] for g in GEOUNITS]
    assert found.tolist() == expected


@pytest.mark.parametrize("noise", LAWS, ids=str)
@pytest.mark.parametrize("answers", [1, 4, 9])
@pytest.mark.parametrize("chunk", [1, 2, 3, 7, 1 << 20])
def test_result_does_not_depend_on_the_chunk_size(
    noise: NoiseLaw, answers: int, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = draw(noise, known_part_key(), query=2, geounits=GEOUNITS, answers=answers)
    monkeypatch.setattr(sampler, "CHUNK_BLOCKS", chunk)
    found = draw(noise, known_part_key(), query=2, geounits=GEOUNITS, answers=answers)
    assert np.array_equal(expected, found)


@pytest.mark.parametrize("noise", LAWS, ids=str)
def test_result_does_not_depend_on_order_and_fewer_answers_are_a_prefix(noise: NoiseLaw) -> None:
    whole = draw(noise, known_part_key(), query=2, geounits=GEOUNITS, answers=9)
    order = np.array([4, 2, 0, 5])
    assert np.array_equal(
        whole[order], draw(noise, known_part_key(), query=2, geounits=GEOUNITS[order], answers=9)
    )
    assert np.array_equal(whole[:, :5], draw(noise, known_part_key(), query=2, geounits=GEOUNITS, answers=5))


@pytest.mark.parametrize("workers", [1, 2, 3, 8])
@pytest.mark.parametrize("noise", LAWS, ids=str)
def test_result_does_not_depend_on_the_number_of_workers(noise: NoiseLaw, workers: int) -> None:
    key, geounits = known_part_key(), np.arange(40, dtype=np.uint64)
    out = np.empty((40, 33), dtype=np.int64)

    def work(rows: np.ndarray) -> None:
        draw(noise, key, query=1, geounits=geounits[rows], answers=33, out=out[rows[0] : rows[-1] + 1])

    threads = [threading.Thread(target=work, args=(rows,)) for rows in np.array_split(np.arange(40), workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert np.array_equal(draw(noise, known_part_key(), query=1, geounits=geounits, answers=33), out)


def test_forked_workers_draw_what_one_process_draws() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORK], capture_output=True, text=True, check=True
    )
    whole = draw(
        law("gaussian", 100), seeded_part_key(6), query=2, geounits=np.arange(7, dtype=np.uint64), answers=5
    )
    assert [int(value) for value in done.stdout.split()] == whole.reshape(-1).tolist()


@pytest.mark.parametrize("noise", LAWS, ids=str)
def test_lazily_drawn_cells_equal_the_full_drawing(noise: NoiseLaw, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = draw(noise, known_part_key(), query=6, geounits=GEOUNITS, answers=21)
    rng = np.random.default_rng(4)
    rows, columns = rng.integers(0, 6, 200), rng.integers(0, 21, 200)
    monkeypatch.setattr(sampler, "CHUNK_BLOCKS", 64)
    found = draw_cells(noise, known_part_key(), query=6, geounits=GEOUNITS[rows], answers=columns)
    assert np.array_equal(whole[rows, columns], found)


def test_queries_and_keys_give_different_noise() -> None:
    noise = law("gaussian", 10**6)
    rows = [
        draw(noise, key, query=query, geounits=GEOUNITS, answers=50).tobytes()
        for key in (seeded_part_key(1), seeded_part_key(2), seeded_part_key(1, "other"))
        for query in (0, 1)
    ]
    assert len(set(rows)) == 6


@pytest.mark.parametrize("noise", [law("gaussian", 4), law("laplace", "10/3")], ids=str)
def test_residual_draws_keep_their_sign_and_use_their_own_lane(noise: NoiseLaw) -> None:
    table = NoiseTable.build(noise, width=8)
    words, answers = AddressedWords(known_part_key()), 3001
    out = np.empty((2, answers), dtype=np.int64)
    sampler._draw_grid(table, words, 3, GEOUNITS[2:4], out)
    residuals = 0
    for row, geounit in enumerate(GEOUNITS[2:4].tolist()):
        for i in range(0, answers, 7):
            word = np.array([words.block(3, Lane.DIRECT, 0, i // 2, geounit)[i % 2]], dtype=np.uint64)
            expected = np.empty(1, dtype=np.int64)
            if numpy_kernels.map_words(word, table.alias.entries, table.alias.bits, 8, expected):
                residuals += 1
                size = residual_magnitude(table.weights, blocks(words, i, geounit))
                expected[0] = -size if word[0] & np.uint64(1) else size
            assert out[row, i] == expected[0]
    assert residuals > 5


def blocks(words: AddressedWords, answer: int, geounit: int) -> Callable[[int], int]:
    return lambda ext: words.block_bits(3, Lane.RESIDUAL, ext, answer, geounit)


def test_listed_cells_have_the_same_residual_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    table = NoiseTable.build(law("gaussian", 4), width=7)
    monkeypatch.setattr(NoiseTable, "for_law", staticmethod(lambda _: table))
    whole = draw(table.law, known_part_key(), query=0, geounits=GEOUNITS, answers=40)
    rows, columns = np.divmod(np.arange(240), 40)
    found = draw_cells(table.law, known_part_key(), query=0, geounits=GEOUNITS[rows], answers=columns)
    assert np.array_equal(whole.reshape(-1), found)


def test_a_table_is_built_once_for_a_law_value() -> None:
    assert NoiseTable.for_law(law("gaussian", "8/3")) is NoiseTable.for_law(
        NoiseLaw.gaussian(Fraction(16, 6))
    )
    assert NoiseTable.for_law(law("gaussian", "8/3")) is not NoiseTable.for_law(law("laplace", "8/3"))


def test_out_is_written_and_checked() -> None:
    out = np.empty((6, 5), dtype=np.int64)
    assert draw(LAWS[0], known_part_key(), query=0, geounits=GEOUNITS, answers=5, out=out) is out
    assert np.array_equal(out, draw(LAWS[0], known_part_key(), query=0, geounits=GEOUNITS, answers=5))
    for wrong in (out[:5], out.T, out.astype(np.int32), np.empty((6, 10), dtype=np.int64)[:, ::2]):
        with pytest.raises(ValueError, match="C-contiguous int64"):
            draw(LAWS[0], known_part_key(), query=0, geounits=GEOUNITS, answers=5, out=wrong)


def test_nothing_to_draw_is_no_error() -> None:
    none = GEOUNITS[:0]
    assert draw(LAWS[0], known_part_key(), query=0, geounits=none, answers=5).shape == (0, 5)
    assert draw(LAWS[0], known_part_key(), query=0, geounits=GEOUNITS, answers=0).shape == (6, 0)
    cells = draw_cells(LAWS[0], known_part_key(), query=0, geounits=none, answers=np.empty(0, dtype=np.int64))
    assert cells.shape == (0,)


def test_listed_cells_are_checked() -> None:
    with pytest.raises(ValueError, match="equal length"):
        draw_cells(LAWS[0], known_part_key(), query=0, geounits=GEOUNITS, answers=np.zeros(2, dtype=np.int64))
    with pytest.raises(OverflowError, match="at least 0"):
        draw_cells(LAWS[0], known_part_key(), query=0, geounits=GEOUNITS[:1], answers=np.array([-1]))


def test_noise_is_added_and_the_input_kept() -> None:
    values = np.arange(30, dtype=np.int64).reshape(6, 5)
    noisy = add_noise(values, LAWS[0], known_part_key(), Claim(4), geounits=GEOUNITS)
    assert np.array_equal(values, np.arange(30).reshape(6, 5))
    assert np.array_equal(
        noisy - values, draw(LAWS[0], known_part_key(), query=4, geounits=GEOUNITS, answers=5)
    )


def test_one_claim_adds_noise_to_a_geounit_once() -> None:
    values, key, claim = np.arange(15, dtype=np.int64).reshape(3, 5), known_part_key(), Claim(4)
    add_noise(values, LAWS[0], key, claim, geounits=GEOUNITS[:3])
    add_noise(values, LAWS[0], key, claim, geounits=GEOUNITS[3:])
    for others in (GEOUNITS[2:5], np.full(3, 1 << 40, np.uint64)):
        with pytest.raises(ReleaseError, match="answer of the same geounit before"):
            add_noise(values, LAWS[0], key, claim, geounits=others)


@pytest.mark.parametrize("extreme", [np.iinfo(np.int64).max, np.iinfo(np.int64).min])
def test_overflow_names_the_address_and_no_value(extreme: int, monkeypatch: pytest.MonkeyPatch) -> None:
    noise = draw(law("gaussian", 100), known_part_key(), query=4, geounits=GEOUNITS, answers=50)
    values = np.zeros((6, 50), dtype=np.int64)
    row, column = map(int, np.argwhere(noise < 0 if extreme < 0 else noise > 0)[-1])
    values[row, column] = extreme
    monkeypatch.setattr(sampler, "_CHECKED_ADDITION", 8)
    with pytest.raises(OverflowError) as caught:
        add_noise(values, law("gaussian", 100), known_part_key(), Claim(4), geounits=GEOUNITS)
    place = f"query 4, geounit {GEOUNITS[row]}, answer {column}"
    assert str(caught.value) == f"answer plus noise does not fit 64 bits at {place}"
    values[row, column] = extreme - int(noise[row, column])  # the sum is exactly the largest value
    assert (
        add_noise(values, law("gaussian", 100), known_part_key(), Claim(4), geounits=GEOUNITS)[row, column]
        == extreme
    )


def test_probability_of_a_residual_draw_is_the_stated_one() -> None:
    with mpmath.workprec(60):
        assert -60 < mpmath.log(NoiseTable.for_law(LAWS[0]).weights.residual, 2) - 63 < -59
