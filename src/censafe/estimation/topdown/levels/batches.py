"""Batches of parents of one level: their children and cells, and their estimates, compiled where the parents are ordinary.

Batches are estimated in their order by threads of this process, or in parts by the workers of an engine, to the same integers. A part travels to a worker with
all that its estimation needs. What comes back is read as numbers and text, and nothing of it is executed.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from censafe.errors import CheckError, ReleaseError
from censafe.estimation.topdown.least_squares.objective import LevelObjective
from censafe.estimation.topdown.least_squares.problem import L2Result, L2Status
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
from censafe.estimation.topdown.levels.passes import CellChange, ParentEstimate
from censafe.estimation.topdown.levels.task import CellRules, LevelTask, family_rules
from censafe.geography.spines.tree import SpineLevel
from censafe.model import SparseLevel
from censafe.model.arrays import Floats, Integers
from censafe.model.topdown.answers import (
    AnswerSource,
    DrawingEffort,
    EngineWorkers,
    Families,
    OpenedAnswers,
    PartedAnswers,
    threads_of,
)
from censafe.model.work_ahead import worked_ahead

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


_MOST_BATCHES = 40  # of a part, some two seconds of work
_LEAST_PARTS = 8  # of a level that has so many batches
_FAILURE = {error.__name__: error for error in (CheckError, ReleaseError)}


def estimated_batches(level: ParentLevel, workers: int | EngineWorkers) -> Iterator[EstimatedBatch]:
    """Estimate the batches of a level; the result does not depend on who does it.

    Parents of the general way come back from an engine without the fractional points, which only their rounding uses.
    """
    source, batches = level.task.objective.source, level.batches
    if isinstance(workers, int) or not isinstance(source, PartedAnswers) or not batches:
        # a county of 2,500 tracts takes as long as hundreds of batches of others; the results of a level stay in memory in any case
        work, threads = partial(estimate_parents, level), threads_of(workers)
        yield from worked_ahead(work, batches, threads, ahead=max(1, len(batches)))
        return
    size = max(1, min(_MOST_BATCHES, len(batches) // _LEAST_PARTS))
    chunks = [batches[first : first + size] for first in range(0, len(batches), size)]
    parts = (_part(level, source, chunk) for chunk in chunks)
    parcels = ((part, part.task.objective.source) for part in parts)
    kinds, nothing = level.task.limits.kinds, np.zeros((0, 0))
    common = (*level.task.objective.labels, level.rules, *(() if kinds is None else (kinds,)))
    results = worked_by_engine(workers, source, _estimated_part, parcels, common)
    for parents, (ordinary, estimates) in zip(batches, chain.from_iterable(results), strict=True):
        general = []
        for place, counts, outcomes, roundings, changes in estimates:
            solves = tuple(
                L2Result(nothing, L2Status(status), gap, violation, iterations, nothing)
                for status, gap, violation, iterations in outcomes
            )
            changed = tuple(CellChange(**change) for change in changes)
            general.append((place, ParentEstimate(counts, solves, tuple(roundings), changed)))
        families, _ = families_of(level, parents)
        yield EstimatedBatch(parents, families, FamilyResults(*ordinary), tuple(general))


def worked_by_engine(
    workers: EngineWorkers,
    source: PartedAnswers,
    work: Callable[[Any, Any], Sequence[Any]],
    parcels: Iterable[tuple[Any, Any]],
    common: Sequence[object],
) -> Iterator[list[Any]]:
    """What workers make of parts of a level, in the order of the parts: JSON values, and arrays that may be written to.

    Args:
        work: takes a part and its answers; the values of a dataclass that it returns come as a dictionary.
        parcels: every part with what the source gives of it.
    """
    for result in workers.results(partial(_encoded_work, source.opener(), work), parcels, common):
        stream, arrays = io.BytesIO(result), list[NDArray[Any]]()
        words = stream.readline()
        while stream.tell() < len(result):
            arrays.append(np.load(stream, allow_pickle=False))
        outcome = json.loads(words, object_hook=partial(_with_array, arrays))
        if "failure" in outcome:
            raise _FAILURE[outcome["failure"]](outcome["message"])
        source.add(DrawingEffort(*outcome["effort"]))
        yield outcome["result"]


def _with_array(arrays: list[NDArray[Any]], value: dict[str, Any]) -> Any:
    return arrays[value["array"]] if value.keys() == {"array"} else value


def _encoded_work(
    opener: Callable[[Any], OpenedAnswers],
    work: Callable[[Any, Any], Sequence[Any]],
    parcel: tuple[Any, Any],
) -> bytes:
    """What a worker makes of a part, or the error that stops the run: one line of JSON, and the arrays that it numbers."""
    part, answers = parcel[0], opener(parcel[1])
    outcome: dict[str, Any]
    try:
        outcome = {"result": work(part, answers), "effort": list(answers.effort)}
    except (CheckError, ReleaseError) as error:
        outcome = {"failure": type(error).__name__, "message": str(error)}
    finally:
        answers.close()
    arrays: list[NDArray[Any]] = []

    def plain(value: object) -> dict[str, Any]:
        if not isinstance(value, np.ndarray):
            return vars(value)
        arrays.append(value)
        return {"array": len(arrays) - 1}

    stream = io.BytesIO()
    stream.write(json.dumps(outcome, default=plain).encode() + b"\n")
    for array in arrays:
        np.save(stream, array, allow_pickle=False)
    return stream.getvalue()


def part_of_geounits(level: SpineLevel, first: int, last: int) -> SpineLevel:
    """Consecutive geounits of a level as a level of its own."""
    children = level.first_child[first : last + 1]
    return replace(
        level,
        codes=level.codes[first:last],
        parent=level.parent[first:last] - (level.parent[first] if last > first else 0),
        first_child=children - children[0],
        prefix=None if level.prefix is None else level.prefix[first:last],
    )


def _part(level: ParentLevel, source: PartedAnswers, batches: tuple[Integers, ...]) -> ParentLevel:
    """The part of a level that some batches of parents need, numbered from 0; its source is what workers open."""
    first, last = int(batches[0][0]), int(batches[-1][-1]) + 1
    start, end = (int(level.above.first_child[edge]) for edge in (first, last))
    task, objective = level.task, level.task.objective
    below = objective.below
    if below is not None:
        own, coarse = slice(start, end), below.coarse
        if coarse is not None:
            coarse = replace(coarse, right=np.ascontiguousarray(coarse.right[own]))
        below = replace(
            below,
            right=np.ascontiguousarray(below.right[own]),
            total_right=below.total_right[own],
            coarse=coarse,
        )
    return ParentLevel(
        replace(
            task,
            level=part_of_geounits(task.level, start, end),
            objective=replace(
                objective, kinds=objective.kinds[start:end], source=source.part(start, end), below=below
            ),
            limits=task.limits.part(start, end),
        ),
        level.rules,
        level.parents.part(first, last),
        part_of_geounits(level.above, first, last),
        None,  # the worker makes the rules of ordinary parents
        tuple(parents - first for parents in batches),
    )


def _estimated_part(part: ParentLevel, answers: AnswerSource) -> list[Any]:
    """Estimates of the batches of a part."""
    task = replace(part.task, objective=replace(part.task.objective, source=answers))
    level = replace(part, task=task, family=family_rules(task, part.rules))
    results = []
    for parents in level.batches:
        batch = estimate_parents(level, parents)
        general = []
        for place, estimate in batch.general:
            solves = [
                (solve.status.value, solve.gap, solve.violation, solve.iterations)
                for solve in estimate.solves
            ]
            general.append((place, estimate.counts, solves, estimate.roundings, estimate.changes))
        results.append((batch.ordinary, general))
    return results
