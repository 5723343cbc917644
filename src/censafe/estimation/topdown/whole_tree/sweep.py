"""From the lowest level of the tree up: the best linear unbiased estimate of every geounit from its own answers and all below it.

Sums that are published exactly are found by connectivity and leave a subspace for the estimates. The objective of every level with what lies below stands here, too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from censafe.errors import CheckError
from censafe.estimation.topdown.least_squares.objective import (
    LevelObjective,
    StoredAnswers,
    add_weighted,
    query_weight,
)
from censafe.estimation.topdown.whole_tree.cells import (
    Below,
    CellBlocks,
    CoarseFit,
    inverse,
    masked,
    parts,
    positive,
    sibling_parts,
    sum_by,
    total_covariances,
)
from censafe.model.arrays import Flags, Floats, Ordinals
from censafe.model.compiled import compiled


@compiled()
def add_rows(values: NDArray[np.integer], group: Ordinals, sums: Ordinals) -> None:
    """Add up rows of answers by group."""
    for row in range(values.shape[0]):
        target, own = sums[group[row]], values[row]
        for column in range(values.shape[1]):
            target[column] += own[column]


@compiled()
def add_estimates(values: Floats, group: Ordinals, sums: Floats) -> None:
    """Add up rows of estimates by group, in their order."""
    for row in range(values.shape[0]):
        target, own = sums[group[row]], values[row]
        for column in range(values.shape[1]):
            target[column] += own[column]


Groups = NDArray[np.int32]


def joined_sums(children: Iterable[tuple[Flags, Groups]], combinations: int) -> Groups:
    """Which sums over the children of a parent are known: those that no child's unknown cells and no two sums of a child cut.

    Args:
        children: of every pattern among them, its support and the sum of every combination, -1 for none.

    Returns:
        Sum of every combination, numbered by their first combinations, -1 for none, shape (M,).

    Example:
        >>> one, two = np.array([True, False, False]), np.array([False, True, True])
        >>> joined_sums([(one, np.array([0, -1, -1])), (two, np.array([-1, 0, 0]))], 3).tolist()
        [0, 1, 1]
        >>> joined_sums([(one, np.array([-1, -1, -1])), (two, np.array([-1, 0, 0]))], 3).tolist()
        [-1, 0, 0]
    """
    free = np.zeros(combinations, np.bool_)
    sums: list[Flags] = []
    for support, group in children:
        free |= support & (group < 0)
        for number in range(int(group.max(initial=-1)) + 1):
            own = group == number
            apart = [mask for mask in sums if not (mask & own).any()]
            overlapping = [mask for mask in sums if (mask & own).any()]
            sums = [*apart, np.logical_or.reduce([own, *overlapping])]
    numbers = np.full(combinations, -1, np.int32)
    known = sorted((mask for mask in sums if not (mask & free).any()), key=lambda mask: int(np.argmax(mask)))
    for number, mask in enumerate(known):
        numbers[mask] = number
    return numbers


def projections(groups: Groups, support: Flags) -> tuple[Floats, Floats]:
    """Q, which takes the mean of every known sum away, and the means, each of shape (n, M, M).

    Args:
        groups: sum of every combination, shape (n, M).
        support: combinations that may hold records, shape (n, M).
    """
    inside = support & (groups >= 0)
    same = (groups[:, :, None] == groups[:, None, :]) & inside[:, :, None] & inside[:, None, :]
    means = same / np.maximum(1, same.sum(axis=2, keepdims=True))
    return np.eye(groups.shape[1]) * support[:, None, :] - means, means


def remaining_precisions(covariances: Floats, support: Flags, groups: Groups) -> tuple[Floats, Floats]:
    """Precisions of sums of children, in the subspace that known sums leave.

    Args:
        covariances: of sums, shape (n, subsets, M, M).
        support: combinations that may hold records, shape (n, M).
        groups: known sums, shape (n, M).
    """
    remaining, means = projections(groups, support)
    within = covariances.copy()
    within[:, -1] = remaining @ covariances[:, -1] @ remaining
    within[:, -1] += _scale(within[:, -1])[:, None, None] * means
    precisions = inverse(within, support)
    precisions[:, -1] = remaining @ precisions[:, -1] @ remaining
    return precisions, filled(precisions, means)


def filled(precisions: Floats, means: Floats) -> Floats:
    """Precisions with an entry of their own size along the known sums, where any would do: what is known is not estimated."""
    full = precisions.copy()
    size = np.abs(precisions).max(axis=(1, 2, 3), initial=0.0)
    full[:, -1] += np.where(size > 0, size, 1.0)[:, None, None] * means
    return full


def conditional_covariances(
    blocks: CellBlocks,
    answers: Sequence[tuple[NDArray[np.integer], Floats]],
    below: Floats,
    support: Flags,
    groups: Groups,
    sums: int,
) -> tuple[Floats, Floats]:
    """Covariances of averages over the exchangeable attributes once sums are known, and what the values of these shift.

    Args:
        below: precisions from below in the subspace, shape (n, subsets, M, M).
        support: combinations that may hold records, shape (n, M).
        groups: known sums, shape (n, M).

    Returns:
        H of shape (n, M, M), and L of shape (n, M, K): the estimate is H h + L b for right sides h and known values b.
    """
    projection, means = projections(groups, support)
    members = (groups[:, :, None] == np.arange(sums)) & support[:, :, None]
    spread = members / np.maximum(1, members.sum(axis=1, keepdims=True)) / blocks.others
    left = projection @ below[:, -1]
    curvature, pull = left @ projection, left @ spread
    for label, weight in answers:
        ask, factor = blocks.averaged(label)
        left = ask @ projection
        weighted = np.swapaxes(left, -1, -2) * (weight * factor)[:, None, None]
        curvature += weighted @ left
        pull += weighted @ (ask @ spread)
    within = curvature + _scale(curvature)[:, None, None] * (
        means + np.eye(support.shape[1]) * ~support[:, None, :]
    )
    covariance = projection @ np.linalg.inv(within) @ projection
    covariance = 0.5 * (covariance + np.swapaxes(covariance, -1, -2))
    return covariance, spread - covariance @ pull


def known_values(groups: Groups, estimates: Floats | None, totals: NDArray[np.int64] | None) -> Floats:
    """Values of the known sums of some geounits, shape (n, K).

    Args:
        groups: sum of every combination of each, shape (n, M).
        estimates: sums of the children's estimates, which obey what is known, shape (n, M, *sizes); None without children.
    """
    number = groups.max(axis=1, initial=-1) + 1
    values = np.zeros((len(groups), int(number.max(initial=0))))
    if estimates is not None:
        sums = estimates.sum(axis=tuple(range(2, estimates.ndim)))
        for place in range(values.shape[1]):
            values[:, place] = np.where(groups == place, sums, 0.0).sum(axis=1)
    if totals is not None and values.shape[1]:
        last, rows = np.maximum(number - 1, 0), np.arange(len(groups))
        values[rows, last] = 0.0
        rest = totals - values.sum(axis=1)
        values[rows, last] = np.where(number > 0, rest, 0.0)
    return values


def shifts(lift: Floats, values: Floats, trailing: int) -> Floats:
    """What known values add to estimates, shape (n, M, 1, ...) with as many trailing axes."""
    shift: Floats = (lift * values[:, None, :]).sum(axis=2)
    return shift.reshape(*shift.shape, *(1,) * trailing)


def _scale(operators: Floats) -> Floats:
    """A number of the size of the entries of each, 1 where all are 0."""
    size = np.abs(operators).max(axis=(1, 2), initial=0.0)
    return np.where(size > 0, size, 1.0)


@dataclass(frozen=True, eq=False)
class TreeLevel:
    """A level of the tree, ready for the linear estimate.

    Args:
        parent: position of every geounit's parent in the level above; -1 at the widest level, shape (n,).
        support: combinations of the attributes that are not exchangeable which may hold records, shape (n, M).
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
        right: that precision times the sum of the children's estimates, shape (n, M, *sizes); None at the lowest level.
        groups: which exactly known sum every combination of a pattern is in, -1 for none, shape (patterns, M).
        known: values of these sums, shape (n, K).
        conditional: covariances of averages over the exchangeable attributes once these sums are known, shape (patterns, M, M); that of
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
    conditional: Floats = field(repr=False)
    lift: Floats = field(repr=False)

    def conditioned(self) -> Floats:
        """Covariances of the estimates once what is known exactly is imposed, shape (patterns, subsets, M, M)."""
        covariances = self.covariance.copy()
        covariances[:, -1] = self.conditional
        return covariances

    def of(self, nodes: slice) -> LowerLevel:
        """The same of some neighboring geounits."""
        right = None if self.right is None else self.right[nodes]
        return replace(self, pattern=self.pattern[nodes], right=right, known=self.known[nodes])

    def totals(self, blocks: CellBlocks, right: Floats, nodes: Ordinals) -> Floats:
        """Estimated totals of some geounits from the right sides of all information, shape (len(nodes),)."""
        with_total, _ = total_covariances(self.covariance, blocks.others)
        sums = right.reshape(len(nodes), blocks.combinations, -1).sum(axis=2)
        return np.asarray((with_total[self.pattern[nodes]] * sums).sum(axis=1))


