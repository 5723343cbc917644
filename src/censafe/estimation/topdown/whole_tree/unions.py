"""Covariances of the histograms of any unions of geounits, from the answers of the whole tree, in one sweep from below."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from censafe.errors import CheckError
from censafe.estimation.topdown.whole_tree.downward import LinearTree, passing
from censafe.estimation.topdown.whole_tree.operators import sum_by
from censafe.model.arrays import Floats, Ordinals

_ROWS = 2048  # pairs of union and geounit that are worked on at a time


@dataclass(frozen=True, eq=False)
class Members:
    """Geounits of one level in unions.

    Args:
        union: of every row, shape (rows,).
        node: geounit of every row, shape (rows,).
        weight: how often it counts; -1 takes it away, so that a union may be the difference of two areas, shape (rows,).
    """

    union: Ordinals
    node: Ordinals
    weight: Floats = field(repr=False)

    def among(self, first: int, last: int) -> Members:
        """The rows of the unions from `first` to `last` - 1, numbered from 0."""
        chosen = (self.union >= first) & (self.union < last)
        return Members(self.union[chosen] - first, self.node[chosen], self.weight[chosen])


@dataclass(frozen=True, eq=False)
class _Rows:
    """Pairs of union and geounit with matrices that act on the cells of the union's sum."""

    union: Ordinals
    node: Ordinals
    operator: Floats


def whole_members(tree: LinearTree, union_of: NDArray[np.integer]) -> dict[int, Members]:
    """Unions of geounits of the lowest level as unions of as few geounits as will do, of any level.

    Args:
        union_of: union of every geounit of the lowest level, -1 for none.
    """
    below: NDArray[np.int64] = np.asarray(union_of, np.int64)
    owners = [below]
    for depth in range(len(tree.levels) - 1, 0, -1):
        parent = tree.levels[depth].parent
        low = np.full(tree.levels[depth - 1].nodes, np.iinfo(np.int64).max)
        high = np.full(len(low), -1)
        np.minimum.at(low, parent, below)
        np.maximum.at(high, parent, below)
        below = np.where(low == high, low, -1)
        owners.insert(0, below)
    found = {}
    for depth, owner in enumerate(owners):
        inside = np.zeros(len(owner), np.bool_)
        if depth:
            inside = owners[depth - 1][tree.levels[depth].parent] >= 0
        node = np.flatnonzero((owner >= 0) & ~inside)
        found[depth] = Members(owner[node], node, np.ones(len(node)))
    return found


def union_covariances(tree: LinearTree, members: Mapping[int, Members], unions: int) -> Floats:
    """Covariance operators of the sums over all geounits of every union.

    Source: topdown_solver.md 9.2 with matrices in the place of weights.
    """
    size = tree.lower[0].covariance.shape[1:]
    found = np.empty((unions, *size))
    for first, last in _batches(members, unions):
        rows = {depth: one.among(first, last) for depth, one in members.items()}
        found[first:last] = _swept(tree, rows, last - first)
    return found


def _batches(members: Mapping[int, Members], unions: int) -> Sequence[tuple[int, int]]:
    """Ranges of unions with a limited number of rows each."""
    rows = np.zeros(unions, np.int64)
    for one in members.values():
        rows += np.bincount(one.union, minlength=unions)
    start = np.append(0, np.cumsum(rows))
    found, first = [], 0
    while first < unions:
        last = max(first + 1, int(np.searchsorted(start, start[first] + _ROWS, side="right")) - 1)
        found.append((first, last))
        first = last
    return found


