"""One parent in operator form: its passes one after another, from noisy answers to integers of its children.

The evidence for a fractional point stands here too: what it misses of the exact sums, and how far it is from the optimum at most.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numba import float64, types
from numpy.typing import NDArray

from censafe.errors import CheckError
from censafe.estimation.topdown.least_squares.certificate import GAP_TOLERANCE
from censafe.estimation.topdown.operator.facilities import OpenRecords
from censafe.estimation.topdown.operator.newton import climb
from censafe.estimation.topdown.operator.passes import OperatorPass, OperatorRules, is_sum
from censafe.estimation.topdown.operator.problem import DUAL, SUMS, Dual, Observed, PassProblem, pass_problem
from censafe.estimation.topdown.operator.rounding import exchange_units, round_pass
from censafe.model import SparseLevel
from censafe.model.arrays import Floats, Integers
from censafe.model.compiled import compiled


@dataclass(frozen=True, eq=False)
class OperatorFamily:
    """A parent, its children, and what is known of them.

    Args:
        cell: cells that the parent has, rising, shape (K,).
        count: of them, int64; None at a root.
        groups: those of the first pass that some child may have, rising, shape (G,).
        right: their exact sums, int64, shape (C, G); without the records that are still open.
        answers: of every fitted query the answers that the cells belong to, rising.
        values: of every fitted query, int64, shape (C, answers).
        weights: of an answer, shape (C, queries); 0 where nothing is measured.
    """

    name: str
    cell: NDArray[np.int32]
    count: Integers | None
    groups: Integers
    right: Integers
    open: OpenSums | None
    answers: dict[int, Integers] = field(repr=False)
    values: dict[int, Integers] = field(repr=False)
    weights: Floats = field(repr=False)


@dataclass(frozen=True, eq=False)
class OpenSums:
    """Records of the children whose group of the first pass is not decided by what is published.

    Args:
        span: first and one past the last child.
        published: published sum of every group of the family, shape (G,).
        kind: kind of facility of every group, shape (G,).
    """

    rows: OpenRecords
    span: tuple[int, int]
    published: Integers = field(repr=False)
    kind: Integers = field(repr=False)


def pass_columns(
    stage: OperatorPass, family: OperatorFamily
) -> tuple[Integers, NDArray[np.int32], Integers | None]:
    """Columns of a pass, a cell of each, and what the parent has of each; None at a root."""
    name, first, place = np.unique(stage.column[family.cell], return_index=True, return_inverse=True)
    column = None
    if family.count is not None:
        column = np.bincount(place, family.count, len(name)).astype(np.int64)
    return name.astype(np.int64), family.cell[first], column


def positions(names: Integers, values: NDArray[np.int32], parent: str) -> Integers:
    """Positions of groups among rising names."""
    place = np.searchsorted(names, values)
    if len(values) and not (len(names) and np.array_equal(names[np.minimum(place, len(names) - 1)], values)):
        raise CheckError(f"{parent}: cells lie where none of its children may have records")
    return place


def observed_answers(
    rules: OperatorRules, stage: OperatorPass, family: OperatorFamily, cell: NDArray[np.int32]
) -> list[Observed]:
    """The answers of the queries of a pass for its columns, those of earlier inner passes with larger weights."""
    observed = []
    for query, factor in zip(stage.fits, stage.factors or (1.0,) * len(stage.fits), strict=True):
        group = np.searchsorted(family.answers[query], rules.labels[query][cell]).astype(np.int32)
        weight = family.weights[:, query] * factor
        observed.append(Observed(group, family.values[query], weight))
    return observed


def zero_multipliers(problem: PassProblem) -> Dual:
    """Multipliers of zero."""
    rows, columns, entries = len(problem.sums.right), len(problem.sums.column), len(problem.entries.child)
    return Dual(np.zeros(rows), np.zeros(columns), np.empty(entries), np.empty(rows), np.empty(columns))


@compiled(types.UniTuple(float64, 2)(SUMS, DUAL))
def judge(sums, dual):  # type: ignore[no-untyped-def]
    """Violation and duality gap of the least point for some multipliers.

    The dual value is a lower bound of the optimum. The objective at the point exceeds it by the sum of y_i F_i over the exact rows, of
    s_k F_k over the columns, and of w_i F_i^2 / 2 over the measured rows, for a measured sum would be b - y / w and is R x.

    Returns:
        Most records by which an exact sum or a column is missed; gap, in the units of the problem.
    """
    violation, gap = 0.0, 0.0
    for i in range(sums.right.shape[0]):
        missed = dual.missed_row[i]
        if sums.weight[i] > 0.0:
            gap += 0.5 * sums.weight[i] * missed * missed
        else:
            violation = max(violation, abs(missed))
            gap += abs(dual.row[i] * missed)
    for k in range(sums.column.shape[0]):
        violation = max(violation, abs(dual.missed_column[k]))
        gap += abs(dual.column[k] * dual.missed_column[k])
    return violation, gap


_TOLERANCE = 1e-7  # records by which a sum may be missed before rounding
_RELATIVE = 1e-13  # of the largest sum
_FINER = 0.03  # of the tolerance, where the gap is above its mark
_MOST_CLIMBS = 3
WIDE_GAP = 1e-6  # of the objective, which US and states may be off where more than the mark of all others


@dataclass
class OperatorResult:
    """How the integers of the children of one parent were found.

    Args:
        gap: largest of a pass, in half chi-square units.
        share: largest of a pass, divided by its objective; 0 where every gap is small by itself or only that counts.
        violation: largest, in records.
        uncertified: passes that stopped before the tolerance, or whose gap is above its mark.
    """

    steps: int = 0
    products: int = 0
    gap: float = 0.0
    share: float = 0.0
    violation: float = 0.0
    cost: float = 0.0
    entries: int = 0
    uncertified: int = 0


def estimate_operator_parent(
    rules: OperatorRules, family: OperatorFamily, *, wide: bool = False
) -> tuple[Integers, OperatorResult]:
    """Fit and round every pass, whose columns are exact sums of the next; counts of the children, shape (C, K), and how they were found."""
    result = OperatorResult()
    groups, right = family.groups, family.right
    if family.open is not None:
        raise CheckError(f"{family.name}: records are still open")
    for stage in rules.passes:
        column_name, cell, column = pass_columns(stage, family)
        group = positions(groups, stage.group[cell], family.name)
        _require_sums(family.name, group, column, right)
        problem = pass_problem(
            group.astype(np.int32), right, column, observed_answers(rules, stage, family, cell)
        )
        x = _fitted(problem, result, wide)
        right, groups = _rounded(problem, x, stage, cell, result, family.name), column_name
    return right, result


def _require_sums(name: str, group: Integers, column: Integers | None, right: Integers) -> None:
    """Refuse exact sums that the cells of the parent do not have, or that have no cells."""
    sums = right.sum(axis=0)
    if column is not None and not np.array_equal(np.bincount(group, column, right.shape[1]), sums):
        raise CheckError(f"{name}: the exact sums of its children do not add up to its own counts")
    if (sums[np.bincount(group, minlength=right.shape[1]) == 0] > 0).any():
        raise CheckError(f"{name}: records are published where no cell may hold any")


def _fitted(problem: PassProblem, result: OperatorResult, wide: bool) -> Floats:
    """The point of least squares by entry, with its certificate; more steps are taken where the gap is above its mark."""
    entries, sums, dual = problem.entries, problem.sums, zero_multipliers(problem)
    if not len(entries.child):
        return dual.x
    enough = max(_TOLERANCE, _RELATIVE * float(np.abs(sums.right).max(initial=0.0)))
    tolerance, share = enough, 0.0
    for _ in range(_MOST_CLIMBS):
        steps, products, missed = climb(entries, sums, dual, tolerance)
        violation, gap = judge(sums, dual)
        gap *= problem.scale
        result.steps += steps
        result.products += products
        small = gap <= GAP_TOLERANCE
        if wide and not small:
            share = gap / problem.objective.value(problem.counts_of(dual.x))
            small = share <= WIDE_GAP
        if small or missed > tolerance:
            break
        tolerance *= _FINER
    result.gap, result.share = max(result.gap, gap), max(result.share, share)
    result.violation = max(result.violation, violation)
    result.entries = max(result.entries, len(entries.child))
    result.uncertified += missed > enough or not small
    return dual.x


def _rounded(
    problem: PassProblem, x: Floats, stage: OperatorPass, cell: NDArray[np.int32], result: OperatorResult, name: str
) -> Integers:  # fmt: skip
    """Counts of the columns of a pass, shape (C, K)."""
    counts, entries, sums = problem.fixed, problem.entries, problem.sums
    if not len(entries.child):
        return counts
    chain = np.ascontiguousarray([link[cell[problem.free]] for link in stage.chain], np.int32)
    open_counts = np.zeros((len(counts), len(problem.free)), np.int64)
    cost, failed = round_pass(
        entries, x, problem.group, problem.right, sums.column.astype(np.int64),
        chain.reshape(len(stage.chain), len(problem.free)), open_counts,
    )  # fmt: skip
    if failed:
        raise CheckError(f"{name}: {int(failed)} exact sums could not be met by integers")
    result.cost += cost
    exchange_units(entries, x, problem.group, sums, problem.scale, open_counts)
    counts[:, problem.free] = open_counts
    return counts


@dataclass(frozen=True, eq=False)
class FurtherLevel:
    """Further answers at the geounits of one level.

    Args:
        label: answer of every cell, int32, shape (cells,).
        values: shape (geounits, answers).
    """

    label: NDArray[np.int32] = field(repr=False)
    values: Integers = field(repr=False)
    weights: Floats = field(repr=False)

    def added_to(self, family: OperatorFamily, first: int, last: int, number: int) -> OperatorFamily:
        """A family with these answers as those of one query more."""
        answers = np.unique(self.label[family.cell]).astype(np.int64)
        return replace(
            family,
            answers={**family.answers, number: answers},
            values={**family.values, number: np.ascontiguousarray(self.values[first:last][:, answers])},
            weights=np.column_stack([family.weights[:, :number], self.weights[first:last]]),
        )


@dataclass(frozen=True, eq=False)
class FurtherAnswers:
    """Further answers at all levels of a spine.

    Args:
        label: answer of every cell, int32, shape (cells,).
        theirs: answer of every cell of these histograms, -1 for none, shape (their cells,).
    """

    label: NDArray[np.int32] = field(repr=False)
    levels: Sequence[SparseLevel] = field(repr=False)
    theirs: NDArray[np.int32] = field(repr=False)
    weights: Sequence[Floats] = field(repr=False)

    def at(self, depth: int) -> FurtherLevel:
        """The answers of a level, root 0."""
        values = level_sums(self.levels[depth], self.theirs, int(self.label.max()) + 1)
        return FurtherLevel(self.label, values, self.weights[depth])


def level_sums(level: SparseLevel, label: NDArray[np.int32], answers: int) -> Integers:
    """Records of every geounit of a level by group of cells.

    Args:
        label: group of every cell, -1 for none, shape (cells,).

    Returns:
        int64, shape (geounits, answers).
    """
    group = label[level.cell].astype(np.int64)
    place = np.repeat(np.arange(level.nodes), np.diff(level.node_ptr)) * answers + group
    inside = group >= 0
    sums = np.bincount(place[inside], level.count[inside], level.nodes * answers)
    return np.rint(sums).astype(np.int64).reshape(level.nodes, answers)


def answer_weights(
    theirs: NDArray[np.int32],
    allowed: NDArray[np.bool_],
    labels: Sequence[NDArray[np.int32]],
    weights: Floats,
) -> Floats:
    """What the measurements of another histogram say of the sums of groups of its cells: inverse variances, by kind of geounits.

    Of every query whose answers lie in single groups or in none, the answers of a group are added up; the group with the most of them
    counts for all, so that no answer weighs more than was measured.

    Args:
        theirs: group of every cell, -1 for none, shape (cells,).
        allowed: which cells may hold records, shape (cells,).
        weights: of an answer, shape (kinds, queries); 0 where nothing is measured.

    Example:
        >>> cells = np.array([0, 0, 1, -1], np.int32)
        >>> answer_weights(cells, np.ones(4, bool), [np.arange(4, dtype=np.int32)], np.array([[0.5]])).tolist()
        [0.25]
    """
    known = np.zeros(weights.shape[0])
    for query, label in enumerate(labels):
        if is_sum(label[allowed], theirs[allowed]):
            pairs = np.unique(np.stack([theirs, label])[:, allowed & (theirs >= 0)], axis=1)
            known += weights[:, query] / np.bincount(pairs[0]).max()
    return known


def with_query(rules: OperatorRules, label: NDArray[np.int32]) -> OperatorRules:
    """Rules with one query more, the last, in the first pass whose columns tell it; it weighs as the first inner pass does."""
    number = len(rules.labels)
    narrow = label[rules.allowed]
    place = next(
        at for at, one in enumerate(rules.passes) if is_sum(one.column[rules.allowed], narrow)
    )  # the last one tells all cells apart
    stage = rules.passes[place]
    factors = stage.factors or (1.0,) * len(stage.fits)
    changed = replace(stage, fits=(*stage.fits, number), factors=(*factors, max(factors)))
    passes = (*rules.passes[:place], changed, *rules.passes[place + 1 :])
    return replace(rules, passes=passes, labels=(*rules.labels, label))
