"""One parent in operator form: its passes one after another, from noisy answers to integers of its children.

The evidence for a fractional point stands here too: what it misses of the exact sums, and how far it is from the optimum at most.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numba import float64, types
from numpy.typing import NDArray

from censafe.errors import CheckError
from censafe.estimation.topdown.least_squares.certificate import GAP_TOLERANCE
from censafe.estimation.topdown.operator.family import (
    OperatorFamily,
    observed_answers,
    pass_columns,
    positions,
    zero_multipliers,
)
from censafe.estimation.topdown.operator.newton import climb
from censafe.estimation.topdown.operator.passes import OperatorPass, OperatorRules
from censafe.estimation.topdown.operator.problem import DUAL, SUMS, PassProblem, pass_problem
from censafe.estimation.topdown.operator.rounding import exchange_units, round_pass
from censafe.model.arrays import Floats, Integers
from censafe.model.compiled import compiled


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
    """Integers of the children of one parent, and how they were found.

    Args:
        counts: int64, shape (C, K).
        gap: largest of a pass, in half chi-square units.
        share: largest of a pass, divided by its objective; 0 where every gap is small by itself or only that counts.
        violation: largest, in records.
        uncertified: passes that stopped before the tolerance, or whose gap is above its mark.
    """

    counts: Integers = field(repr=False)
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
) -> OperatorResult:
    """Fit and round every pass; the columns of one are exact sums of the next."""
    result = OperatorResult(np.zeros((len(family.right), 0), np.int64))
    held_name, right = family.held, family.right
    if family.open is not None:
        raise CheckError(f"{family.name}: records are still open")
    for one in rules.passes:
        column_name, cell, column = pass_columns(one, family)
        held = positions(held_name, one.held[cell], family.name)
        _require_sums(family.name, held, column, right)
        problem = pass_problem(
            held.astype(np.int32), right, column, observed_answers(rules, one, family, cell)
        )
        x = _fitted(problem, result, wide)
        right, held_name = _rounded(problem, x, one, cell, result, family.name), column_name
    result.counts = right
    return result


def _require_sums(name: str, held: Integers, column: Integers | None, right: Integers) -> None:
    """Refuse exact sums that the cells of the parent do not have, or that have no cells."""
    sums = right.sum(axis=0)
    if column is not None and not np.array_equal(np.bincount(held, column, right.shape[1]), sums):
        raise CheckError(f"{name}: the exact sums of its children do not add up to its own counts")
    if (sums[np.bincount(held, minlength=right.shape[1]) == 0] > 0).any():
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
    problem: PassProblem, x: Floats, one: OperatorPass, cell: NDArray[np.int32], result: OperatorResult, name: str
) -> Integers:  # fmt: skip
    """Counts of the columns of a pass, shape (C, K)."""
    counts, entries, sums = problem.fixed, problem.entries, problem.sums
    if not len(entries.child):
        return counts
    chain = np.ascontiguousarray([link[cell[problem.free]] for link in one.chain], np.int32)
    open_counts = np.zeros((len(counts), len(problem.free)), np.int64)
    cost, failed = round_pass(
        entries, x, problem.held, problem.right, sums.column.astype(np.int64),
        chain.reshape(len(one.chain), len(problem.free)), open_counts,
    )  # fmt: skip
    if failed:
        raise CheckError(f"{name}: {int(failed)} exact sums could not be met by integers")
    result.cost += cost
    exchange_units(entries, x, problem.held, sums, problem.scale, open_counts)
    counts[:, problem.free] = open_counts
    return counts
