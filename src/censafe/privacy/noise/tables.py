"""The table that turns words into draws of a law, direct or on a grid, and Walker's alias table in integers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from censafe.model import NoiseLaw
from censafe.model.proven import proven
from censafe.privacy.noise.enclosures import Magnitudes
from censafe.privacy.noise.weights import WORD_BITS, IntegerWeights, integer_weights


@dataclass(frozen=True, eq=False)
class AliasTable:
    """Packed table of 2^bits columns of capacity 2^(width - bits).

    Args:
        entries: uint64, shape (2^b,), threshold * 2^b + alias; a full column has threshold 0 and itself as alias.

    The outcome 2^b - 1 stands for a residual draw.
    """

    width: int
    bits: int
    entries: NDArray[np.uint64]

    @property
    def residual_outcome(self) -> int:
        """The outcome that asks for a residual draw."""
        return (1 << self.bits) - 1


@proven("alias.proof.md", digest="a8bc1158194323ba")
def build_alias(weights: IntegerWeights) -> AliasTable:
    """Build the alias table in the canonical order that makes draws comparable between implementations.

    Columns below and above capacity are listed by ascending index, both lists are popped from the end and
    the updated column is appended.

    Args:
        weights: integer weights and residual mass.

    Returns:
        The packed table.

    Raises:
        ArithmeticError: the mass of an outcome in the finished table is not its weight.
    """
    bits = max(1, len(weights.counts).bit_length())  # smallest b with 2^b >= n + 1
    columns = 1 << bits
    masses = list(weights.counts) + [0] * (columns - len(weights.counts))
    masses[-1] = weights.residual
    thresholds, aliases = _walker(masses, 1 << (weights.width - bits))
    _audit(masses, thresholds, aliases, 1 << (weights.width - bits))
    packed = [(threshold << bits) | alias for threshold, alias in zip(thresholds, aliases, strict=True)]
    entries = np.array(packed, dtype=np.uint64)
    entries.setflags(write=False)
    return AliasTable(weights.width, bits, entries)


@proven("alias.proof.md", digest="c112328366c39045")
def _walker(masses: Sequence[int], capacity: int) -> tuple[list[int], list[int]]:
    """Thresholds and aliases; a column that ends exactly full keeps threshold 0 and itself as alias."""
    left = list(masses)
    thresholds = [0] * len(left)
    aliases = list(range(len(left)))
    small = [index for index, mass in enumerate(left) if mass < capacity]
    large = [index for index, mass in enumerate(left) if mass >= capacity]
    while small and large:
        poor, rich = small.pop(), large.pop()
        thresholds[poor] = left[poor]
        aliases[poor] = rich
        left[rich] -= capacity - left[poor]
        (small if left[rich] < capacity else large).append(rich)
    if any(left[index] != capacity for index in small + large):
        raise ArithmeticError("an alias column ended neither full nor paired; please report this as a bug")
    return thresholds, aliases


@proven("alias.proof.md", digest="2bf7ab8ee9ddaab2")
def _audit(masses: Sequence[int], thresholds: Sequence[int], aliases: Sequence[int], capacity: int) -> None:
    """Add up the mass of every outcome over all columns and compare it with its weight."""
    assigned = list(thresholds)
    for alias, threshold in zip(aliases, thresholds, strict=True):
        assigned[alias] += capacity - threshold
    if assigned != list(masses):
        raise ArithmeticError("an alias table does not carry the weights it was built from")


_COLUMN_BITS = 8  # 256 to 512 columns for one standard deviation or scale
_DIRECT_SIGMA2 = 1 << 30
_DIRECT_SCALE = 1 << 13
_MOST_GRID_BITS = 48


@dataclass(frozen=True, eq=False)
class NoiseTable:
    """Everything that turns words into draws of one law.

    Args:
        shift: 0 for a direct table of abs(X); otherwise the table draws columns of width 2^shift.
    """

    law: NoiseLaw
    weights: IntegerWeights
    alias: AliasTable
    shift: int

    @staticmethod
    @lru_cache(maxsize=256)
    def for_law(law: NoiseLaw) -> NoiseTable:
        """The table of a law, built once for each law value."""
        return NoiseTable.build(law, shift=grid_bits(law))

    @classmethod
    def build(cls, law: NoiseLaw, *, width: int = WORD_BITS, shift: int = 0) -> NoiseTable:
        """Build a table of a chosen width and grid."""
        magnitudes = Magnitudes.of(law, folded=shift == 0, divisor=1 << shift)
        weights = integer_weights(magnitudes, width)
        return cls(law, weights, build_alias(weights), shift)


def grid_bits(law: NoiseLaw) -> int:
    """Logarithm of the column width T of a law, 0 when one direct table serves."""
    if law.kind == "gaussian":
        if law.parameter <= _DIRECT_SIGMA2:
            return 0
        bits = (int(law.parameter).bit_length() - 1) // 2 - _COLUMN_BITS
    else:
        if law.parameter <= _DIRECT_SCALE:
            return 0
        bits = int(law.parameter).bit_length() - 1 - _COLUMN_BITS
    if bits > _MOST_GRID_BITS:
        raise OverflowError(f"noise of {law.kind} law with parameter {law.parameter} does not fit 64 bits")
    return bits
