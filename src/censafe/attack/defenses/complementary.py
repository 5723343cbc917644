"""CONFIDENTIAL. Cell suppression: counts under a threshold are withheld, and others with them, so that none can be computed from what is published.

A withheld line is safe where other records have the same published lines and another value in it. Such records are found by moving one person: one of a
type t that counts in the line becomes one of another type, or is left out. Every line that the move changes has to be withheld as well; of all moves the one
is taken that withholds least besides. The records before and after the move have the same published lines, and lines that are withheld later only make it
harder to distinguish them, so that each withheld line has a second value that nothing published excludes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from censafe.attack.defenses.intervals import TableIntervals
from censafe.attack.defenses.named import TableAreas
from censafe.attack.tables import CountedLines
from censafe.errors import ConfigError

_Ints = NDArray[np.int64]
_Flags = NDArray[np.bool_]
NO_TYPE: Final = -1
"""Type of a person who is left out."""


@dataclass(frozen=True)
class CellMove:
    """One person of a type becomes one of another, which shows that the lines that change cannot be computed."""

    before: int
    after: int


@dataclass(frozen=True, eq=False)
class TypeRows:
    """How often a person of each type counts in each line, small numbers, shape (types + 1, lines); the last row is that of no person."""

    shape: tuple[int, ...]
    rows: NDArray[np.uint8] = field(repr=False)
    possible: _Flags = field(repr=False)

    @staticmethod
    def of(workload: CountedLines) -> TypeRows:
        """Of the lines of tables."""
        dense = workload.matrix.toarray().astype(np.uint8)
        return TypeRows(workload.shape, np.vstack([dense, np.zeros_like(dense[:1])]), workload.possible)

    def others(self, person_type: int, present: _Ints) -> _Ints:
        """Types that a person may become: possible ones that differ in one attribute, and those that are there; and no person."""
        place = np.unravel_index(person_type, self.shape)
        parts = [present, np.array([NO_TYPE])]
        for axis, length in enumerate(self.shape):
            changed = list(np.broadcast_arrays(*place, np.arange(length))[:-1])
            changed[axis] = np.arange(length)
            types = np.ravel_multi_index(tuple(changed), self.shape)
            parts.append(types[self.possible[types]])
        return np.concatenate(parts)


def withheld_lines(
    types: TypeRows, counts: _Ints, present: _Ints, threshold: int
) -> tuple[_Flags, tuple[CellMove, ...]]:
    """Lines of one area that are withheld, and the moves that show that none of them can be computed.

    Args:
        counts: of the area, shape (lines,).
        present: types of persons that are there, each once.

    Returns:
        Flags of shape (lines,), and moves; every withheld line is changed by one of them, and none changes a published line.
    """
    small = (counts > 0) & (counts < threshold)
    cost = np.where(small, 0.0, 1.0 + counts)
    hidden, safe = small.copy(), np.zeros_like(small)
    moves = []
    for line in np.flatnonzero(small)[np.argsort(counts[small], kind="stable")].tolist():
        if safe[line]:
            continue
        move, changed = min(
            _moves(types, line, present, cost), key=lambda move_and_lines: move_and_lines[1] @ cost
        )
        moves.append(move)
        hidden |= changed
        safe |= changed
        cost[changed] = 0.0
    return hidden, tuple(moves)


def _moves(
    types: TypeRows, line: int, present: _Ints, cost: NDArray[np.float64]
) -> Iterator[tuple[CellMove, _Flags]]:
    """The cheapest move of each present type that counts in a line, with the lines that it changes."""
    for person_type in present[types.rows[present, line] > 0].tolist():
        others = types.others(person_type, present)
        others = others[types.rows[others, line] != types.rows[person_type, line]]
        changed = types.rows[others] != types.rows[person_type]
        best = int(np.argmin(changed @ cost))
        yield CellMove(person_type, int(others[best])), changed[best]


def require_threshold(threshold: int) -> None:
    """Refuse a threshold under which no count can be."""
    if threshold < 2:
        raise ConfigError(
            f"the threshold of suppression must be at least 2, not {threshold}; fix: give one such as 3, which withholds 1 and 2"
        )


def suppress_under_threshold(areas: TableAreas, threshold: int) -> TableIntervals:
    """Primary and complementary suppression of the tables of every area; zeros are published unless they are withheld as complements.

    What the tables of one area imply is covered: all lines of all tables of the area together. Differences between areas, such as a tract and all but one
    of its blocks, are not, and bounds may be narrow: what is excluded is that a count is known exactly.

    Source: attack.md 17, 4; Cox (1980), "Suppression methodology and statistical disclosure control", for complementary suppression.
    """
    require_threshold(threshold)
    types, own = TypeRows.of(areas.workload), areas.types
    order = np.argsort(areas.area, kind="stable")
    ends = np.searchsorted(areas.area[order], np.arange(len(areas.counts) + 1))
    hidden = np.zeros(areas.counts.shape, np.bool_)
    for place, counts in enumerate(areas.counts):
        present = np.unique(own[order[ends[place] : ends[place + 1]]])
        hidden[place], _ = withheld_lines(types, counts, present, threshold)
    return TableIntervals.exact(areas.counts).without(hidden)
