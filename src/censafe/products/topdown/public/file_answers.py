"""From public files to histograms that are held to other results: from the root down, reading of every level the answers that its parents' cells need.

All answers of a state would take 100 GB. When a level is read, the cells of its parents are known, and with them the few
answers that its estimate asks for; one pass over the files finds these. Memory is bounded by them, folder by folder where the files
have one for each state.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from censafe.estimation.topdown.least_squares.objective import LevelObjective
from censafe.estimation.topdown.levels.from_root import EstimationFromRoot
from censafe.geography.spines.tree import SpineLevel
from censafe.model import SparseLevel
from censafe.model.arrays import Integers
from censafe.model.topdown.answers import AnswerReads
from censafe.products.run.options import EstimateOptions
from censafe.products.topdown.configuration.config import TopdownConfig
from censafe.products.topdown.descents import Descents, Estimates
from censafe.products.topdown.folder import StoredParts
from censafe.products.topdown.intake.equations import has_exact_sums
from censafe.products.topdown.intake.results import KnownResult
from censafe.products.topdown.plan import LevelWorkload, workloads
from censafe.products.topdown.public.files import FilesRun, variance_kinds
from censafe.results.measurements.chosen import AnswerIndex, ChosenAnswers, read_chosen

_MOST: Final = 1 << 28  # answers that are read at once
_ALIVE: Final = (
    2  # readings that are kept: parents are asked for in order, those of one or two readings at a time
)


@dataclass(frozen=True, eq=False)
class _Reading:
    """Answers of consecutive geounits as they were read, query by query."""

    chosen: ChosenAnswers
    starts: tuple[Integers, ...]
    values: tuple[Integers, ...]

    @staticmethod
    def of(index: AnswerIndex, chosen: ChosenAnswers) -> _Reading:
        starts = tuple(chosen.starts(query) for query in range(len(index.queries)))
        return _Reading(chosen, starts, read_chosen(index, chosen))

    def answers(self, nodes: slice, query: int, numbers: Integers) -> Integers | None:
        """Answers of geounits of one group, shape (nodes, len(numbers)); None where they were not read."""
        first, last = nodes.start - self.chosen.first, nodes.stop - self.chosen.first
        group, pointer = int(self.chosen.group[first]), self.chosen.pointer[query]
        there = self.chosen.answer[query][pointer[group] : pointer[group + 1]]
        if not np.array_equal(there, numbers):
            return None
        starts = self.starts[query]
        return self.values[query][starts[first] : starts[last]].reshape(last - first, len(numbers))


@dataclass(eq=False)
class FileAnswers:
    """Noisy answers in public files, read when the parents that need them are estimated.

    Args:
        labels: of every query, the answer of each cell of the schema, shape (cells,).
        place: folder of every geounit, shape (n,).
    """

    index: AnswerIndex
    labels: tuple[NDArray[np.int32], ...] = field(repr=False)
    place: NDArray[np.int32] = field(repr=False)
    parents: SparseLevel | None = field(repr=False)
    above: SpineLevel | None = field(repr=False)
    most: int = _MOST
    _readings: list[_Reading] = field(default_factory=list, repr=False)
    _lock: Any = field(default_factory=Lock, repr=False)

    def answers(self, query: int, first: int, last: int, chosen: NDArray[np.int64]) -> NDArray[np.int64]:
        """Some noisy answers of one query at consecutive geounits, int64, shape (last - first, m)."""
        return self._family(slice(first, last), {query: chosen})

    def gather(self, reads: AnswerReads) -> NDArray[np.int64]:
        """Noisy answers, parent by parent, child by child, in the order of `reads`."""
        families = []
        for parent in range(len(reads.child_ptr) - 1):
            child = reads.child[reads.child_ptr[parent] : reads.child_ptr[parent + 1]]
            span = slice(int(reads.answer_ptr[parent]), int(reads.answer_ptr[parent + 1]))
            query, answer = reads.query[span], reads.answer[span].astype(np.int64)
            by_query = {one: answer[query == one] for one in np.unique(query).tolist()}
            if len(child):
                families.append(self._family(slice(int(child[0]), int(child[-1]) + 1), by_query).ravel())
        return np.concatenate(families) if families else np.zeros(0, np.int64)

    def _family(self, nodes: slice, by_query: Mapping[int, Integers]) -> Integers:
        """Answers of the children of one parent, shape (children, all that are asked)."""
        with self._lock:
            reading = self._reading(nodes)
        answers = [None if reading is None else reading.answers(nodes, *one) for one in by_query.items()]
        if any(
            one is None for one in answers
        ):  # a root, or a parent that was changed so that its children can follow it
            reading = _Reading.of(
                self.index, self._chosen(nodes.start, [nodes.stop - nodes.start], [by_query])
            )
            answers = [reading.answers(nodes, *one) for one in by_query.items()]
        return np.concatenate([one for one in answers if one is not None], axis=1)

    def _reading(self, nodes: slice) -> _Reading | None:
        """What was read of some geounits, together with the parents after them; None at a root."""
        if self.parents is None or self.above is None:
            return None
        for one in self._readings:
            if one.chosen.first <= nodes.start and nodes.stop <= one.chosen.last:
                return one
        self._readings = self._readings[-(_ALIVE - 1) :]
        first = int(np.searchsorted(self.above.first_child, nodes.start, side="right")) - 1
        self._readings.append(_Reading.of(self.index, self._ahead(first)))
        return self._readings[-1]

    def _ahead(self, first: int) -> ChosenAnswers:
        """What a parent and those after it need: as many as lie in one folder and are not too much."""
        above, parents = self.above, self.parents
        if above is None or parents is None:
            raise TypeError("the geounits of a root have no parents")
        counts: list[int] = []
        by_parent: list[Mapping[int, Integers]] = []
        total, folder = 0, self.place[above.first_child[first]]
        for parent in range(first, above.nodes):
            start, stop = int(above.first_child[parent]), int(above.first_child[parent + 1])
            cell = parents.cell[parents.node_ptr[parent] : parents.node_ptr[parent + 1]]
            if stop - start == 1:  # an only child is its parent
                cell = cell[:0]
            own = {query: np.unique(label[cell]).astype(np.int64) for query, label in enumerate(self.labels)}
            total += (stop - start) * sum(map(len, own.values()))
            if counts and (total > self.most or self.place[start] != folder):
                break
            counts.append(stop - start)
            by_parent.append(own)
        return self._chosen(int(above.first_child[first]), counts, by_parent)

    def _chosen(
        self, first: int, counts: Sequence[int], by_parent: Sequence[Mapping[int, Integers]]
    ) -> ChosenAnswers:
        none = np.zeros(0, np.int64)
        by_query = [[one.get(query, none) for one in by_parent] for query in range(len(self.labels))]
        return ChosenAnswers(
            first,
            np.repeat(np.arange(len(counts)), counts),
            tuple(np.cumsum([0, *map(len, own)]) for own in by_query),
            tuple(np.concatenate([none, *own]) for own in by_query),
        )


def estimate_constrained_run(
    config: TopdownConfig,
    files: FilesRun,
    results: Sequence[KnownResult],
    stored: StoredParts,
    options: EstimateOptions,
) -> Estimates:
    """Every histogram of public files under the sums of published results, level by level."""
    observer = options.observer
    with observer.stage("held sums"):
        descents = Descents(
            config, files.facts, observer, options.workers, results, options.solver, files.right_sides,
            lambda load: variance_kinds(files.index(load).variances),
        )  # fmt: skip
    for histogram in descents.order:
        descent, loads = descents.of(histogram), workloads(config, histogram.name)
        documents = tuple(_estimated(load, files, descent, stored, options) for load in loads)
        with observer.stage("add up"):
            descents.finish(histogram, descent, documents)
    return descents.estimates("seeded" if files.stamped else "system")


def _estimated(
    load: LevelWorkload,
    files: FilesRun,
    descent: EstimationFromRoot,
    stored: StoredParts,
    options: EstimateOptions,
) -> Mapping[str, Any]:
    """Estimate one level and store it, or take it as it was stored; returns how it was solved."""
    levels, name = files.facts.spine.levels, load.part.name
    depth = len(descent.levels)
    done = stored.blocks(name)
    if done is None:
        parents = descent.levels[-1] if depth else None
        with options.observer.stage(f"list {name}"):
            objective = _objective(load, files, parents, levels[depth - 1] if depth else None)
        with options.observer.stage(f"read and estimate {name}"):
            level, report = descent.estimate(name, objective)
        return stored.store_blocks(name, level, report.document(), descent.split).report
    descent.adopt(done.level(levels[depth].geounits), done.split)
    return done.report


def _objective(
    load: LevelWorkload, files: FilesRun, parents: SparseLevel | None, above: SpineLevel | None
) -> LevelObjective:
    """The measurements of a level, to be read when they are asked for; at once where nothing holds the histogram, which has few cells."""
    labels = tuple(query.label for query in load.queries)
    if not has_exact_sums(load.histogram):
        return LevelObjective.measured(labels, files.read(load))
    index = files.index(load)
    rows, kinds = variance_kinds(index.variances)
    place = files.places[load.part.name][1]
    return LevelObjective.drawing(labels, rows, kinds, FileAnswers(index, labels, place, parents, above))
