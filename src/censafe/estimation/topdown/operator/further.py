"""Answers about a histogram that the estimate of another one gives, beside its own measurements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from censafe.estimation.topdown.operator.family import OperatorFamily
from censafe.estimation.topdown.operator.passes import OperatorRules, is_sum
from censafe.model import SparseLevel
from censafe.model.arrays import Floats, Integers


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

    def beside(self, family: OperatorFamily, first: int, last: int, number: int) -> OperatorFamily:
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
    found = np.zeros(weights.shape[0])
    for query, label in enumerate(labels):
        if is_sum(label, theirs, allowed):
            pairs = np.unique(np.stack([theirs, label])[:, allowed & (theirs >= 0)], axis=1)
            found += weights[:, query] / np.bincount(pairs[0]).max()
    return found


def with_query(rules: OperatorRules, label: NDArray[np.int32]) -> OperatorRules:
    """Rules with one query more, the last, in the first pass whose columns tell it; it weighs as the first inner pass does."""
    number = len(rules.labels)
    place = next(
        at for at, one in enumerate(rules.passes) if is_sum(one.column, label, rules.allowed)
    )  # the last one tells all cells apart
    one = rules.passes[place]
    factors = one.factors or (1.0,) * len(one.fits)
    changed = replace(one, fits=(*one.fits, number), factors=(*factors, max(factors)))
    passes = (*rules.passes[:place], changed, *rules.passes[place + 1 :])
    return replace(rules, passes=passes, labels=(*rules.labels, label))
