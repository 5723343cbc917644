"""Histograms of many geounits that hold their non-empty cells only."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class SparseLevel:
    """Public or estimated histograms of the geounits of one level.

    Args:
        geounits: sorted or in the order of a spine, shape (n,).
        node_ptr: int64, shape (n + 1,); geounit i owns the entries node_ptr[i] .. node_ptr[i + 1] - 1.
        cell: int32, flat cell of every entry, rising within a geounit.
        count: int32, count of every entry, at least 1.
    """

    geounits: NDArray[np.str_]
    node_ptr: NDArray[np.int64]
    cell: NDArray[np.int32]
    count: NDArray[np.int32]

    def __post_init__(self) -> None:
        _check_layout(self.geounits, self.node_ptr, self.cell, self.count)

    @property
    def nodes(self) -> int:
        """Number of geounits."""
        return len(self.geounits)

    @property
    def total(self) -> int:
        """Sum of all counts."""
        return int(self.count.sum(dtype=np.int64))

    def part(self, first: int, last: int) -> SparseLevel:
        """Copies of the histograms of consecutive geounits.

        Example:
            >>> level = SparseLevel(np.array(["a", "b"]), np.array([0, 1, 3]), np.array([9, 4, 7], np.int32), np.array([1, 2, 3], np.int32))
            >>> part = level.part(1, 2)
            >>> part.geounits.tolist(), part.node_ptr.tolist(), part.cell.tolist()
            (['b'], [0, 2], [4, 7])
        """
        pointer = self.node_ptr[first : last + 1]
        entries = slice(int(pointer[0]), int(pointer[-1]))
        cell, count = self.cell[entries].copy(), self.count[entries].copy()
        return SparseLevel(self.geounits[first:last], pointer - pointer[0], cell, count)


@dataclass(frozen=True, eq=False)
class ExactHistograms:
    """CONFIDENTIAL. True histograms of the geounits of one level, laid out as in :class:`SparseLevel`.

    The counts are kept out of ``repr`` and the object cannot be pickled, so that neither a log line nor a worker
    queue carries them by accident.
    """

    geounits: NDArray[np.str_] = field(repr=False)
    node_ptr: NDArray[np.int64] = field(repr=False)
    cell: NDArray[np.int32] = field(repr=False)
    count: NDArray[np.int32] = field(repr=False)

    def __post_init__(self) -> None:
        _check_layout(self.geounits, self.node_ptr, self.cell, self.count)

    @property
    def nodes(self) -> int:
        """Number of geounits."""
        return len(self.geounits)

    def __reduce__(self) -> NoReturn:
        raise TypeError("exact histograms are confidential and cannot be pickled")


def _check_layout(
    geounits: NDArray[np.str_],
    node_ptr: NDArray[np.int64],
    cell: NDArray[np.int32],
    count: NDArray[np.int32],
) -> None:
    """Refuse arrays that do not belong together; messages hold no value."""
    if geounits.dtype.kind != "U" or geounits.ndim != 1:
        raise ValueError("geounits must be a vector of text")
    if node_ptr.dtype != np.int64 or node_ptr.shape != (len(geounits) + 1,):
        raise ValueError("node_ptr must be an int64 vector with one value more than there are geounits")
    if cell.dtype != np.int32 or count.dtype != np.int32 or cell.ndim != 1 or cell.shape != count.shape:
        raise ValueError("cell and count must be int32 vectors of one length")
    if node_ptr[0] != 0 or node_ptr[-1] != len(cell) or bool(np.any(np.diff(node_ptr) < 0)):
        raise ValueError("node_ptr must rise from 0 to the number of entries")
