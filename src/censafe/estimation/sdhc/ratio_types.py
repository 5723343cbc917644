"""What a ratio's bounds are, and what was found about a ratio."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["RatioEstimate", "RatioModel"]


@dataclass(frozen=True)
class RatioModel:
    """What is known before the noise: lowest x den <= num <= largest x den, and den is 1 or more.

    Args:
        lowest: least ratio, 1 or 2.
        largest: largest ratio.
        tail: probability outside the interval on each side.
    """

    lowest: float
    largest: float = 10.0
    tail: float = 0.05


@dataclass(frozen=True)
class RatioEstimate:
    """Posterior of one ratio.

    Args:
        ratio: mean of the ratio.
        low: lower quantile.
        high: upper quantile.
        num: mean of the numerator.
        den: mean of the denominator.
    """

    ratio: float
    low: float
    high: float
    num: float
    den: float
