"""Certified integer enclosures of exp(-x) and of the folded noise laws; nothing here is a float.

Every function returns a lower and an upper integer. Lower bounds are floored and upper bounds ceiled at
every step, so the truth lies between them whatever the working precision; more bits only narrow the gap.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from censafe.model import NoiseLaw
from censafe.model.proven import proven

_GUARD_BITS = 64


@dataclass(frozen=True)
class Magnitudes:
    """A law on 0, 1, 2, ... with weights w_0 = 1 and w_{k+1} = w_k exp(-(first + k step)).

    Args:
        step: growth of the exponent from one ratio to the next; 0 for a geometric law.
    """

    first: Fraction
    step: Fraction
    folded: bool

    @classmethod
    def of(cls, law: NoiseLaw, *, folded: bool = True, divisor: int = 1) -> Magnitudes:
        """Law of abs(X) for X of ``law``, or (not folded) the one-sided law on the grid of ``divisor``."""
        if law.kind == "gaussian":
            sigma2 = law.parameter / divisor**2
            return cls(1 / (2 * sigma2), 1 / sigma2, folded)
        return cls(divisor / law.parameter, Fraction(0), folded)


@dataclass(frozen=True)
class Enclosure:
    """Bounds of probabilities: lower[k] <= 2^bits P(m = k) <= upper[k]; the tail beyond is not listed."""

    bits: int
    lower: tuple[int, ...]
    upper: tuple[int, ...]


@proven("enclosures.proof.md", digest="19fc86ba21107a37")
def exp_neg(x: Fraction, bits: int) -> tuple[int, int]:
    """Enclose exp(-x) in integers.

    Args:
        x: exponent, at least 0.
        bits: number of fraction bits.

    Returns:
        (lower, upper) with lower <= 2^bits exp(-x) <= upper.

    Raises:
        ValueError: x is negative.

    Example:
        >>> exp_neg(Fraction(1), 20)
        (385749, 385750)
    """
    if x < 0:
        raise ValueError("exp_neg wants an exponent of at least 0")
    if x == 0:
        return 1 << bits, 1 << bits
    numerator, denominator = x.numerator, x.denominator
    halvings = max(0, numerator.bit_length() - denominator.bit_length())
    while 2 * numerator > denominator << halvings:
        halvings += 1
    work = bits + 32 + 2 * halvings
    y = (numerator << work) // (denominator << halvings)
    lower, terms = _alternating_series(y + 1, work)
    lower -= 2 * terms + 4
    upper, terms = _alternating_series(y, work)
    upper += 2 * terms + 4
    for _ in range(halvings):
        lower = lower * lower >> work
        upper = -(-(upper * upper) >> work)
    drop = work - bits
    return lower >> drop, -(-upper >> drop)


@proven("enclosures.proof.md", digest="ae6be58f3f38032b")
def _alternating_series(y: int, work: int) -> tuple[int, int]:
    """Taylor sum of exp(-y / 2^work) in truncating fixed point, and the index of its first zero term."""
    term = total = 1 << work
    index = 0
    while term:
        index += 1
        term = (term * y >> work) // index
        total += -term if index % 2 else term
    return total, index


@proven("enclosures.proof.md", digest="e896cb38530ca1d3")
def enclose(law: Magnitudes, bits: int) -> Enclosure:
    """Enclose the probabilities of a law on 0, 1, 2, ... up to a tail below 2^-bits.

    Args:
        law: what to enclose.
        bits: fraction bits of the result.

    Returns:
        Bounds of P(m = k) for k = 0 .. K, where the unnormalized weight of K is below 2^-bits.

    Raises:
        ArithmeticError: the ratios cannot be told from 1 at this precision.
    """
    work = bits + _GUARD_BITS
    lower, upper, tail = _weights(law, bits, work)
    fold = 2 if law.folded else 1
    total_lower = lower[0] + fold * sum(lower[1:])
    total_upper = upper[0] + fold * (sum(upper[1:]) + tail)
    below = [(fold * weight << bits) // total_upper for weight in lower]
    above = [-((-fold * weight << bits) // total_lower) for weight in upper]
    if fold == 2:
        below[0] = (lower[0] << bits) // total_upper
        above[0] = -((-upper[0] << bits) // total_lower)
    return Enclosure(bits, tuple(below), tuple(above))


@proven("enclosures.proof.md", digest="10060098af87acd9")
def _weights(law: Magnitudes, bits: int, work: int) -> tuple[list[int], list[int], int]:
    """Unnormalized weights, floored and ceiled at ``work`` bits, and an upper bound of the rest."""
    unity = 1 << work
    ratio_lower, ratio_upper = exp_neg(law.first, work)
    step_lower, step_upper = exp_neg(law.step, work)
    if (step_upper if law.step else ratio_upper) >= unity:
        raise ArithmeticError("the ratios of the law cannot be told from 1 at this precision")
    lower, upper = [unity], [unity]
    low = high = unity
    stop = unity >> bits
    while high >= stop:
        low = low * ratio_lower >> work
        high = -(-(high * ratio_upper) >> work)
        lower.append(low)
        upper.append(high)
        if law.step:
            ratio_lower = ratio_lower * step_lower >> work
            ratio_upper = -(-(ratio_upper * step_upper) >> work)
    return lower, upper, -(-(high * ratio_upper) // (unity - ratio_upper))
