"""Which answers the estimate of a geounit uses: its own, or those of all geounits below it as well."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from censafe.estimation.topdown.least_squares.objective import LevelObjective
from censafe.estimation.topdown.levels.facts import PublicFacts
from censafe.estimation.topdown.levels.limits import LevelLimits
from censafe.estimation.topdown.operator.pooled import pooled_objectives
from censafe.estimation.topdown.whole_tree.cells import CellBlocks
from censafe.estimation.topdown.whole_tree.downward import LinearTree, pooled
from censafe.estimation.topdown.whole_tree.tree_levels import TreeLevel
from censafe.estimation.topdown.whole_tree.upward import lower_estimates
from censafe.geography.spines.tree import SpineLevel
from censafe.model.observer import Observer
from censafe.model.topdown.choices import Choices
from censafe.model.topdown.histograms import HistogramSchema, MeasuredHistogram


def informed(
    histogram: MeasuredHistogram,
    public: PublicFacts,
    choices: Choices,
    objectives: Iterable[LevelObjective],
    observer: Observer,
) -> Iterator[LevelObjective]:
    """The objective of every level, root first, with the information that the configuration chooses."""
    if choices.information == "level":
        yield from objectives
        return
    own = tuple(objectives)
    with observer.stage(f"estimate {histogram.name} from below"):
        if histogram.name in public.declared:  # too many cells for covariances
            names = [tuple(histogram.query_shares[level]) for level in public.spine.names]
            yield from pooled_objectives(public.spine, names, own)
            return
        tree = linear_tree(histogram, public, own)
        found = pooled(tree.blocks, tree.levels, tree.lower)
    yield from (one for one in found if one is not None)


def linear_tree(
    histogram: MeasuredHistogram, public: PublicFacts, objectives: Sequence[LevelObjective]
) -> LinearTree:
    """Linear estimates of all geounits of a histogram; parts whose total is known for the sum have a level of sums above them."""
    limits = public.exact_limits(histogram.name)
    blocks = cell_blocks(
        histogram.schema, limits[0].kinds, [label for one in objectives for label in one.labels]
    )
    levels = tree_levels(histogram.schema, blocks, public.spine.levels, limits, objectives)
    return LinearTree(blocks, levels, lower_estimates(blocks, levels))


def cell_blocks(
    schema: HistogramSchema, kinds: NDArray[np.int32] | None, labels: Iterable[NDArray[np.int32]]
) -> CellBlocks:
    """The structure of the cells under some queries, the cells that may hold records, and their kinds of unit."""
    alike: list[NDArray[np.generic]] = [schema.allowed()]
    if kinds is not None:
        alike.append(kinds)
    return CellBlocks.of(
        schema.schema.shape, tuple({label.tobytes(): label for label in labels}.values()), alike
    )


def tree_levels(
    schema: HistogramSchema,
    blocks: CellBlocks,
    spine: Sequence[SpineLevel],
    limits: Sequence[LevelLimits],
    objectives: Sequence[LevelObjective],
) -> list[TreeLevel]:
    """Neighboring levels, ready for the linear estimate."""
    found: list[TreeLevel] = []
    for level, limit, objective in zip(spine, limits, objectives, strict=True):
        support = np.broadcast_to(blocks.first(schema.allowed()), (level.nodes, blocks.combinations))
        if limit.kinds is not None:
            support = support & (limit.upper > 0)[:, blocks.first(limit.kinds)]
        if limit.totals is not None:
            support = support & (limit.totals > 0)[:, None]
        found += _levels(level, limit, objective, support)
    return found


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
