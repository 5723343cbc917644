"""Passing over geounits whose budget does more one level up.

A spine is stored as nested cuts of the row of its blocks: of every level, the first block of each geounit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from censafe.geography.spines.paths import LevelShares, ranked_paths

Starts = NDArray[np.int64]


@dataclass(frozen=True)
class BypassRule:
    """When a parent is passed over.

    Args:
        pure: pure DP: a parent with several children is passed over, too, where that gives each child more accuracy.
        most_children: of the parent above, once a parent with several children is passed over.
    """

    pure: bool
    most_children: int = 150


def bypass(
    starts: Sequence[Starts], shares: Mapping[str, Sequence[Fraction]], rule: BypassRule | None
) -> tuple[tuple[Starts, ...], dict[str, tuple[LevelShares, ...]]]:
    """Move the budget of children to the level of their parent, from the lowest parents up.

    A parent with one child is always passed over; under pure DP also one of c children where the least share of a child
    is at least (c - 1) / 2 times its own and the parent above has few enough children afterwards. Every child of
    a parent that is passed over becomes a geounit of the parent's level with both shares, and its own only child with
    the share 0. A parent with several children is passed over only where the rule holds for every histogram.

    Returns:
        First blocks of the geounits by level, and of every histogram, the share of every geounit, one entry a level, root first.

    Source: 2020 production, optimized spine; path sums are equal by construction and checked by
        :func:`censafe.geography.spines.paths.check_path_sums`.

    Example:
        >>> cuts = [np.array([0]), np.array([0, 1]), np.array([0, 1, 2])]
        >>> _, moved = bypass(cuts, {"persons": [Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)]}, BypassRule(pure=False))
        >>> [[str(level.values[i]) for i in level.index] for level in moved["persons"]]
        [['1/2'], ['1/2', '1/3'], ['0', '1/6', '1/6']]
    """
    cuts = [np.asarray(cut, np.int64) for cut in starts]
    moved = {
        name: [
            LevelShares((share,), np.zeros(len(cut), np.int32)) for share, cut in zip(own, cuts, strict=True)
        ]
        for name, own in shares.items()
    }
    if rule is not None:
        for depth in range(len(cuts) - 2, -1, -1):
            passed = _passed_over(cuts, moved, depth, rule)
            if passed.any():
                _pass_over(cuts, moved, depth, passed)
    return tuple(cuts), {name: tuple(levels) for name, levels in moved.items()}


def _edges(cuts: Sequence[Starts], depth: int) -> NDArray[np.int64]:
    """First child of every geounit of a level, and one past the last child of the last."""
    return np.append(np.searchsorted(cuts[depth + 1], cuts[depth]), len(cuts[depth + 1]))


def _passed_over(
    cuts: Sequence[Starts], shares: Mapping[str, list[LevelShares]], depth: int, rule: BypassRule
) -> NDArray[np.bool_]:
    children = np.diff(_edges(cuts, depth))
    passed: NDArray[np.bool_] = children == 1
    if not rule.pure or depth == 0:
        return passed
    worth = ~passed
    for levels in shares.values():
        worth &= _worth_it(levels[depth], levels[depth + 1], _edges(cuts, depth))
    above = np.searchsorted(cuts[depth - 1], cuts[depth], side="right") - 1
    number = np.bincount(above)
    for parent in np.flatnonzero(worth).tolist():
        more = int(children[parent]) - 1
        if number[above[parent]] + more <= rule.most_children:
            number[above[parent]] += more
            passed[parent] = True
    return passed


def _worth_it(own: LevelShares, below: LevelShares, edges: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether the least share of a parent's children is at least (children - 1) / 2 times its own."""
    order = sorted(range(len(below.values)), key=below.values.__getitem__)
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    least = np.minimum.reduceat(rank[below.index], edges[:-1])
    cases, case = np.unique(np.stack([least, own.index, np.diff(edges)]), axis=1, return_inverse=True)
    worth = [
        below.values[order[low]] >= Fraction(children - 1, 2) * own.values[kind]
        for low, kind, children in cases.T.tolist()
    ]
    return np.array(worth, np.bool_)[case.reshape(-1)]


def _pass_over(
    cuts: list[Starts], shares: Mapping[str, list[LevelShares]], depth: int, passed: NDArray[np.bool_]
) -> None:
    """Give every child of the parents that are passed over a geounit of their level, and its share."""
    edges = _edges(cuts, depth)
    parent_of = np.repeat(np.arange(len(passed)), np.diff(edges))
    first = np.zeros(len(parent_of), np.bool_)
    first[edges[:-1]] = True
    moved = passed[parent_of]
    heads = np.flatnonzero(first | moved)  # the children that begin a geounit of the parents' level
    cuts[depth] = cuts[depth + 1][heads]
    for levels in shares.values():
        own, below = levels[depth], levels[depth + 1]
        pair = own.index[parent_of[heads]].astype(np.int64) * (len(below.values) + 1)
        pair += np.where(moved[heads], below.index[heads] + 1, 0)
        levels[depth] = _added(own.values, (Fraction(0), *below.values), pair)
        zero = np.where(moved, 0, below.index + 1).astype(np.int64)
        levels[depth + 1] = _added((Fraction(0),), (Fraction(0), *below.values), zero)


def _added(own: Sequence[Fraction], more: Sequence[Fraction], pair: NDArray[np.int64]) -> LevelShares:
    """Sums of two shares named by ``own position * len(more) + more position``, the largest value first."""
    pairs, place = ranked_paths(pair)
    sums = [own[p // len(more)] + more[p % len(more)] for p in pairs.tolist()]
    values = sorted(set(sums), reverse=True)
    position = np.array([values.index(value) for value in sums], np.int32)
    return LevelShares(tuple(values), position[place])
