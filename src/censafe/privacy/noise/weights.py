"""Integer weights of a law, how many of the 2^W magnitude words mean k, and the mass that they leave over, drawn exactly."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate

from censafe.model.proven import proven
from censafe.privacy.noise.enclosures import Magnitudes, enclose

WORD_BITS = 63
_FIRST_EXTRA_BITS = 64
_MOST_EXTRA_BITS = 4096


@dataclass(frozen=True)
class IntegerWeights:
    """Weights q_k = floor(2^W P(m = k)) without trailing zeros, and what they leave over."""

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


BLOCK_BITS = 128
_SLACK_BITS = 32


@proven("residual.proof.md", digest="aecdd6845fbfd97c")
def residual_magnitude(weights: IntegerWeights, block: Callable[[int], int]) -> int:
    """Draw k with probability (P(m = k) - q_k 2^-W) / (L 2^-W), for every k >= 0.

    Inverse of the cumulative distribution at a uniform number whose bits are revealed 128 at a time until
    certified enclosures decide the cell; nothing is truncated.

    Args:
        weights: the weights whose left-over mass is drawn.
        block: ``block(n)`` gives the n-th 128 random bits as an integer; it raises when they run out.

    Returns:
        The magnitude k.

    Source: inverse transform with certified bounds; see ``residual.proof.md``.
    """
    revealed = 1
    bits = block(0)
    while True:
        cell = _certain_cell(weights, bits, revealed * BLOCK_BITS)
        if cell is not None:
            return cell
        for number in range(revealed, 2 * revealed):
            bits = bits << BLOCK_BITS | block(number)
        revealed *= 2


@proven("residual.proof.md", digest="a7eb145289ad590c")
def _certain_cell(weights: IntegerWeights, bits: int, count: int) -> int | None:
    """The cell that holds all numbers starting with these ``count`` bits, or None when bounds cannot tell."""
    precision = weights.width + count + _SLACK_BITS
    below, above = _cumulative(weights, precision)
    scale = weights.residual << _SLACK_BITS  # L 2^(precision - W) / 2^count
    low, high = bits * scale, (bits + 1) * scale
    cell = bisect_right(above, low)  # the first cell whose upper sum exceeds the target's low end
    return cell if cell < len(below) and high <= below[cell] else None


@lru_cache(maxsize=8)
@proven("residual.proof.md", digest="8f72704464b324b9")
def _cumulative(weights: IntegerWeights, precision: int) -> tuple[list[int], list[int]]:
    """Lower and upper cumulative sums of P(m = k) - q_k 2^-W, in units of 2^-precision."""
    enclosure = enclose(weights.law, precision)
    shift = precision - weights.width
    taken = [count << shift for count in weights.counts]
    taken += [0] * (len(enclosure.lower) - len(taken))
    below = accumulate(max(low - used, 0) for low, used in zip(enclosure.lower, taken, strict=True))
    above = accumulate(high - used for high, used in zip(enclosure.upper, taken, strict=True))
    return list(below), list(above)
