"""Exact sums of the first pass at every level of a spine, from results that are published by block."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from censafe.estimation.topdown.operator.facilities import MOST_ROWS, FacilityRule, OpenRecords, facility_sums
from censafe.geography.spines.sums import sum_histograms
from censafe.geography.spines.tree import Spine
from censafe.model import SparseLevel
from censafe.model.arrays import Integers

__all__ = ["HeldSums"]


@dataclass(frozen=True, eq=False)
class HeldSums:
    """Exact sums over groups of cells of the geounits of every level.

    Args:
        label: group of every cell, int32, shape (cells,).
        levels: sums that are decided, root first, as histograms over the groups.
        open: records whose group facilities leave open, by level; empty where there are none.
        published: published sum of every group, shape (groups,); of no length without facilities.
        kind: kind of facility of every group, shape (groups,); of no length without facilities.
    """

    label: NDArray[np.int32] = field(repr=False)
    levels: tuple[SparseLevel, ...]
    open: tuple[OpenRecords, ...] = ()
    published: Integers = field(default_factory=lambda: np.zeros(0, np.int64), repr=False)
    kind: Integers = field(default_factory=lambda: np.zeros(0, np.int64), repr=False)

    @staticmethod
    def of(spine: Spine, label: NDArray[np.int32], blocks: SparseLevel) -> HeldSums:
        """Sums that a published result decides alone.

        Args:
            spine: the tree.
            label: published sum of every cell.
            blocks: the result, by block of the spine.
        """
        return HeldSums(label, sum_histograms(spine, blocks, int(label.max()) + 1))

    @staticmethod
    def by_facility(
        spine: Spine, rule: FacilityRule, blocks: SparseLevel, facilities: NDArray[np.integer],
        *, most_rows: int = MOST_ROWS,
    ) -> HeldSums:  # fmt: skip
        """Sums that a published result decides together with published counts of facilities.

        Args:
            spine: the tree.
            rule: published sum and kind of facility of every cell.
            blocks: the result, by block of the spine.
            facilities: of the blocks, shape (blocks, kinds).
            most_rows: of open records, as in :func:`~censafe.estimation.topdown.operator.facilities.facility_sums`.

        Raises:
            DataError: records of a block are published where it has no facility for them.
        """
        label, published, kind = rule.groups()
        found = facility_sums(spine, blocks, facilities, rule, most_rows=most_rows)
        return HeldSums(
            label, tuple(one.decided for one in found), tuple(one.open for one in found), published, kind
        )

    def open_at(self, depth: int) -> tuple[OpenRecords, Integers, Integers] | None:
        """Open records of a level with the published sum and kind of every group; None where there are none."""
        if not self.open or not len(self.open[depth].count):
            return None
        return self.open[depth], self.published, self.kind
