from collections.abc import Callable
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from censafe.model import NoiseLaw
from censafe.privacy.noise import wide
from censafe.privacy.noise.sampler import draw
from censafe.privacy.noise.tables import NoiseTable, grid_bits
from censafe.privacy.noise.wide import accepts, exponent
from censafe.privacy.noise.words import AddressedWords, Lane
from support.noise import exact_fraction, known_part_key, law


@pytest.mark.parametrize(
    ("noise", "bits"),
    [
        (law("gaussian", 1 << 30), 0),
        (NoiseLaw.gaussian(Fraction((1 << 30) * 3 + 1, 3)), 7),
        (law("gaussian", (1 << 32) - 1), 7),
        (law("gaussian", 1 << 32), 8),
        (law("laplace", 1 << 13), 0),
        (law("laplace", "16385/2"), 5),
        (law("laplace", (1 << 14) - 1), 5),
        (law("laplace", 1 << 14), 6),
        (law("gaussian", "1/1000"), 0),
    ],
    ids=str,
)
def test_grid_is_the_largest_with_256_columns(noise: NoiseLaw, bits: int) -> None:
    assert grid_bits(noise) == bits
    if bits:
        power = 1 if noise.kind == "laplace" else 2
        assert (256 << bits) ** power <= noise.parameter < (256 << bits + 1) ** power


@pytest.mark.parametrize("noise", [law("gaussian", 1 << 130), law("laplace", 1 << 60)], ids=str)
def test_laws_beyond_64_bits_are_refused(noise: NoiseLaw) -> None:
    with pytest.raises(OverflowError, match="does not fit 64 bits"):
        NoiseTable.for_law(noise)


def test_the_widest_laws_are_drawn() -> None:
    for noise in (law("gaussian", (1 << 113) - 1), law("laplace", (1 << 57) - 1)):
        values = draw(noise, known_part_key(), query=0, geounits=np.arange(4, dtype=np.uint64), answers=500)
        assert np.abs(values).max() > 1 << 56


def bits_of(number: int, count: int) -> Callable[[int], int]:
    return lambda n: number >> 128 * (count - 1 - n) & (1 << 128) - 1


@pytest.mark.parametrize("odds", [Fraction(1, 3), Fraction(22, 7), Fraction(1, 10**30), Fraction(60)])
def test_acceptance_is_decided_as_by_a_high_precision_comparison(odds: Fraction) -> None:
    with mpmath.workprec(700):
        edge = int(mpmath.floor(mpmath.ldexp(mpmath.exp(-exact_fraction(odds)), 512)))
    for offset in (-(1 << 500), -(1 << 380), -(1 << 200), -1 << 20, 1 << 20, 1 << 200, 1 << 380, 1 << 450):
        uniform = edge + offset
        if 0 <= uniform < 1 << 512:
            assert accepts(odds, bits_of(uniform, 4)) == (offset < 0)


def test_certainty_accepts() -> None:
    assert accepts(Fraction(0), lambda _: (1 << 128) - 1)


@pytest.mark.parametrize(
    "noise",
    [law("gaussian", 10**10 + 7), law("gaussian", 10**30), law("laplace", 10**5), law("laplace", 10**16)],
    ids=str,
)
def test_the_integer_bound_accepts_only_what_is_certain_and_most_of_it(noise: NoiseLaw) -> None:
    shift = grid_bits(noise)
    rng = np.random.default_rng(11)
    column = rng.integers(1, 5000, 400)
    column[:3] = [0, (1 << 15) - 1, 1 << 20]
    place = rng.integers(1, 1 << shift, 400)
    place[3:5] = [(1 << shift) - 1, 1]
    odds = [exponent(noise, shift, int(i), int(r)) for i, r in zip(column, place, strict=True)]
    with mpmath.workprec(200):
        edges = [int(mpmath.floor(mpmath.ldexp(mpmath.exp(-exact_fraction(e)), 63))) for e in odds]
    # u is the integer part of 2^63 U: from the edge on, U may lie above exp(-E).
    refused = np.array(edges, dtype=np.uint64)
    assert not wide._surely_accepted(noise, shift, column, place, refused).any()
    far = np.array(
        [max(0, int((1 << 63) * (1 - 2 * e - Fraction(1, 1 << 20)))) for e in odds], dtype=np.uint64
    )
    assert wide._surely_accepted(noise, shift, column, place, far)[(column > 0) & (column < 5000)].all()
    largest = np.full(400, (1 << 63) - 1, dtype=np.uint64)
    assert wide._surely_accepted(noise, shift, column[5:], 0 * place[5:], largest[5:]).all() == (shift <= 24)


