"""Kinds of cells of population groups that share a law, sizes of groups, and errors by both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

import numpy as np
from numpy.typing import NDArray

from censafe.evaluation.tallies import ErrorTally
from censafe.model.group_cells import GroupLayout, GroupTable, ShellCell

__all__ = ["SIZES", "CellKey", "CellKind", "add_errors", "cell_kinds", "key_of", "size_class", "split_key"]

_SIZE_STARTS: Final = np.array([1, *(10**power for power in range(1, 9))], np.int64)
SIZES: Final = (
    "0",
    *(f"{low}-{10 * low - 1}" for low in _SIZE_STARTS[:-1].tolist()),
    f"{_SIZE_STARTS[-1]}+",
)
"""Classes of the true number of records of a group."""


@dataclass(frozen=True, eq=False)
class CellKind:
    """Written cells of one table whose noise is a sum of equally many draws.

    Args:
        table: for example ``T02001``.
        cell: what they count, in words.
        stat_level: of the groups that have them.
        members: shape (cells, draws), positions of the measured cells that each is the sum of.
    """

    table: str
    cell: str
    stat_level: int
    members: NDArray[np.int64]

    @property
    def draws(self) -> int:
        """Number of independent draws in one cell."""
        return self.members.shape[1]


@dataclass(frozen=True)
class CellKey:
    """What the errors of a level are told apart by: kind of cell, detailed-only groups, and true size."""

    kind: int
    detailed_only: bool
    size: int


def cell_kinds(table: GroupTable) -> tuple[CellKind, ...]:
    """The kinds of cells of tables that are measured together.

    Args:
        table: measured and written cells.

    Example:
        >>> from censafe.products.safetab_p.tables import person_tables
        >>> kinds = cell_kinds(person_tables().table("t1t2"))
        >>> [(kind.table, kind.cell, kind.stat_level, kind.draws) for kind in kinds][3:6]
        [('T01001', 'Total', 3, 46), ('T02001', 'Sex', 1, 4), ('T02001', 'Sex by age', 1, 1)]
    """
    found = []
    for layout in table.layouts:
        for level, shell in layout.shells.items():
            named = sorted(((_words(layout, cell), cell) for cell in shell.cells), key=lambda pair: pair[0])
            for words, cells in groupby(named, key=lambda pair: pair[0]):
                members = np.array([cell.members for _, cell in cells], np.int64)
                found.append(CellKind(shell.table, words, level, members))
    return tuple(found)


def _words(layout: GroupLayout, cell: ShellCell) -> str:
    if layout.name != "t2":
        return cell.label
    return "Sex" if cell.ages is None else "Sex by age"


def size_class(totals: NDArray[np.int64]) -> NDArray[np.int64]:
    """Position in :data:`SIZES` of true totals.

    Example:
        >>> [SIZES[position] for position in size_class(np.array([0, 9, 10, 12345])).tolist()]
        ['0', '1-9', '10-99', '10000-99999']
    """
    return np.searchsorted(_SIZE_STARTS, totals, side="right")


def key_of(kind: int, detailed_only: NDArray[np.bool_], size: NDArray[np.int64]) -> NDArray[np.int64]:
    """Keys of a tally."""
    return (2 * kind + detailed_only) * len(SIZES) + size


def split_key(key: int) -> CellKey:
    """What a key of a tally stands for.

    Example:
        >>> split_key(int(key_of(5, np.array([True]), np.array([2]))[0]))
        CellKey(kind=5, detailed_only=True, size=2)
    """
    rest, size = divmod(key, len(SIZES))
    return CellKey(rest // 2, bool(rest % 2), size)


def add_errors(
    tally: ErrorTally,
    kinds: Sequence[CellKind],
    stat_level: NDArray[np.int8],
    indptr: NDArray[np.int64],
    errors: NDArray[np.int64],
    detailed_only: NDArray[np.bool_],
    size: NDArray[np.int64],
) -> None:
    """Count the errors of all written cells of some groups.

    Args:
        tally: takes them.
        kinds: of the measured table.
        stat_level: int8[rows].
        indptr: int64[rows + 1], where the measured cells of a row begin.
        errors: of all measured cells.
        detailed_only: bool[rows].
        size: int64[rows], positions in :data:`SIZES`.
    """
    for number, kind in enumerate(kinds):
        rows = np.flatnonzero(stat_level == kind.stat_level)
        if len(rows):
            places = indptr[rows][:, None, None] + kind.members
            sums = errors[places].sum(axis=2)
            keys = np.repeat(key_of(number, detailed_only[rows], size[rows]), sums.shape[1])
            tally.add(keys, sums.reshape(-1))
