"""A parent with its children in operator form, and what its passes read of it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from censafe.errors import CheckError
from censafe.estimation.topdown.operator.facilities import OpenRecords
from censafe.estimation.topdown.operator.passes import OperatorPass, OperatorRules
from censafe.estimation.topdown.operator.problem import Dual, Observed, PassProblem
from censafe.model.arrays import Floats, Integers


@dataclass(frozen=True, eq=False)
class OperatorFamily:
    """A parent, its children, and what is known of them.

    Args:
        cell: cells that the parent has, rising, shape (K,).
        count: of them, int64; None at a root.
        held: the groups of the first pass that some child may have, rising, shape (G,).
        right: their exact sums, int64, shape (C, G); without the records that are still open.
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
        span: first and one past the last child.
        published: published sum of every group of the family, shape (G,).
        kind: kind of facility of every group, shape (G,).
    """

    rows: OpenRecords
    span: tuple[int, int]
    published: Integers = field(repr=False)
    kind: Integers = field(repr=False)


def pass_columns(
    one: OperatorPass, family: OperatorFamily
) -> tuple[Integers, NDArray[np.int32], Integers | None]:
    """Columns of a pass, a cell of each, and what the parent has of each; None at a root."""
    name, first, place = np.unique(one.column[family.cell], return_index=True, return_inverse=True)
    column = None
    if family.count is not None:
        column = np.bincount(place, family.count, len(name)).astype(np.int64)
    return name.astype(np.int64), family.cell[first], column


def positions(names: Integers, wanted: NDArray[np.int32], parent: str) -> Integers:
    """Positions of groups among rising names."""
    place = np.searchsorted(names, wanted)
    if len(wanted) and not (len(names) and np.array_equal(names[np.minimum(place, len(names) - 1)], wanted)):
        raise CheckError(f"{parent}: cells lie where none of its children may have records")
    return place


def observed_answers(
    rules: OperatorRules, one: OperatorPass, family: OperatorFamily, cell: NDArray[np.int32]
) -> list[Observed]:
    """The answers of the queries of a pass for its columns, those of earlier inner passes with larger weights."""
    found = []
    for query, factor in zip(one.fits, one.factors or (1.0,) * len(one.fits), strict=True):
        group = np.searchsorted(family.answers[query], rules.labels[query][cell]).astype(np.int32)
        weight = family.weights[:, query] * factor
        found.append(Observed(group, family.values[query], weight))
    return found


def zero_multipliers(problem: PassProblem) -> Dual:
    """Multipliers of zero."""
    rows, columns, entries = len(problem.sums.right), len(problem.sums.column), len(problem.entries.child)
    return Dual(np.zeros(rows), np.zeros(columns), np.empty(entries), np.empty(rows), np.empty(columns))