def test_narrow_grids_leave_every_decision_to_the_enclosures() -> None:
    ones = np.ones(3, dtype=np.int64)
    surely = wide._surely_accepted(law("gaussian", 9), 1, ones, ones, np.zeros(3, dtype=np.uint64))
    assert not surely.any()


@pytest.mark.parametrize("noise", [law("gaussian", 10**10), law("laplace", 10**5)], ids=str)
def test_draws_follow_the_written_address_scheme(noise: NoiseLaw) -> None:
    """Replays single answers from their blocks, with exact arithmetic only."""
    table, shift = NoiseTable.for_law(noise), grid_bits(noise)
    values = draw(noise, known_part_key(), query=3, geounits=np.array([5, 9], dtype=np.uint64), answers=700)
    words = AddressedWords(known_part_key())
    mask = (1 << table.alias.bits) - 1
    for row, geounit in enumerate((5, 9)):
        for i in range(0, 700, 3):
            for attempt in range(16):
                word, second = words.block(3, Lane.WIDE_TABLE, 16 * attempt, i, geounit)
                c, f = word >> (64 - table.alias.bits), word >> 1 & (1 << (63 - table.alias.bits)) - 1
                entry = int(table.alias.entries[c])
                column = c if f < entry >> table.alias.bits else entry & mask
                magnitude, negative = column << shift | second >> (64 - shift), second & 1
                odds = exponent(noise, shift, column, second >> (64 - shift))
                uniform = uniform_bits(words, 16 * attempt, i, geounit)
                if accepts(odds, uniform) and not (negative and magnitude == 0):
                    break
            assert values[row, i] == (-magnitude if negative else magnitude)


def uniform_bits(words: AddressedWords, ext: int, answer: int, geounit: int) -> Callable[[int], int]:
    return lambda n: words.block_bits(3, Lane.WIDE_UNIFORM, ext + n, answer, geounit)


def test_endless_refusals_and_missing_bits_raise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wide, "_surely_accepted", lambda *_: np.zeros(1, dtype=np.bool_))
    monkeypatch.setattr(wide, "accepts", lambda *_: False)
    with pytest.raises(RuntimeError, match="sixteen proposals"):
        draw(
            law("gaussian", 10**10),
            known_part_key(),
            query=0,
            geounits=np.arange(1, dtype=np.uint64),
            answers=1,
        )
    monkeypatch.setattr(wide, "accepts", lambda _, block: block(16))
    with pytest.raises(RuntimeError, match="ran out"):
        draw(
            law("gaussian", 10**10),
            known_part_key(),
            query=0,
            geounits=np.arange(1, dtype=np.uint64),
            answers=1,
        )


def test_a_draw_beyond_64_bits_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wide, "residual_magnitude", lambda *_: 1 << 43)
    table = NoiseTable.build(law("gaussian", 10**18), width=14, shift=grid_bits(law("gaussian", 10**18)))
    monkeypatch.setattr(NoiseTable, "for_law", staticmethod(lambda _: table))
    with pytest.raises(OverflowError, match="does not fit 64 bits"):
        draw(table.law, known_part_key(), query=0, geounits=np.arange(1, dtype=np.uint64), answers=9000)
