"""What the tables of one block say of its persons: types that may be there, rows with bounds, and what follows from bounds alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numba import int64, void
from numpy.typing import NDArray
from scipy.sparse import block_array, csr_array, vstack
from scipy.sparse.csgraph import connected_components

from censafe.model.compiled import compiled

NO_LIMIT: Final = 1 << 40
"""Upper bound of a line that is not published, or has none."""
_Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class IncidenceOrder:
    """The matrix of a workload by type, ready for kernels, made once.

    Args:
        start: where the entries of a type start, shape (types + 1,).
        line: of every entry, shape (entries,).
        weight: of every entry, shape (entries,).
        report: type as which each is reported, shape (types,).
    """

    start: _Ints = field(repr=False)
    line: _Ints = field(repr=False)
    weight: _Ints = field(repr=False)
    lines: int
    report: _Ints = field(repr=False)
    merges: bool = False

    @staticmethod
    def of(lines: csr_array, report: _Ints | None = None) -> IncidenceOrder:
        """Of a workload.

        Args:
            lines: how often a person of a type counts in a line, the matrix of a workload, sparse, shape (types, lines).
            report: type as which each is reported; themselves without, shape (types,).
        """
        matrix = csr_array(lines)
        matrix.sort_indices()
        return IncidenceOrder(
            matrix.indptr.astype(np.int64),
            matrix.indices.astype(np.int64),
            np.rint(matrix.data).astype(np.int64),
            matrix.shape[1],
            np.arange(matrix.shape[0]) if report is None else report,
            report is not None,
        )


@dataclass(frozen=True, eq=False)
class Part:
    """Types that rows tie together, and nothing else.

    Args:
        types: places in the problem, shape (n,).
        matrix: rows on them, sparse, shape (rows, n).
        low: of the rows, shape (rows,).
        high: of the rows, shape (rows,).
        least: of the types, shape (n,).
        most: of the types, shape (n,).
        groups: reported type of every type, numbered from 0, shape (n,).
        fixed: persons of each reported type that bounds have fixed, shape (groups,).
    """

    types: _Ints
    matrix: csr_array = field(repr=False)
    low: _Ints = field(repr=False)
    high: _Ints = field(repr=False)
    least: _Ints = field(repr=False)
    most: _Ints = field(repr=False)
    groups: _Ints = field(repr=False)
    fixed: _Ints = field(repr=False)

    def key(self) -> bytes:
        """The same for parts that differ in the names of their types alone."""
        matrix = (self.matrix.indptr, self.matrix.indices, self.matrix.data)
        arrays = (*matrix, self.low, self.high, self.least, self.most, self.groups, self.fixed)
        return b"".join(np.ascontiguousarray(one).tobytes() + b"|" for one in arrays)


@dataclass(frozen=True, eq=False)
class BlockProblem:
    """All numbers of persons by type that agree with the tables of a block.

    Args:
        types: that may be there, rising, shape (n,).
        matrix: rows on them, sparse, shape (rows, n).
        low: of the rows, shape (rows,).
        high: of the rows, shape (rows,).
        least: persons of each type that are there in any case, as far as bounds say, shape (n,).
        most: persons of each type that there may be, shape (n,).
        report: type as which each is reported, shape (n,).
    """

    types: _Ints
    matrix: csr_array = field(repr=False)
    low: _Ints = field(repr=False)
    high: _Ints = field(repr=False)
    least: _Ints = field(repr=False)
    most: _Ints = field(repr=False)
    report: _Ints = field(repr=False)
    feasible: bool = True

    @staticmethod
    def of(order: IncidenceOrder, low: _Ints, high: _Ints) -> BlockProblem:
        """The problem of a block.

        Every row is looked at until no bound of a type changes any more.

        Args:
            low: of every line, shape (lines,); equal to `high` where the table is exact.
            high: of every line, shape (lines,).

        Source: attack.md 5.1.
        """
        most = np.empty(len(order.start) - 1, np.int64)
        _candidates(order.start, order.line, order.weight, high, most)
        types = np.flatnonzero(most > 0)
        matrix, low, high = _rows(order, types, low, high)
        if order.merges:
            chosen = _different(order.report[types], matrix)
            types, matrix = types[chosen], csr_array(matrix[:, chosen])
        bounds = np.zeros(len(types), np.int64), most[types]
        return BlockProblem(types, matrix, low, high, *bounds, order.report[types]).tightened()

    def tightened(self) -> BlockProblem:
        """The same with the bounds of types that follow from the rows, one by one, until nothing changes."""
        bounds = self.least.copy(), self.most.copy()
        feasible = (
            bool((self.low <= self.high).all())
            and _tighten(
                self.matrix.indptr.astype(np.int64),
                self.matrix.indices.astype(np.int64),
                self.matrix.data.astype(np.int64),
                self.low,
                self.high,
                *bounds,
            )
            == 1
        )
        return BlockProblem(self.types, self.matrix, self.low, self.high, *bounds, self.report, feasible)

    def parts(self) -> Iterator[Part]:
        """The types that bounds leave open, by what ties them together; rows that bounds meet in any case are left out."""
        free = np.flatnonzero(self.least < self.most)
        if not len(free):
            return
        fixed = self.matrix @ np.where(self.least < self.most, 0, self.least)
        inner = csr_array(self.matrix[:, free])
        below, above = fixed + inner @ self.least[free], fixed + inner @ self.most[free]
        rows = np.flatnonzero((np.diff(inner.indptr) > 0) & ((below < self.low) | (above > self.high)))
        inner = csr_array(inner[rows])
        low, high = self.low[rows] - fixed[rows], self.high[rows] - fixed[rows]
        reported, group = np.unique(self.report[free], return_inverse=True)
        fixed_persons = self._fixed_of(reported)
        together = csr_array(
            (np.ones(len(free)), (group, np.arange(len(free)))), shape=(len(reported), len(free))
        )
        ties = vstack([inner, together])
        label = connected_components(block_array([[None, ties.T], [ties, None]]), directed=False)[1][
            : len(free)
        ]
        number = int(label.max()) + 1
        of_row = label[inner.indices[inner.indptr[:-1]]]
        for part in range(number):
            chosen, own = np.flatnonzero(label == part), np.flatnonzero(of_row == part)
            places = free[chosen]
            names, inside = np.unique(group[chosen], return_inverse=True)
            yield Part(
                places,
                csr_array(inner[own][:, chosen]),
                low[own],
                high[own],
                self.least[places],
                self.most[places],
                inside,
                fixed_persons[names],
            )

    def _fixed_of(self, reported: _Ints) -> _Ints:
        """Persons of some reported types whose number bounds have fixed."""
        fixed = np.flatnonzero(self.least == self.most)
        place = np.minimum(np.searchsorted(reported, self.report[fixed]), len(reported) - 1)
        here = reported[place] == self.report[fixed]
        return np.bincount(place[here], self.least[fixed[here]], minlength=len(reported)).astype(np.int64)

    def certain(self) -> int:
        """Persons of reported types of which nothing is open."""
        fixed = self.least == self.most
        open_types = np.unique(self.report[~fixed])
        return int(self.least[fixed & ~np.isin(self.report, open_types)].sum())


def _different(report: _Ints, matrix: csr_array) -> _Ints:
    """The first of the types that are reported as one and stand in the same rows: rows and bounds of all are those of one."""
    mark = np.round(matrix.T @ np.random.default_rng(matrix.shape[0]).random(matrix.shape[0]), 9)
    order = np.lexsort((mark, report))
    report, mark = report[order], mark[order]
    new = np.append(True, (report[1:] != report[:-1]) | (mark[1:] != mark[:-1]))[: len(order)]
    return np.sort(order[new])


def _rows(order: IncidenceOrder, types: _Ints, low: _Ints, high: _Ints) -> tuple[csr_array, _Ints, _Ints]:
    """Different rows on some types, with the tightest bounds of those that are equal; a row on none of them is compared with 0."""
    sizes = np.diff(order.start)[types]
    entries = np.repeat(order.start[types] - np.append(0, np.cumsum(sizes)[:-1]), sizes) + np.arange(
        sizes.sum()
    )
    column = np.repeat(np.arange(len(types)), sizes)
    shape = (order.lines, len(types))
    matrix = csr_array((order.weight[entries], (order.line[entries], column)), shape=shape)
    named = (high < NO_LIMIT) | (low > 0)
    drawn = np.random.default_rng(len(types)).random(len(types))
    mark = np.where(np.diff(matrix.indptr) > 0, np.round(matrix @ drawn, 9), -1.0)
    chosen = np.flatnonzero(named)
    _, first, place = np.unique(mark[chosen], return_index=True, return_inverse=True)
    lowest, highest = np.zeros(len(first), np.int64), np.full(len(first), NO_LIMIT)
    np.maximum.at(lowest, place.ravel(), low[chosen])
    np.minimum.at(highest, place.ravel(), high[chosen])
    return csr_array(matrix[chosen[first]]), lowest, highest


@compiled(void(int64[::1], int64[::1], int64[::1], int64[::1], int64[::1]))
def _candidates(start, line, weight, high, most):  # type: ignore[no-untyped-def]
    """How many persons of each type the highest values of its lines leave room for."""
    for person_type in range(start.shape[0] - 1):
        room = NO_LIMIT
        for entry in range(start[person_type], start[person_type + 1]):
            room = min(room, high[line[entry]] // weight[entry])
            if room <= 0:
                break
        most[person_type] = max(room, 0)


@compiled(int64(int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64[::1]))
def _tighten(start, column, weight, low, high, least, most):  # type: ignore[no-untyped-def]
    """Tighten bounds of types by the rows until nothing changes; 0 where a row cannot be met."""
    changed = True
    while changed:
        changed = False
        for row in range(start.shape[0] - 1):
            lowest, highest = 0, 0
            for entry in range(start[row], start[row + 1]):
                lowest += weight[entry] * least[column[entry]]
                highest += weight[entry] * most[column[entry]]
            if lowest > high[row] or highest < low[row]:
                return 0
            for entry in range(start[row], start[row + 1]):
                person_type, times = column[entry], weight[entry]
                upper = least[person_type] + (high[row] - lowest) // times
                lower = most[person_type] - (highest - low[row]) // times
                if upper < most[person_type]:
                    highest -= times * (most[person_type] - upper)
                    most[person_type] = upper
                    changed = True
                if lower > least[person_type]:
                    lowest += times * (lower - least[person_type])
                    least[person_type] = lower
                    changed = True
                if least[person_type] > most[person_type]:
                    return 0
    return 1
