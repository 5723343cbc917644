"""The table that turns words into draws of a law, direct or on a grid."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from censafe.model import NoiseLaw
from censafe.privacy.alias import AliasTable, build_alias
from censafe.privacy.enclosures import Magnitudes
from censafe.privacy.weights import WORD_BITS, IntegerWeights, integer_weights

__all__ = ["NoiseTable", "grid_bits"]

_COLUMN_BITS = 8  # 256 to 512 columns for one standard deviation or scale
_DIRECT_SIGMA2 = 1 << 30
_DIRECT_SCALE = 1 << 13
_MOST_GRID_BITS = 48


@dataclass(frozen=True, eq=False)
class NoiseTable:
    """Everything that turns words into draws of one law.

    Args:
        law: the law drawn.
        weights: certified integer weights of the table.
        alias: packed alias table.
        shift: 0 for a direct table of abs(X); otherwise the table draws columns of width 2^shift.
    """

    law: NoiseLaw
    weights: IntegerWeights
    alias: AliasTable
    shift: int

    @staticmethod
    def for_law(law: NoiseLaw) -> NoiseTable:
        """The table of a law, built once for each law value.

        Args:
            law: any discrete Gaussian or two-sided geometric law.

        Returns:
            The table.

        Raises:
            OverflowError: the law is so wide that its noise has no place in 64 bits.
        """
        return _table(law)

    @classmethod
    def build(cls, law: NoiseLaw, *, width: int = WORD_BITS, shift: int = 0) -> NoiseTable:
        """Build a table of a chosen width and grid.

        Args:
            law: the law.
            width: magnitude bits of a word; 63 in production.
            shift: logarithm of the column width; 0 for a direct table.

        Returns:
            The table.
        """
        magnitudes = Magnitudes.of(law, folded=shift == 0, divisor=1 << shift)
        weights = integer_weights(magnitudes, width)
        return cls(law, weights, build_alias(weights), shift)


def grid_bits(law: NoiseLaw) -> int:
    """Logarithm of the column width T of a law, 0 when one direct table serves.

    Args:
        law: noise law.

    Returns:
        0 up to sigma2 = 2^30 or scale = 2^13; beyond, the largest j with 256 * 2^j at most sigma or scale.

    Raises:
        OverflowError: the law is so wide that its noise has no place in 64 bits.
    """
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


@lru_cache(maxsize=256)
def _table(law: NoiseLaw) -> NoiseTable:
    return NoiseTable.build(law, shift=grid_bits(law))
