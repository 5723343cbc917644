"""The weighted least squares objective of a level, for the cells that a parent has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from censafe.estimation.topdown.whole_tree.cells import Below
from censafe.model.compiled import compiled
from censafe.model.topdown.answers import AnswerReads, AnswerSource, AnswerSums, DrawingEffort, Families
from censafe.model.topdown.level_measurements import Answers, LevelMeasurements

_Ints = NDArray[np.int64]
_Narrow = NDArray[np.int32]


def reads_of_cells(families: Families, labels: _Narrow) -> tuple[AnswerReads, _Narrow]:
    """Answers whose marginal cell holds a cell of the parent.

    Args:
        labels: of every query, the answer of each cell of the schema, shape (queries, cells).

    Returns:
        The answers; and for every query and every entry of ``families.cell`` the place of its answer among those of its parent,
        int32, shape (queries, entries).

    Example:
        >>> one = Families(np.array([0, 1]), np.array([0]), np.array([0, 2]), np.array([1, 3], np.int32))
        >>> reads, place = reads_of_cells(one, np.array([[0, 0, 0, 0], [0, 1, 2, 3]], np.int32))
        >>> reads.query.tolist(), reads.answer.tolist(), place.tolist()
        ([0, 1, 1], [0, 1, 3], [[0, 0], [1, 2]])
    """
    answers = int(labels.max(initial=-1)) + 1
    pointer, query, answer, place = _list_answers(families.cell_ptr, families.cell, labels, answers)
    return AnswerReads(families.child_ptr, families.child, pointer, query, answer), place


@compiled()
def _list_answers(
    cell_ptr: _Ints, cell: _Narrow, labels: _Narrow, answers: int
) -> tuple[_Ints, _Narrow, _Narrow, _Narrow]:
    """Distinct answers of every parent and query, rising, and the place of every cell's answer."""
    queries, parents = len(labels), len(cell_ptr) - 1
    pointer = np.zeros(parents + 1, np.int64)
    query = np.empty(queries * len(cell), np.int32)
    answer = np.empty(queries * len(cell), np.int32)
    place = np.empty((queries, len(cell)), np.int32)
    slot = np.full(answers, -1, np.int32)
    used = 0
    for parent in range(parents):
        base, first, last = used, cell_ptr[parent], cell_ptr[parent + 1]
        for q in range(queries):
            start = used
            for entry in range(first, last):
                label = labels[q, cell[entry]]
                if slot[label] < 0:
                    slot[label] = 0
                    answer[used] = label
                    query[used] = q
                    used += 1
            answer[start:used].sort()
            for i in range(start, used):
                slot[answer[i]] = i - base
            for entry in range(first, last):
                place[q, entry] = slot[labels[q, cell[entry]]]
            for i in range(start, used):
                slot[answer[i]] = -1
        pointer[parent + 1] = used
    return pointer, query[:used].copy(), answer[:used].copy(), place


@compiled()
def _accumulate(
    child_ptr: _Ints,
    kind_of: _Narrow,
    cell_ptr: _Ints,
    answer_ptr: _Ints,
    place: _Narrow,
    weights: NDArray[np.float64],
    values: _Ints,
    sums: NDArray[np.float64],
) -> None:
    """b, the sum of w A'y over the queries in their order; the order of additions decides the last bits."""
    queries = len(place)
    base, out = 0, 0
    for parent in range(len(child_ptr) - 1):
        first, cells = cell_ptr[parent], cell_ptr[parent + 1] - cell_ptr[parent]
        answers = answer_ptr[parent + 1] - answer_ptr[parent]
        for entry in range(child_ptr[parent], child_ptr[parent + 1]):
            kind = kind_of[entry]
            for q in range(queries):
                weight = weights[kind, q]
                for k in range(cells):
                    sums[out + k] += weight * values[base + place[q, first + k]]
            base += answers
            out += cells


@compiled()
def _gather(
    child_ptr: _Ints,
    child: _Ints,
    answer_ptr: _Ints,
    query: _Narrow,
    answer: _Narrow,
    ordinal: int,
    values: Answers,
    gathered: _Ints,
) -> None:
    """Write the answers of one query to their places."""
    base = 0
    for parent in range(len(child_ptr) - 1):
        first, answers = answer_ptr[parent], answer_ptr[parent + 1] - answer_ptr[parent]
        low = np.searchsorted(query[first : first + answers], ordinal)
        high = np.searchsorted(query[first : first + answers], ordinal, side="right")
        for entry in range(child_ptr[parent], child_ptr[parent + 1]):
            for i in range(low, high):
                gathered[base + i] = values[child[entry], answer[first + i]]
            base += answers


_LEAST_VARIANCE = 1e-4
_AT_ONCE = 1 << 20  # stored answers that are added up at once


