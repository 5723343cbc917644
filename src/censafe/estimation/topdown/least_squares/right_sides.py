"""Right sides of the normal equations from the answers that hold a parent's cells, and from no others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from censafe.model.compiled import compiled
from censafe.model.topdown.families import Families, Gathering, Wanted
from censafe.model.topdown.level_measurements import Answers

_Ints = NDArray[np.int64]
_Narrow = NDArray[np.int32]


def label_matrix(labels: Sequence[NDArray[np.integer]]) -> _Narrow:
    """Labels of all queries as one matrix, int32, shape (queries, cells)."""
    return np.ascontiguousarray(np.stack(list(labels)), np.int32)


def wanted_answers(families: Families, labels: _Narrow) -> tuple[Wanted, _Narrow]:
    """Answers whose marginal cell holds a cell of the parent.

    Args:
        labels: of every query, the answer of each cell of the schema, shape (queries, cells).

    Returns:
        The answers; and for every query and every entry of ``families.cell`` the place of its answer among those of its parent,
        int32, shape (queries, entries).

    Example:
        >>> wanted, place = wanted_answers(Families.one(0, 1, np.array([1, 3])), np.array([[0, 0, 0, 0], [0, 1, 2, 3]], np.int32))
        >>> wanted.query.tolist(), wanted.answer.tolist(), place.tolist()
        ([0, 1, 1], [0, 1, 3], [[0, 0], [1, 2]])
    """
    answers = int(labels.max(initial=-1)) + 1
    pointer, query, answer, place = _list_answers(families.cell_ptr, families.cell, labels, answers)
    return Wanted(families.child_ptr, families.child, pointer, query, answer), place


def right_sides(
    families: Families,
    labels: _Narrow,
    weights: NDArray[np.float64],
    kinds: _Narrow,
    source: Gathering,
) -> NDArray[np.float64]:
    """B, the sum of w A'y over the queries in their order, of every child of every parent.

    Args:
        labels: of every query, the answer of each cell of the schema, shape (queries, cells).
        weights: of an answer by kind of geounit and query, shape (kinds, queries).
        kinds: kind of every geounit of the level, shape (geounits,).

    Returns:
        float64: parent by parent the matrix (children, cells) in C order, one after another.

    Example:
        >>> from censafe.estimation.topdown.least_squares.objective import StoredAnswers
        >>> source = StoredAnswers((np.array([[5]], np.int32), np.array([[4, 3]], np.int32)))
        >>> labels = np.array([[0, 0], [0, 1]], np.int32)
        >>> right_sides(Families.one(0, 1, np.array([0, 1])), labels, np.array([[1.0, 2.0]]), np.zeros(1, np.int32), source)
        array([13., 11.])
    """
    wanted, place = wanted_answers(families, labels)
    values = source.gather(wanted)
    entries = np.diff(families.child_ptr) * np.diff(families.cell_ptr)
    found = np.zeros(int(entries.sum()), np.float64)
    kind_of = np.ascontiguousarray(kinds[families.child])
    _accumulate(
        families.child_ptr, kind_of, families.cell_ptr, wanted.answer_ptr, place, weights, values, found
    )
    return found


def gather_stored(values: Sequence[Answers], wanted: Wanted) -> _Ints:
    """Wanted answers out of whole matrices.

    Args:
        values: of every query, shape (geounits, answers).

    Returns:
        int64: parent by parent, child by child, in the order of `wanted`.
    """
    found = np.empty(int(wanted.starts[-1]), np.int64)
    for query, matrix in enumerate(values):
        _gather(
            wanted.child_ptr,
            wanted.child,
            wanted.answer_ptr,
            wanted.query,
            wanted.answer,
            query,
            matrix,
            found,
        )
    return found


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
                one = labels[q, cell[entry]]
                if slot[one] < 0:
                    slot[one] = 0
                    answer[used] = one
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
    found: NDArray[np.float64],
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
                    found[out + k] += weight * values[base + place[q, first + k]]
            base += answers
            out += cells


@compiled()
def _gather(
    child_ptr: _Ints,
    child: _Ints,
    answer_ptr: _Ints,
    query: _Narrow,
    answer: _Narrow,
    wanted: int,
    values: Answers,
    found: _Ints,
) -> None:
    """Write the answers of one query to their places."""
    base = 0
    for parent in range(len(child_ptr) - 1):
        first, answers = answer_ptr[parent], answer_ptr[parent + 1] - answer_ptr[parent]
        low = np.searchsorted(query[first : first + answers], wanted)
        high = np.searchsorted(query[first : first + answers], wanted, side="right")
        for entry in range(child_ptr[parent], child_ptr[parent + 1]):
            for i in range(low, high):
                found[base + i] = values[child[entry], answer[first + i]]
            base += answers
