"""One parent in operator form: its passes one after another, from noisy answers to integers of its children."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from censafe.errors import CheckError
from censafe.estimation.topdown.operator.certificate import judge
from censafe.estimation.topdown.operator.facilities import OpenRecords, split_open
from censafe.estimation.topdown.operator.newton import climb
from censafe.estimation.topdown.operator.passes import OperatorPass, OperatorRules
from censafe.estimation.topdown.operator.problem import Observed, PassProblem, pass_problem
from censafe.estimation.topdown.operator.rounding import round_pass
from censafe.estimation.topdown.operator.structures import Dual
from censafe.model.arrays import Floats, Integers

__all__ = ["OpenSums", "OperatorFamily", "OperatorResult", "estimate_operator_parent"]

_TOLERANCE = 1e-7  # records by which a sum may be missed before rounding
_ROUGH = 1e-3  # of estimates that only say how open records are split
_RELATIVE = 1e-13  # of the largest sum


@dataclass(frozen=True, eq=False)
class OperatorFamily:
    """A parent, its children, and what is known of them.

    Args:
        name: of the parent, for messages.
        cell: cells that the parent has, rising, shape (K,).
        count: of them, int64; None at a root.
        held: the groups of the first pass that some child may have, rising, shape (G,).
        right: their exact sums, int64, shape (C, G); without the records that are still open.
        open: records whose group is open; None where none are.
        answers: of every fitted query the answers that the cells belong to, rising.
        values: of every fitted query, int64, shape (C, answers).
        weights: of an answer, shape (C, queries); 0 where nothing is measured.
    """

    name: str
    cell: NDArray[np.int32]
    count: Integers | None
    held: Integers
    right: Integers
    open: OpenSums | None
    answers: dict[int, Integers] = field(repr=False)
    values: dict[int, Integers] = field(repr=False)
    weights: Floats = field(repr=False)


@dataclass(frozen=True, eq=False)
class OpenSums:
    """Records of the children whose group of the first pass is not decided by what is published.

    Args:
        rows: of the level.
        span: first and one past the last child.
        published: published sum of every group of the family, shape (G,).
        kind: kind of facility of every group, shape (G,).
    """

    rows: OpenRecords
    span: tuple[int, int]
    published: Integers = field(repr=False)
    kind: Integers = field(repr=False)


@dataclass
class OperatorResult:
    """Integers of the children of one parent, and how they were found.

    Args:
        counts: int64, shape (C, K).
        steps: Newton steps of all passes.
        products: products with the curvature.
        gap: largest of a pass, in half chi-square units.
        violation: largest, in records.
        cost: of rounding.
        entries: largest number of open entries of a pass.
        uncertified: passes that stopped before the tolerance.
    """

    counts: Integers = field(repr=False)
    steps: int = 0
    products: int = 0
    gap: float = 0.0
    violation: float = 0.0
    cost: float = 0.0
    entries: int = 0
    uncertified: int = 0


def estimate_operator_parent(rules: OperatorRules, family: OperatorFamily) -> OperatorResult:
    """Fit and round every pass; the columns of one are exact sums of the next.

    Raises:
        CheckError: the exact sums of the children do not add up to the parent, or integers that meet them were not found.
    """
    result = OperatorResult(np.zeros((len(family.right), 0), np.int64))
    held_name, right = family.held, family.right
    if family.open is not None:
        right = right + _split(rules, family, family.open)
    for one in rules.passes:
        column_name, cell, column = _columns(one, family)
        held = _positions(held_name, one.held[cell], family.name)
        if column is not None:
            _require_sums(family.name, held, column, right)
        problem = pass_problem(held.astype(np.int32), right, column, _observed(rules, one, family, cell))
        right, held_name = _solved(problem, one, cell, column, result, family.name), column_name
    result.counts = right
    return result


def _columns(
    one: OperatorPass, family: OperatorFamily
) -> tuple[Integers, NDArray[np.int32], Integers | None]:
    """Columns of a pass, a cell of each, and what the parent has of each; None at a root."""
    name, first, place = np.unique(one.column[family.cell], return_index=True, return_inverse=True)
    column = None
    if family.count is not None:
        column = np.bincount(place, family.count, len(name)).astype(np.int64)
    return name.astype(np.int64), family.cell[first], column


def _positions(names: Integers, wanted: NDArray[np.int32], parent: str) -> Integers:
    """Positions of groups among rising names."""
    place = np.searchsorted(names, wanted)
    if not np.array_equal(names[np.minimum(place, len(names) - 1)], wanted):
        raise CheckError(f"{parent}: cells lie where none of its children may have records")
    return place


def _split(rules: OperatorRules, family: OperatorFamily, opened: OpenSums) -> Integers:
    """Split the open records among groups: by least squares under the published sums, then integers that the blocks can follow."""
    one, first = rules.passes[0], opened.span[0]
    groups = {(int(p), int(k)): g for g, (p, k) in enumerate(zip(opened.published, opened.kind, strict=True))}
    rows = opened.rows.rows(*opened.span)
    child, published, kinds = (
        opened.rows.area[rows] - first,
        opened.rows.published[rows],
        opened.rows.kinds[rows],
    )
    can = family.right > 0
    for c, total, bits in zip(child.tolist(), published.tolist(), kinds.tolist(), strict=True):
        for kind in range(bits.bit_length()):
            if bits >> kind & 1 and (total, kind) in groups:
                can[c, groups[total, kind]] = True
    sums, of_group = np.unique(opened.published, return_inverse=True)
    right = np.zeros((len(family.right), len(sums)), np.int64)
    np.add.at(right.T, of_group, family.right.T)
    np.add.at(right, (child, np.searchsorted(sums, published)), opened.rows.count[rows])
    _, cell, column = _columns(one, family)
    group = _positions(family.held, one.held[cell], family.name)
    problem = pass_problem(
        of_group[group].astype(np.int32), right, column, _observed(rules, one, family, cell), can[:, group]
    )
    dual = _start(problem)
    climb(problem.entries, problem.sums, dual, _ROUGH)
    wanted = np.zeros(family.right.shape)
    entries = problem.entries
    np.add.at(wanted, (entries.child, group[problem.free[entries.column]]), dual.x)
    left = None
    if family.count is not None:
        all_of = np.bincount(group, column, len(family.held)).astype(np.int64)
        left = all_of - family.right.sum(axis=0)
    return split_open(
        family.name, opened.rows, opened.span, groups, np.maximum(wanted - family.right, 0.0), left
    )


def _require_sums(name: str, held: Integers, column: Integers, right: Integers) -> None:
    sums = np.bincount(held, column, right.shape[1])
    if not np.array_equal(sums, right.sum(axis=0)):
        raise CheckError(f"{name}: the exact sums of its children do not add up to its own counts")


def _observed(
    rules: OperatorRules, one: OperatorPass, family: OperatorFamily, cell: NDArray[np.int32]
) -> list[Observed]:
    """The answers of the queries of a pass for its columns."""
    found = []
    for query in one.fits:
        group = np.searchsorted(family.answers[query], rules.labels[query][cell]).astype(np.int32)
        weight = np.ascontiguousarray(family.weights[:, query])
        found.append(Observed(group, family.values[query], weight))
    return found


def _start(problem: PassProblem) -> Dual:
    """Multipliers of zero."""
    rows, columns, entries = len(problem.sums.right), len(problem.sums.column), len(problem.entries.child)
    return Dual(np.zeros(rows), np.zeros(columns), np.empty(entries), np.empty(rows), np.empty(columns))


def _solved(
    problem: PassProblem, one: OperatorPass, cell: NDArray[np.int32], column: Integers | None,
    result: OperatorResult, name: str,
) -> Integers:  # fmt: skip
    """Counts of the columns of a pass, shape (C, K)."""
    counts, entries, sums = problem.fixed, problem.entries, problem.sums
    if not len(entries.child):
        return counts
    dual = _start(problem)
    tolerance = max(_TOLERANCE, _RELATIVE * float(np.abs(sums.right).max(initial=0.0)))
    steps, products, missed = climb(entries, sums, dual, tolerance)
    violation, gap = judge(sums, dual)
    result.steps += steps
    result.products += products
    result.gap = max(result.gap, gap * problem.scale)
    result.violation = max(result.violation, violation)
    result.entries = max(result.entries, len(entries.child))
    result.uncertified += missed > tolerance
    chain = np.ascontiguousarray([link[cell[problem.free]] for link in one.chain], np.int32)
    open_counts = np.zeros((len(counts), len(problem.free)), np.int64)
    cost, failed = round_pass(
        entries, dual.x, problem.held, problem.right, sums.column.astype(np.int64),
        chain.reshape(len(one.chain), len(problem.free)), open_counts,
    )  # fmt: skip
    if failed:
        raise CheckError(f"{name}: {failed} exact sums could not be met by integers")
    result.cost += cost
    counts[:, problem.free] = open_counts
    return counts