@dataclass(frozen=True, eq=False)
class Children:
    """What the children of a level hand to their parents.

    Args:
        sums: of the estimates, shape (n, M, *sizes).
        sort: sort of every parent, -1 where nothing is known, shape (n,); parents of one sort have the same covariance.
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
        """Those of neighboring parts of the parents' level as those of all of them."""
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

    Source: generalized least squares on a tree; bluedown.md 4.1.
    """
    estimates: list[LowerLevel] = []
    children = below
    for depth in range(len(levels) - 1, -1, -1):
        level = levels[depth]
        own = _level(blocks, level, children)
        estimates.insert(0, own)
        if depth:
            children = handed_up(blocks, level, own, levels[depth - 1].nodes)
    return tuple(estimates)


def _patterns(
    level: TreeLevel, children: Children | None
) -> tuple[tuple[bytes, ...], NDArray[np.int32], Ordinals, Ordinals, Flags]:
    """Geounits of one pattern have the same kind of budget, sort of children, and support; patterns are sorted by their keys.

    Returns:
        The keys; the pattern of every geounit, shape (n,); by pattern the kind, the sort of the children, -1 where nothing is known from
        below, and the support, shape (patterns, M).
    """
    objective = level.objective
    kinds = np.zeros(level.nodes, np.int32) if objective is None else objective.kinds
    sort = np.full(level.nodes, -1) if children is None else children.sort
    _, mask = np.unique(np.packbits(level.support, axis=1), axis=0, return_inverse=True)
    rows = np.column_stack([kinds, sort, mask.ravel()])
    _, first, place = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    keys = []  # digests of weights, children and support, which do not depend on what else is in the tree
    for node, support in zip(first.tolist(), np.packbits(level.support[first], axis=1), strict=True):
        digest = hashlib.sha256(support.tobytes())
        if objective is not None:
            digest.update(objective.weights[kinds[node]].tobytes())
        if children is not None and sort[node] >= 0:
            digest.update(children.keys[sort[node]])
        keys.append(digest.digest())
    order = sorted(range(len(keys)), key=keys.__getitem__)
    first, number = first[order], np.empty(len(order), np.int32)
    number[order] = np.arange(len(order), dtype=np.int32)
    return (
        tuple(keys[pattern] for pattern in order), number[place.ravel()],
        kinds[first].astype(np.int64), sort[first], level.support[first],
    )  # fmt: skip


def _level(blocks: CellBlocks, level: TreeLevel, children: Children | None) -> LowerLevel:
    """Patterns of the geounits and their covariances, and what is known of every pattern from its children and its exact totals."""
    keys, pattern, kind, sort, own_support = _patterns(level, children)
    support, known = own_support.copy(), sort >= 0
    precision = np.zeros((len(kind), blocks.subsets, blocks.combinations, blocks.combinations))
    inside, groups = precision.copy(), np.full(support.shape, -1, np.int32)
    if children is not None:
        sort = sort[known]
        support[known] &= children.support[sort]
        exact, full = remaining_precisions(children.covariance, children.support, children.groups)
        inside[known] = masked(exact[sort], support[known])
        precision[known] = masked(full[sort], support[known])
        groups[known] = children.groups[sort]
    if level.totals is not None:
        rest = support & (groups < 0)
        groups = np.where(rest, groups.max(axis=1, keepdims=True) + 1, groups)
    own = np.zeros_like(precision)
    if level.objective is not None:
        own = blocks.curvature(level.objective.labels, level.objective.weights)[kind]
    informed = _informed(blocks, level, kind, support, known)
    covariance = inverse(own + precision, support & informed[:, None])
    conditional, lift = covariance[:, -1].copy(), np.zeros((*support.shape, int(groups.max(initial=-1)) + 1))
    some = np.flatnonzero((groups >= 0).any(axis=1) & informed)
    answers: list[tuple[NDArray[np.int32], Floats]] = []
    if level.objective is not None:
        answers = list(zip(level.objective.labels, level.objective.weights[kind[some]].T, strict=True))
    conditional[some], lift[some] = conditional_covariances(
        blocks, answers, inside[some], support[some], groups[some], lift.shape[2]
    )
    values = known_values(groups[pattern], None if children is None else children.sums, level.totals)
    right = None
    if children is not None:
        right = children.sums
        for part in parts(level.nodes, blocks.cells):
            right[part] = blocks.apply(precision[pattern[part]], right[part])
    return LowerLevel(
        keys, pattern, kind, support, precision, covariance, informed, right, groups, values, conditional, lift
    )  # fmt: skip


def _informed(blocks: CellBlocks, level: TreeLevel, kind: Ordinals, support: Flags, known: Flags) -> Flags:
    """Which patterns determine their cells; those without any answers do not have to.

    That is a matter of the queries, and not of their weights: children of which all are determined determine the cells
    of their parent, and otherwise its own queries have to.
    """
    measured = np.zeros((len(kind), 0), np.bool_)
    good = known
    if level.objective is not None:
        measured = level.objective.weights[kind] > 0
        good = known | positive(
            blocks.curvature(level.objective.labels, measured.astype(np.float64)), support
        )
    informed: Flags = (known & support.any(axis=1)) | measured.any(axis=1)
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
    for parent_place in np.flatnonzero(known & (np.diff(start) > 0)).tolist():
        part = slice(start[parent_place], start[parent_place + 1])
        names = b"".join(own.keys[pattern] for pattern in which[part].tolist())
        key = hashlib.sha256(names + times[part].tobytes()).digest()
        if key not in sorts:
            sorts[key] = len(sorts)
            chosen.append(parent_place)
        sort[parent_place] = sorts[key]
    return sort, chosen, tuple(sorts)


def _estimates(
    blocks: CellBlocks, level: TreeLevel, own: LowerLevel
) -> Iterator[tuple[NDArray[np.integer], Floats]]:
    """Parents and estimates of the geounits, or at the lowest level of sums of siblings of one pattern."""
    pieces, covariance = parts(level.nodes, blocks.cells), own.conditioned()
    if own.right is None:
        pieces = sibling_parts(level.parent, blocks.cells)
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
    right = np.zeros((groups, blocks.cells))
    objective = level.objective
    if objective is not None and isinstance(objective.source, StoredAnswers):
        for query, label in enumerate(objective.labels):
            values = objective.source.values[query][part]
            answers = np.zeros((groups, values.shape[1]), np.int64)
            add_rows(values, group.astype(np.int64), answers)
            weights = np.ascontiguousarray(objective.weights[kind, query])
            add_weighted(right, weights, answers, label[blocks.order].astype(np.int64))
    return right.reshape(groups, blocks.combinations, *blocks.sizes)


def pooled(
    blocks: CellBlocks, levels: Sequence[TreeLevel], lower: Sequence[LowerLevel], *, rooted: bool = True
) -> tuple[LevelObjective | None, ...]:
    """Objectives whose minimum without limits is the estimate from own answers and all below: the distance to it, by its precision.

    The objective of the lowest level is unchanged. A level without answers, such as sums of parts, has none.
    """
    measured = [depth for depth, level in enumerate(levels) if level.objective is not None]
    root = measured[0] if rooted and measured else -1
    return tuple(
        _pooled_level(blocks, level, own, sums=depth == root)
        for depth, (level, own) in enumerate(zip(levels, lower, strict=True))
    )


def _pooled_level(
    blocks: CellBlocks, level: TreeLevel, own: LowerLevel, *, sums: bool
) -> LevelObjective | None:
    objective = level.objective
    if objective is None or own.right is None:
        return objective
    variance = total_covariances(own.covariance, blocks.others)[1]
    known = own.informed.astype(np.float64)
    weight = np.array([query_weight(float(one)) for one in variance]) * known
    totals = np.empty(level.nodes)
    together = np.empty_like(own.right) if sums else None
    for part in parts(level.nodes, blocks.cells):
        nodes = np.arange(part.start, part.stop)
        kind = own.kind[own.pattern[part]]
        right = own_right_sides(blocks, level, part, nodes - part.start, len(nodes), kind) + own.right[part]
        totals[part] = own.totals(blocks, right, nodes)
        if together is not None:
            together[part] = right
    below = Below(
        blocks.entries(own.below),
        blocks.combination,
        blocks.traits,
        blocks.flat(own.right),
        weight,
        weight[own.pattern] * totals,
        None if together is None else _coarse(blocks, objective, own, together),
    )
    return replace(objective, weights=objective.weights[own.kind], kinds=own.pattern, below=below)


def _coarse(
    blocks: CellBlocks, objective: LevelObjective, own: LowerLevel, right: Floats
) -> CoarseFit | None:
    """The objective of sums over the exchangeable attribute with the most levels."""
    if not blocks.sizes:
        return None
    axis = int(np.argmax(blocks.sizes))
    both = blocks.curvature(objective.labels, objective.weights)[own.kind] + own.below
    both[:, np.flatnonzero(~np.arange(blocks.subsets) >> axis & 1)] = 0.0
    mean = np.broadcast_to(right.mean(axis=axis + 2, keepdims=True), right.shape)
    label = blocks.combination.astype(np.int64)
    for other, levels in enumerate(blocks.sizes):
        if other != axis:
            label = label * levels + blocks.traits[other]
    return CoarseFit(label.astype(np.int32), blocks.entries(both), blocks.flat(mean))


@dataclass(frozen=True, eq=False)
class LinearTree:
    """The best linear unbiased estimates of all levels.

    Args:
        levels: the tree, the widest first; it has one geounit, or several without anything above them.
    """

    blocks: CellBlocks
    levels: Sequence[TreeLevel] = field(repr=False)
    lower: Sequence[LowerLevel] = field(repr=False)


def passing(level: TreeLevel, own: LowerLevel, above: int) -> Flags:
    """Which geounits have no answers, neither their own nor below them: they are their parent, whose only child they are."""
    empty = ~own.informed[own.pattern]
    if empty.any():
        children = np.bincount(level.parent[level.parent >= 0], minlength=above)
        if not above or (children[level.parent[empty]] > 1).any():
            raise CheckError(
                f"level {level.name}: {int(empty.sum())} geounits have no answers, neither their own nor below them, and are "
                "not the only child of their parent, so that nothing tells how the parent's records are shared out"
            )
    return np.asarray(empty)
