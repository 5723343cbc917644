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
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final, cast

import numpy as np
from numpy.typing import NDArray

from censafe.estimation.topdown.least_squares.objective import AnswerSource, LevelObjective
from censafe.geography.spines.tree import Spine
from censafe.model.arrays import Floats
from censafe.model.topdown.families import Wanted

__all__ = ["PooledAnswers", "pooled_objectives"]

_AT_ONCE: Final = 1 << 18  # answers of a geounit that are added up over everything below it at once


@dataclass(frozen=True, eq=False)
class PooledAnswers:
    """Answers of a level with those below, put together when they are asked for.

    Args:
        own: answers of the level.
        own_share: by which an own answer counts, by geounit and query, shape (n, queries).
        below: the same of the next level; None at the lowest.
        below_share: by which the sum over the children counts, shape (n, queries).
        query_below: of every query its ordinal at the next level, -1 where that does not measure it.
        first_child: geounit i has the geounits first_child[i] .. first_child[i + 1] - 1 of the next level.
    """

    own: AnswerSource = field(repr=False)
    own_share: Floats = field(repr=False)
    below: PooledAnswers | None = field(repr=False)
    below_share: Floats = field(repr=False)
    query_below: NDArray[np.int64] = field(repr=False)
    first_child: NDArray[np.int64] = field(repr=False)

    def answers(self, query: int, first: int, last: int, chosen: NDArray[np.int64]) -> Floats:
        """Some answers of one query at consecutive geounits, shape (last - first, m)."""
        asked = np.full(len(chosen), query, np.int32), chosen.astype(np.int32)
        return np.concatenate([self._at(node, *asked)[None] for node in range(first, last)])

    def gather(self, wanted: Wanted) -> Floats:
        """Answers, parent by parent, child by child, in the order of `wanted`."""
        found = []
        for parent in range(len(wanted.child_ptr) - 1):
            span = slice(int(wanted.answer_ptr[parent]), int(wanted.answer_ptr[parent + 1]))
            asked = wanted.query[span], wanted.answer[span]
            child = wanted.child[wanted.child_ptr[parent] : wanted.child_ptr[parent + 1]]
            found += [self._at(node, *asked) for node in child.tolist()]
        return np.concatenate(found) if found else np.zeros(0)

    def _at(self, node: int, query: NDArray[np.int32], answer: NDArray[np.int32]) -> Floats:
        """Answers at one geounit, some at a time: everything below is read for them."""
        found = [
            self._part(node, query[first : first + _AT_ONCE], answer[first : first + _AT_ONCE])
            for first in range(0, len(query), _AT_ONCE)
        ]
        return np.concatenate(found) if found else np.zeros(0)

    def _part(self, node: int, query: NDArray[np.int32], answer: NDArray[np.int32]) -> Floats:
        asked = Wanted(
            np.array([0, 1], np.int64), np.array([node], np.int64), np.array([0, len(query)], np.int64), query, answer
        )  # fmt: skip
        found = self.own.gather(asked) * self.own_share[node, query]
        if self.below is None:
            return found
        share = self.below_share[node, query]
        used = np.flatnonzero(share > 0)
        if len(used):
            there = self.query_below[query[used]].astype(np.int32)
            sums = np.zeros(len(used))
            for child in range(int(self.first_child[node]), int(self.first_child[node + 1])):
                sums += self.below._part(child, there, answer[used])
            found[used] += share[used] * sums
        return found


def pooled_objectives(
    spine: Spine, queries: Sequence[Sequence[str]], objectives: Sequence[LevelObjective]
) -> tuple[LevelObjective, ...]:
    """The objective of every level from its own answers and all below it, root first.

    Args:
        spine: the tree.
        queries: names of the queries of every level, in the order of their ordinals.
        objectives: own measurements of every level.
    """
    found: list[LevelObjective] = []
    below: PooledAnswers | None = None
    known = np.zeros((0, 0))
    for depth in range(len(objectives) - 1, -1, -1):
        one, level = objectives[depth], spine.levels[depth]
        weights = one.weights[one.kinds]
        place = np.full(len(queries[depth]), -1, np.int64)
        from_below = np.zeros_like(weights)
        if below is not None:
            names = list(queries[depth + 1])
            place = np.array([names.index(name) if name in names else -1 for name in queries[depth]])
            from_below = _sum_weights(known, level.first_child, place)
        known = weights + from_below
        scale = np.where(known > 0, known, 1.0)
        below = PooledAnswers(
            one.source, weights / scale, below, from_below / scale, place, level.first_child
        )
        table, kinds = np.unique(known, axis=0, return_inverse=True)
        source = cast(AnswerSource, below)  # weighted means, which the operator form takes as they are
        found.insert(0, replace(one, weights=table, kinds=kinds.reshape(-1).astype(np.int32), source=source))
    return tuple(found)


def _sum_weights(known: Floats, first_child: NDArray[np.int64], place: NDArray[np.int64]) -> Floats:
    """Weights of sums over the children, 0 where an answer of one of them is not known; shape (n, queries)."""
    with np.errstate(divide="ignore"):
        variances = np.where(known > 0, 1 / known, np.inf)
    sums = np.add.reduceat(variances, first_child[:-1], axis=0)[:, place]
    return np.where(np.isfinite(sums) & (place >= 0), 1 / sums, 0.0)
