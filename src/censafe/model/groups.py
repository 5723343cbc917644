"""Population groups: public levels, the confidential blocks that ``privacy.measure`` accepts, what it returns, the estimates of it, and their tables.

The tables themselves are data of the products, which build these values and hand them to estimation and publication.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Literal, NoReturn, Protocol

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


@dataclass(frozen=True)
class ShellCell:
    """One written cell of a table.

    Args:
        ages: first and last age; None where the cell is of all ages.
    """

    code: str
    label: str
    fields: tuple[str, ...]
    members: tuple[int, ...]
    ages: tuple[int, int] | None = None
    sex: str = ""


@dataclass(frozen=True)
class Shell:
    """The cells of a group at one stat level."""

    table: str
    title: str
    basis: int
    cells: tuple[ShellCell, ...]


@dataclass(frozen=True)
class GroupLayout:
    """One file of the Bureau's layout.

    Args:
        shells: by stat level; groups of other stat levels have no rows in the file.
    """

    name: str
    folder: str
    cell_columns: tuple[str, ...]
    shells: Mapping[int, Shell]

    @property
    def path(self) -> str:
        """The file, relative to the folder of the tables."""
        return f"{self.folder}/{self.name}.csv"

    @property
    def header(self) -> tuple[str, ...]:
        """Column names in the order of the file."""
        return ("REGION_ID", "REGION_TYPE", "ITERATION_CODE", *self.cell_columns, "COUNT")


@dataclass(frozen=True)
class GroupTable:
    """Tables that are measured together: a group gets the cells of its stat level, measured once."""

    key: str
    names: str
    title: str
    universe: str
    layouts: tuple[GroupLayout, ...]

    @cached_property
    def shells(self) -> Mapping[int, Shell]:
        """The most detailed cells of every stat level, in order."""
        shells = {level: shell for layout in self.layouts for level, shell in layout.shells.items()}
        return dict(sorted(shells.items()))

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of measured cells of a group, by stat level."""
        return tuple(shell.basis for shell in self.shells.values())

    @property
    def widths(self) -> tuple[int, ...]:
        """Number of rows that a group has in all files together, by stat level."""
        return tuple(
            sum(len(layout.shells[level].cells) for layout in self.layouts if level in layout.shells)
            for level in self.shells
        )


@dataclass(frozen=True)
class ProductTables:
    """All tables of population groups of one product."""

    product: str
    tables: tuple[GroupTable, ...]

    @property
    def keys(self) -> tuple[str, ...]:
        """Of the tables, in order."""
        return tuple(table.key for table in self.tables)

    @property
    def layouts(self) -> tuple[GroupLayout, ...]:
        """Of all files, in order."""
        return tuple(layout for table in self.tables for layout in table.layouts)

    def table(self, key: str) -> GroupTable:
        """The table with a key; KeyError where there is none."""
        return {table.key: table for table in self.tables}[key]

    def measured_by(self, query: str) -> str:
        """Key of the table that a query of a plan measures: the one of its name, or the only one."""
        return query if query in self.keys else self.tables[0].key
