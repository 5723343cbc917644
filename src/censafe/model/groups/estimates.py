"""Estimates for population groups: what estimation makes of measurements and publication writes."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from censafe.model.groups.levels import GroupLevel
from censafe.model.measurements import run_result
from censafe.model.plan import NoiseLaw, NoiseSource


@dataclass(frozen=True)
class NoiseTerm:
    """``weight`` times a sum of ``draws`` independent noise draws of one law."""

    law: NoiseLaw
    draws: int
    weight: float


@dataclass(frozen=True)
class GroupNoise:
    """The noise of the cells of a group.

    The noise of cell i is ``e_i + shift * (e_1 + ... + e_cells) + sum(others)``, where the e are independent
    draws of ``law``; the last two are the same in every cell, because totals are adjusted by adding the same amount
    to every cell. Rounding to whole numbers is not in it.
    """

    law: NoiseLaw
    cells: int
    shift: float = 0.0
    others: tuple[NoiseTerm, ...] = ()

    @property
    def plain(self) -> bool:
        """Whether the cells are as they were measured, so that a sum of k cells has k noise draws."""
        return not self.others and self.shift == 0.0

    def terms(self, count: int) -> tuple[NoiseTerm, ...]:
        """The noise of a sum of ``count`` of the cells, as independent terms."""
        shared = count * self.shift
        inner = NoiseTerm(self.law, count, 1.0 + shared)
        if self.plain:
            return (inner,)
        outer = (NoiseTerm(self.law, self.cells - count, shared),) if count < self.cells and shared else ()
        return (inner, *outer, *(NoiseTerm(o.law, o.draws, count * o.weight) for o in self.others))


@run_result
@dataclass(frozen=True, eq=False)
class GroupEstimates:
    """Cells of the population groups of one level, public.

    Rows are sorted by (region, iteration). The total of a group is the sum of its cells.

    Args:
        region: int32[rows], position in ``level.regions``.
        iteration: int32[rows], position in ``level.iterations``.
        stat_level: int8[rows].
        indptr: int64[rows + 1], where the cells of a row begin in ``values``.
        values: int64, the measured cells of all rows, adjusted or not.
        noise: int32[rows], position in ``noises``.
        conditional: bool[rows], whether the group is published only because its noisy total was above a limit.
        near: bool[rows], whether a pooled total is so near a threshold that the choice of the table biases it.
        shared: bool[rows], whether the row was made equal to those of areas with the same blocks.
        source: ``system`` for a release; ``seeded`` for a test key, which is never private; ``unaccounted`` outside a plan and
            ledger, which is never published.
    """

    level: GroupLevel
    table: str
    sizes: tuple[int, ...]
    region: NDArray[np.int32]
    iteration: NDArray[np.int32]
    stat_level: NDArray[np.int8]
    indptr: NDArray[np.int64]
    values: NDArray[np.int64]
    noise: NDArray[np.int32]
    noises: tuple[GroupNoise, ...]
    conditional: NDArray[np.bool_]
    near: NDArray[np.bool_]
    shared: NDArray[np.bool_]
    cost: Fraction
    source: NoiseSource

    def __post_init__(self) -> None:
        columns = (self.iteration, self.stat_level, self.noise, self.conditional, self.near, self.shared)
        if any(len(column) != self.rows for column in columns) or len(self.indptr) != self.rows + 1:
            raise ValueError("all columns of group estimates must have one entry a group")
        if not np.array_equal(np.diff(self.indptr), np.array(self.sizes, np.int64)[self.stat_level]):
            raise ValueError("a group must have the cells of its stat level, no more and no fewer")

    @property
    def rows(self) -> int:
        """Number of groups."""
        return len(self.region)

    @property
    def private(self) -> bool:
        """Whether the noise came from a release source."""
        return self.source == "system"

    @property
    def totals(self) -> NDArray[np.int64]:
        """Sum of the cells of every group, int64[rows]."""
        sums = np.zeros(len(self.values) + 1, np.int64)
        np.cumsum(self.values, out=sums[1:])
        return sums[self.indptr[1:]] - sums[self.indptr[:-1]]


@run_result
@dataclass(frozen=True, eq=False)
class FlaggedGroups:
    """Estimates with those groups named that the tables show as ``X``.

    Args:
        negative: what a negative count is shown as: ``zero``, ``X``, or ``keep`` for the count itself.
    """

    estimates: GroupEstimates
    hidden: NDArray[np.bool_]
    negative: Literal["zero", "X", "keep"]

    @property
    def source(self) -> NoiseSource:
        """Of the estimates."""
        return self.estimates.source


@dataclass(frozen=True, eq=False)
class CoterminousChange:
    """Groups of one level that were changed so that areas with the same blocks agree.

    Args:
        before: float64[rows], total before; NaN where the group was not there.
        after: int64[rows], total after.
    """

    level: str
    region: NDArray[np.str_]
    iteration: NDArray[np.str_]
    before: NDArray[np.float64]
    after: NDArray[np.int64]
    donor: NDArray[np.str_]


@dataclass(frozen=True)
class CoterminousReport:
    """What making coterminous areas agree has changed."""

    mode: str
    classes: tuple[tuple[tuple[str, str], ...], ...]
    changes: tuple[CoterminousChange, ...]

    def document(self) -> dict[str, str | int]:
        """The report in numbers, for the manifest."""
        return {
            "mode": self.mode,
            "classes": len(self.classes),
            "areas": sum(len(members) for members in self.classes),
            "groups_changed": sum(len(change.region) for change in self.changes),
        }
