"""Histogram files of any origin: geocode, cell and count, as Parquet or CSV."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

__all__ = ["BlockCells", "read_block_cells"]


@dataclass(frozen=True, eq=False)
class BlockCells:
    """Rows of a file.

    Args:
        name: of the file.
        schema: that its metadata name; empty when they name none.
        codes: int64, shape (rows,), geocodes as numbers.
        cell: int64, shape (rows,).
        count: int64, shape (rows,).
    """

    name: str
    schema: str
    codes: NDArray[np.int64] = field(repr=False)
    cell: NDArray[np.int64] = field(repr=False)
    count: NDArray[np.int64] = field(repr=False)


def read_block_cells(path: Path, digits: int) -> BlockCells:
    """Read a file, or all files of a folder.

    Args:
        path: Parquet or CSV, or a folder of either.
        digits: of a geocode; where 16, codes of 15 digits are read as well.

    Raises:
        DataError: columns are missing, or values are not of the right form.
        StorageError: nothing can be read there.
    """
    raise NotImplementedError
