"""A fixed scrambling of 64-bit words, for hashes and tie-breaks that must be the same everywhere."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["GOLDEN", "mixed"]

GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def mixed(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of splitmix64: a fixed permutation of the 64-bit words without visible pattern.

    Source: Steele, Lea & Flood (2014), "Fast splittable pseudorandom number generators".

    Example:
        >>> hex(int(mixed(np.array([GOLDEN]))[0]))
        '0xe220a8397b1dcdaf'
    """
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))
