"""Sums of cells as combinations of the states of small independent problems, and their values and variances."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from censafe.model.arrays import Floats


@dataclass(frozen=True, eq=False)
class SumFamily:
    """One small problem.

    Args:
        group: group of base cells that every atom is in by query, shape (queries, atoms); -1 where the query tells all cells apart.
        atom: of every base cell, -1 for cells that are empty, shape (base cells,).
        state: sums of atoms that are handed on, shape (k, atoms).
        asked: functions of base cells as combinations of the state, shape (functions, k).
        columns: of every column the contrast of each averaged attribute, 0 for its sum.
        known: sums that are known exactly as combinations of the state, shape (groups, k); none but in the family of all averages.
    """

    queries: tuple[int, ...]
    times: tuple[float, ...]
    group: NDArray[np.int64] = field(repr=False)
    cells: Floats = field(repr=False)
    atom: NDArray[np.int64] = field(repr=False)
    kind: NDArray[np.int64] = field(repr=False)
    state: Floats = field(repr=False)
    asked: Floats = field(repr=False)
    columns: tuple[tuple[int, ...], ...]
    gram: Floats = field(repr=False)
    known: Floats = field(repr=False)

    @property
    def atoms(self) -> int:
        """Number of atoms."""
        return len(self.cells)

    @property
    def size(self) -> int:
        """Number k of sums in the state."""
        return len(self.state)


@dataclass(frozen=True)
class SumEntry:
    """One product in a sum: its family, function, column, and the number before it."""

    family: int
    function: int
    column: int
    weight: float


class SumReadings:
    """Sums as combinations of states."""

    def __init__(self, families: Sequence[SumFamily], entries: Sequence[tuple[SumEntry, ...]]) -> None:
        self.families = tuple(families)
        self.entries = tuple(entries)

    @property
    def sums(self) -> int:
        """How many sums are asked for."""
        return len(self.entries)

    @property
    def width(self) -> int:
        """Numbers in the states of one geounit."""
        return sum(len(family.columns) * family.size for family in self.families)

    def flat(self, states: Sequence[Floats]) -> Floats:
        """States of all families side by side, shape (n, width)."""
        return np.concatenate([one.reshape(len(one), -1) for one in states], axis=1)

    def parted(self, flat: Floats) -> tuple[Floats, ...]:
        """The reverse of :meth:`flat`."""
        shapes = [(len(family.columns), family.size) for family in self.families]
        ends = np.cumsum([columns * size for columns, size in shapes])[:-1]
        parts = np.split(flat, ends, axis=1)
        return tuple(part.reshape(len(flat), *shape) for part, shape in zip(parts, shapes, strict=True))

    def values(self, states: Sequence[Floats]) -> Floats:
        """Values of the sums from the states of some areas.

        Args:
            states: by family, shape (areas, columns, k).
        """
        found = np.zeros((len(states[0]), self.sums))
        for state, family, member in zip(states, self.families, self._members, strict=True):
            asked = (state @ family.asked.T).reshape(len(state), -1)
            found += np.asarray((member @ asked.T).T)
        return found

    @cached_property
    def _members(self) -> tuple[csr_array, ...]:
        """Of every family how its functions of all columns make up the sums, sparse, shape (sums, columns times functions)."""
        found = []
        for place, family in enumerate(self.families):
            own = [
                (number, one.column * len(family.asked) + one.function, one.weight)
                for number, entries in enumerate(self.entries)
                for one in entries
                if one.family == place
            ]
            number, cell, weight = np.array(own, np.float64).reshape(-1, 3).T
            shape = self.sums, len(family.columns) * len(family.asked)
            found.append(csr_array((weight, (number.astype(np.int64), cell.astype(np.int64))), shape=shape))
        return tuple(found)

    def variances(self, covariances: Sequence[Floats]) -> Floats:
        """Variances of the sums from covariances of their functions in one area, shape (sums,).

        Args:
            covariances: by family, shape (functions, functions).
        """
        found = np.zeros(self.sums)
        for covariance, (number, first, second, weight) in zip(covariances, self._pairs, strict=True):
            found += np.bincount(number, weight * covariance[first, second], self.sums)
        return np.maximum(found, 0.0)

    @cached_property
    def _pairs(self) -> tuple[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], Floats], ...]:
        """Of every family the pairs of entries of one sum: the sum, both functions, and the weight of their covariance."""
        rows: list[list[tuple[int, int, int, float]]] = [[] for _ in self.families]
        for number, entries in enumerate(self.entries):
            for one in entries:
                for other in entries:
                    if one.family == other.family:
                        gram = float(self.families[one.family].gram[one.column, other.column])
                        if gram:
                            weight = one.weight * other.weight * gram
                            rows[one.family].append((number, one.function, other.function, weight))
        found = []
        for own in rows:
            numbers = np.array([row[:3] for row in own], np.int64).reshape(-1, 3)
            weights = np.array([row[3] for row in own], np.float64)
            found.append((numbers[:, 0], numbers[:, 1], numbers[:, 2], weights))
        return tuple(found)
