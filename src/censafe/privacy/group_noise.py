"""Variance of sums of noise draws with weights."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from censafe.privacy.variance import exact_variance

if TYPE_CHECKING:
    from censafe.model.group_estimates import GroupNoise

__all__ = ["variance_of_cells"]


@lru_cache(maxsize=65536)
def variance_of_cells(noise: GroupNoise, count: int) -> float:
    """Variance of the noise in a sum of some cells of a group, before rounding.

    Args:
        noise: of the group.
        count: how many of its cells are added up, 1 to ``noise.cells``.

    Raises:
        ValueError: for any other number.

    Example:
        >>> from fractions import Fraction
        >>> from censafe.model import NoiseLaw
        >>> from censafe.model.group_estimates import GroupNoise
        >>> variance_of_cells(GroupNoise(NoiseLaw.gaussian(Fraction(625)), 8), 8)
        5000.0
    """
    if not 1 <= count <= noise.cells:
        raise ValueError(f"a group of {noise.cells} cells has no sum of {count}")
    return sum(term.weight**2 * term.draws * exact_variance(term.law) for term in noise.terms(count))
