"""The stream of random words that a tract is drawn from, and the simplest draws, as compiled kernels."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from censafe.model.compiled import compiled

__all__ = ["Words", "pick", "sex", "uniform", "waiting"]

Words = NDArray[np.uint64]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_S11, _S27, _S30, _S31 = np.uint64(11), np.uint64(27), np.uint64(30), np.uint64(31)
_UNIT = 2.0**-53


@compiled()
def uniform(words: Words) -> float:
    """The next number in [0, 1): SplitMix64 (Steele, Lea, Flood 2014), for no secret is drawn from it."""
    words[0] += _GOLDEN
    z = words[0]
    z = (z ^ (z >> _S30)) * _MIX_1
    z = (z ^ (z >> _S27)) * _MIX_2
    return float((z ^ (z >> _S31)) >> _S11) * _UNIT


@compiled()
def pick(cumulative: NDArray[np.float64], words: Words) -> int:
    """A position drawn by cumulative shares that end with 1."""
    u = uniform(words)
    low = 0
    high = len(cumulative) - 1
    while low < high:
        middle = (low + high) >> 1
        if u < cumulative[middle]:
            high = middle
        else:
            low = middle + 1
    return low


@compiled()
def waiting(mean: float, words: Words) -> int:
    """A whole number from zero: an exponential time of the mean given, rounded down."""
    return int(-math.log(1.0 - uniform(words)) * mean)


@compiled()
def sex(male: float, words: Words) -> int:
    """1 male, with the probability given, or 2 female."""
    return 1 if uniform(words) < male else 2
