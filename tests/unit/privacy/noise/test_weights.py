import hashlib
from bisect import bisect_right
from collections.abc import Callable
from fractions import Fraction
from itertools import accumulate

import mpmath
import numpy as np
import pytest

from censafe.model import NoiseLaw
from censafe.privacy.noise import weights as weights_module
from censafe.privacy.noise.enclosures import Enclosure, Magnitudes
from censafe.privacy.noise.weights import integer_weights, residual_magnitude
from support.noise import GOLDEN_TABLES, folded_probabilities, law


@pytest.mark.parametrize("row", GOLDEN_TABLES, ids=lambda row: f"{row[0]}-{row[1]}")
def test_tables_equal_the_golden_tables(row: tuple[str, str, int, int, int | None, int, str]) -> None:
    kind, parameter, n, first, second, residual, digest = row
    table = integer_weights(Magnitudes.of(law(kind, parameter)))
    data = b"".join(count.to_bytes(8, "little") for count in table.counts)
    found = (
        len(table.counts),
        table.counts[0],
        table.counts[1] if n > 1 else None,
        table.residual,
        hashlib.sha256(data).hexdigest()[:16],
    )
    assert (n, first, second, residual, digest) == found
    assert sum(table.counts) + table.residual == 1 << 63


@pytest.mark.parametrize(
    ("kind", "parameter", "width"),
    [
        ("gaussian", "2500", 63),
        ("gaussian", "23981/8", 63),
        ("gaussian", "484/262", 63),
        ("gaussian", "1/4", 63),
        ("laplace", "22/7", 63),
        ("laplace", "60", 63),
        ("gaussian", "4", 8),
        ("laplace", "10/3", 12),
    ],
)
def test_weights_are_the_floors_of_an_independent_sum(kind: str, parameter: str, width: int) -> None:
    noise = law(kind, parameter)
    table = integer_weights(Magnitudes.of(noise), width)
    with mpmath.workprec(300):
        floors = [int(mpmath.floor(mpmath.ldexp(p, width))) for p in folded_probabilities(noise, 120)]
    while not floors[-1]:
        floors.pop()
    assert tuple(floors) == table.counts


@pytest.mark.parametrize("parameter", ["1/100", "1/10000", "1/1000000000"])
def test_a_tiny_sigma2_leaves_everything_but_zero_to_the_residual(parameter: str) -> None:
    table = integer_weights(Magnitudes.of(law("gaussian", parameter)))
    assert table.counts == ((1 << 63) - 1,)
    assert table.residual == 1


def test_an_undecided_floor_asks_for_more_bits_and_finally_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def straddling(_: Magnitudes, bits: int) -> Enclosure:
        asked.append(bits - 63)
        return Enclosure(bits, ((1 << bits - 1) - 1,), (1 << bits - 1,))

    monkeypatch.setattr(weights_module, "enclose", straddling)
    with pytest.raises(RuntimeError, match="report this as a bug"):
        integer_weights(Magnitudes(Fraction(1), Fraction(1), folded=True))
    assert asked == [64, 128, 256, 512, 1024, 2048, 4096]


PRECISION = 900
GOLDENS = [
    ("gaussian", "4", 63, (0, 8, 19)),
    ("laplace", "10/3", 63, (0, 75, 150)),
    ("gaussian", "214437516707/177339451520", 63, (0, 6, 10)),
    ("gaussian", "900", 63, (0, 145, 275)),
    ("gaussian", "4", 8, (0, 4, 8)),
]
LAWS = [("gaussian", "4", width) for width in (6, 7, 8, 9, 10, 11, 12, 63)]
LAWS += [("laplace", "10/3", 63), ("laplace", "10/3", 9), ("gaussian", "900", 63), ("gaussian", "1/100", 63)]


def blocks_of(bits: int, count: int) -> Callable[[int], int]:
    """128-bit blocks of a number of 128 * count bits, most significant first."""
    return lambda n: bits >> 128 * (count - 1 - n) & (1 << 128) - 1


def noted(blocks: Callable[[int], int], asked: set[int]) -> Callable[[int], int]:
    """The same blocks; their numbers are put into ``asked``."""

    def block(number: int) -> int:
        asked.add(number)
        return blocks(number)

    return block


@pytest.mark.parametrize("later", [0, (1 << 128) - 1])
@pytest.mark.parametrize("case", GOLDENS, ids=lambda case: "-".join(map(str, case[:3])))
def test_goldens(case: tuple[str, str, int, tuple[int, ...]], later: int) -> None:
    kind, parameter, width, magnitudes = case
    weights = integer_weights(Magnitudes.of(law(kind, parameter)), width)
    for first, expected in zip((0, 1 << 127, (1 << 128) - (1 << 120)), magnitudes, strict=True):
        assert expected == residual_magnitude(weights, lambda n, w=first: later if n else w)


def boundaries(noise: NoiseLaw, width: int) -> list[mpmath.mpf]:
    """Cumulative residual probabilities from a direct high-precision sum."""
    probabilities = folded_probabilities(noise, PRECISION - 150)
    counts = [int(mpmath.floor(mpmath.ldexp(p, width))) for p in probabilities]
    left = (1 << width) - sum(counts)
    terms = ((mpmath.ldexp(p, width) - count) / left for p, count in zip(probabilities, counts, strict=True))
    return list(accumulate(terms))


@pytest.mark.parametrize("case", LAWS, ids=lambda case: "-".join(map(str, case)))
def test_chosen_bits_equal_an_inverse_distribution_of_900_bits(case: tuple[str, str, int]) -> None:
    noise, width = law(case[0], case[1]), case[2]
    weights = integer_weights(Magnitudes.of(noise), width)
    rng = np.random.default_rng(width)
    with mpmath.workprec(PRECISION):
        sums = boundaries(noise, width)
        for _ in range(150):
            bits = int.from_bytes(rng.bytes(64), "big")
            expected = bisect_right(sums, mpmath.ldexp(bits, -512))
            assert expected == residual_magnitude(weights, blocks_of(bits, 4))


@pytest.mark.parametrize("case", LAWS, ids=lambda case: "-".join(map(str, case)))
def test_bits_that_straddle_a_cell_boundary_are_extended(case: tuple[str, str, int]) -> None:
    noise, width = law(case[0], case[1]), case[2]
    weights = integer_weights(Magnitudes.of(noise), width)
    with mpmath.workprec(PRECISION):
        sums = boundaries(noise, width)
        cells = [k for k in range(len(sums) - 1) if mpmath.mpf(2) ** -100 < 1 - sums[k] < 1][:12]
        assert cells
        for cell in cells:
            asked: set[int] = set()
            near = int(mpmath.floor(mpmath.ldexp(sums[cell], 512)))
            for offset in (-(1 << 200), 1 << 200):  # agrees with the boundary on more than 256 bits
                bits = near + offset
                expected = bisect_right(sums, mpmath.ldexp(bits, -512))
                assert expected == residual_magnitude(weights, noted(blocks_of(bits, 4), asked))
            assert asked == {0, 1, 2, 3}


def test_bits_that_run_out_raise() -> None:
    weights = integer_weights(Magnitudes.of(law("gaussian", 4)))

    def two(number: int) -> int:
        if number >= 2:
            raise RuntimeError("ran out")
        return (1 << 128) - 1

    with pytest.raises(RuntimeError, match="ran out"):
        residual_magnitude(weights, two)