def _swept(tree: LinearTree, members: Mapping[int, Members], unions: int) -> Floats:
    size = tree.lower[0].covariance.shape[1:]
    total = np.zeros((unions, *size))
    rows = _Rows(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros((0, *size)))
    passed = Members(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))
    for depth in range(len(tree.levels) - 1, -1, -1):
        level, own, covariance = tree.levels[depth], tree.lower[depth], tree.covariance(depth)
        empty = passing(level, own, tree.levels[depth - 1].nodes if depth else 0)
        whole, rows = _apart(_joined(members.get(depth), passed), rows, level.nodes)
        # what has no answers is its parent
        through = empty[whole.node]
        parent = level.parent.astype(np.int64)
        passed = Members(whole.union[through], parent[whole.node[through]], whole.weight[through])
        lifted = empty[rows.node]
        up = _Rows(rows.union[lifted], parent[rows.node[lifted]], rows.operator[lifted])
        whole = Members(whole.union[~through], whole.node[~through], whole.weight[~through])
        rows = _Rows(rows.union[~lifted], rows.node[~lifted], rows.operator[~lifted])

        held = covariance[own.pattern[rows.node]] @ rows.operator
        np.add.at(total, rows.union, np.swapaxes(rows.operator, -1, -2) @ held)
        _add_whole(total, whole.union, own.pattern[whole.node], whole.weight**2, covariance)
        if depth == 0:
            return 0.5 * (total + np.swapaxes(total, -1, -2))
        union, node, sums = _sums(whole, parent, own.pattern, covariance, _Rows(rows.union, rows.node, held))
        above = tree.lower[depth - 1]
        operator = above.below[above.pattern[node]] @ sums
        np.subtract.at(total, union, np.swapaxes(sums, -1, -2) @ operator)
        rows = _merged(
            _Rows(
                np.concatenate([union, up.union]),
                np.concatenate([node, up.node]),
                np.concatenate([operator, up.operator]),
            ),
            tree.levels[depth - 1].nodes,
        )
    raise CheckError("a tree without levels has no unions")


def _joined(own: Members | None, passed: Members) -> Members:
    if own is None:
        return passed
    return Members(
        np.concatenate([own.union, passed.union]),
        np.concatenate([own.node, passed.node]),
        np.concatenate([own.weight, passed.weight]),
    )


def _apart(whole: Members, rows: _Rows, nodes: int) -> tuple[Members, _Rows]:
    """Every pair of union and geounit once: whole geounits, and those of which the union has a part beside or alone."""
    keys, place = np.unique(whole.union * nodes + whole.node, return_inverse=True)
    weight = np.zeros(len(keys))
    np.add.at(weight, place.ravel(), whole.weight)
    held = rows.union * nodes + rows.node
    order = np.argsort(held)
    at = np.asarray(np.searchsorted(held[order], keys))
    both = np.zeros(len(keys), np.bool_)
    if len(held):
        both = held[order][np.minimum(at, len(held) - 1)] == keys
        rows.operator[order[at[both]]] += weight[both, None, None, None] * np.eye(rows.operator.shape[-1])
    union, node = np.divmod(keys[~both], nodes)
    return Members(union, node, weight[~both]), rows


def _add_whole(
    total: Floats, union: Ordinals, pattern: NDArray[np.integer], times: Floats, covariance: Floats
) -> None:
    """Add covariances by union, in place."""
    groups, first, keys, counts = _counted(union, pattern, times, len(covariance))
    if len(groups):
        total[groups] += sum_by(first, len(groups), keys, counts, covariance)


def _counted(
    group: Ordinals, pattern: NDArray[np.integer], times: Floats, patterns: int
) -> tuple[Ordinals, Ordinals, Ordinals, Floats]:
    """Groups, and of every group and pattern in it the position of the group, the pattern and how often it counts."""
    keys, place = np.unique(group * patterns + pattern, return_inverse=True)
    counts = np.asarray(np.bincount(place.ravel(), times, minlength=len(keys)), np.float64)
    which, own = np.divmod(keys, patterns)
    groups, first = np.unique(which, return_inverse=True)
    return groups, first.ravel().astype(np.int64), own, counts


def _sums(
    whole: Members, parent: Ordinals, pattern: NDArray[np.integer], covariance: Floats, held: _Rows
) -> tuple[Ordinals, Ordinals, Floats]:
    """Sums over the children of every pair of union and parent of covariance times matrix."""
    width = int(parent.max(initial=0)) + 1
    groups, first, keys, counts = _counted(
        whole.union * width + parent[whole.node], pattern[whole.node], whole.weight, len(covariance)
    )
    others = held.union * width + parent[held.node]
    both = np.union1d(groups, others)
    found = np.zeros((len(both), *covariance.shape[1:]))
    if len(groups):
        found[np.searchsorted(both, groups)] = sum_by(first, len(groups), keys, counts, covariance)
    np.add.at(found, np.searchsorted(both, others), held.operator)
    union, node = np.divmod(both, width)
    return union, node, found


def _merged(rows: _Rows, nodes: int) -> _Rows:
    keys, place = np.unique(rows.union * nodes + rows.node, return_inverse=True)
    found = np.zeros((len(keys), *rows.operator.shape[1:]))
    np.add.at(found, place.ravel(), rows.operator)
    union, node = np.divmod(keys, nodes)
    return _Rows(union, node, found)
