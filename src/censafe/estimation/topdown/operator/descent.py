"""One histogram with very many cells from the root down, under exact sums of what is published.

At every level each parent is solved by itself; its noisy answers are fetched when its turn comes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from censafe.errors import CheckError
from censafe.estimation.topdown.least_squares.objective import LevelObjective
from censafe.estimation.topdown.levels.batches import part_of_geounits, worked_by_engine
from censafe.estimation.topdown.levels.from_root import EstimationFromRoot
from censafe.estimation.topdown.levels.limits import measured_fits, passes_of
from censafe.estimation.topdown.levels.task import LevelReport
from censafe.estimation.topdown.operator.facilities import ExactSums, OpenRecords
from censafe.estimation.topdown.operator.parent import (
    FurtherAnswers,
    FurtherLevel,
    OpenSums,
    OperatorFamily,
    OperatorResult,
    estimate_operator_parent,
    with_query,
)
from censafe.estimation.topdown.operator.passes import (
    OperatorPass,
    OperatorRules,
    combined,
    distinct,
    is_sum,
)
from censafe.estimation.topdown.operator.settle import settle_open, split_open
from censafe.geography.spines.tree import Spine, SpineLevel
from censafe.model import SparseLevel
from censafe.model.arrays import Integers
from censafe.model.observer import Observer
from censafe.model.topdown.answers import AnswerReads, AnswerSource, EngineWorkers, PartedAnswers, threads_of
from censafe.model.topdown.choices import Choices
from censafe.model.topdown.histograms import HistogramSchema, MeasuredHistogram, Passes
from censafe.model.work_ahead import worked_ahead

_STATE = "State"


@dataclass(frozen=True, eq=False)
class OperatorTask:
    """A level under its finished parents, ready to be estimated.

    Args:
        parents: None at the root, as `above` is.
        exact_sums: sums of its geounits over the groups of the first pass, as a level of histograms of them.
        open: records that these sums leave out, for their group is open, with the published sum and the kind of every group;
            None where there are none.
        further: answers in addition to the measurements, to the last query of the rules; None without.
    """

    level: SpineLevel
    parents: SparseLevel | None
    above: SpineLevel | None
    objective: LevelObjective
    exact_sums: SparseLevel
    rules: OperatorRules
    open: tuple[OpenRecords, Integers, Integers] | None = None
    further: FurtherLevel | None = None

    @property
    def units(self) -> int:
        """Number of parents; of roots where they have none."""
        return self.level.nodes if self.above is None else self.above.nodes

    def children(self, unit: int) -> tuple[int, int]:
        """First and one past the last child of a parent."""
        if self.above is None:
            return unit, unit + 1
        return int(self.above.first_child[unit]), int(self.above.first_child[unit + 1])


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


def solve_parent(task: OperatorTask, unit: int) -> SolvedParent | None:
    """The children of a parent, by its position; None where it is empty or has one child."""
    family = _family(task, unit)
    if family is None:
        return None
    family, split = settle_open(task.rules, family)
    wide = task.above is None or task.level.name == _STATE
    counts, result = estimate_operator_parent(task.rules, family, wide=wide)
    child, place = np.nonzero(counts)
    sizes = np.bincount(child, minlength=len(counts))
    count = counts[child, place].astype(np.int32)
    return SolvedParent(family.name, family.cell[place], count, sizes, counts.shape[1], result, split)


def _family(task: OperatorTask, unit: int) -> OperatorFamily | None:
    """A parent that is to be solved; None for one that is empty or has one child."""
    first, last = task.children(unit)
    if task.above is not None and last - first == 1:
        return None
    groups, right = _group_sums(task, first, last)
    if task.parents is not None:
        span = slice(*task.parents.node_ptr[unit : unit + 2].tolist())
        cell, count = task.parents.cell[span], task.parents.count[span].astype(np.int64)
    else:  # of a root all cells that may hold records
        label = task.rules.passes[0].group
        mask = np.zeros(int(label.max()) + 1, np.bool_)
        mask[groups] = True
        cell, count = np.flatnonzero(task.rules.allowed & mask[label]).astype(np.int32), None
    name = str((task.level if task.above is None else task.above).names(np.array([unit]))[0])
    if not len(cell):
        if right.any():
            raise CheckError(f"{name}: records are published where no cell may hold any")
        return None
    answers, values = _answers(task, first, last, cell)
    weights = task.objective.weights[task.objective.kinds[first:last]]
    open_sums = None
    if task.open is not None:
        rows, published, kind = task.open
        own = rows.rows(first, last)
        if own.start < own.stop:
            open_sums = OpenSums(rows, (first, last), published[groups], kind[groups])
    family = OperatorFamily(name, cell, count, groups, right, open_sums, answers, values, weights)
    if task.further is None:
        return family
    return task.further.added_to(family, first, last, len(task.objective.labels))


def _answers(
    task: OperatorTask, first: int, last: int, cell: NDArray[np.int32]
) -> tuple[dict[int, Integers], dict[int, Integers]]:
    """Of every fitted query that is measured the answers that some cells belong to, and their values at consecutive geounits."""
    rules = task.rules
    measured = [query for query in rules.queries if query < len(task.objective.labels)]
    answers = {query: distinct(rules.labels[query][cell]) for query in measured}
    reads = AnswerReads(
        np.array([0, last - first], np.int64),
        np.arange(first, last, dtype=np.int64),
        np.array([0, sum(len(one) for one in answers.values())], np.int64),
        np.concatenate([np.full(len(one), query, np.int32) for query, one in answers.items()]),
        np.concatenate([one.astype(np.int32) for one in answers.values()]),
    )
    drawn = task.objective.source.gather(reads).reshape(last - first, -1)
    ends = np.cumsum([len(one) for one in answers.values()])[:-1]
    values = {
        query: np.ascontiguousarray(part)
        for query, part in zip(answers, np.split(drawn, ends, axis=1), strict=True)
    }
    return answers, values


def _group_sums(task: OperatorTask, first: int, last: int) -> tuple[Integers, Integers]:
    """The exact sums of consecutive geounits: groups that any of them may have, rising, and the matrix of sums."""
    pointer = task.exact_sums.node_ptr[first : last + 1]
    group, count = (
        task.exact_sums.cell[pointer[0] : pointer[-1]],
        task.exact_sums.count[pointer[0] : pointer[-1]],
    )
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


_PARTS = 32  # of a level, of like work


def solved_parents(task: OperatorTask, workers: int | EngineWorkers) -> Iterator[SolvedParent | None]:
    """The parents of a level in their order; the result does not depend on who solves them. None stands for an empty or copied one."""
    source, parents, above = task.objective.source, task.parents, task.above
    if isinstance(workers, int) or parents is None or above is None or not isinstance(source, PartedAnswers):
        yield from worked_ahead(partial(solve_parent, task), range(task.units), threads_of(workers))
        return
    work = np.cumsum(np.diff(above.first_child) * np.diff(parents.node_ptr) + 1.0)
    cuts = np.searchsorted(work, work[-1] * np.arange(1, _PARTS) / _PARTS)
    edges = np.unique(np.concatenate([[0], cuts, [above.nodes]])).astype(int).tolist()
    parts = (_part(task, parents, above, source, *span) for span in pairwise(edges))
    parcels = ((part, part.objective.source) for part in parts)
    common = (task.rules, *task.objective.labels, *(() if task.further is None else (task.further.label,)))
    for rows in worked_by_engine(workers, source, _solved_part, parcels, common):
        for row in rows:
            yield row and SolvedParent(**{**row, "result": OperatorResult(**row["result"])})


def _part(
    task: OperatorTask, parents: SparseLevel, above: SpineLevel, source: PartedAnswers, first: int, last: int
) -> OperatorTask:
    """Consecutive parents with their children, both numbered from 0; its source is what workers open."""
    start, end = (int(above.first_child[edge]) for edge in (first, last))
    objective, further = task.objective, task.further
    if objective.below is not None:
        raise CheckError("answers from below are not used in operator form; please report this as a bug")
    own = LevelObjective(
        objective.labels, objective.weights, objective.kinds[start:end], source.part(start, end)
    )
    if further is not None:
        further = replace(further, values=further.values[start:end], weights=further.weights[start:end])
    return OperatorTask(
        level=part_of_geounits(task.level, start, end),
        parents=parents.part(first, last),
        above=part_of_geounits(above, first, last),
        objective=own,
        exact_sums=task.exact_sums.part(start, end),
        rules=task.rules,
        open=None if task.open is None else (_open(task.open[0], start, end), *task.open[1:]),
        further=further,
    )


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


def _solved_part(part: OperatorTask, answers: AnswerSource) -> list[SolvedParent | None]:
    """What a worker makes of a part of a level."""
    task = replace(part, objective=replace(part.objective, source=answers))
    return [solve_parent(task, unit) for unit in range(task.units)]


def estimate_operator_level(
    task: OperatorTask,
    *,
    workers: int | EngineWorkers = 1,
    progress: Callable[[float], None] | None = None,
) -> tuple[SparseLevel, LevelReport, Integers | None]:
    """Integer histograms of all geounits of a level, how they were solved, and the split of its open records; None where there are none."""
    report = LevelReport(task.level.name, task.level.nodes, parents=1 if task.above is None else task.units)
    pieces: list[tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64]]] = []
    rows = None if task.open is None else task.open[0]
    split = None if rows is None or rows.split is None else rows.split.copy()
    for unit, solved in enumerate(solved_parents(task, workers)):
        if solved is None:
            pieces.append(_copied(task, unit, report))
        else:
            _count(solved, report)
            pieces.append((solved.cell, solved.count, solved.sizes))
            if rows is not None and split is not None and solved.split is not None:
                split[rows.rows(*task.children(unit))] = solved.split
        if progress is not None:
            progress((unit + 1) / task.units)
    cell, count, sizes = (np.concatenate(arrays) for arrays in zip(*pieces, strict=True))
    pointer = np.zeros(task.level.nodes + 1, np.int64)
    np.cumsum(sizes, out=pointer[1:])
    return SparseLevel(task.level.geounits, pointer, cell, count), report, split


def _count(solved: SolvedParent, report: LevelReport) -> None:
    """Count a solved parent."""
    result = solved.result
    report.statuses["approximate" if result.uncertified else "ok"] += 1
    report.rounded["flow"] += 1
    report.iterations += result.steps
    report.most_iterations = max(report.most_iterations, result.steps)
    report.gap = max(report.gap, result.gap)
    report.gap_share = max(report.gap_share, result.share)
    report.violation = max(report.violation, result.violation)
    report.rounding_cost += result.cost
    report.most_cells = max(report.most_cells, solved.cells)
    if result.uncertified:
        report.approximate.append(solved.name)


def _copied(
    task: OperatorTask, unit: int, report: LevelReport
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64]]:
    """Cells and counts of the children of a parent that is empty or has one child, and how many cells each child has."""
    first, last = task.children(unit)
    sizes, parents = np.zeros(last - first, np.int64), task.parents
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
        exact_sums: ExactSums,
        observer: Observer,
        choices: Choices,
        workers: int | EngineWorkers = 1,
        further: FurtherAnswers | None = None,
    ) -> None:
        super().__init__(histogram, spine, observer, choices, workers)
        self._exact_sums = exact_sums
        self._further = further
        self._rules: dict[object, OperatorRules] = {}

    def _estimated(
        self, depth: int, objective: LevelObjective, parents: SparseLevel | None, above: SpineLevel | None
    ) -> tuple[SparseLevel, LevelReport]:
        level, opened = self._spine.levels[depth], self._exact_sums.open_at(depth)
        if opened is not None and depth:
            split = self.split if self.split is not None else self._recovered(depth - 1)
            opened = (replace(opened[0], split=split), *opened[1:])
        # levels that are fitted and rounded alike share their rules
        key = self._histogram.passes[level.name], tuple(self._histogram.query_shares[level.name])
        rules = self._rules.get(key) or operator_rules(
            self._histogram, level.name, self._exact_sums, self._choices
        )
        if key not in self._rules and self._further is not None:
            rules = with_query(rules, self._further.label)
        self._rules[key] = rules
        task = OperatorTask(
            level, parents, above, objective, self._exact_sums.levels[depth], rules, opened,
            None if self._further is None else self._further.at(depth),
        )  # fmt: skip
        level_counts, report, self.split = estimate_operator_level(
            task, workers=self._workers, progress=self._progress(above)
        )
        return level_counts, report

    def _recovered(self, depth: int) -> Integers | None:
        """A split of the open records that a finished level allows, for one that was stored without."""
        opened = self._exact_sums.open_at(depth)
        if opened is None:
            return None
        rows, published, kind = replace(opened[0], split=None), *opened[1:]
        groups = {(int(p), int(k)): g for g, (p, k) in enumerate(zip(published, kind, strict=True))}
        level, decided = self._levels[depth], self._exact_sums.levels[depth]
        split = np.zeros((len(rows.count), rows.width), np.int64)
        for area in np.unique(rows.area).tolist():
            own = slice(int(level.node_ptr[area]), int(level.node_ptr[area + 1]))
            known = slice(int(decided.node_ptr[area]), int(decided.node_ptr[area + 1]))
            left = np.bincount(self._exact_sums.label[level.cell[own]], level.count[own], len(kind)).astype(
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


def operator_rules(
    histogram: MeasuredHistogram, level: str, exact_sums: ExactSums, choices: Choices
) -> OperatorRules:
    """The passes of a level: each tells apart what the last query of its rounding does, and holds the columns of the one before.

    The inner passes of one outer pass are fitted together: what they would leave open is too much to be fitted one after
    another. An answer of an inner pass outweighs those of the next by a factor, so that the many answers of a fine query, which
    are mostly noise about empty columns, cannot move the few of a coarse one.
    """
    schema, passes = histogram.schema, passes_of(histogram, level, choices)
    stages: list[OperatorPass] = []
    label, allowed = exact_sums.label, schema.allowed()
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
        stages.append(OperatorPass(column, tuple(fits), label, chain, tuple(factors)))
        label = column
    return OperatorRules(
        allowed,
        tuple(stages),
        tuple(schema.query(text).label for text in histogram.query_shares[level]),
    )


def _outer_passes(
    passes: Passes, schema: HistogramSchema, published: NDArray[np.int32], allowed: NDArray[np.bool_]
) -> Iterator[tuple[tuple[tuple[str, ...], ...], tuple[tuple[str, ...], ...]]]:
    """Queries to fit and to round of every pass; one whose columns the exact sums part is fitted with the next, as an inner pass before it."""
    fits: tuple[tuple[str, ...], ...] = ()
    rounds: tuple[tuple[str, ...], ...] = ()
    begun = False
    for place, (fitted, rounded) in enumerate(zip(passes.l2, passes.rounding, strict=True), 1):
        fits, rounds = (*fits, *fitted), (*rounds, *rounded)
        names = [text for inner in rounds for text in inner]
        parted = (
            bool(names)
            and not begun
            and not is_sum(schema.query(names[-1]).label[allowed], published[allowed])
        )
        if parted and place < len(passes.l2):
            continue
        yield fits, rounds
        fits, rounds, begun = (), (), True
