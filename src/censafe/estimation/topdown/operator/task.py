"""A level in operator form, and one of its parents: what is known of it, and its solution."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from censafe.errors import CheckError
from censafe.estimation.topdown.least_squares.objective import LevelObjective
from censafe.estimation.topdown.operator.facilities import OpenRecords
from censafe.estimation.topdown.operator.family import OpenSums, OperatorFamily
from censafe.estimation.topdown.operator.further import FurtherLevel
from censafe.estimation.topdown.operator.parent import OperatorResult, estimate_operator_parent
from censafe.estimation.topdown.operator.passes import OperatorRules
from censafe.estimation.topdown.operator.settle import settle_open
from censafe.geography.spines.tree import SpineLevel
from censafe.model import SparseLevel
from censafe.model.arrays import Integers
from censafe.model.topdown.families import Wanted

_STATE = "State"


@dataclass(frozen=True, eq=False)
class OperatorTask:
    """A level, ready to be estimated.

    Args:
        held: exact sums of its geounits over the held groups of the first pass, as a level of histograms of them.
        open: records that these sums leave out, for their group is open, with the published sum and the kind of every group;
            None where there are none.
        further: answers beside the measurements, to the last query of the rules; None without.
    """

    level: SpineLevel
    objective: LevelObjective
    held: SparseLevel
    rules: OperatorRules
    open: tuple[OpenRecords, Integers, Integers] | None = None
    further: FurtherLevel | None = None


@dataclass(frozen=True, eq=False)
class SolvedParent:
    """Integer histograms of the children of a parent, one child after another, and how they were found.

    Args:
        split: of the open records of its children, as in :class:`OpenRecords`; None where there are none.
    """

    name: str
    cell: NDArray[np.int32] = field(repr=False)
    count: NDArray[np.int32] = field(repr=False)
    sizes: Integers = field(repr=False)
    cells: int
    result: OperatorResult
    split: Integers | None = field(default=None, repr=False)


def solve_parent(
    task: OperatorTask, parents: SparseLevel | None, above: SpineLevel | None, unit: int
) -> SolvedParent | None:
    """The children of a parent; None where it is empty or has one child.

    Args:
        unit: position of the parent there.
    """
    family = _family(task, parents, above, unit)
    if family is None:
        return None
    family, split = settle_open(task.rules, family)
    span = child_span(above, unit)
    wide = above is None or task.level.name == _STATE
    found = estimate_operator_parent(task.rules, family, wide=wide)
    child, place = np.nonzero(found.counts)
    sizes = np.bincount(child, minlength=span[1] - span[0])
    count = found.counts[child, place].astype(np.int32)
    result = replace(found, counts=np.zeros((0, 0), np.int64))
    return SolvedParent(family.name, family.cell[place], count, sizes, found.counts.shape[1], result, split)


def child_span(above: SpineLevel | None, unit: int) -> tuple[int, int]:
    """First and one past the last child of a parent.

    Args:
        unit: position of the parent.
    """
    if above is None:
        return unit, unit + 1
    return int(above.first_child[unit]), int(above.first_child[unit + 1])


def _family(
    task: OperatorTask, parents: SparseLevel | None, above: SpineLevel | None, unit: int
) -> OperatorFamily | None:
    """A parent that is to be solved; None for one that is empty or has one child."""
    first, last = child_span(above, unit)
    if above is not None and last - first == 1:
        return None
    held, right = _held(task, first, last)
    cell, count = _cells(task, parents, unit, held)
    name = str((task.level if above is None else above).names(np.array([unit]))[0])
    if not len(cell):
        if right.any():
            raise CheckError(f"{name}: records are published where no cell may hold any")
        return None
    answers, values = _answers(task, first, last, cell)
    weights = task.objective.weights[task.objective.kinds[first:last]]
    family = OperatorFamily(
        name, cell, count, held, right, _open_sums(task, first, last, held), answers, values, weights
    )
    return _informed(task, family, first, last)


def _informed(task: OperatorTask, family: OperatorFamily, first: int, last: int) -> OperatorFamily:
    """A family with the answers that are there beside its own."""
    if task.further is None:
        return family
    return task.further.beside(family, first, last, len(task.objective.labels))


def _answers(
    task: OperatorTask, first: int, last: int, cell: NDArray[np.int32]
) -> tuple[dict[int, Integers], dict[int, Integers]]:
    """Of every fitted query that is measured the answers that some cells belong to, and their values at consecutive geounits."""
    rules = task.rules
    measured = [query for query in rules.queries if query < len(task.objective.labels)]
    answers = {query: np.unique(rules.labels[query][cell]).astype(np.int64) for query in measured}
    wanted = Wanted(
        np.array([0, last - first], np.int64),
        np.arange(first, last, dtype=np.int64),
        np.array([0, sum(len(one) for one in answers.values())], np.int64),
        np.concatenate([np.full(len(one), query, np.int32) for query, one in answers.items()]),
        np.concatenate([one.astype(np.int32) for one in answers.values()]),
    )
    drawn = task.objective.source.gather(wanted).reshape(last - first, -1)
    ends = np.cumsum([len(one) for one in answers.values()])[:-1]
    values = {
        query: np.ascontiguousarray(part)
        for query, part in zip(answers, np.split(drawn, ends, axis=1), strict=True)
    }
    return answers, values


def _open_sums(task: OperatorTask, first: int, last: int, held: Integers) -> OpenSums | None:
    if task.open is None:
        return None
    rows, published, kind = task.open
    span = rows.rows(first, last)
    if span.start == span.stop:
        return None
    return OpenSums(rows, (first, last), published[held], kind[held])


def _held(task: OperatorTask, first: int, last: int) -> tuple[Integers, Integers]:
    """The exact sums of consecutive geounits: groups that any of them may have, rising, and the matrix of sums."""
    pointer = task.held.node_ptr[first : last + 1]
    group, count = task.held.cell[pointer[0] : pointer[-1]], task.held.count[pointer[0] : pointer[-1]]
    present = np.unique(group).astype(np.int64)
    if task.open is not None:
        rows, published, kind = task.open
        span = rows.rows(first, last)
        pairs = np.unique(np.stack([rows.published[span], rows.kinds[span]], axis=1), axis=0)
        for total, bits in pairs.tolist():
            own = np.flatnonzero(published == total)
            present = np.union1d(present, own[(bits >> kind[own]) & 1 == 1])
    right = np.zeros((last - first, len(present)), np.int64)
    right[np.repeat(np.arange(last - first), np.diff(pointer)), np.searchsorted(present, group)] = count
    return present, right


def _cells(
    task: OperatorTask, parents: SparseLevel | None, unit: int, held: Integers
) -> tuple[NDArray[np.int32], Integers | None]:
    """Cells of a parent and their counts; of a root all that may hold records."""
    if parents is not None:
        span = slice(int(parents.node_ptr[unit]), int(parents.node_ptr[unit + 1]))
        return parents.cell[span], parents.count[span].astype(np.int64)
    label = task.rules.passes[0].held
    mask = np.zeros(int(label.max()) + 1, np.bool_)
    mask[held] = True
    return np.flatnonzero(task.rules.allowed & mask[label]).astype(np.int32), None
