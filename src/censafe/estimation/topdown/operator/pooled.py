"""Answers of a geounit and of all geounits below it, query by query: what `information = lower` fits a histogram with very many cells to.

Let y be the answer to a query at a geounit, of variance v, and z_c what is known of it at its children c, from their own answers and all
below, with variances t_c. The sum S of the z_c has the variance T, the sum of the t_c, and

    z = (y / v + S / T) / (1 / v + 1 / T),   with variance  1 / (1 / v + 1 / T).

Errors of different queries are independent, so that the objective stays a diagonal and group sums. Let the children of every geounit have one
information matrix H, the sum of A'A / v over the queries, up to a number; then the best linear unbiased estimate of the sum of their cells has
the same matrix up to a number, and the objective from these answers is the exact one. The Bureau's budgets are of that kind: every level has the
same queries in nearly the same proportions, and budget that moved along the spine changes them by a number. Where the children differ (budgets of
queries in other proportions, kinds of facilities that only some have) the answers are as unbiased and their variances as exact, and
something of what is known is not used.

Every answer is read once, from the lowest level up. The z of levels above the lowest are held as numbers of 64 bits beside the answers; these levels have few geounits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from censafe.estimation.topdown.least_squares.objective import AnswerSource, LevelObjective, StoredAnswers
from censafe.geography.spines.tree import Spine
from censafe.model.arrays import Floats
from censafe.model.topdown.families import Wanted


@dataclass(frozen=True, eq=False)
class PooledAnswers:
    """Answers of a level with those below it.

    Args:
        values: of every query, shape (geounits, answers).
    """

    values: tuple[NDArray[Any], ...] = field(repr=False)

    def answers(self, query: int, first: int, last: int, chosen: NDArray[np.int64]) -> Floats:
        """Some answers of one query at consecutive geounits, shape (last - first, m)."""
        return self.values[query][first:last, chosen].astype(np.float64)

    def gather(self, wanted: Wanted) -> Floats:
        """Answers, parent by parent, child by child, in the order of `wanted`."""
        found = np.empty(int(wanted.starts[-1]))
        for parent, (start, end) in enumerate(zip(wanted.starts[:-1], wanted.starts[1:], strict=True)):
            span = slice(int(wanted.answer_ptr[parent]), int(wanted.answer_ptr[parent + 1]))
            query, answer = wanted.query[span], wanted.answer[span]
            child = wanted.child[wanted.child_ptr[parent] : wanted.child_ptr[parent + 1]]
            own = found[start:end].reshape(len(child), len(query))
            edges = np.searchsorted(query, np.arange(len(self.values) + 1))
            for number, values in enumerate(self.values):
                some = slice(int(edges[number]), int(edges[number + 1]))
                own[:, some] = values[np.ix_(child, answer[some])]
        return found


def pooled_objectives(
    spine: Spine, queries: Sequence[Sequence[str]], objectives: Sequence[LevelObjective]
) -> tuple[LevelObjective, ...]:
    """The objective of every level from its own answers and all below it, root first."""
    found: list[LevelObjective] = []
    below: tuple[NDArray[Any], ...] = ()
    known = np.zeros((0, 0))
    for depth in range(len(objectives) - 1, -1, -1):
        one, level = objectives[depth], spine.levels[depth]
        weights = one.weights[one.kinds]
        place = np.full(len(queries[depth]), -1, np.int64)
        from_below = np.zeros_like(weights)
        if below:
            names = list(queries[depth + 1])
            place = np.array([names.index(name) if name in names else -1 for name in queries[depth]])
            from_below = _sum_weights(known, level.first_child, place)
        known = weights + from_below
        scale = np.where(known > 0, known, 1.0)
        below = _pooled(one, weights / scale, below, from_below / scale, place, level.first_child)
        table, kinds = np.unique(known, axis=0, return_inverse=True)
        source = cast(
            AnswerSource, PooledAnswers(below)
        )  # weighted means, which the operator form takes as they are
        found.insert(0, replace(one, weights=table, kinds=kinds.reshape(-1).astype(np.int32), source=source))
    return tuple(found)


def _pooled(
    one: LevelObjective,
    own_share: Floats,
    below: Sequence[NDArray[Any]],
    below_share: Floats,
    place: NDArray[np.int64],
    first_child: NDArray[np.int64],
) -> tuple[NDArray[Any], ...]:
    """Answers of a level by query: its own and the sums over the children, weighted; the own ones as they are where nothing below is known."""
    if not isinstance(one.source, StoredAnswers):
        raise TypeError("answers are put together of stored ones")
    found: list[NDArray[Any]] = []
    for query, values in enumerate(one.source.values):
        share = below_share[:, query]
        if not share.any():
            there = own_share[:, query] > 0
            found.append(values if there.all() else values * there[:, None])
            continue
        sums = own_share[:, query, None] * values
        for node, (first, last) in enumerate(pairwise(first_child.tolist())):
            sums[node] += share[node] * below[place[query]][first:last].sum(axis=0, dtype=np.float64)
        found.append(sums)
    return tuple(found)


def _sum_weights(known: Floats, first_child: NDArray[np.int64], place: NDArray[np.int64]) -> Floats:
    """Weights of sums over the children, 0 where an answer of one of them is not known; shape (n, queries)."""
    with np.errstate(divide="ignore"):
        variances = np.where(known > 0, 1 / known, np.inf)
    sums = np.add.reduceat(variances, first_child[:-1], axis=0)[:, place]
    return np.where(np.isfinite(sums) & (place >= 0), 1 / sums, 0.0)
