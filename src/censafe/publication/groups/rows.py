"""Rows of the tables of population groups: groups in the order of the files, expanded to their written cells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from censafe.geography.regions import REGION_TYPES
from censafe.model.groups.cells import GroupLayout, ShellCell
from censafe.model.groups.levels import GroupLevel


class Groups(Protocol):
    """The groups of one level with their cells, sorted by region and iteration; fields as in ``GroupEstimates``."""

    @property
    def level(self) -> GroupLevel:
        """Regions and iterations."""

    @property
    def region(self) -> NDArray[np.int32]:
        """Ordinals of regions."""

    @property
    def iteration(self) -> NDArray[np.int32]:
        """Ordinals of iterations."""

    @property
    def stat_level(self) -> NDArray[np.int8]:
        """Which table every group has."""

    @property
    def indptr(self) -> NDArray[np.int64]:
        """Where the cells of a group begin."""

    @property
    def values(self) -> NDArray[np.int64]:
        """The cells of all groups."""


_Groups = TypeVar("_Groups", bound=Groups)
_Value = TypeVar("_Value", bound=np.generic)


@dataclass(frozen=True, eq=False)
class GroupOrder(Generic[_Groups]):
    """The groups of all levels of one region type, sorted by region and iteration code.

    Args:
        regions: sorted ids of all levels.
        codes: sorted iteration codes of all levels.
        level: int32[groups], position in ``levels``.
        row: int64[groups], row in the groups of that level.
        region: int32[groups], position in ``regions``.
        code: int32[groups], position in ``codes``.
    """

    region_type: str
    levels: tuple[_Groups, ...]
    regions: NDArray[np.str_]
    codes: NDArray[np.str_]
    level: NDArray[np.int32]
    row: NDArray[np.int64]
    region: NDArray[np.int32]
    code: NDArray[np.int32]

    def gathered(self, values: Sequence[NDArray[_Value]]) -> NDArray[_Value]:
        """A value of every group, from those of the groups of every level."""
        ordered = np.zeros(len(self.row), values[0].dtype)
        for position, of_level in enumerate(values):
            inside = self.level == position
            ordered[inside] = of_level[self.row[inside]]
        return ordered


@dataclass(frozen=True, eq=False)
class CellRows:
    """Written rows of some consecutive groups.

    Args:
        group: int64[rows], position in the group order.
        cell: int32[rows], position in :func:`cells_of`.
        count: int64[rows].
    """

    group: NDArray[np.int64]
    cell: NDArray[np.int32]
    count: NDArray[np.int64]


def cells_of(layout: GroupLayout) -> tuple[tuple[int, ShellCell], ...]:
    """All cells of a file with their stat levels, in the order that :class:`CellRows` points into."""
    return tuple((level, cell) for level, shell in layout.shells.items() for cell in shell.cells)


def group_orders(groups: Sequence[_Groups]) -> Iterator[GroupOrder[_Groups]]:
    """The groups in the order of the files: US before Puerto Rico, large areas first."""
    for kind in (known.name for known in REGION_TYPES):
        levels = [one for one in groups if one.level.region_type == kind]
        if levels:
            levels.sort(key=lambda one: one.level.iteration_level)
            yield _ordered(kind, levels)


def expand(order: GroupOrder[_Groups], layout: GroupLayout, *, groups: int = 1 << 16) -> Iterator[CellRows]:
    """The rows of a file, some groups at a time, so that memory does not grow with their number."""
    stat_level = order.gathered([level.stat_level for level in order.levels])
    chosen = np.flatnonzero(in_file(layout, stat_level))
    for start in range(0, len(chosen), groups):
        yield _expanded(order, layout, chosen[start : start + groups], stat_level)


def in_file(layout: GroupLayout, stat_level: NDArray[np.int8]) -> NDArray[np.bool_]:
    """Whether groups of a stat level have rows in a file."""
    published = np.zeros(128, np.bool_)
    published[list(layout.shells)] = True
    return published[stat_level]


def _ordered(kind: str, levels: Sequence[_Groups]) -> GroupOrder[_Groups]:
    regions = levels[0].level.regions
    if any(not np.array_equal(regions, estimates.level.regions) for estimates in levels[1:]):
        regions = np.unique(np.concatenate([estimates.level.regions for estimates in levels]))
    codes = np.unique(np.concatenate([np.array(estimates.level.iterations, np.str_) for estimates in levels]))
    region = np.concatenate([
        np.searchsorted(regions, estimates.level.regions).astype(np.int32)[estimates.region] for estimates in levels
    ])  # fmt: skip
    code = np.concatenate([
        np.searchsorted(codes, np.array(estimates.level.iterations, np.str_)).astype(np.int32)[estimates.iteration]
        for estimates in levels
    ])  # fmt: skip
    level = np.repeat(np.arange(len(levels), dtype=np.int32), [len(estimates.region) for estimates in levels])
    row = np.concatenate([np.arange(len(estimates.region)) for estimates in levels])
    order = np.lexsort((code, region))
    return GroupOrder(
        kind, tuple(levels), regions, codes, level[order], row[order], region[order], code[order]
    )


def _expanded(
    order: GroupOrder[_Groups], layout: GroupLayout, some: NDArray[np.int64], stat_levels: NDArray[np.int8]
) -> CellRows:
    stat_level = stat_levels[some]
    width = np.zeros(max(layout.shells) + 1, np.int64)
    for level, shell in layout.shells.items():
        width[level] = len(shell.cells)
    starts = np.concatenate(([0], np.cumsum(width[stat_level])))
    group = np.repeat(some, width[stat_level])
    cell = np.empty(starts[-1], np.int32)
    count = np.empty(starts[-1], np.int64)
    first = 0
    for level, shell in layout.shells.items():
        members = np.concatenate([cell.members for cell in shell.cells])
        edges = np.cumsum([0, *(len(cell.members) for cell in shell.cells[:-1])])
        for position, groups in enumerate(order.levels):
            inside = np.flatnonzero((stat_level == level) & (order.level[some] == position))
            places = starts[inside][:, None] + np.arange(len(shell.cells))
            basis = groups.values[groups.indptr[order.row[some[inside]]][:, None] + members]
            count[places] = np.add.reduceat(basis, edges, axis=1) if len(inside) else 0
            cell[places] = first + np.arange(len(shell.cells))
        first += len(shell.cells)
    return CellRows(group, cell, count)
