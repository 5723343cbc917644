"""From the lowest level up: the best linear unbiased estimate of every geounit from its own answers and all below it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from censafe.errors import CheckError
from censafe.estimation.topdown.least_squares.objective import LevelObjective, StoredAnswers, add_weighted
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
    held_total,
    inverse,
    masked,
    parts,
    positive,
    sum_by,
    whole_families,
)
from censafe.model.arrays import Flags, Floats, Ordinals

__all__ = [
    "Children",
    "LowerLevel",
    "TreeLevel",
    "handed_up",
    "lower_estimates",
    "own_right_sides",
]


@dataclass(frozen=True, eq=False)
class TreeLevel:
    """A level of the tree, ready for the linear estimate.

    Args:
        name: of the level.
        objective: weighted own answers, stored; None where nothing is measured.
        parent: position of every geounit's parent in the level above; -1 at the widest level, shape (n,).
        support: combinations of kept attributes that may hold records, shape (n, M).
        totals: exact totals of the geounits; None where these are not known.
    """

    name: str
    objective: LevelObjective | None
    parent: NDArray[np.integer] = field(repr=False)
    support: Flags = field(repr=False)
    totals: NDArray[np.int64] | None = field(default=None, repr=False)

    @property
    def nodes(self) -> int:
        """Number of geounits."""
        return len(self.parent)


@dataclass(frozen=True, eq=False)
class LowerLevel:
    """Estimates of a level from own answers and those below; geounits of one pattern have the same covariances.

    Args:
        keys: digest of what makes each pattern, rising: a part of the tree numbers its patterns in the order of the whole.
        pattern: of every geounit, int32, shape (n,).
        kind: kind of budget of every pattern, shape (patterns,).
        support: combinations that may hold records, shape (patterns, M).
        below: precision of the sum of the children, shape (patterns, subsets, M, M); 0 where nothing is known from below.
        covariance: of the estimates, shape (patterns, subsets, M, M).
        informed: which patterns have an estimate at all.
        right: that precision times the sum of the children's estimates, shape (n, M, *sizes); None at the lowest level.
        groups: which exactly known sum every combination of a pattern is in, -1 for none, shape (patterns, M).
        known: values of these sums, shape (n, K).
        held: covariances of averages over the exchangeable attributes once these sums are known, shape (patterns, M, M); that of
            the estimates where none is.
        lift: what the known values add to an estimate, shape (patterns, M, K).
    """

    keys: tuple[bytes, ...] = field(repr=False)
    pattern: NDArray[np.int32] = field(repr=False)
    kind: Ordinals = field(repr=False)
    support: Flags = field(repr=False)
    below: Floats = field(repr=False)
    covariance: Floats = field(repr=False)
    informed: Flags = field(repr=False)
    right: Floats | None = field(repr=False)
    groups: NDArray[np.int32] = field(repr=False)
    known: Floats = field(repr=False)
    held: Floats = field(repr=False)
    lift: Floats = field(repr=False)

    def conditioned(self) -> Floats:
        """Covariances of the estimates once what is known exactly is imposed, shape (patterns, subsets, M, M)."""
        found = self.covariance.copy()
        found[:, -1] = self.held
        return found

    def of(self, nodes: slice) -> LowerLevel:
        """The same of some neighbouring geounits."""
        right = None if self.right is None else self.right[nodes]
        return replace(self, pattern=self.pattern[nodes], right=right, known=self.known[nodes])

    def totals(self, blocks: CellBlocks, right: Floats, nodes: Ordinals) -> Floats:
        """Estimated totals of some geounits from the right sides of all information, shape (len(nodes),)."""
        with_total, _ = held_total(self.covariance, blocks.others)
        sums = right.reshape(len(nodes), blocks.combinations, -1).sum(axis=2)
        return np.asarray((with_total[self.pattern[nodes]] * sums).sum(axis=1))


@dataclass(frozen=True, eq=False)
class Children:
    """What the children of a level hand to their parents.

    Args:
        sums: of the estimates, shape (n, M, *sizes).
        sort: sort of every parent, -1 where nothing is known, shape (n,); parents of one sort have the same covariance.
        keys: digest of what makes each sort.
        covariance: of the sums, by sort.
        support: combinations that the children may have, by sort.
        groups: which exactly known sum every combination is in, -1 for none, by sort.
    """

    sums: Floats = field(repr=False)
    sort: Ordinals = field(repr=False)
    keys: tuple[bytes, ...] = field(repr=False)
    covariance: Floats = field(repr=False)
    support: Flags = field(repr=False)
    groups: NDArray[np.int32] = field(repr=False)

    @staticmethod
    def joined(parts: Sequence[Children]) -> Children:
        """Those of neighbouring parts of the parents' level as those of all of them.

        Args:
            parts: at least one.
        """
        starts = np.cumsum([0, *(len(part.keys) for part in parts)])
        sort = [
            np.where(part.sort < 0, -1, part.sort + start)
            for part, start in zip(parts, starts[:-1].tolist(), strict=True)
        ]
        return Children(
            np.concatenate([part.sums for part in parts]),
            np.concatenate(sort),
            tuple(key for part in parts for key in part.keys),
            np.concatenate([part.covariance for part in parts]),
            np.concatenate([part.support for part in parts]),
            np.concatenate([part.groups for part in parts]),
        )


def lower_estimates(
    blocks: CellBlocks, levels: Sequence[TreeLevel], below: Children | None = None
) -> tuple[LowerLevel, ...]:
    """Estimates of every level, the widest first.

    Where totals are exact, what a level hands up obeys them; its own covariances are those without them. Empty combinations have
    estimate and variance 0. Sums that the exact totals below a level fix are known at the level itself, and its precision along
    them has no meaning. A part of a tree gives the same bits as the whole.

    Args:
        blocks: structure of the cells.
        levels: of the tree, the widest first.
        below: what the children of the last of these levels hand up, which is used up; None where it is the lowest.

    Raises:
        CheckError: the answers of a geounit and below it do not determine its cells.

    Source: generalised least squares on a tree; bluedown.md 4.1.
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


