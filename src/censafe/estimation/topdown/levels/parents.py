"""Many ordinary parents of a level at once, compiled: from right sides to integer histograms."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from censafe.estimation.topdown.least_squares.objective import LevelObjective
from censafe.estimation.topdown.levels.families import (
    DONE,
    FamilyAnswers,
    FamilyArrays,
    FamilyResults,
    FamilyRules,
    estimate_families,
)
from censafe.estimation.topdown.whole_tree.cells import no_tables
from censafe.model.arrays import Floats, Integers
from censafe.model.topdown.families import Families

_BATCH_WORK = 3.0e7  # multiplications of a batch of parents, some 50 milliseconds
_BATCH_CELLS = 2_000_000  # cells of all children of a batch, which bounds its memory


@dataclass(frozen=True, eq=False)
class BatchFound:
    """Histograms of the children of some parents.

    Args:
        done: which parents were estimated; the others are not ordinary and have no entries, shape (P,).
        iterations: of each solve, shape (P,).
        violation: largest relative violation before rounding, shape (P,).
        gap: duality gap, in half chi-square units, shape (P,).
        cost: of rounding, shape (P,).
        sizes: number of entries of every child, in the order of the families.
        starts: where the entries of every parent start, shape (P + 1,).
    """

    done: NDArray[np.bool_]
    iterations: Integers
    violation: Floats
    gap: Floats
    cost: Floats
    sizes: Integers
    starts: Integers
    cell: NDArray[np.int32]
    count: NDArray[np.int32]

    @staticmethod
    def none(families: Families) -> BatchFound:
        """Nothing found, where all parents go another way."""
        parents = families.parents
        zero, nothing = np.zeros(parents), np.zeros(0, np.int32)
        return BatchFound(
            np.zeros(parents, np.bool_), np.zeros(parents, np.int64), zero, zero, zero,
            np.zeros(len(families.child), np.int64), np.zeros(parents + 1, np.int64), nothing, nothing,
        )  # fmt: skip


def batch_edges(children: Integers, cells: Integers) -> Integers:
    """Cut parents in a row into batches of like work, whatever the number of workers.

    Args:
        children: of every parent, shape (P,).
        cells: of every parent, shape (P,).

    Returns:
        First parent of every batch, and P; shape (batches + 1,).

    Example:
        >>> batch_edges(np.full(5, 30), np.full(5, 200)).tolist()
        [0, 3, 5]
    """
    size = children * cells
    work = np.cumsum(size * cells * 10.0 / _BATCH_WORK)
    space = np.cumsum(size / _BATCH_CELLS)
    place = np.maximum(np.floor(work - work[:1]), np.floor(space - space[:1]))
    first = np.flatnonzero(np.diff(place, prepend=-1.0))
    return np.append(first, len(children)).astype(np.int64)


def estimate_batch(
    objective: LevelObjective, rules: FamilyRules, families: Families, counts: Integers
) -> BatchFound:
    """Estimate the children of ordinary parents; what is infeasible or not certified is left alone."""
    room = _room(families, counts)
    estimate_families(
        FamilyArrays(families.child_ptr, families.child, families.cell_ptr, families.cell, counts),
        _answers(objective, rules.total_query, families),
        rules,
        room,
    )
    used = int(room.sizes.sum())
    room.starts[-1] = used
    violation, gap, cost = (np.ascontiguousarray(column) for column in room.measures.T)
    return BatchFound(
        room.state == DONE, room.iterations, violation, gap, cost, room.sizes, room.starts,
        room.cell[:used].copy(), room.records[:used].copy(),
    )  # fmt: skip


def _room(families: Families, counts: Integers) -> FamilyResults:
    """Room for the results: a parent's children have no more entries than it has records."""
    parents = families.parents
    child_of, cells_of = np.diff(families.child_ptr), np.diff(families.cell_ptr)
    records = np.add.reduceat(counts, families.cell_ptr[:-1])
    space = int(np.minimum(child_of * cells_of, records).sum())
    return FamilyResults(
        np.zeros(parents, np.int8), np.zeros(parents, np.int64), np.zeros((parents, 3)),
        np.zeros(len(families.child), np.int64), np.zeros(parents + 1, np.int64),
        np.empty(space, np.int32), np.empty(space, np.int32),
    )  # fmt: skip


def _answers(objective: LevelObjective, total: int, families: Families) -> FamilyAnswers:
    right, right_total = _right_sides(objective, total, families)
    return FamilyAnswers(
        objective.label_matrix, _weights(objective, total), objective.kinds, right, right_total,
        *_tables(objective),
    )  # fmt: skip


def _right_sides(objective: LevelObjective, total: int, families: Families) -> tuple[Floats, Floats]:
    """Right sides of all parents, and of the totals of all children where these are fitted first."""
    if total < 0:
        return objective.right_sides(families), np.zeros(0)
    if objective.below is not None:
        first = objective.below.total_right[families.child]
    else:
        one = Families(
            families.child_ptr,
            families.child,
            np.arange(families.parents + 1, dtype=np.int64),
            families.cell[families.cell_ptr[:-1]],
        )
        first = objective.fitting((total,)).right_sides(one)
    rest = [query for query in range(len(objective.labels)) if query != total]
    return objective.fitting(rest).right_sides(families), first


def _weights(objective: LevelObjective, total: int) -> Floats:
    """Weights of the answers; of totals that are fitted first those of all that is known about them."""
    if objective.below is None or total < 0:
        return objective.weights
    weights = objective.weights.copy()
    weights[:, total] = objective.below.total_weight
    return weights


def _tables(objective: LevelObjective) -> tuple[Floats, NDArray[np.int32], NDArray[np.int32]]:
    """What is known from below about the curvature, in the types of the kernels."""
    below = objective.below
    if below is None:
        return no_tables(), np.zeros(0, np.int32), np.zeros((0, 0), np.int32)
    return below.tables, below.combination, below.traits
