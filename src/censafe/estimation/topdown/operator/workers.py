"""Parents in operator form solved in their order, by threads of this process or by the workers of an engine."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from censafe.errors import CheckError, ReleaseError
from censafe.estimation.topdown.batches.encoding import decoded_rows, encoded_failure, encoded_rows
from censafe.estimation.topdown.batches.parts import part_of_geounits, part_of_histograms
from censafe.estimation.topdown.least_squares.objective import LevelObjective
from censafe.estimation.topdown.levels.work_ahead import worked_ahead
from censafe.estimation.topdown.operator.facilities import OpenRecords
from censafe.estimation.topdown.operator.parent import OperatorResult
from censafe.estimation.topdown.operator.task import OperatorTask, SolvedParent, solve_parent
from censafe.geography.spines.tree import SpineLevel
from censafe.model import SparseLevel
from censafe.model.topdown.workers import EngineWorkers, OpenedAnswers, PartedAnswers, threads_of

_PARTS = 32  # of a level, of like work
_SOLUTION = ("steps", "products", "gap", "share", "violation", "cost", "entries", "uncertified")


def solved_parents(
    task: OperatorTask,
    parents: SparseLevel | None,
    above: SpineLevel | None,
    units: range,
    workers: int | EngineWorkers,
) -> Iterator[SolvedParent | None]:
    """The parents of a level in their order; what is found does not depend on who does it. None stands for an empty or copied one.

    Args:
        units: the parents, all of them.
    """
    source = task.objective.source
    if isinstance(workers, int) or parents is None or above is None or not isinstance(source, PartedAnswers):
        yield from worked_ahead(partial(solve_parent, task, parents, above), units, threads_of(workers))
        return
    edges = _edges(parents, above)
    parcels = (_part(task, parents, above, source, *span) for span in pairwise(edges))
    common = (task.rules, *task.objective.labels, *(() if task.further is None else (task.further.label,)))
    for found in workers.each(partial(_solved, source.opener()), parcels, common):
        rows, effort = decoded_rows(found)
        source.add(effort)
        yield from map(_solution, rows)


def _edges(parents: SparseLevel, above: SpineLevel) -> list[int]:
    """First parent of every part, and the number of all."""
    work = np.cumsum(np.diff(above.first_child) * np.diff(parents.node_ptr) + 1.0)
    cuts = np.searchsorted(work, work[-1] * np.arange(1, _PARTS) / _PARTS)
    return np.unique(np.concatenate([[0], cuts, [above.nodes]])).astype(int).tolist()


@dataclass(frozen=True, eq=False)
class _Part:
    """Consecutive parents with their children, both numbered from 0; the source of the objective of the task is what it gives of the children."""

    task: OperatorTask
    parents: SparseLevel
    above: SpineLevel


def _part(
    task: OperatorTask, parents: SparseLevel, above: SpineLevel, source: PartedAnswers, first: int, last: int
) -> _Part:
    start, end = (int(above.first_child[one]) for one in (first, last))
    objective, further = task.objective, task.further
    if objective.below is not None:
        raise CheckError("answers from below are not used in operator form; please report this as a bug")
    own = LevelObjective(
        objective.labels, objective.weights, objective.kinds[start:end], source.part(start, end)
    )
    part = replace(
        task,
        level=part_of_geounits(task.level, start, end),
        objective=own,
        held=part_of_histograms(task.held, start, end),
        open=None if task.open is None else (_open(task.open[0], start, end), *task.open[1:]),
        further=None
        if further is None
        else replace(further, values=further.values[start:end], weights=further.weights[start:end]),
    )
    return _Part(part, part_of_histograms(parents, first, last), part_of_geounits(above, first, last))


def _open(rows: OpenRecords, first: int, last: int) -> OpenRecords:
    """Open records of consecutive geounits, numbered from 0."""
    own = rows.rows(first, last)
    least = rows.least[int(rows.least_pointer[first]) : int(rows.least_pointer[last])].copy()
    if len(least):
        least[:, 0] -= first
    pointer, needed = (one[first : last + 1] - one[first] for one in (rows.pointer, rows.least_pointer))
    return OpenRecords(
        rows.area[own] - first, rows.place[own], rows.kinds[own], rows.published[own], rows.count[own],
        pointer, least, needed, None if rows.split is None else rows.split[own], rows.width,
    )  # fmt: skip


def _solved(opener: Callable[[Any], OpenedAnswers], part: _Part) -> bytes:
    """What a worker does with a part of a level."""
    answers = opener(part.task.objective.source)
    try:
        task = replace(part.task, objective=replace(part.task.objective, source=answers))
        found = [solve_parent(task, part.parents, part.above, unit) for unit in range(part.above.nodes)]
        return encoded_rows(list(map(_row, found)), answers.effort)
    except (CheckError, ReleaseError) as error:
        return encoded_failure(error)
    finally:
        answers.close()


def _row(found: SolvedParent | None) -> Mapping[str, Any]:
    if found is None:
        nothing = np.zeros(0, np.int32)
        none = np.zeros(0, np.int64)
        return {"cell": nothing, "count": nothing, "sizes": none, "split": none, "words": "null"}
    words = {
        "name": found.name,
        "cells": found.cells,
        "solution": [getattr(found.result, name) for name in _SOLUTION],
        "width": None if found.split is None else found.split.shape[1],
    }
    split = np.zeros(0, np.int64) if found.split is None else found.split.ravel()
    return {
        "cell": found.cell,
        "count": found.count,
        "sizes": found.sizes,
        "split": split,
        "words": json.dumps(words),
    }


def _solution(row: Mapping[str, Any]) -> SolvedParent | None:
    words = row["words"]
    if words is None:
        return None
    result = OperatorResult(
        np.zeros((0, 0), np.int64), **dict(zip(_SOLUTION, words["solution"], strict=True))
    )
    split = None if words["width"] is None else row["split"].reshape(-1, words["width"])
    return SolvedParent(words["name"], row["cell"], row["count"], row["sizes"], words["cells"], result, split)
