"""Pieces of the structure of a list of sums: attributes that are averaged, products of indicators, classes of cells, independent rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr

from censafe.model import CellQuery
from censafe.model.arrays import Floats
from censafe.model.schema import Schema

SHORT: Final = 100  # answers, up to which a query is part of the state
_INDEPENDENT: Final = 1e-9
_APART: Final = 16  # times as many numbers as labels, up to which a table of them is quicker than sorting


def is_short(group: NDArray[np.int64]) -> bool:
    """Whether a query, given by the group of every atom, has so few answers that they are part of the state."""
    return bool(group.min(initial=0) >= 0 and dense_numbers(group).max(initial=-1) < SHORT)


def outer_axes(
    schema: Schema, queries: Sequence[CellQuery], fixed: Sequence[NDArray[np.generic]]
) -> tuple[int, ...]:
    """Axes that every query keeps or sums, and along which nothing else changes."""
    found = []
    for axis, levels in enumerate(schema.shape):
        plain = all(
            query.factors[axis].groups == 1 or np.array_equal(query.factors[axis].of_level, np.arange(levels))
            for query in queries
        )
        free = all(
            bool((values.reshape(schema.shape) == values.reshape(schema.shape).take([0], axis)).all())
            for values in fixed
        )
        if levels > 1 and plain and free:
            found.append(axis)
    return tuple(found)


def products(outer: Sequence[tuple[int, float]]) -> list[tuple[tuple[int, ...], float]]:
    """A product of indicators as a sum of products of means and contrasts: the column and number of each."""
    found: list[tuple[tuple[int, ...], float]] = [((), 1.0)]
    for number, share in outer:
        parts = [(0, share), (number, 1.0)] if number else [(0, share)]
        found = [((*column, chosen), weight * times) for column, weight in found for chosen, times in parts]
    return [(column, weight) for column, weight in found if weight]


def joint_classes(labels: Sequence[NDArray[np.integer]]) -> NDArray[np.int64]:
    """Classes of equal labels, numbered from 0.

    Example:
        >>> joint_classes([np.array([4, 4, 0, 4]), np.array([1, 0, 0, 1])]).tolist()
        [2, 1, 0, 2]
    """
    found = np.zeros(len(labels[0]), np.int64)
    for label in labels:
        place = dense_numbers(label)
        found = dense_numbers(found * (int(place.max(initial=0)) + 1) + place)
    return found


def dense_numbers(label: NDArray[np.integer]) -> NDArray[np.int64]:
    """The rank of every label among those that occur, from 0; sorted only where labels are far apart."""
    if not len(label):
        return np.zeros(0, np.int64)
    lowest, highest = int(label.min()), int(label.max())
    if highest - lowest >= _APART * len(label):
        return np.unique(label, return_inverse=True)[1].ravel().astype(np.int64)
    used = np.zeros(highest - lowest + 1, np.bool_)
    used[label - lowest] = True
    rank = np.cumsum(used) - 1
    return np.asarray(rank[label - lowest], np.int64)


def in_terms_of(state: Floats, rows: Floats) -> Floats:
    """Rows as combinations of the state."""
    if len(rows) == 0:
        return np.zeros((0, len(state)))
    return np.asarray(np.linalg.lstsq(state.T, rows.T, rcond=None)[0].T)


def independent(rows: Floats) -> Floats:
    """As many of the rows as are linearly independent; the others are combinations of them.

    Example:
        >>> independent(np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])).shape
        (2, 2)
    """
    every = np.unique(rows, axis=0)
    length = np.sqrt((every * every).sum(axis=1))
    every, length = every[length > 0], length[length > 0]
    triangle, order = qr((every / length[:, None]).T, mode="r", pivoting=True)
    rank = int((np.abs(np.diag(triangle)) > _INDEPENDENT).sum())
    return every[np.sort(order[:rank])]
