"""What a ratio's bounds are, and what was found about a ratio."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["RatioEstimate", "RatioModel", "UnansweredError"]


class UnansweredError(ValueError):
    """Noisy counts from which no estimate of their ratio follows."""


@dataclass(frozen=True)
class RatioModel:
    """What is known before the noise: lowest x den <= num <= largest x den, and den is 1 or more.

    Args:
        lowest: least ratio, 1 or 2.
        largest: largest ratio.
        tail: probability outside the interval on each side; twice that in all where it is the shortest.
        shortest: whether the interval is the shortest of its probability and not the one of equal tails.
    """

    lowest: float
    largest: float = 10.0
    tail: float = 0.05
    shortest: bool = False


@dataclass(frozen=True)
class RatioEstimate:
    """Posterior of one ratio.

    Args:
        ratio: mean of the ratio.
        low: lower end of the interval.
        high: upper end.
        num: mean of the numerator.
        den: mean of the denominator.
    """

    ratio: float
    low: float
    high: float
    num: float
    den: float
