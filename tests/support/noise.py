"""Oracles and fixtures of the noise tests: golden tables, high-precision sums, keys with known bytes."""

from fractions import Fraction

import mpmath
import numpy as np
from numpy.typing import NDArray

from censafe.model import NoiseLaw
from censafe.privacy.keys import Secret, TestKey, TestPartKey, derive_part_key
from censafe.privacy.noise.sampler import draw
from censafe.privacy.noise.tables import NoiseTable

# kind, parameter, n, q_0, q_1, L, first 16 hex digits of SHA-256 over q as 8-byte little-endian integers;
# from two implementations that share no code with the package (directed big integers, 300-bit direct sums).
GOLDEN_TABLES = (
    ("gaussian", "4", 19, 1839796536686825613, 3247229490023979090, 9, "786126faa20526b5"),
    ("gaussian", "100", 91, 367959307337365122, 732248205271547621, 45, "03980c9718288478"),
    ("gaussian", "1/3", 6, 6355596281401245756, 2836250432215650117, 4, "35e7db6cbe3840d7"),
    ("gaussian", "1/100", 1, 9223372036854775807, None, 1, "6a69a6cc7473a163"),
    ("gaussian", "214437516707/177339451520", 11, 3346201491576644918, 4425901001363040905, 5, "f1bc01202a4a22c9"),
    ("gaussian", "1897677139/282013440", 24, 1418481032230081519, 2633803182918424792, 13, "da8101422f12f970"),
    ("gaussian", "214437516707/21246481300", 30, 1158224949047241109, 2204489072826547160, 15, "00eedb708ee67f94"),
    ("gaussian", "643312550121/80785100", 788, 41233900074212538, 82462622291773987, 390, "7aa256b6fe606a69"),
    ("gaussian", "31231678045/11417641", 465, 70354247931733473, 140682778188818734, 237, "bbbf9a8aa0f19c9d"),
    ("gaussian", "10000000000/108241", 2641, 12105861211399312, 24211591388100870, 1348, "95a450992da3874d"),
    ("laplace", "2", 86, 2258975942118245873, 2740276336895894569, 47, "32f99b6fe9cd9a0f"),
    ("laplace", "10/3", 142, 1373222055827494086, 2034615839998029611, 70, "82132b4f3a206d37"),
    ("laplace", "1/7", 7, 9206566108633619694, 16790603198296837, 4, "196b3727525358a6"),
    ("laplace", "300", 11390, 15372272494508285, 30642233785791136, 6005, "0eced40a3739248d"),
)  # fmt: skip


def law(kind: str, parameter: str | int) -> NoiseLaw:
    return (
        NoiseLaw.gaussian(Fraction(parameter))
        if kind == "gaussian"
        else NoiseLaw.laplace(Fraction(parameter))
    )


def known_part_key() -> TestPartKey:
    """A part key whose bytes are 00 01 .. 1f."""
    return TestPartKey(Secret(bytearray(range(32))), "known")


def seeded_part_key(seed: int, part: str = "part") -> TestPartKey:
    """A part key of a test run."""
    key = derive_part_key(TestKey(seed), "0" * 64, b"inputs", part)
    if type(key) is not TestPartKey:
        raise TypeError("a test key must give a test part key")
    return key


def sample(noise: NoiseLaw, count: int, seed: int, table: NoiseTable | None = None) -> NDArray[np.int64]:
    """``count`` draws; from another table than the law's own when one is given."""
    from censafe.privacy.noise import sampler
    from censafe.privacy.noise.words import AddressedWords

    key, geounits = seeded_part_key(seed), np.arange(1, dtype=np.uint64)
    if table is None:
        return draw(noise, key, query=1, geounits=geounits, answers=count)[0]
    out = np.empty((1, count), dtype=np.int64)
    fill = sampler._draw_grid_wide if table.shift else sampler._draw_grid
    fill(table, AddressedWords(key), 1, geounits, out)
    return out[0]


def exact_fraction(value: Fraction) -> mpmath.mpf:
    """A Fraction at the current precision of mpmath."""
    return mpmath.mpf(value.numerator) / value.denominator


def folded_probabilities(noise: NoiseLaw, bits: int) -> list[mpmath.mpf]:
    """P(abs(X) = k) by direct summation at the current precision of mpmath, up to weights below 2^-bits."""
    parameter = exact_fraction(noise.parameter)
    weights = [mpmath.mpf(1)]
    floor = mpmath.ldexp(1, -bits)
    while weights[-1] > floor:
        k = len(weights)
        weights.append(mpmath.exp(-k * k / (2 * parameter) if noise.kind == "gaussian" else -k / parameter))
    total = weights[0] + 2 * mpmath.fsum(weights[1:])
    return [weight / total * (2 if k else 1) for k, weight in enumerate(weights)]
