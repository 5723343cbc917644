"""The objective of every level with what the answers below it say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from censafe.estimation.topdown.linear.below import Below, CoarseFit
from censafe.estimation.topdown.linear.cells import CellBlocks
from censafe.estimation.topdown.linear.operators import held_total
from censafe.estimation.topdown.linear.pieces import parts
from censafe.estimation.topdown.linear.upward import LowerLevel, TreeLevel, own_right_sides
from censafe.estimation.topdown.normal_equations import LevelObjective, query_weight

__all__ = ["pooled"]

Floats = NDArray[np.float64]


def pooled(
    blocks: CellBlocks, levels: Sequence[TreeLevel], lower: Sequence[LowerLevel], *, rooted: bool = True
) -> tuple[LevelObjective | None, ...]:
    """Objectives whose minimum without limits is the estimate from own answers and all below: the distance to it, by its precision.

    The objective of the lowest level is unchanged. A level without answers, such as sums of parts, has none.

    Args:
        blocks: structure of the cells.
        levels: of the tree, the widest first.
        lower: their estimates.
        rooted: whether nothing is above these levels, so that sums are to be fitted first at the widest one.
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
    variance = held_total(own.covariance, blocks.others)[1]
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
        blocks.kept,
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
    label = blocks.kept.astype(np.int64)
    for other, levels in enumerate(blocks.sizes):
        if other != axis:
            label = label * levels + blocks.traits[other]
    return CoarseFit(label.astype(np.int32), blocks.entries(both), blocks.flat(mean))