def query_weight(variance: float) -> float:
    """Weight of an answer: the inverse of its variance, and 10,000 where the noise is almost surely zero.

    Any weight gives the same point where the measurements are exact; a limit keeps the equations well scaled. What is
    not measured has an infinite variance and no weight.

    Example:
        >>> query_weight(4.0), query_weight(0.0), query_weight(float("inf"))
        (0.25, 10000.0, 0.0)
    """
    return 1.0 / max(variance, _LEAST_VARIANCE)


@dataclass(frozen=True, eq=False)
class StoredAnswers:
    """Noisy answers that are stored whole, or weighted means of such, which are real numbers.

    Args:
        values: of every query, shape (geounits, answers).
    """

    values: tuple[NDArray[Any], ...] = field(repr=False)

    @property
    def _kind(self) -> Any:
        return np.result_type(np.int64, *self.values)

    def answers(self, query: int, first: int, last: int, chosen: NDArray[np.int64]) -> NDArray[np.int64]:
        """Some noisy answers of one query at consecutive geounits, int64, shape (last - first, m)."""
        rows = self.values[query][first:last]
        return np.ascontiguousarray(rows if len(chosen) == rows.shape[1] else rows[:, chosen], self._kind)

    def gather(self, reads: AnswerReads) -> NDArray[np.int64]:
        """Noisy answers, parent by parent, child by child, in the order of `reads`."""
        gathered = np.empty(int(reads.starts[-1]), self._kind)
        places = reads.child_ptr, reads.child, reads.answer_ptr, reads.query, reads.answer
        for query, matrix in enumerate(self.values):
            _gather(*places, query, matrix, gathered)
        return gathered

    @property
    def effort(self) -> DrawingEffort:
        """Nothing is drawn."""
        return DrawingEffort(0, 0, 0.0)

    def part(self, first: int, last: int) -> StoredAnswers:
        """The answers of consecutive geounits."""
        return StoredAnswers(tuple(values[first:last] for values in self.values))

    def opener(self) -> Callable[[StoredAnswers], StoredAnswers]:
        """A part is a source as it is."""
        return _as_it_is

    def add(self, effort: DrawingEffort) -> None:
        """Count nothing."""

    def close(self) -> None:
        """Nothing is to be forgotten."""

    def sums(self, answer_sums: AnswerSums, geounits: NDArray[np.int64]) -> NDArray[np.int64]:
        """Sums of noisy answers of some geounits, int64, shape (n, sums)."""
        query, answer, slot = answer_sums.listed()
        sums_of_geounits = np.zeros((len(geounits), answer_sums.sums), np.int64)
        starts = np.append(0, np.cumsum(np.bincount(query, minlength=len(self.values))))
        for values, (first, last) in zip(self.values, pairwise(starts.tolist()), strict=True):
            rows = max(1, _AT_ONCE // max(1, last - first))
            for some in range(0, len(geounits), rows):
                sums = sums_of_geounits[some : some + rows]
                place = np.arange(0, sums.size, answer_sums.sums)[:, None] + slot[first:last]
                own = values[np.ix_(geounits[some : some + rows], answer[first:last])]
                np.add.at(sums.reshape(-1), place.reshape(-1), own.reshape(-1).astype(np.int64))
        return sums_of_geounits


def _as_it_is(part: StoredAnswers) -> StoredAnswers:
    return part


@dataclass(frozen=True, eq=False)
class LevelObjective:
    """Measurements of all geounits of a level with their weights.

    Args:
        labels: of every query, the answer of each cell of the schema, shape (cells,).
        weights: of an answer, by kind of geounits and query, shape (kinds, queries); 0 where nothing is measured.
        kinds: kind of every geounit, int32, shape (geounits,).
        below: what the answers below the geounits say, by the same kinds; None where these are not used.
    """

    labels: tuple[NDArray[np.int32], ...] = field(repr=False)
    weights: NDArray[np.float64]
    kinds: NDArray[np.int32] = field(repr=False)
    source: AnswerSource = field(repr=False)
    below: Below | None = field(default=None, repr=False)

    @staticmethod
    def of(
        labels: Sequence[NDArray[np.int32]],
        variances: ArrayLike,
        values: Sequence[Answers],
        kinds: NDArray[np.int32] | None = None,
    ) -> LevelObjective:
        """Weight every query by the inverse of its variance.

        Args:
            variances: of an answer, shape (queries,), or (kinds, queries) where geounits differ.
            values: noisy answers of every query, shape (geounits, answers).
        """
        some = np.zeros(len(values[0]), np.int32) if kinds is None else kinds
        return LevelObjective.drawing(labels, variances, some, StoredAnswers(tuple(values)))

    @staticmethod
    def measured(labels: Sequence[NDArray[np.int32]], part: LevelMeasurements) -> LevelObjective:
        """The objective of the stored measurements of a part."""
        return LevelObjective.of(labels, part.variances, part.values, part.kinds)

    @staticmethod
    def drawing(
        labels: Sequence[NDArray[np.int32]],
        variances: ArrayLike,
        kinds: NDArray[np.int32],
        source: AnswerSource,
    ) -> LevelObjective:
        """The objective of answers from any source; variances of shape (queries,) or (kinds, queries)."""
        table = np.atleast_2d(np.asarray(variances, dtype=np.float64))
        weights = np.array([[query_weight(float(one)) for one in row] for row in table]).reshape(table.shape)
        return LevelObjective(tuple(labels), weights, kinds, source)

    def equations(
        self, first: int, last: int, support: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.int32], NDArray[np.float64]]:
        """H, the sum of w A'A, and B, the sum of w A'y, of consecutive geounits on some cells.

        Args:
            support: cells, shape (K,).

        Returns:
            The distinct H of these geounits, shape (G, K, K); which one each geounit has, int32, shape (last - first,);
            B, shape (last - first, K). The answers of a query enter B after those of the queries before it.

        Example:
            >>> both = LevelObjective.of((np.array([0, 0], np.int32), np.array([0, 1], np.int32)), (1.0, 0.5),
            ...                          (np.array([[5]]), np.array([[4, 3]])))
            >>> h, h_of, b = both.equations(0, 1, np.array([0, 1]))
            >>> h.tolist(), h_of.tolist(), b.tolist()
            ([[[3.0, 1.0], [1.0, 3.0]]], [0], [[13.0, 11.0]])
        """
        present, h_of = np.unique(self.kinds[first:last], return_inverse=True)
        h = np.zeros((len(present), len(support), len(support)))
        b = np.zeros((last - first, len(support)))
        for query, label in enumerate(self.labels):
            answer = label[support]
            weights = self.weights[present, query]
            h += weights[:, None, None] * (answer[:, None] == answer[None, :])
            chosen, columns = np.unique(answer, return_inverse=True)
            values = self.source.answers(query, first, last, chosen.astype(np.int64))
            add_weighted(b, weights[h_of], values, columns.astype(np.int64))
        if self.below is not None:
            h += self.below.curvatures(present, support)
            b += self.below.right[first:last][:, support]
        return h, h_of.astype(np.int32), b

    def fitting(self, queries: Sequence[int]) -> LevelObjective:
        """The objective of some queries alone.

        What is known from below stays unchanged; where the queries are the total alone, the total as it is known from
        own answers and those below takes their place.
        """
        chosen = list(queries)
        weights = np.zeros_like(self.weights)
        if self.below is not None and chosen and all(not self.labels[query].any() for query in chosen):
            return replace(self, weights=weights, below=self.below.of_totals())
        weights[:, chosen] = self.weights[:, chosen]
        return replace(self, weights=weights)

    @property
    def coarse(self) -> tuple[NDArray[np.int32], LevelObjective] | None:
        """Sums that are fitted before the cells, which one each cell belongs to, and their objective; None where there are none."""
        if self.below is None or self.below.coarse is None:
            return None
        coarse = self.below.coarse
        below = replace(self.below, tables=coarse.tables, right=coarse.right, coarse=None)
        return coarse.label, replace(self, weights=np.zeros_like(self.weights), below=below)

    @cached_property
    def label_matrix(self) -> NDArray[np.int32]:
        """Labels of all queries, shape (queries, cells)."""
        return np.ascontiguousarray(np.stack(self.labels), np.int32)

    def right_sides(self, families: Families) -> NDArray[np.float64]:
        """B, the sum of w A'y, of many parents at once; the same bits as from :meth:`equations`.

        Returns:
            float64: parent by parent the matrix (children, cells) in C order, one after another.

        Example:
            >>> both = LevelObjective.of((np.array([0, 0], np.int32), np.array([0, 1], np.int32)), (1.0, 0.5),
            ...                          (np.array([[5]], np.int32), np.array([[4, 3]], np.int32)))
            >>> both.right_sides(Families(np.array([0, 1]), np.array([0]), np.array([0, 2]), np.array([0, 1], np.int32)))
            array([13., 11.])
        """
        reads, place = reads_of_cells(families, self.label_matrix)
        values = self.source.gather(reads)
        entries = np.diff(families.child_ptr) * np.diff(families.cell_ptr)
        right = np.zeros(int(entries.sum()), np.float64)
        kind_of = np.ascontiguousarray(self.kinds[families.child])
        _accumulate(
            families.child_ptr,
            kind_of,
            families.cell_ptr,
            reads.answer_ptr,
            place,
            self.weights,
            values,
            right,
        )
        if self.below is not None:
            self.below.add_right_sides(families, right)
        return right


@compiled()
def add_weighted(
    b: NDArray[np.float64],
    weights: NDArray[np.float64],
    values: NDArray[np.int64],
    columns: NDArray[np.int64],
) -> None:
    """Add weight times answer to every cell of B, in place: the one place where B is summed, so that sums are the same bits.

    Args:
        b: shape (C, K), in C order.
        weights: of the query at every child, shape (C,).
        values: answers, shape (C, m), in C order.
        columns: position among the m answers of the answer of each cell, shape (K,).
    """
    for child in range(b.shape[0]):
        for cell in range(b.shape[1]):
            b[child, cell] += weights[child] * np.float64(values[child, columns[cell]])
