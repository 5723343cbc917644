"""Kinds of cells of population groups that share a law, and errors by kind and size as exact histograms of whole numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby
from typing import Final

import numpy as np
from numpy.typing import NDArray

from censafe.model.groups.cells import GroupLayout, GroupTable, ShellCell

_HALF = 1 << 40


@dataclass(frozen=True, eq=False)
class Errors:
    """The errors of some keys: different values in ascending order, and how often each occurred."""

    values: NDArray[np.int64]
    counts: NDArray[np.int64]

    @property
    def number(self) -> int:
        """How many errors there are."""
        return int(self.counts.sum())

    @property
    def bias(self) -> float:
        """Mean of the errors; NaN without any."""
        return float(np.average(self.values, weights=self.counts)) if self.number else float("nan")

    def margin(self, confidence: Fraction) -> float:
        """Smallest size of an error that at least this share of all errors does not exceed; NaN without any.

        Example:
            >>> tally = ErrorTally()
            >>> tally.add(np.zeros(10, np.int64), np.arange(-4, 6))
            >>> tally.of([0]).margin(Fraction(9, 10))
            4.0
        """
        if not self.number:
            return float("nan")
        order = np.argsort(np.abs(self.values), kind="stable")
        reached = np.cumsum(self.counts[order])
        needed = -(-confidence.numerator * self.number // confidence.denominator)
        return float(np.abs(self.values[order])[np.searchsorted(reached, needed)])

    def share_within(self, margin: float) -> float:
        """Share of errors of at most this size; NaN without any."""
        inside = int(self.counts[np.abs(self.values) <= margin].sum())
        return inside / self.number if self.number else float("nan")


class ErrorTally:
    """Collects errors under small whole numbers as keys."""

    def __init__(self) -> None:
        self._codes = np.zeros(0, np.int64)
        self._counts = np.zeros(0, np.int64)

    def add(self, keys: NDArray[np.int64], errors: NDArray[np.int64]) -> None:
        """Count errors.

        Args:
            keys: shape (n,), from 0 to about four million.
            errors: shape (n,), below 2^40 in size.
        """
        if len(errors) and (np.abs(errors).max() >= _HALF or keys.max() >= 1 << 22 or keys.min() < 0):
            raise OverflowError("an error or a key is too large to be counted")
        codes, counts = np.unique(keys * (2 * _HALF) + (errors + _HALF), return_counts=True)
        merged, place = np.unique(np.concatenate([self._codes, codes]), return_inverse=True)
        total = np.zeros(len(merged), np.int64)
        np.add.at(total, place, np.concatenate([self._counts, counts]))
        self._codes, self._counts = merged, total

    @property
    def keys(self) -> list[int]:
        """Keys that have errors, ascending."""
        return np.unique(self._codes // (2 * _HALF)).tolist()

    def of(self, keys: Iterable[int]) -> Errors:
        """The errors of some keys together."""
        inside = np.isin(self._codes // (2 * _HALF), np.array(list(keys), np.int64))
        values, place = np.unique(self._codes[inside] % (2 * _HALF) - _HALF, return_inverse=True)
        counts = np.zeros(len(values), np.int64)
        np.add.at(counts, place, self._counts[inside])
        return Errors(values, counts)


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


def cell_kinds(table: GroupTable) -> tuple[CellKind, ...]:
    """The kinds of cells of tables that are measured together.

    Example:
        >>> from censafe.products.detailed.tables import person_tables
        >>> kinds = cell_kinds(person_tables().table("t1t2"))
        >>> [(kind.table, kind.cell, kind.stat_level, kind.draws) for kind in kinds][3:6]
        [('T01001', 'Total', 3, 46), ('T02001', 'Sex', 1, 4), ('T02001', 'Sex by age', 1, 1)]
    """
    kinds = []
    for layout in table.layouts:
        for level, shell in layout.shells.items():
            named = sorted(((_words(layout, cell), cell) for cell in shell.cells), key=lambda pair: pair[0])
            for words, cells in groupby(named, key=lambda pair: pair[0]):
                members = np.array([cell.members for _, cell in cells], np.int64)
                kinds.append(CellKind(shell.table, words, level, members))
    return tuple(kinds)


def _words(layout: GroupLayout, cell: ShellCell) -> str:
    if layout.name != "t2":
        return cell.label
    return "Sex" if cell.ages is None else "Sex by age"


def group_size_class(totals: NDArray[np.int64]) -> NDArray[np.int64]:
    """Position in :data:`SIZES` of true totals.

    Example:
        >>> [SIZES[position] for position in group_size_class(np.array([0, 9, 10, 12345])).tolist()]
        ['0', '1-9', '10-99', '10000-99999']
    """
    return np.searchsorted(_SIZE_STARTS, totals, side="right")


def key_of(kind: int, detailed_only: NDArray[np.bool_], size: NDArray[np.int64]) -> NDArray[np.int64]:
    """Keys of a tally."""
    return (2 * kind + detailed_only) * len(SIZES) + size


def split_key(key: int) -> tuple[int, bool, int]:
    """What a key of a tally stands for: kind of cell, detailed-only groups, and class of the true size.

    Example:
        >>> split_key(int(key_of(5, np.array([True]), np.array([2]))[0]))
        (5, True, 2)
    """
    rest, size = divmod(key, len(SIZES))
    return rest // 2, bool(rest % 2), size


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
        stat_level: int8[rows].
        indptr: int64[rows + 1], where the measured cells of a row begin.
        size: int64[rows], positions in :data:`SIZES`.
    """
    for number, kind in enumerate(kinds):
        rows = np.flatnonzero(stat_level == kind.stat_level)
        if len(rows):
            places = indptr[rows][:, None, None] + kind.members
            sums = errors[places].sum(axis=2)
            keys = np.repeat(key_of(number, detailed_only[rows], size[rows]), sums.shape[1])
            tally.add(keys, sums.reshape(-1))
