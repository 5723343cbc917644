"""Noisy counts of one table with one row for each population group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from censafe.errors import DataError
from censafe.model.sdhc_cells import Key, NoisyCells, key_text

__all__ = ["GroupedCells", "grouped"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class GroupedCells:
    """Noisy counts of one table with one row a population group and one column a cell.

    Args:
        table: name of the table.
        keys: of the rows, in the order of their first appearance.
        cells: of the columns.
        count: int64, shape (groups, cells).
        variance: float64, shape (groups, cells).
        geometric: bool, shape (groups, cells).
    """

    table: str
    keys: tuple[Key, ...]
    cells: tuple[int, ...]
    count: NDArray[np.int64] = field(repr=False)
    variance: Floats = field(repr=False)
    geometric: NDArray[np.bool_] = field(repr=False)

    def rows(self, wanted: Sequence[int]) -> GroupedCells:
        """Some of the groups, by row, in the given order."""
        chosen = list(wanted)
        return GroupedCells(
            self.table,
            tuple(self.keys[row] for row in chosen),
            self.cells,
            self.count[chosen],
            self.variance[chosen],
            self.geometric[chosen],
        )


def grouped(noisy: NoisyCells, cells: Sequence[int]) -> GroupedCells:
    """One row for each population group, complete in the given cells.

    Args:
        noisy: rows of one table.
        cells: numbers of its basis cells, the columns of the result.

    Raises:
        DataError: a cell that is missing, present twice or not a basis cell, a count or variance that is not
            possible; names table, group and cell.
    """
    keys: dict[Key, int] = {}
    columns = {cell: column for column, cell in enumerate(cells)}
    place = np.empty((noisy.cell.size, 2), np.int64)
    texts = zip(noisy.region_type.tolist(), noisy.region.tolist(), noisy.iteration.tolist(), strict=True)
    for row, (key, cell) in enumerate(zip(texts, noisy.cell.tolist(), strict=True)):
        if cell not in columns:
            listed = ", ".join(map(str, cells))
            raise DataError(f"{key_text(noisy.table, key, cell)}: not a basis cell; they are {listed}")
        place[row] = keys.setdefault(key, len(keys)), columns[cell]
    ordered = tuple(keys)
    seen = np.zeros((len(keys), len(cells)), np.int64)
    np.add.at(seen, tuple(place.T), 1)
    for group, column in np.argwhere(seen != 1)[:1].tolist():
        problem = "is missing" if seen[group, column] == 0 else f"occurs {seen[group, column]} times"
        raise DataError(f"{key_text(noisy.table, ordered[group], cells[column])}: the row {problem}")
    for row in np.flatnonzero(~(np.isfinite(noisy.variance) & (noisy.variance >= 0)))[:1].tolist():
        where = key_text(noisy.table, ordered[place[row, 0]], int(noisy.cell[row]))
        raise DataError(f"{where}: VARIANCE is {noisy.variance[row]}; it is 0 or more")
    found = GroupedCells(
        noisy.table,
        ordered,
        tuple(cells),
        np.zeros(seen.shape, np.int64),
        np.zeros(seen.shape, np.float64),
        np.zeros(seen.shape, np.bool_),
    )
    at = tuple(place.T)
    found.count[at], found.variance[at], found.geometric[at] = noisy.count, noisy.variance, noisy.geometric
    return found
