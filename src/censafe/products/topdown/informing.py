"""Which answers the estimate of a geounit uses: its own, or those of all geounits below it as well."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from censafe.estimation.topdown.linear.cells import CellBlocks
from censafe.estimation.topdown.linear.downward import LinearTree
from censafe.estimation.topdown.linear.pooling import pooled
from censafe.estimation.topdown.linear.upward import TreeLevel, lower_estimates
from censafe.estimation.topdown.normal_equations import LevelObjective
from censafe.geography.spine import SpineLevel
from censafe.products.observer import Observer
from censafe.products.topdown.config import TopdownConfig
from censafe.products.topdown.config_types import MeasuredHistogram
from censafe.products.topdown.facts import PublicFacts
from censafe.products.topdown.invariants import LevelLimits

__all__ = ["informed", "linear_tree"]


def informed(
    histogram: MeasuredHistogram,
    public: PublicFacts,
    config: TopdownConfig,
    objectives: Iterable[LevelObjective],
    observer: Observer,
) -> Iterator[LevelObjective]:
    """The objective of every level, root first, with the information that the configuration chooses.

    Args:
        histogram: whose answers these are.
        public: what is known exactly.
        config: chooses the information.
        objectives: own measurements of every level, root first; they are asked for as they are needed.
        observer: who is told of stages.

    Raises:
        CheckError: the answers of a geounit and those below it do not determine its cells.
    """
    if config.choices.information == "level":
        yield from objectives
        return
    own = tuple(objectives)
    with observer.stage(f"estimate {histogram.name} from below"):
        tree = linear_tree(histogram, public, own)
        found = pooled(tree.blocks, tree.levels, tree.lower)
    yield from (one for one in found if one is not None)


def linear_tree(
    histogram: MeasuredHistogram, public: PublicFacts, objectives: Sequence[LevelObjective]
) -> LinearTree:
    """Linear estimates of all geounits of a histogram; parts whose total is known for the sum have a level of sums above them.

    Args:
        histogram: whose answers these are.
        public: what is known exactly.
        objectives: own measurements of every level, root first.

    Raises:
        CheckError: the answers of a geounit and those below it do not determine its cells.
    """
    schema = histogram.schema
    allowed = schema.allowed()
    alike: list[NDArray[np.generic]] = [allowed]
    kinds = None
    if schema.facilities is not None:
        kinds = schema.schema.levels_of(schema.facilities.attribute)
        alike.append(kinds)
    labels = {label.tobytes(): label for one in objectives for label in one.labels}
    blocks = CellBlocks.of(schema.schema.shape, tuple(labels.values()), alike)
    levels: list[TreeLevel] = []
    for level, limits, objective in zip(
        public.spine.levels, public.limits[histogram.name], objectives, strict=True
    ):
        support = np.broadcast_to(blocks.first(allowed), (level.nodes, blocks.combinations))
        if kinds is not None:
            support = support & (limits.upper > 0)[:, blocks.first(kinds)]
        levels += _levels(level, limits, objective, support)
    return LinearTree(blocks, levels, lower_estimates(blocks, levels))


def _levels(
    level: SpineLevel, limits: LevelLimits, objective: LevelObjective, support: NDArray[np.bool_]
) -> tuple[TreeLevel, ...]:
    """A level, after the level of the sums whose totals are known where its geounits are parts."""
    groups = limits.groups
    if groups is None:
        return (TreeLevel(level.name, objective, level.parent, support, limits.totals),)
    sums = len(groups.totals)
    parent, together = np.full(sums, -1, np.int32), np.zeros((sums, support.shape[1]), np.bool_)
    parent[groups.of] = level.parent
    np.logical_or.at(together, groups.of, support)
    whole = TreeLevel(f"{level.name} (whole)", None, parent, together, groups.totals)
    return whole, TreeLevel(level.name, objective, groups.of, support)
