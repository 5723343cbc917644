"""A batch of parents of one level: their children and cells, and their estimates."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from censafe.estimation.topdown.levels.families import FamilyRules
from censafe.estimation.topdown.levels.general_parents import Family, estimate_family
from censafe.estimation.topdown.levels.parents import BatchFound, estimate_batch
from censafe.estimation.topdown.levels.passes import ParentEstimate
from censafe.estimation.topdown.levels.task import CellRules, LevelTask
from censafe.geography.spines.tree import SpineLevel
from censafe.model import SparseLevel
from censafe.model.arrays import Integers
from censafe.model.topdown.families import Families


@dataclass(frozen=True, eq=False)
class ParentLevel:
    """A level with the final one above it."""

    task: LevelTask
    rules: CellRules
    parents: SparseLevel
    above: SpineLevel
    family: FamilyRules | None


@dataclass(frozen=True, eq=False)
class EstimatedBatch:
    """What became of a batch of parents."""

    parents: Integers
    families: Families
    found: BatchFound
    general: tuple[tuple[int, ParentEstimate], ...] = field(default=())


def estimate_parents(level: ParentLevel, parents: Integers) -> EstimatedBatch:
    """Estimate some parents: the ordinary ones compiled, then the others one by one."""
    families, counts = families_of(level, parents)
    if level.family is None:
        found = BatchFound.none(families)
    else:
        found = estimate_batch(level.task.objective, level.family, families, counts)
    general = []
    for place in np.flatnonzero(~found.done).tolist():
        family = family_at(level, families, counts, parents, place)
        general.append((place, estimate_family(level.task, level.rules, family)))
    return EstimatedBatch(parents, families, found, tuple(general))


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