def _level(blocks: CellBlocks, level: TreeLevel, children: Children | None) -> LowerLevel:
    """Patterns of the geounits and their covariances, and what is known from below."""
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
    pattern: NDArray[np.int32] = number[place.ravel()]
    support, sort_of, kind = level.support[first], sort[first], np.asarray(kinds)[first]
    below = np.zeros((len(first), blocks.subsets, blocks.combinations, blocks.combinations))
    inside, groups, known = below.copy(), np.full(support.shape, -1, np.int32), sort_of >= 0
    if children is not None:
        support[known] &= children.support[sort_of[known]]
        exact, whole = precision_beside(children.covariance, children.support, children.groups)
        inside[known] = masked(exact[sort_of[known]], support[known])
        below[known] = masked(whole[sort_of[known]], support[known])
        groups[known] = children.groups[sort_of[known]]
    if level.totals is not None:
        rest = support & (groups < 0)
        groups = np.where(rest, groups.max(axis=1, keepdims=True) + 1, groups)
    own = np.zeros_like(below)
    if level.objective is not None:
        own = blocks.curvature(level.objective.labels, level.objective.weights)[kind]
    informed = _informed(blocks, level, kind, support, known)
    covariance = inverse(own + below, support & informed[:, None])
    held, lift = covariance[:, -1].copy(), np.zeros((*support.shape, int(groups.max(initial=-1)) + 1))
    some = np.flatnonzero((groups >= 0).any(axis=1) & informed)
    held[some], lift[some] = beside(
        blocks, _answers(level, kind[some]), inside[some], support[some], groups[some], lift.shape[2]
    )
    values = known_values(groups[pattern], None if children is None else children.sums, level.totals)
    right = None
    if children is not None:
        right = children.sums
        for part in parts(level.nodes, blocks.cells):
            right[part] = blocks.apply(below[pattern[part]], right[part])
    sorted_keys = tuple(keys[one] for one in order)
    return LowerLevel(
        sorted_keys,
        pattern,
        kind.astype(np.int64),
        support,
        below,
        covariance,
        informed,
        right,
        groups,
        values,
        held,
        lift,
    )


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
    for node, held in zip(first.tolist(), packed, strict=True):
        digest = hashlib.sha256(held.tobytes())
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
    """Sums of the children of every parent, and their covariances by sort of parents.

    Args:
        blocks: structure of the cells.
        level: of the children.
        own: their estimates.
        parents: how many there are.
    """
    flat = np.zeros((parents, blocks.cells))
    sums = flat.reshape(parents, blocks.combinations, *blocks.sizes)
    for parent, rows in _estimates(blocks, level, own):
        add_estimates(rows.reshape(len(rows), -1), parent.astype(np.int64), flat)
    covariance = own.conditioned()
    patterns = len(own.kind)
    keys, times = np.unique(level.parent.astype(np.int64) * patterns + own.pattern, return_counts=True)
    parent, which = np.divmod(keys, patterns)
    start = np.searchsorted(parent, np.arange(parents + 1))
    sort = np.full(parents, -1)
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
    rows = np.concatenate(
        [np.arange(start[one], start[one + 1]) for one in chosen] or [np.zeros(0, np.int64)]
    )
    group = np.repeat(np.arange(len(chosen)), np.diff(start)[chosen])
    total = sum_by(group, len(chosen), which[rows], times[rows].astype(np.float64), covariance)
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
    return Children(sums, sort, tuple(sorts), total, support, exact)


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
    """Sums over queries of w A'y, of the answers of some geounits summed by group.

    Args:
        blocks: structure of the cells.
        level: with its answers.
        part: of the geounits.
        group: of each of them.
        groups: how many there are.
        kind: kind of budget of every group.

    Returns:
        Shape (groups, M, *sizes).
    """
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
