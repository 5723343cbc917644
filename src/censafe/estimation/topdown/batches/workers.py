"""Batches of parents estimated in their order, by threads of this process or by the workers of an engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from censafe.errors import CheckError, ReleaseError
from censafe.estimation.topdown.batches.batch import EstimatedBatch, ParentLevel, estimate_parents
from censafe.estimation.topdown.batches.encoding import decoded_batches, encoded_batches, encoded_failure
from censafe.estimation.topdown.batches.parts import LevelPart, common_values, level_part
from censafe.model.arrays import Integers
from censafe.model.topdown.workers import EngineWorkers, OpenedAnswers, PartedAnswers, threads_of
from censafe.model.work_ahead import worked_ahead

_MOST_BATCHES = 40  # of a part, some two seconds of work
_LEAST_PARTS = 8  # of a level that has so many batches


def estimated_batches(
    level: ParentLevel, spans: Sequence[Integers], workers: int | EngineWorkers
) -> Iterator[EstimatedBatch]:
    """Estimate batches of parents; what is found does not depend on who does it."""
    source = level.task.objective.source
    if isinstance(workers, int) or not isinstance(source, PartedAnswers) or not spans:
        # a county of 2,500 tracts takes as long as hundreds of batches of others; the results of a level are held in any case
        work, threads = partial(estimate_parents, level), threads_of(workers)
        yield from worked_ahead(work, spans, threads, ahead=max(1, len(spans)))
        return
    size = max(1, min(_MOST_BATCHES, len(spans) // _LEAST_PARTS))
    chunks = [tuple(spans[first : first + size]) for first in range(0, len(spans), size)]
    parcels = (level_part(level, source, chunk) for chunk in chunks)
    results = workers.each(partial(_estimated, source.opener()), parcels, common_values(level))
    for chunk, found in zip(chunks, results, strict=True):
        batches, effort = decoded_batches(level, chunk, found)
        source.add(effort)
        yield from batches


def _estimated(opener: Callable[[Any], OpenedAnswers], part: LevelPart) -> bytes:
    """What a worker does with a part of a level."""
    answers = opener(part.answers)
    try:
        level = part.opened(answers)
        batches = [estimate_parents(level, span) for span in part.spans]
        return encoded_batches(batches, answers.effort)
    except (CheckError, ReleaseError) as error:
        return encoded_failure(error)
    finally:
        answers.close()
