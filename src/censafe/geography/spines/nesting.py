"""Blocks in the order of nested keys, and the places where geounits begin: sorting and differences, whatever the number of blocks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from censafe.model.arrays import Integers

__all__ = ["fanout_limits", "first_members", "joined_keys", "nested_order", "runs"]

_NUMBERS = 1 << 62


def joined_keys(keys: Sequence[Integers]) -> Integers:
    """One number for several keys: equal where all keys are, and in their order, the first key deciding first.

    Args:
        keys: one or more, each int64 of shape (blocks,).

    Returns:
        int64, shape (blocks,), not negative.

    Example:
        >>> joined_keys([np.array([7, 7, 2]), np.array([-1, 5, 5])]).tolist()
        [35, 41, 6]
    """
    found = np.zeros(len(keys[0]), np.int64)
    if not len(found):
        return found
    size = 1
    for key in keys:
        low, span = int(key.min()), int(key.max()) - int(key.min()) + 1
        own = key.astype(np.int64) - low if span < _NUMBERS else key
        if span * size >= _NUMBERS:
            own, span = _ranks(own)
        if span * size >= _NUMBERS:
            found, size = _ranks(found)
        if span * size >= _NUMBERS:
            raise ValueError("the keys have more combinations than numbers of 64 bits")
        found, size = found * span + own, size * span
    return found


def _ranks(values: Integers) -> tuple[Integers, int]:
    distinct, rank = np.unique(values, return_inverse=True)
    return rank.reshape(-1).astype(np.int64), len(distinct)


def nested_order(keys: Sequence[Integers]) -> tuple[Integers, tuple[Integers, ...]]:
    """Blocks sorted by keys, each of which parts what those before it hold together.

    Args:
        keys: the widest first, each int64 of shape (blocks,). Blocks of equal keys keep their order.

    Returns:
        Position of every block of the new order in the old one, shape (blocks,), and for every key the first blocks of its
        geounits in the new order, rising.

    Example:
        >>> order, (wide, narrow) = nested_order([np.array([2, 1, 2, 2]), np.array([5, 5, 3, 5])])
        >>> order.tolist(), wide.tolist(), narrow.tolist()
        ([1, 2, 0, 3], [0, 1], [0, 1, 2])
    """
    order = np.argsort(joined_keys(keys), kind="stable").astype(np.int64)
    starts = []
    begins = np.zeros(len(order), np.bool_)
    for key in keys:
        own = key[order]
        begins[1:] |= own[1:] != own[:-1]
        begins[:1] = True
        starts.append(np.flatnonzero(begins))
    return order, tuple(starts)


def first_members(outer: Integers, inner: Integers) -> Integers:
    """Of every outer geounit, the position of its first inner one, from the first blocks of both; the outer ones must be among the inner.

    Example:
        >>> first_members(np.array([0, 4]), np.array([0, 2, 4, 9])).tolist()
        [0, 2]
    """
    return np.searchsorted(inner, outer).astype(np.int64)


def fanout_limits(sizes: Integers, cutoff: int) -> Integers:
    """Most members of a run: int(sqrt(size) + cutoff + 1).

    Example:
        >>> fanout_limits(np.array([1, 9, 10, 100]), 12).tolist()
        [14, 16, 16, 23]
    """
    return np.floor(np.sqrt(sizes) + cutoff).astype(np.int64) + 1


def runs(groups: Integers, members: int, most: Integers) -> Integers:
    """Where runs begin when every group is cut into runs of at most so many neighbours, all full but the last.

    Args:
        groups: first member of every group, rising from 0, shape (groups,).
        members: number of them.
        most: members of a run, shape (groups,).

    Example:
        >>> runs(np.array([0, 5]), 7, np.array([2, 3])).tolist()
        [0, 2, 4, 5]
    """
    sizes = np.diff(groups, append=members)
    within = np.arange(members, dtype=np.int64) - np.repeat(groups, sizes)
    return np.flatnonzero(within % np.repeat(most, sizes) == 0)
