"""A batch of parents of one level: their children and cells, and their estimates, compiled where the parents are ordinary."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from censafe.estimation.topdown.least_squares.objective import LevelObjective
from censafe.estimation.topdown.levels.families import (
    DONE,
    LEFT,
    FamilyAnswers,
    FamilyArrays,
    FamilyResults,
    FamilyRules,
    estimate_families,
)
from censafe.estimation.topdown.levels.general_parents import Family, estimate_family
from censafe.estimation.topdown.levels.passes import ParentEstimate
from censafe.estimation.topdown.levels.task import CellRules, LevelTask
from censafe.geography.spines.tree import SpineLevel
from censafe.model import SparseLevel
from censafe.model.arrays import Floats, Integers
from censafe.model.topdown.families import Families

_BATCH_WORK = 3.0e7  # multiplications of a batch of parents, some 50 milliseconds
_BATCH_CELLS = 2_000_000  # cells of all children of a batch, which bounds its memory


@dataclass(frozen=True, eq=False)
class ParentLevel:
    """A level with the final one above it, whose parents are estimated in batches.

    Args:
        family: rules of ordinary parents; None where every parent goes the general way.
        batches: positions of the parents of each batch.
    """

    task: LevelTask
    rules: CellRules
    parents: SparseLevel
    above: SpineLevel
    family: FamilyRules | None
    batches: tuple[Integers, ...]


@dataclass(frozen=True, eq=False)
class EstimatedBatch:
    """What became of a batch of parents.

    Args:
        ordinary: of the parents that were estimated compiled; the others have no entries.
        general: the others by their place in the batch.
    """

    parents: Integers
    families: Families
    ordinary: FamilyResults
    general: tuple[tuple[int, ParentEstimate], ...]


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


def estimate_parents(level: ParentLevel, parents: Integers) -> EstimatedBatch:
    """Estimate some parents: the ordinary ones compiled, then the others one by one."""
    families, counts = families_of(level, parents)
    results = _ordinary_results(level, families, counts)
    general = []
    for place in np.flatnonzero(results.state != DONE).tolist():
        family = family_at(level, families, counts, parents, place)
        general.append((place, estimate_family(level.task, level.rules, family)))
    return EstimatedBatch(parents, families, results, tuple(general))


def families_of(level: ParentLevel, parents: Integers) -> tuple[Families, Integers]:
    """Children and cells of some parents, and the counts of the cells."""
    child_ptr, child = entry_ranges(level.above.first_child, parents)
    cell_ptr, entry = entry_ranges(level.parents.node_ptr, parents)
    families = Families(child_ptr, child, cell_ptr, level.parents.cell[entry])
    return families, level.parents.count[entry].astype(np.int64)


def entry_ranges(pointer: Integers, chosen: Integers) -> tuple[Integers, Integers]:
    """Positions that some rows of a pointer own, one row after another, and where each row starts.

    Example:
        >>> [part.tolist() for part in entry_ranges(np.array([0, 2, 5, 6]), np.array([0, 2]))]
        [[0, 2, 3], [0, 1, 5]]
    """
    sizes = pointer[chosen + 1] - pointer[chosen]
    starts = np.zeros(len(chosen) + 1, np.int64)
    np.cumsum(sizes, out=starts[1:])
    return starts, np.arange(starts[-1]) + np.repeat(pointer[chosen] - starts[:-1], sizes)


def family_at(
    level: ParentLevel, families: Families, counts: Integers, parents: Integers, place: int
) -> Family:
    """One parent of a batch."""
    children = families.child[families.child_ptr[place] : families.child_ptr[place + 1]]
    cells = slice(int(families.cell_ptr[place]), int(families.cell_ptr[place + 1]))
    name = str(level.above.names(parents[place : place + 1])[0])
    return Family(
        name, int(children[0]), int(children[-1]) + 1, families.cell[cells].astype(np.int64), counts[cells]
    )


def _ordinary_results(level: ParentLevel, families: Families, counts: Integers) -> FamilyResults:
    """Estimate the children of ordinary parents; what is infeasible or not certified is left alone."""
    parents, rules, entries = families.parents, level.family, 0
    if rules is not None:
        # the children of a parent have no more entries than it has records
        most = np.diff(families.child_ptr) * np.diff(families.cell_ptr)
        entries = int(np.minimum(most, np.add.reduceat(counts, families.cell_ptr[:-1])).sum())
    results = FamilyResults(
        np.full(parents, LEFT, np.int8), np.zeros(parents, np.int64), np.zeros((parents, 3)),
        np.zeros(len(families.child), np.int64), np.zeros(parents + 1, np.int64),
        np.empty(entries, np.int32), np.empty(entries, np.int32),
    )  # fmt: skip
    if rules is None:
        return results
    estimate_families(
        FamilyArrays(families.child_ptr, families.child, families.cell_ptr, families.cell, counts),
        _answers(level.task.objective, rules.total_query, families),
        rules,
        results,
    )
    used = int(results.sizes.sum())
    results.starts[-1] = used
    return results._replace(cell=results.cell[:used].copy(), records=results.records[:used].copy())


def _answers(objective: LevelObjective, total: int, families: Families) -> FamilyAnswers:
    """What is measured; of totals that are fitted first with the weights of all that is known about them."""
    weights, below = objective.weights, objective.below
    tables, combination, traits = np.zeros((0, 1, 1, 1)), np.zeros(0, np.int32), np.zeros((0, 0), np.int32)
    if below is not None:
        tables, combination, traits = below.tables, below.combination, below.traits
        if total >= 0:
            weights = weights.copy()
            weights[:, total] = below.total_weight
    if total < 0:
        right, right_total = objective.right_sides(families), np.zeros(0)
    else:
        rest = [query for query in range(len(objective.labels)) if query != total]
        right, right_total = (
            objective.fitting(rest).right_sides(families),
            _totals(objective, total, families),
        )
    return FamilyAnswers(
        objective.label_matrix, weights, objective.kinds, right, right_total, tables, combination, traits
    )


def _totals(objective: LevelObjective, total: int, families: Families) -> Floats:
    """Right sides of the totals of all children."""
    if objective.below is not None:
        return objective.below.total_right[families.child]
    any_cell = families.cell[families.cell_ptr[:-1]]
    pointer = np.arange(families.parents + 1, dtype=np.int64)
    one_cell = Families(families.child_ptr, families.child, pointer, any_cell)
    return objective.fitting((total,)).right_sides(one_cell)
