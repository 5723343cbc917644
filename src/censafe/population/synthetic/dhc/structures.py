"""What a draw of persons and households for the DHC reads and fills."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["DhcBlocks", "DhcChances", "DhcUnits"]

_Floats = NDArray[np.float64]


class DhcChances(NamedTuple):
    """Chances of blocks, vacancies and facilities beside those of the other layouts."""

    inhabited: float  # mean of the persons in households of a block that has any
    empty: float  # probability of a block without anybody before one with somebody
    vacant_block: float  # probability that such a block has a vacant housing unit
    block_group: float  # probability that a block has a more frequent group of its own
    beside: float  # probability that a facility stands in the block of the one before
    apart: float  # probability that a facility stands in a block without housing units
    reasons: _Floats  # (7,) cumulative shares of VACS 1-7


class DhcUnits(NamedTuple):
    """One entry per housing unit, occupied or vacant, or group quarters, in MAFID order."""

    mafid: NDArray[np.int32]
    rtype: NDArray[np.int8]  # 2 housing unit, 4 group quarters
    tract: NDArray[np.int32]  # position in the Tracts drawn from
    block: NDArray[np.int16]  # four-digit block number, the first digit being the block group
    place: NDArray[np.int32]  # position in the DhcBlocks drawn
    quarters: NDArray[np.int8]  # 0, or 1 + the kind of group quarters
    pop: NDArray[np.int32]
    npf: NDArray[np.int16]
    age: NDArray[np.int16]  # of the householder, as sex, hispanic and race
    sex: NDArray[np.int8]
    hispanic: NDArray[np.int8]
    race: NDArray[np.int8]
    tenure: NDArray[np.int8]
    vacs: NDArray[np.int8]
    hht: NDArray[np.int8]
    hht2: NDArray[np.int8]
    cplt: NDArray[np.int8]
    upart: NDArray[np.int8]
    multg: NDArray[np.int8]
    paoc: NDArray[np.int8]
    pac: NDArray[np.int8]
    p18: NDArray[np.int8]
    p60: NDArray[np.int8]
    p65: NDArray[np.int8]
    p75: NDArray[np.int8]


class DhcBlocks(NamedTuple):
    """One entry per block, blocks without housing units included, in geographic order."""

    tract: NDArray[np.int32]
    block: NDArray[np.int16]
