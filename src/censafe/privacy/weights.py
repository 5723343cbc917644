"""Integer weights of a law: how many of the 2^W magnitude words mean k."""

from __future__ import annotations

from dataclasses import dataclass

from censafe.privacy.enclosures import Magnitudes, enclose
from censafe.privacy.proofs import proven

__all__ = ["WORD_BITS", "IntegerWeights", "integer_weights"]

WORD_BITS = 63
_FIRST_EXTRA_BITS = 64
_MOST_EXTRA_BITS = 4096


@dataclass(frozen=True)
class IntegerWeights:
    """Weights q_k = floor(2^W P(m = k)) without trailing zeros, and what they leave over.

    Args:
        law: the law that was rounded down.
        width: W, the number of magnitude bits of a word.
        counts: q_0 .. q_{n-1}.
        residual: L = 2^W minus the sum of ``counts``.
    """

    law: Magnitudes
    width: int
    counts: tuple[int, ...]
    residual: int


@proven("weights.proof.md", digest="d907edba8be85034")
def integer_weights(law: Magnitudes, width: int = WORD_BITS) -> IntegerWeights:
    """Round the probabilities of a law down to multiples of 2^-W, certified for every k.

    Args:
        law: law on 0, 1, 2, ...
        width: W, 63 in production; small values serve exhaustive tests.

    Returns:
        The weights and the residual mass.

    Raises:
        RuntimeError: some floor is undecided at the largest precision.
    """
    most = (1 << width) - 1  # two outcomes or more have positive mass, so no probability reaches 1
    extra = _FIRST_EXTRA_BITS
    while extra <= _MOST_EXTRA_BITS:
        enclosure = enclose(law, width + extra)
        counts = [value >> extra for value in enclosure.lower]
        if counts == [min(value >> extra, most) for value in enclosure.upper]:
            while counts and not counts[-1]:
                counts.pop()
            return IntegerWeights(law, width, tuple(counts), (1 << width) - sum(counts))
        extra *= 2
    raise RuntimeError(
        f"a weight of the noise law is undecided at {_MOST_EXTRA_BITS} extra bits; please report this as a bug"
    )
