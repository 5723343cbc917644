"""From the widest level down: estimates from the answers of the whole tree with variances of sums, and the objective of every level with what lies below."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from censafe.errors import CheckError
from censafe.estimation.topdown.least_squares.objective import LevelObjective, query_weight
from censafe.estimation.topdown.whole_tree.cells import Below, CellBlocks, CoarseFit, parts, total_covariances
from censafe.estimation.topdown.whole_tree.upward import LowerLevel, TreeLevel, own_right_sides
from censafe.model.arrays import Flags, Floats


def pooled(
    blocks: CellBlocks, levels: Sequence[TreeLevel], lower: Sequence[LowerLevel], *, rooted: bool = True
) -> tuple[LevelObjective | None, ...]:
    """Objectives whose minimum without limits is the estimate from own answers and all below: the distance to it, by its precision.

    The objective of the lowest level is unchanged. A level without answers, such as sums of parts, has none.
    """
    measured = [depth for depth, level in enumerate(levels) if level.objective is not None]
    root = measured[0] if rooted and measured else -1
    return tuple(
        _level(blocks, level, own, sums=depth == root)
        for depth, (level, own) in enumerate(zip(levels, lower, strict=True))
    )


def _level(blocks: CellBlocks, level: TreeLevel, own: LowerLevel, *, sums: bool) -> LevelObjective | None:
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
