"""One histogram with very many cells from the root down, under exact sums of what is published.

At every level each parent is solved by itself; its noisy answers are fetched when its turn comes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from censafe.errors import CheckError
from censafe.estimation.topdown.least_squares.objective import LevelObjective
from censafe.estimation.topdown.levels.from_root import EstimationFromRoot
from censafe.estimation.topdown.levels.pass_order import measured_fits, passes_of
from censafe.estimation.topdown.levels.repair import CellChange
from censafe.estimation.topdown.levels.task import LevelReport, RepairedParent
from censafe.estimation.topdown.operator.facilities import HeldSums, OpenRecords
from censafe.estimation.topdown.operator.family import OpenSums, OperatorFamily
from censafe.estimation.topdown.operator.further import FurtherAnswers, FurtherLevel, with_query
from censafe.estimation.topdown.operator.parent import OperatorResult, estimate_operator_parent
from censafe.estimation.topdown.operator.passes import OperatorPass, OperatorRules, combined, is_sum
from censafe.estimation.topdown.operator.settle import settle_open
from censafe.geography.spines.tree import Spine, SpineLevel
from censafe.model import SparseLevel
from censafe.model.arrays import Integers
from censafe.model.observer import Observer
from censafe.model.topdown.choices import Choices
from censafe.model.topdown.families import Wanted
from censafe.model.topdown.histograms import HistogramSchema, MeasuredHistogram, Passes
from censafe.model.topdown.workers import threads_of

__all__ = ["OperatorDescent", "OperatorTask", "estimate_operator_level", "operator_rules"]


_Solved = tuple[OperatorFamily, OperatorResult, tuple[CellChange, ...]] | None
_STATE = "State"
_AHEAD = 3  # parents under way or waiting, for every worker


@dataclass(frozen=True, eq=False)
class OperatorTask:
    """A level, ready to be estimated.

    Args:
        level: its geounits.
        objective: its measurements.
        held: exact sums of its geounits over the held groups of the first pass, as a level of histograms of them.
        rules: its passes.
        open: records that these sums leave out, for their group is open, with the published sum and the kind of every group;
            None where there are none.
        repair: whether a parent whose open records cannot be split is changed and logged; otherwise the level stops.
        further: answers beside the measurements, to the last query of the rules; None without.
    """

    level: SpineLevel
    objective: LevelObjective
    held: SparseLevel
    rules: OperatorRules
    open: tuple[OpenRecords, Integers, Integers] | None = None
    repair: bool = True
    further: FurtherLevel | None = None


def estimate_operator_level(
    task: OperatorTask,
    parents: SparseLevel | None,
    above: SpineLevel | None,
    *,
    workers: int = 1,
    progress: Callable[[float], None] | None = None,
) -> tuple[SparseLevel, LevelReport]:
    """Integer histograms of all geounits of a level.

    Args:
        task: the level.
        parents: final histograms of the level above; None for the root.
        above: that level; None for the root.
        workers: threads; the result does not depend on them.
        progress: called with the share of the level that is done.

    Raises:
        CheckError: exact sums of children do not add up to their parent, or its open records cannot be split.
    """
    report = LevelReport(task.level.name, task.level.nodes)
    pieces: list[tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64]]] = []
    units = range(task.level.nodes if above is None else above.nodes)
    report.parents = 1 if above is None else above.nodes
    for unit, found in _in_order(task, parents, above, units, workers):
        pieces.append(_take(task, parents, above, unit, found, report))
        if progress is not None:
            progress((unit + 1) / len(units))
    sizes = np.concatenate([sizes for _, _, sizes in pieces])
    pointer = np.zeros(task.level.nodes + 1, np.int64)
    np.cumsum(sizes, out=pointer[1:])
    cell = np.concatenate([cell for cell, _, _ in pieces])
    count = np.concatenate([count for _, count, _ in pieces])
    return SparseLevel(task.level.geounits, pointer, cell, count), report


def _in_order(
    task: OperatorTask, parents: SparseLevel | None, above: SpineLevel | None, units: range, workers: int
) -> Iterator[tuple[int, _Solved]]:
    """Results in the order of the parents; None where a parent is empty or copied."""
    wide = above is None or task.level.name == _STATE

    def one(unit: int) -> _Solved:
        family = _family(task, parents, above, unit)
        if family is None:
            return None
        family, changes = settle_open(task.rules, family, repair=task.repair)
        if changes:
            span = _span(task, above, unit)
            answers, values = _answers(task, *span, family.cell)
            family = replace(family, answers=answers, values=values)
            family = _informed(task, family, *span)
        return family, estimate_operator_parent(task.rules, family, wide=wide), changes

    if workers <= 1:
        yield from ((unit, one(unit)) for unit in units)
        return
    with ThreadPoolExecutor(workers) as pool:
        waiting: deque[tuple[int, Future[_Solved]]] = deque()
        try:
            for unit in units:
                waiting.append((unit, pool.submit(one, unit)))
                if len(waiting) >= _AHEAD * workers:
                    number, future = waiting.popleft()
                    yield number, future.result()
            while waiting:
                number, future = waiting.popleft()
                yield number, future.result()
        finally:
            for _, future in waiting:
                future.cancel()


def _span(task: OperatorTask, above: SpineLevel | None, unit: int) -> tuple[int, int]:
    """First and one past the last child."""
    if above is None:
        return unit, unit + 1
    return int(above.first_child[unit]), int(above.first_child[unit + 1])


def _family(
    task: OperatorTask, parents: SparseLevel | None, above: SpineLevel | None, unit: int
) -> OperatorFamily | None:
    """A parent that is to be solved; None for one that is empty or has one child."""
    first, last = _span(task, above, unit)
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


def _count(name: str, found: OperatorResult, report: LevelReport) -> None:
    """Count a solved parent."""
    report.statuses["approximate" if found.uncertified else "ok"] += 1
    report.rounded["flow"] += 1
    report.iterations += found.steps
    report.most_iterations = max(report.most_iterations, found.steps)
    report.gap = max(report.gap, found.gap)
    report.gap_share = max(report.gap_share, found.share)
    report.violation = max(report.violation, found.violation)
    report.rounding_cost += found.cost
    report.most_cells = max(report.most_cells, found.counts.shape[1])
    if found.uncertified:
        report.approximate.append(name)


def _take(
    task: OperatorTask, parents: SparseLevel | None, above: SpineLevel | None, unit: int,
    solved: _Solved, report: LevelReport,
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64]]:  # fmt: skip
    """Cells and counts of the children of a parent, child by child, and how many each has."""
    first, last = _span(task, above, unit)
    if solved is not None:
        family, found, changes = solved
        if changes:
            cells = tuple((one.cell, one.before, one.after) for one in changes)
            report.repairs.append(RepairedParent(family.name, cells))
        child, place = np.nonzero(found.counts)
        _count(family.name, found, report)
        sizes = np.bincount(child, minlength=last - first)
        return family.cell[place], found.counts[child, place].astype(np.int32), sizes
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
        histogram: its schema and passes.
        spine: the tree.
        held: exact sums that every level obeys.
        observer: receives remarks and progress.
        choices: named choices of the run: which inner passes are joined, and whether a parent whose children cannot follow it is
            changed and logged.
        workers: threads that estimate parents; the result does not depend on them.
        further: answers beside the measurements; None without.
    """

    _needs = "have the records that their facilities need"

    def __init__(
        self,
        histogram: MeasuredHistogram,
        spine: Spine,
        held: HeldSums,
        observer: Observer,
        choices: Choices,
        workers: int = 1,
        further: FurtherAnswers | None = None,
    ) -> None:
        super().__init__(histogram, spine, observer, choices, workers)
        self._held = held
        self._further = further
        self._rules: dict[object, OperatorRules] = {}

    def _estimated(
        self, depth: int, objective: LevelObjective, parents: SparseLevel | None, above: SpineLevel | None
    ) -> tuple[SparseLevel, LevelReport]:
        level = self._spine.levels[depth]
        task = OperatorTask(
            level, objective, self._held.levels[depth], self._rules_of(level.name), self._held.open_at(depth),
            self._choices.infeasible == "repair", None if self._further is None else self._further.at(depth),
        )  # fmt: skip
        return estimate_operator_level(
            task, parents, above, workers=threads_of(self._workers), progress=self._progress(above)
        )

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

    Raises:
        CheckError: the passes of the configuration cannot be fitted in operator form.
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
