"""Parents of a level estimated in their order by threads of this process, or in parts by the workers of an engine, to the same integers.

A part travels to a worker with all that its estimation needs. What comes back is read as numbers and text, and nothing of it is executed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from censafe.errors import CheckError, ReleaseError
from censafe.estimation.topdown.least_squares.problem import L2Result, L2Status
from censafe.estimation.topdown.levels.batches import (
    EstimatedBatch,
    ParentLevel,
    estimate_parents,
    families_of,
)
from censafe.estimation.topdown.levels.families import FamilyResults
from censafe.estimation.topdown.levels.passes import ParentEstimate
from censafe.estimation.topdown.levels.repair import CellChange
from censafe.estimation.topdown.levels.task import family_rules
from censafe.geography.spines.tree import SpineLevel
from censafe.model.arrays import Integers
from censafe.model.topdown.families import AnswerSource
from censafe.model.topdown.workers import (
    DrawingEffort,
    EngineWorkers,
    OpenedAnswers,
    PartedAnswers,
    threads_of,
)
from censafe.model.work_ahead import worked_ahead

_MOST_BATCHES = 40  # of a part, some two seconds of work
_LEAST_PARTS = 8  # of a level that has so many batches
_WORDS = "words"
_FAILURE = {error.__name__: error for error in (CheckError, ReleaseError)}
Row = Mapping[str, Any]
"""Vectors by name, and the text ``words`` of JSON values."""


def estimated_batches(level: ParentLevel, workers: int | EngineWorkers) -> Iterator[EstimatedBatch]:
    """Estimate the batches of a level; the result does not depend on who does it."""
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
    kinds = level.task.limits.kinds
    common = (*level.task.objective.labels, level.rules, *(() if kinds is None else (kinds,)))
    results = rows_of_workers(workers, source, _batch_rows, parcels, common)
    for chunk, rows in zip(chunks, results, strict=True):
        for parents, row in zip(chunk, rows, strict=True):
            yield _batch(level, parents, row)


def rows_of_workers(
    workers: EngineWorkers,
    source: PartedAnswers,
    work: Callable[[Any, Any], Sequence[Row]],
    parcels: Iterable[tuple[Any, Any]],
    common: Sequence[object],
) -> Iterator[list[dict[str, Any]]]:
    """The rows that workers make of parts of a level, in the order of the parts, with vectors that may be written to.

    Args:
        work: takes a part and its answers.
        parcels: every part with what the source gives of it.
    """
    for result in workers.results(partial(_encoded_work, source.opener(), work), parcels, common):
        table = pa.ipc.open_stream(pa.BufferReader(result)).read_all()
        outcome = json.loads(table.schema.metadata[b"censafe"])
        if "failure" in outcome:
            raise _FAILURE[outcome["failure"]](outcome["message"])
        vectors = [name for name in table.column_names if name != _WORDS]
        rows: list[dict[str, Any]] = []
        for place in range(table.num_rows):
            row: dict[str, Any] = {name: np.array(table[name][place].values) for name in vectors}
            rows.append(row | {_WORDS: json.loads(table[_WORDS][place].as_py())})
        source.add(DrawingEffort(*outcome["effort"]))
        yield rows


def _encoded_work(
    opener: Callable[[Any], OpenedAnswers],
    work: Callable[[Any, Any], Sequence[Row]],
    parcel: tuple[Any, Any],
) -> bytes:
    """What a worker makes of a part: rows, or the error that stops the run."""
    part, answers = parcel[0], opener(parcel[1])
    rows: Sequence[Row] = ()
    outcome: dict[str, Any]
    try:
        rows = work(part, answers)
        outcome = {"effort": list(answers.effort)}
    except (CheckError, ReleaseError) as error:
        outcome = {"failure": type(error).__name__, "message": str(error)}
    finally:
        answers.close()
    columns: dict[str, Any] = {}
    for name in rows[0] if rows else ():
        values = [row[name] for row in rows]
        kind = pa.string() if name == _WORDS else pa.list_(pa.from_numpy_dtype(values[0].dtype))
        columns[name] = pa.array(values, kind)
    table = pa.table(columns).replace_schema_metadata({"censafe": json.dumps(outcome)})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


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


def _batch_rows(part: ParentLevel, answers: AnswerSource) -> list[Row]:
    """Estimates of the batches of a part."""
    task = replace(part.task, objective=replace(part.task.objective, source=answers))
    level = replace(part, task=task, family=family_rules(task, part.rules))
    return [_row(estimate_parents(level, parents)) for parents in level.batches]


def _row(batch: EstimatedBatch) -> Row:
    words = [
        {
            "place": place,
            "shape": estimate.counts.shape,
            "solves": [
                [solve.status.value, solve.gap, solve.violation, solve.iterations]
                for solve in estimate.solves
            ],
            "roundings": estimate.roundings,
            "changes": [[change.cell, change.before, change.after] for change in estimate.changes],
        }
        for place, estimate in batch.general
    ]
    counts = [estimate.counts.reshape(-1).astype(np.int64) for _, estimate in batch.general]
    return batch.ordinary._asdict() | {
        "measures": batch.ordinary.measures.ravel(),
        "general": np.concatenate([np.zeros(0, np.int64), *counts]),
        _WORDS: json.dumps(words),
    }


def _batch(level: ParentLevel, parents: Integers, row: dict[str, Any]) -> EstimatedBatch:
    """The estimates of a row; parents of the general way come without the fractional points, which only their rounding uses."""
    families, _ = families_of(level, parents)
    counts, nothing, general, at = row["general"], np.zeros((0, 0)), [], 0
    for words in row[_WORDS]:
        size = int(np.prod(words["shape"]))
        estimate = ParentEstimate(
            counts[at : at + size].reshape(words["shape"]),
            tuple(
                L2Result(nothing, L2Status(status), gap, violation, iterations, nothing)
                for status, gap, violation, iterations in words["solves"]
            ),
            tuple(words["roundings"]),
            tuple(CellChange(*change) for change in words["changes"]),
        )
        general.append((int(words["place"]), estimate))
        at += size
    row["measures"] = row["measures"].reshape(-1, 3)
    ordinary = FamilyResults(**{name: row[name] for name in FamilyResults._fields})
    return EstimatedBatch(parents, families, ordinary, tuple(general))
