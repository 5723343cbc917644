"""One histogram with very many cells from the root down, under exact sums of what is published.

At every level each parent is solved by itself; its noisy answers are fetched when its turn comes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from censafe.errors import CheckError
from censafe.estimation.topdown.least_squares.objective import LevelObjective
from censafe.estimation.topdown.levels.from_root import EstimationFromRoot
from censafe.estimation.topdown.levels.pass_order import measured_fits, passes_of
from censafe.estimation.topdown.levels.task import LevelReport
from censafe.estimation.topdown.operator.facilities import HeldSums
from censafe.estimation.topdown.operator.further import FurtherAnswers, with_query
from censafe.estimation.topdown.operator.passes import OperatorPass, OperatorRules, combined, is_sum
from censafe.estimation.topdown.operator.settle import split_open
from censafe.estimation.topdown.operator.task import OperatorTask, SolvedParent, child_span
from censafe.estimation.topdown.operator.workers import solved_parents
from censafe.geography.spines.tree import Spine, SpineLevel
from censafe.model import SparseLevel
from censafe.model.arrays import Integers
from censafe.model.observer import Observer
from censafe.model.topdown.choices import Choices
from censafe.model.topdown.histograms import HistogramSchema, MeasuredHistogram, Passes
from censafe.model.topdown.workers import EngineWorkers


def estimate_operator_level(
    task: OperatorTask,
    parents: SparseLevel | None,
    above: SpineLevel | None,
    *,
    workers: int | EngineWorkers = 1,
    progress: Callable[[float], None] | None = None,
) -> tuple[SparseLevel, LevelReport, Integers | None]:
    """Integer histograms of all geounits of a level, how they were solved, and the split of its open records; None where there are none."""
    report = LevelReport(task.level.name, task.level.nodes)
    pieces: list[tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64]]] = []
    units = range(task.level.nodes if above is None else above.nodes)
    report.parents = 1 if above is None else above.nodes
    rows = None if task.open is None else task.open[0]
    split = None if rows is None or rows.split is None else rows.split.copy()
    for unit, found in enumerate(solved_parents(task, parents, above, units, workers)):
        pieces.append(_take(parents, above, unit, found, report))
        if rows is not None and split is not None and found is not None and found.split is not None:
            split[rows.rows(*child_span(above, unit))] = found.split
        if progress is not None:
            progress((unit + 1) / len(units))
    sizes = np.concatenate([sizes for _, _, sizes in pieces])
    pointer = np.zeros(task.level.nodes + 1, np.int64)
    np.cumsum(sizes, out=pointer[1:])
    cell = np.concatenate([cell for cell, _, _ in pieces])
    count = np.concatenate([count for _, count, _ in pieces])
    return SparseLevel(task.level.geounits, pointer, cell, count), report, split


def _count(found: SolvedParent, report: LevelReport) -> None:
    """Count a solved parent."""
    result = found.result
    report.statuses["approximate" if result.uncertified else "ok"] += 1
    report.rounded["flow"] += 1
    report.iterations += result.steps
    report.most_iterations = max(report.most_iterations, result.steps)
    report.gap = max(report.gap, result.gap)
    report.gap_share = max(report.gap_share, result.share)
    report.violation = max(report.violation, result.violation)
    report.rounding_cost += result.cost
    report.most_cells = max(report.most_cells, found.cells)
    if result.uncertified:
        report.approximate.append(found.name)


def _take(
    parents: SparseLevel | None, above: SpineLevel | None, unit: int, found: SolvedParent | None, report: LevelReport,
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64]]:  # fmt: skip
    """Cells and counts of the children of a parent, child by child, and how many each has."""
    if found is not None:
        _count(found, report)
        return found.cell, found.count, found.sizes
    first, last = child_span(above, unit)
    sizes = np.zeros(last - first, np.int64)
    if parents is None or parents.node_ptr[unit] == parents.node_ptr[unit + 1]:
        report.empty += 1
        return np.zeros(0, np.int32), np.zeros(0, np.int32), sizes
    report.copied += 1
    span = slice(int(parents.node_ptr[unit]), int(parents.node_ptr[unit + 1]))
    sizes[0] = span.stop - span.start
    return parents.cell[span], parents.count[span], sizes


_EARLIER = 30.0  # by which an answer of an inner pass outweighs one of the next


class OperatorDescent(EstimationFromRoot):
    """The estimation of a histogram in operator form, under exact sums of what is published.

    Args:
        workers: threads that estimate parents, or those of an engine; the result does not depend on them.
    """

    def __init__(
        self,
        histogram: MeasuredHistogram,
        spine: Spine,
        held: HeldSums,
        observer: Observer,
        choices: Choices,
        workers: int | EngineWorkers = 1,
        further: FurtherAnswers | None = None,
    ) -> None:
        super().__init__(histogram, spine, observer, choices, workers)
        self._held = held
        self._further = further
        self._rules: dict[object, OperatorRules] = {}

    def _estimated(
        self, depth: int, objective: LevelObjective, parents: SparseLevel | None, above: SpineLevel | None
    ) -> tuple[SparseLevel, LevelReport]:
        level, opened = self._spine.levels[depth], self._held.open_at(depth)
        if opened is not None and depth:
            split = self._split if self._split is not None else self._recovered(depth - 1)
            opened = (replace(opened[0], split=split), *opened[1:])
        task = OperatorTask(
            level, objective, self._held.levels[depth], self._rules_of(level.name), opened,
            None if self._further is None else self._further.at(depth),
        )  # fmt: skip
        level_counts, report, self._split = estimate_operator_level(
            task, parents, above, workers=self._workers, progress=self._progress(above)
        )
        return level_counts, report

    def _recovered(self, depth: int) -> Integers | None:
        """A split of the open records that a finished level allows, for one that was stored without."""
        opened = self._held.open_at(depth)
        if opened is None:
            return None
        rows, published, kind = replace(opened[0], split=None), *opened[1:]
        groups = {(int(p), int(k)): g for g, (p, k) in enumerate(zip(published, kind, strict=True))}
        level, decided = self._levels[depth], self._held.levels[depth]
        split = np.zeros((len(rows.count), rows.width), np.int64)
        for area in np.unique(rows.area).tolist():
            own = slice(int(level.node_ptr[area]), int(level.node_ptr[area + 1]))
            known = slice(int(decided.node_ptr[area]), int(decided.node_ptr[area + 1]))
            left = np.bincount(self._held.label[level.cell[own]], level.count[own], len(kind)).astype(
                np.int64
            )
            np.subtract.at(left, decided.cell[known], decided.count[known])
            settled = split_open(rows, (area, area + 1), groups, np.zeros((1, len(kind))), left)
            if settled is None:
                name = str(self._spine.levels[depth].names(np.array([area]))[0])
                raise CheckError(
                    f"{name}: its finished counts allow no split among kinds of facility; estimate in a new folder"
                )
            split[rows.rows(area, area + 1)] = settled[1]
        return split

    def _rules_of(self, level: str) -> OperatorRules:
        """Rules of a level; levels that are fitted and rounded alike share them."""
        passes, measured = self._histogram.passes[level], tuple(self._histogram.query_shares[level])
        key = (passes, measured)
        if key not in self._rules:
            rules = operator_rules(self._histogram, level, self._held, self._choices)
            self._rules[key] = rules if self._further is None else with_query(rules, self._further.label)
        return self._rules[key]


def operator_rules(
    histogram: MeasuredHistogram, level: str, held: HeldSums, choices: Choices
) -> OperatorRules:
    """The passes of a level: each tells apart what the last query of its rounding does, and holds the columns of the one before.

    The inner passes of one outer pass are fitted together: what they would leave open is too much to be fitted one after
    another. An answer of an inner pass outweighs those of the next by a factor, so that the many answers of a fine query, which
    are mostly noise about empty columns, cannot move the few of a coarse one.
    """
    schema, passes = histogram.schema, passes_of(histogram, level, choices)
    found: list[OperatorPass] = []
    label, allowed = held.label, schema.allowed()
    for fitted, rounded in _outer_passes(passes, schema, label, allowed):
        inner = measured_fits(histogram, level, fitted)
        fits = [query for queries in inner for query in queries]
        factors = [
            _EARLIER ** (len(inner) - 1 - place) for place, queries in enumerate(inner) for _ in queries
        ]
        names = [text for inner in rounded for text in inner]
        if not fits or not names:
            raise CheckError(f"{histogram.name}, {level}: a pass needs queries to fit and queries to round")
        column = schema.query(names[-1]).label
        chain = tuple(combined((label, schema.query(text).label)) for text in names[:-1])
        found.append(OperatorPass(column, tuple(fits), label, chain, tuple(factors)))
        label = column
    return OperatorRules(
        allowed,
        tuple(found),
        tuple(schema.query(text).label for text in histogram.query_shares[level]),
    )


def _outer_passes(
    passes: Passes, schema: HistogramSchema, held: NDArray[np.int32], allowed: NDArray[np.bool_]
) -> Iterator[tuple[tuple[tuple[str, ...], ...], tuple[tuple[str, ...], ...]]]:
    """Queries to fit and to round of every pass; one whose columns the exact sums part is fitted with the next, as an inner pass before it."""
    fits: tuple[tuple[str, ...], ...] = ()
    rounds: tuple[tuple[str, ...], ...] = ()
    begun = False
    for place, (fitted, rounded) in enumerate(zip(passes.l2, passes.rounding, strict=True), 1):
        fits, rounds = (*fits, *fitted), (*rounds, *rounded)
        names = [text for inner in rounds for text in inner]
        parted = bool(names) and not begun and not is_sum(schema.query(names[-1]).label, held, allowed)
        if parted and place < len(passes.l2):
            continue
        yield fits, rounds
        fits, rounds, begun = (), (), True
