"""From the lowest level up: the best linear unbiased estimate of every geounit from its own answers and all below it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from censafe.errors import CheckError
from censafe.estimation.topdown.least_squares.objective import StoredAnswers, add_weighted
from censafe.estimation.topdown.whole_tree.cells import CellBlocks
from censafe.estimation.topdown.whole_tree.exact_sums import (
    add_estimates,
    add_rows,
    beside,
    joined_sums,
    known_values,
    precision_beside,
    shifts,
)
from censafe.estimation.topdown.whole_tree.operators import (
    inverse,
    masked,
    parts,
    positive,
    sum_by,
    whole_families,
)
from censafe.estimation.topdown.whole_tree.tree_levels import Children, LowerLevel, TreeLevel
from censafe.model.arrays import Flags, Floats, Ordinals


def lower_estimates(
    blocks: CellBlocks, levels: Sequence[TreeLevel], below: Children | None = None
) -> tuple[LowerLevel, ...]:
    """Estimates of every level, the widest first.

    Where totals are exact, what a level hands up obeys them; its own covariances are those without them. Empty combinations have
    estimate and variance 0. Sums that the exact totals below a level fix are known at the level itself, and its precision along
    them has no meaning. A part of a tree gives the same bits as the whole.

    Source: generalized least squares on a tree; bluedown.md 4.1.
    """
    found: list[LowerLevel] = []
    children = below
    for depth in range(len(levels) - 1, -1, -1):
        level = levels[depth]
        own = _level(blocks, level, children)
        found.insert(0, own)
        if depth:
            children = handed_up(blocks, level, own, levels[depth - 1].nodes)
    return tuple(found)


@dataclass(frozen=True, eq=False)
class _Patterns:
    """Geounits of one pattern have the same kind of budget, sort of children, and support; patterns are sorted by their keys.

    Args:
        of: pattern of every geounit, shape (n,).
        sort: sort of the children of every pattern, -1 where nothing is known from below.
        support: of the geounits of every pattern, shape (patterns, M).
    """

    keys: tuple[bytes, ...]
    of: NDArray[np.int32]
    sort: Ordinals
    kind: Ordinals
    support: Flags


def _patterns(level: TreeLevel, children: Children | None) -> _Patterns:
    kinds: NDArray[np.integer] = np.zeros(level.nodes, np.int32)
    if level.objective is not None:
        kinds = level.objective.kinds
    sort = np.full(level.nodes, -1) if children is None else children.sort
    _, mask = np.unique(np.packbits(level.support, axis=1), axis=0, return_inverse=True)
    rows = np.column_stack([kinds, sort, mask.ravel()])
    _, first, place = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    keys = _keys(level, first, np.asarray(kinds), children)
    order = sorted(range(len(keys)), key=keys.__getitem__)
    first, number = first[order], np.empty(len(order), np.int32)
    number[order] = np.arange(len(order), dtype=np.int32)
    return _Patterns(
        tuple(keys[one] for one in order), number[place.ravel()], sort[first],
        np.asarray(kinds)[first].astype(np.int64), level.support[first],
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _FromBelow:
    """What is known about every pattern from its children and its exact totals.

    Args:
        precision: of the sum of the children, shape (patterns, subsets, M, M).
        groups: which of these sums every combination is in, -1 for none, shape (patterns, M).
        support: combinations that may hold records, shape (patterns, M).
    """

    precision: Floats
    inside: Floats
    groups: NDArray[np.int32]
    known: Flags
    support: Flags


def _from_below(
    blocks: CellBlocks, patterns: _Patterns, children: Children | None, exact_totals: bool
) -> _FromBelow:
    support, known = patterns.support.copy(), patterns.sort >= 0
    precision = np.zeros((len(patterns.keys), blocks.subsets, blocks.combinations, blocks.combinations))
    inside, groups = precision.copy(), np.full(support.shape, -1, np.int32)
    if children is not None:
        sort = patterns.sort[known]
        support[known] &= children.support[sort]
        exact, whole = precision_beside(children.covariance, children.support, children.groups)
        inside[known] = masked(exact[sort], support[known])
        precision[known] = masked(whole[sort], support[known])
        groups[known] = children.groups[sort]
    if exact_totals:
        rest = support & (groups < 0)
        groups = np.where(rest, groups.max(axis=1, keepdims=True) + 1, groups)
    return _FromBelow(precision, inside, groups, known, support)


def _level(blocks: CellBlocks, level: TreeLevel, children: Children | None) -> LowerLevel:
    """Patterns of the geounits and their covariances, and what is known from below."""
    patterns = _patterns(level, children)
    below = _from_below(blocks, patterns, children, level.totals is not None)
    support, groups, kind = below.support, below.groups, patterns.kind
    own = np.zeros_like(below.precision)
    if level.objective is not None:
        own = blocks.curvature(level.objective.labels, level.objective.weights)[kind]
    informed = _informed(blocks, level, kind, support, below.known)
    covariance = inverse(own + below.precision, support & informed[:, None])
    held, lift = covariance[:, -1].copy(), np.zeros((*support.shape, int(groups.max(initial=-1)) + 1))
    some = np.flatnonzero((groups >= 0).any(axis=1) & informed)
    held[some], lift[some] = beside(
        blocks, _answers(level, kind[some]), below.inside[some], support[some], groups[some], lift.shape[2]
    )
    values = known_values(groups[patterns.of], None if children is None else children.sums, level.totals)
    right = None
    if children is not None:
        right = children.sums
        for part in parts(level.nodes, blocks.cells):
            right[part] = blocks.apply(below.precision[patterns.of[part]], right[part])
    return LowerLevel(
        patterns.keys, patterns.of, kind, support, below.precision, covariance, informed, right, groups, values, held, lift
    )  # fmt: skip


def _answers(level: TreeLevel, kind: Ordinals) -> list[tuple[NDArray[np.int32], Floats]]:
    """Every query with the weights of its answers in some patterns."""
    if level.objective is None:
        return []
    weights = level.objective.weights[kind]
    return list(zip(level.objective.labels, weights.T, strict=True))


def _keys(
    level: TreeLevel, first: Ordinals, kinds: NDArray[np.integer], children: Children | None
) -> list[bytes]:
    """Digests of patterns that do not depend on what else is in the tree: of weights, children and support."""
    objective = level.objective
    sort = np.full(level.nodes, -1) if children is None else children.sort
    packed = np.packbits(level.support[first], axis=1)
    found = []
    for node, support in zip(first.tolist(), packed, strict=True):
        digest = hashlib.sha256(support.tobytes())
        if objective is not None:
            digest.update(objective.weights[kinds[node]].tobytes())
        if children is not None and sort[node] >= 0:
            digest.update(children.keys[sort[node]])
        found.append(digest.digest())
    return found


def _informed(blocks: CellBlocks, level: TreeLevel, kind: Ordinals, support: Flags, known: Flags) -> Flags:
    """Which patterns determine their cells; those without any answers do not have to.

    That is a question of which queries are asked, and not of their weights: children of which all are determined determine the cells
    of their parent, and otherwise its own queries have to.
    """
    asked = np.zeros((len(kind), 0), np.bool_)
    good = known
    if level.objective is not None:
        asked = level.objective.weights[kind] > 0
        good = known | positive(blocks.curvature(level.objective.labels, asked.astype(np.float64)), support)
    informed: Flags = (known & support.any(axis=1)) | asked.any(axis=1)
    if (informed & support.any(axis=1) & ~good).any():
        raise CheckError(
            f"level {level.name}: the answers of a geounit and those below it do not determine its cells, so that there is no linear "
            "estimate; fix: estimate with --set information=level"
        )
    return informed


def handed_up(blocks: CellBlocks, level: TreeLevel, own: LowerLevel, parents: int) -> Children:
    """Sums of the children of every parent, and their covariances by sort of parents."""
    flat = np.zeros((parents, blocks.cells))
    sums = flat.reshape(parents, blocks.combinations, *blocks.sizes)
    for parent, rows in _estimates(blocks, level, own):
        add_estimates(rows.reshape(len(rows), -1), parent.astype(np.int64), flat)
    patterns = len(own.kind)
    keys, times = np.unique(level.parent.astype(np.int64) * patterns + own.pattern, return_counts=True)
    parent, which = np.divmod(keys, patterns)
    start = np.searchsorted(parent, np.arange(parents + 1))
    sort, chosen, names = _sorts(own, which, times, start)
    rows = np.concatenate(
        [np.arange(start[one], start[one + 1]) for one in chosen] or [np.zeros(0, np.int64)]
    )
    group = np.repeat(np.arange(len(chosen)), np.diff(start)[chosen])
    total = sum_by(group, len(chosen), which[rows], times[rows].astype(np.float64), own.conditioned())
    support = np.zeros((len(chosen), blocks.combinations), np.bool_)
    np.logical_or.at(support, group, own.support[which[rows]])
    groups = [
        joined_sums(
            ((own.support[one], own.groups[one]) for one in which[start[place] : start[place + 1]]),
            blocks.combinations,
        )
        for place in chosen
    ]
    exact = np.array(groups, np.int32).reshape(len(chosen), blocks.combinations)
    return Children(sums, sort, names, total, support, exact)


def _sorts(
    own: LowerLevel, which: Ordinals, times: Ordinals, start: Ordinals
) -> tuple[Ordinals, list[int], tuple[bytes, ...]]:
    """Sort of every parent by the patterns of its children, -1 where one is not estimated; a parent and the key of every sort.

    Args:
        start: where the patterns of every parent start, shape (parents + 1,).
    """
    sort = np.full(len(start) - 1, -1)
    known = np.logical_and.reduceat(own.informed[which], start[:-1]) if len(which) else np.zeros(0, bool)
    sorts: dict[bytes, int] = {}
    chosen: list[int] = []
    for one in np.flatnonzero(known & (np.diff(start) > 0)).tolist():
        part = slice(start[one], start[one + 1])
        names = b"".join(own.keys[pattern] for pattern in which[part].tolist())
        key = hashlib.sha256(names + times[part].tobytes()).digest()
        if key not in sorts:
            sorts[key] = len(sorts)
            chosen.append(one)
        sort[one] = sorts[key]
    return sort, chosen, tuple(sorts)


def _estimates(
    blocks: CellBlocks, level: TreeLevel, own: LowerLevel
) -> Iterator[tuple[NDArray[np.integer], Floats]]:
    """Parents and estimates of the geounits, or at the lowest level of sums of siblings of one pattern."""
    pieces, covariance = parts(level.nodes, blocks.cells), own.conditioned()
    if own.right is None:
        pieces = whole_families(level.parent, blocks.cells)
    for part in pieces:
        nodes = np.arange(part.start, part.stop)
        if own.right is None:
            keys = level.parent[part].astype(np.int64) * len(own.kind) + own.pattern[part]
            groups, group = np.unique(keys, return_inverse=True)
            parent, pattern = np.divmod(groups, len(own.kind))
        else:
            group, parent, pattern = (
                nodes - part.start,
                level.parent[part],
                own.pattern[part].astype(np.int64),
            )
        right = own_right_sides(blocks, level, part, group.ravel(), len(parent), own.kind[pattern])
        if own.right is not None:
            right += own.right[part]
        values = np.zeros((len(parent), own.known.shape[1]))
        np.add.at(values, group.ravel(), own.known[part])
        yield (
            parent,
            blocks.apply(covariance[pattern], right) + shifts(own.lift[pattern], values, len(blocks.sizes)),
        )


def own_right_sides(
    blocks: CellBlocks,
    level: TreeLevel,
    part: slice,
    group: Ordinals,
    groups: int,
    kind: NDArray[np.integer],
) -> Floats:
    """Sums over queries of w A'y, of the answers of some geounits summed by group."""
    found = np.zeros((groups, blocks.cells))
    objective = level.objective
    if objective is not None and isinstance(objective.source, StoredAnswers):
        for query, label in enumerate(objective.labels):
            values = objective.source.values[query][part]
            answers = np.zeros((groups, values.shape[1]), np.int64)
            add_rows(values, group.astype(np.int64), answers)
            weights = np.ascontiguousarray(objective.weights[kind, query])
            add_weighted(found, weights, answers, label[blocks.order].astype(np.int64))
    return found.reshape(groups, blocks.combinations, *blocks.sizes)
