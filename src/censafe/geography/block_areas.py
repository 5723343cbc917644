"""Areas of the blocks that are no levels of the standard spine: public facts of the geography."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["NO_AIANNH", "NO_PLACE", "BlockAreas"]

NO_AIANNH: Final = 9999
NO_PLACE: Final = 99999


@dataclass(frozen=True, eq=False)
class BlockAreas:
    """Areas of every block, in the order of the blocks of the standard spine.

    Args:
        codes: geocodes of 16 digits as numbers, rising; int64, shape (blocks,).
        aiannh: American Indian, Alaska Native or Hawaiian area, 9999 for none; int32, shape (blocks,).
        place: place, 99999 for none; int32, shape (blocks,).
        cousub: county subdivision, 99999 for none; int32, shape (blocks,).

    Raises:
        ValueError: the arrays are not of one length.
    """

    codes: NDArray[np.int64] = field(repr=False)
    aiannh: NDArray[np.int32] = field(repr=False)
    place: NDArray[np.int32] = field(repr=False)
    cousub: NDArray[np.int32] = field(repr=False)

    def __post_init__(self) -> None:
        if not len(self.codes) == len(self.aiannh) == len(self.place) == len(self.cousub):
            raise ValueError("areas must have one value a block")
