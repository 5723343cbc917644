"""Population groups: public levels, the confidential blocks that ``privacy.measure`` accepts, and what it returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import NoReturn, Protocol

import numpy as np
from numpy.typing import NDArray

from censafe.model.measurements import run_result
from censafe.model.plan import NoiseLaw, NoiseSource


@dataclass(frozen=True, eq=False)
class GroupLevel:
    """One population group level: every region of one type with every candidate iteration of one level.

    Args:
        regions: every region of the type, populated or not, sorted.
        iterations: candidate iteration codes, sorted.
        detailed_only: bool, one an iteration; groups that get a total only. All False below the states.
    """

    name: str
    region_type: str
    iteration_level: int
    regions: NDArray[np.str_]
    iterations: tuple[str, ...]
    detailed_only: NDArray[np.bool_]

    def __post_init__(self) -> None:
        if np.any(self.regions[1:] <= self.regions[:-1]):
            raise ValueError(f"the regions of {self.name} must be sorted and distinct")
        if any(one >= other for one, other in zip(self.iterations, self.iterations[1:], strict=False)):
            raise ValueError(f"the iterations of {self.name} must be sorted and distinct")
        if self.detailed_only.dtype != np.bool_ or self.detailed_only.shape != (len(self.iterations),):
            raise ValueError(f"detailed_only of {self.name} must be bool with one entry an iteration")

    @property
    def groups(self) -> int:
        """Number of population groups: regions times iterations."""
        return len(self.regions) * len(self.iterations)


@dataclass(frozen=True, eq=False)
class TableVariant:
    """One of the tables that a group may get: its measured cells, each a sum of most detailed cells; public.

    Args:
        slots: int16, shape (most detailed cells,), the measured cell of every most detailed cell.
    """

    name: str
    cells: tuple[str, ...]
    slots: NDArray[np.int16]

    def __post_init__(self) -> None:
        if self.slots.dtype != np.int16 or set(self.slots.tolist()) != set(range(len(self.cells))):
            raise ValueError(
                f"every most detailed cell must be in one of the {len(self.cells)} cells of {self.name}"
            )


@dataclass(frozen=True, eq=False)
class GroupBlock:
    """CONFIDENTIAL. True counts of all groups of some consecutive regions of a level.

    Every group has a row of ``counts``; all empty groups share row 0, which is zero.

    Args:
        rows: int32, shape (regions, iterations), the row of ``counts`` of every group.
        counts: int32, shape (any, cells), counts of the most detailed cells.

    The counts are kept out of ``repr`` and the object cannot be pickled.
    """

    first: int
    rows: NDArray[np.int32] = field(repr=False)
    counts: NDArray[np.int32] = field(repr=False)

    def __post_init__(self) -> None:
        if self.counts.dtype != np.int32 or self.counts.ndim != 2 or self.counts[:1].any():
            raise ValueError("counts of a block must be an int32 matrix whose first row is zero")
        if self.rows.dtype != np.int32 or self.rows.ndim != 2:
            raise ValueError("rows of a block must be an int32 matrix")

    @property
    def nbytes(self) -> int:
        """What rows and counts take."""
        return self.rows.nbytes + self.counts.nbytes

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """CONFIDENTIAL. Number of records of every row of ``counts``."""
        # A sum of 32-bit counts does not overflow: a population has fewer than 2^31 records.
        return np.einsum("ij->i", self.counts).astype(np.int64)

    @property
    def totals(self) -> NDArray[np.int64]:
        """CONFIDENTIAL. Number of records of every group, shape (regions, iterations)."""
        return self.sizes[self.rows]

    @property
    def dense(self) -> NDArray[np.int32]:
        """CONFIDENTIAL. All counts, shape (regions, iterations, cells)."""
        return self.counts[self.rows]

    def __reduce__(self) -> NoReturn:
        raise TypeError("exact counts are confidential and cannot be pickled")


class GroupSource(Protocol):
    """CONFIDENTIAL. True counts of one level, produced block by block."""

    @property
    def level(self) -> GroupLevel:
        """The level counted."""

    def block(self, first: int, stop: int) -> GroupBlock:
        """The counts of regions ``first`` to ``stop - 1``; may be called from several threads."""


@run_result
@dataclass(frozen=True, eq=False)
class GroupMeasurements:
    """Noisy answers of one level, public once committed: the groups that were not suppressed.

    Rows are sorted by (region, iteration), each group at most once.

    Args:
        region: int32, shape (rows,), ordinal into ``level.regions``.
        iteration: int32, shape (rows,), ordinal into ``level.iterations``.
        stat_level: int8, shape (rows,), the table variant: 0 to 3. Detailed-only groups have 0.
        stage1: int64, shape (rows,), the noisy total that chose the variant (SafeTab-P). A detailed-only group
            has none: its entry repeats its only measurement and must not be used as a second one. None for
            SafeTab-H.
        indptr: int64, shape (rows + 1,), where the values of every row start and end.
        values: int64, noisy basis cells of all rows, one after another. SafeTab-P: 1, 8, 18 or 46 cells a row,
            sex-major, then age. SafeTab-H: the basis cells of the variant in their order.
        laws: noise law of one draw, by query: ``detailed_only``, ``stage1`` and ``stage2`` for SafeTab-P (the
            values of detailed-only rows follow the first, those of other rows the last); ``cells`` for SafeTab-H.
        source: ``system`` for a release; ``seeded`` for a test key, which is never private; ``unaccounted`` outside a plan and
            ledger, which is never published.
    """

    level: GroupLevel
    table: str
    region: NDArray[np.int32]
    iteration: NDArray[np.int32]
    stat_level: NDArray[np.int8]
    stage1: NDArray[np.int64] | None
    indptr: NDArray[np.int64]
    values: NDArray[np.int64]
    laws: Mapping[str, NoiseLaw]
    costs: Mapping[str, Fraction]
    source: NoiseSource

    def __post_init__(self) -> None:
        rows = len(self.region)
        columns = {"region": np.int32, "iteration": np.int32, "stat_level": np.int8, "stage1": np.int64}
        for name, kind in columns.items():
            column = getattr(self, name)
            if column is not None and (column.dtype != kind or column.shape != (rows,)):
                raise ValueError(f"{name} of group measurements must be {kind.__name__} with one entry a row")
        for name, length in (("indptr", rows + 1), ("values", None)):
            column = getattr(self, name)
            if column.dtype != np.int64 or column.ndim != 1 or len(column) != (length or len(column)):
                raise ValueError(f"{name} of group measurements must be int64 and fit the rows")
        if self.indptr[0] != 0 or self.indptr[-1] != len(self.values) or np.any(np.diff(self.indptr) < 1):
            raise ValueError("indptr of group measurements must rise from 0 to the number of values")
        for name, number in (("region", len(self.level.regions)), ("iteration", len(self.level.iterations))):
            column = getattr(self, name)
            if rows and not (column.min() >= 0 and column.max() < number):
                raise ValueError(f"{name} of group measurements is out of range")
        group = self.region.astype(np.int64) * len(self.level.iterations) + self.iteration
        if np.any(group[1:] <= group[:-1]):
            raise ValueError("group measurements must be sorted by region and iteration, each group once")

    @property
    def private(self) -> bool:
        """Whether the noise came from a release source."""
        return self.source == "system"

    @property
    def sums(self) -> NDArray[np.int64]:
        """Sum of the values of every row, int64, shape (rows,)."""
        if not len(self.region):
            return np.zeros(0, dtype=np.int64)
        return np.add.reduceat(self.values, self.indptr[:-1])
