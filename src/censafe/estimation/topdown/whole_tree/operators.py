"""Inverses and sums of block operators, curvatures and covariances, and the pieces of a level that are worked on at a time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from censafe.model.arrays import Flags, Floats

_CELLS = 1 << 22  # numbers of all geounits that are worked on at a time


def parts(nodes: int, cells: int) -> Iterator[slice]:
    """Pieces of a level."""
    step = max(1, _CELLS // cells)
    for first in range(0, nodes, step):
        yield slice(first, min(nodes, first + step))


def whole_families(parent: NDArray[np.integer], cells: int) -> Iterator[slice]:
    """Pieces of a level in which siblings stay together: their sums are then the same bits in a part of a tree as in the whole.

    Args:
        parent: of every geounit, rising, shape (n,).

    Example:
        >>> [(one.start, one.stop) for one in whole_families(np.array([0, 0, 0, 1, 2, 2]), 1 << 21)]
        [(0, 3), (3, 4), (4, 6)]
    """
    starts = np.append(np.flatnonzero(np.diff(parent, prepend=-1)), len(parent))
    first = 0
    while first < len(parent):
        last = int(starts[np.searchsorted(starts, first + max(1, _CELLS // cells), side="right") - 1])
        if last <= first:
            last = int(starts[np.searchsorted(starts, first, side="right")])
        yield slice(first, last)
        first = last


_LEAST = 1e-11  # share of the largest eigenvalue below which a direction is not measured
_CHUNK = 1 << 24  # numbers that are worked on at a time


def masked(operators: Floats, support: Flags) -> Floats:
    """Operators with the rows and columns of empty combinations set to 0.

    Args:
        operators: shape (n, subsets, M, M).
        support: combinations that may hold records, shape (n, M).
    """
    return operators * (support[:, None, :, None] & support[:, None, None, :])


def inverse(operators: Floats, support: Flags) -> Floats:
    """Inverses on the combinations that may hold records, with zeros elsewhere, shape (n, subsets, M, M)."""
    found = np.empty_like(operators)
    eye = np.eye(operators.shape[-1])
    step = max(1, _CHUNK // max(1, operators[:1].size))
    for first in range(0, len(operators), step):
        part = slice(first, first + step)
        empty = ~support[part, None, :, None]
        inner = np.linalg.inv(masked(operators[part], support[part]) + eye * empty)
        inner = 0.5 * (inner + np.swapaxes(inner, -1, -2))
        found[part] = inner - eye * empty
    return found


def positive(operators: Floats, support: Flags) -> Flags:
    """Which operators determine every cell of their support, shape (n,)."""
    own = masked(operators, support)
    eye = np.eye(operators.shape[-1])
    scale = np.abs(own).max(axis=(1, 2, 3), keepdims=True)
    values = np.linalg.eigvalsh(own + scale * eye * ~support[:, None, :, None])
    least = values.min(axis=(1, 2), initial=np.inf)
    return (least > _LEAST * values.max(axis=(1, 2), initial=0.0)) & (scale.ravel() > 0)


def sum_by(
    group: NDArray[np.integer], groups: int, which: NDArray[np.integer], times: Floats, operators: Floats
) -> Floats:
    """Sums of operators by group, in the order of the rows.

    Args:
        group: of every row, rising, shape (rows,); every group has rows.
        operators: shape (n, subsets, M, M).
    """
    found = np.empty((groups, *operators.shape[1:]))
    start = np.searchsorted(group, np.arange(groups + 1))
    step = max(1, _CHUNK // max(1, operators[:1].size))
    first = 0
    while first < groups:
        last = max(first + 1, int(np.searchsorted(start, start[first] + step, side="right")) - 1)
        rows = slice(int(start[first]), int(start[last]))
        terms = operators[which[rows]] * times[rows, None, None, None]
        found[first:last] = np.add.reduceat(terms, start[first:last] - start[first], axis=0)
        first = last
    return found


def held_total(covariances: Floats, others: int) -> tuple[Floats, Floats]:
    """Covariance of every cell with the total, and the variance of the total.

    Args:
        covariances: shape (n, subsets, M, M).

    Returns:
        By combination, shape (n, M), and shape (n,).
    """
    with_total = covariances[:, -1].sum(axis=-1)
    return with_total, others * with_total.sum(axis=-1)
