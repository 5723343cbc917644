"""What the geounits below a level say about its cells, as a term of the objective of the level."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numba import float64, int32, int64, void
from numpy.typing import NDArray

from censafe.model.compiled import compiled
from censafe.model.families import Families

__all__ = ["Below", "no_tables"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class CoarseFit:
    """The objective of sums over one exchangeable attribute, to be fitted before the cells.

    Args:
        label: which sum each cell belongs to, int32, shape (cells,).
        tables: as of :class:`Below`, of own answers and those below.
        right: as of :class:`Below`, of both.
    """

    label: NDArray[np.int32] = field(repr=False)
    tables: Floats = field(repr=False)
    right: Floats = field(repr=False)


@dataclass(frozen=True, eq=False)
class Below:
    """The information of all answers below the geounits of a level: x' P x / 2 - r' x, to be added to their own.

    Args:
        tables: of every pattern of geounits, the entries of P by the set of exchangeable attributes on which two cells agree and by
            their combinations of kept attributes, shape (patterns, subsets, M, M).
        kept: combination of the kept attributes at every cell, int32, shape (cells,).
        traits: level of every exchangeable attribute at every cell, int32, shape (E, cells).
        right: r of every geounit, shape (geounits, cells).
        total_weight: inverse variance of the total that is estimated from own answers and those below, shape (patterns,).
        total_right: that weight times the estimated total, shape (geounits,).
        coarse: what own answers and those below say about sums over the attribute with the most levels; None where that is
            not used.
    """

    tables: Floats = field(repr=False)
    kept: NDArray[np.int32] = field(repr=False)
    traits: NDArray[np.int32] = field(repr=False)
    right: Floats = field(repr=False)
    total_weight: Floats = field(repr=False)
    total_right: Floats = field(repr=False)
    coarse: CoarseFit | None = field(default=None, repr=False)

    def curvatures(self, patterns: NDArray[np.integer], support: NDArray[np.int64]) -> Floats:
        """P of some patterns on some cells, shape (len(patterns), K, K)."""
        traits = self.traits[:, support]
        agree = np.zeros((len(support), len(support)), np.int64)
        for axis, level in enumerate(traits):
            agree |= (level[:, None] == level[None, :]).astype(np.int64) << axis
        kept = self.kept[support]
        return self.tables[patterns][:, agree, kept[:, None], kept[None, :]]

    def of_totals(self) -> Below:
        """The information about totals, own answers included, and about nothing else."""
        cells = len(self.kept)
        return Below(
            self.total_weight.reshape(-1, 1, 1, 1),
            np.zeros(cells, np.int32),
            np.zeros((0, cells), np.int32),
            np.broadcast_to(self.total_right[:, None], (len(self.total_right), cells)),
            self.total_weight,
            self.total_right,
        )

    def add_right_sides(self, families: Families, found: Floats) -> None:
        """Add r of all children of some parents to B, parent by parent the matrix (children, cells) in C order."""
        _add(families.child_ptr, families.child, families.cell_ptr, families.cell, self.right, found)


def no_tables() -> Floats:
    """Tables where nothing is known from below."""
    return np.zeros((0, 1, 1, 1))


@compiled(void(int64[::1], int64[::1], int64[::1], int32[::1], float64[:, ::1], float64[::1]))
def _add(child_ptr, child, cell_ptr, cell, right, found):  # type: ignore[no-untyped-def]
    """Add the right sides of every child on the cells of its parent."""
    out = 0
    for parent in range(child_ptr.shape[0] - 1):
        for entry in range(child_ptr[parent], child_ptr[parent + 1]):
            own = right[child[entry]]
            for k in range(cell_ptr[parent], cell_ptr[parent + 1]):
                found[out] += own[cell[k]]
                out += 1
