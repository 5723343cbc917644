"""Interior points of blocks, as files of anybody give them, for distances between the blocks of records."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from censafe.attack.people import BLOCK_DIGITS
from censafe.errors import DataError
from censafe.geography.area_lists import listed_blocks
from censafe.geography.geocodes import GeocodeForm
from censafe.products.topdown.census_tables.shapes import read_points
from censafe.publication.atomic import sha256_file

_FORM: Final = GeocodeForm(BLOCK_DIGITS)
_FARTHEST: Final = (180, 90)  # longitude and latitude, degrees


@dataclass(frozen=True, eq=False)
class BlockPoints:
    """Interior points of blocks, from a file with their latitudes and longitudes.

    Args:
        numbers: of the blocks, rising, shape (blocks,).
        places: on the unit sphere, where a shorter chord is a shorter way over ground, shape (blocks, 3).
    """

    path: Path
    digest: str
    numbers: NDArray[np.int64] = field(repr=False)
    places: NDArray[np.float64] = field(repr=False)

    @staticmethod
    def read(path: Path) -> BlockPoints:
        """Points of a file; its blocks are checked as those of a list of areas."""
        column, codes, degrees = read_points(path)
        if not len(codes):
            raise DataError(f"{path}: there is no block with a point; fix: give a row for each block")
        numbers = listed_blocks(path, column, pa.chunked_array([codes.tolist()]), {}, _FORM).numbers
        wrong = int((~(np.abs(degrees) <= _FARTHEST)).any(axis=1).sum())
        if wrong:
            raise DataError(
                f"{path}: {wrong:,} of {len(codes):,} blocks have no point on earth; allowed: latitudes from -90 to 90 and longitudes from -180 to 180 degrees"
            )
        longitude, latitude = np.radians(degrees).T
        flat = np.cos(latitude)
        places = np.stack([flat * np.cos(longitude), flat * np.sin(longitude), np.sin(latitude)], axis=1)
        order = np.argsort(numbers)
        return BlockPoints(path, sha256_file(path), numbers[order], places[order])

    def of(self, blocks: NDArray[np.str_]) -> NDArray[np.float64]:
        """Points of blocks, shape (blocks, 3)."""
        own = _FORM.pack(blocks)
        place = np.minimum(np.searchsorted(self.numbers, own), len(self.numbers) - 1)
        missing = np.count_nonzero(self.numbers[place] != own)
        if missing:
            raise DataError(
                f"{self.path}: {missing:,} of {len(blocks):,} blocks of the records have no point; fix: a file with the points of all blocks of their states"
            )
        return self.places[place]
