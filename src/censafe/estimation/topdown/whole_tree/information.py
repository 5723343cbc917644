"""Which answers the estimate of a geounit uses: its own, or those of all geounits below it as well."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from censafe.estimation.topdown.least_squares.objective import LevelObjective, StoredAnswers
from censafe.estimation.topdown.levels.facts import PublicFacts
from censafe.estimation.topdown.levels.limits import LevelLimits
from censafe.estimation.topdown.whole_tree.cells import CellBlocks
from censafe.estimation.topdown.whole_tree.sweep import LinearTree, TreeLevel, lower_estimates, pooled
from censafe.geography.spines.tree import Spine, SpineLevel
from censafe.model.arrays import Floats
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
        pooled_levels = pooled(tree.blocks, tree.levels, tree.lower)
    yield from (one for one in pooled_levels if one is not None)


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
    levels: list[TreeLevel] = []
    for level, limit, objective in zip(spine, limits, objectives, strict=True):
        support = np.broadcast_to(blocks.first(schema.allowed()), (level.nodes, blocks.combinations))
        if limit.kinds is not None:
            support = support & (limit.upper > 0)[:, blocks.first(limit.kinds)]
        if limit.totals is not None:
            support = support & (limit.totals > 0)[:, None]
        groups = limit.groups
        if groups is None:
            levels.append(TreeLevel(level.name, objective, level.parent, support, limit.totals))
            continue
        # the sums of parts whose totals are known stand above the parts
        sums = len(groups.totals)
        parent, together = np.full(sums, -1, np.int32), np.zeros((sums, support.shape[1]), np.bool_)
        parent[groups.of] = level.parent
        np.logical_or.at(together, groups.of, support)
        levels.append(TreeLevel(f"{level.name} (whole)", None, parent, together, groups.totals))
        levels.append(TreeLevel(level.name, objective, groups.of, support))
    return levels


def pooled_objectives(
    spine: Spine, queries: Sequence[Sequence[str]], objectives: Sequence[LevelObjective]
) -> tuple[LevelObjective, ...]:
    """The objective of every level from its own answers and all below it, root first.

    What `information = lower` fits a histogram with very many cells to. Let y be the answer to a query at a geounit, of variance v, and z_c
    what is known of it at its children c, from their own answers and all below, with variances t_c. The sum S of the z_c has the
    variance T, the sum of the t_c, and

        z = (y / v + S / T) / (1 / v + 1 / T),   with variance  1 / (1 / v + 1 / T).

    Errors of different queries are independent, so that the objective stays a diagonal and group sums. Let the children of every geounit have
    one information matrix H, the sum of A'A / v over the queries, up to a number; then the best linear unbiased estimate of the sum of
    their cells has the same matrix up to a number, and the objective from these answers is the exact one. The Bureau's budgets are of that
    kind: every level has the same queries in nearly the same proportions, and budget that moved along the spine changes them by a number.
    Where the children differ (budgets of queries in other proportions, kinds of facilities that only some have) the answers are as
    unbiased and their variances as exact, and something of what is known is not used.

    Every answer is read once, from the lowest level up. The z of levels above the lowest are numbers of 64 bits; these levels have few geounits.
    """
    pooled_levels: list[LevelObjective] = []
    below: tuple[NDArray[Any], ...] = ()
    known = np.zeros((0, 0))
    for depth in range(len(objectives) - 1, -1, -1):
        objective, level = objectives[depth], spine.levels[depth]
        weights = objective.weights[objective.kinds]
        place = np.full(len(queries[depth]), -1, np.int64)
        from_below = np.zeros_like(weights)
        if below:
            names = list(queries[depth + 1])
            place = np.array([names.index(name) if name in names else -1 for name in queries[depth]])
            with np.errstate(divide="ignore"):
                variances = np.where(known > 0, 1 / known, np.inf)
            # weights of sums over the children, 0 where an answer of one of them is not known
            sums = np.add.reduceat(variances, level.first_child[:-1], axis=0)[:, place]
            from_below = np.where(np.isfinite(sums) & (place >= 0), 1 / sums, 0.0)
        known = weights + from_below
        scale = np.where(known > 0, known, 1.0)
        below = _pooled_answers(
            objective, weights / scale, below, from_below / scale, place, level.first_child
        )
        table, kinds = np.unique(known, axis=0, return_inverse=True)
        source = StoredAnswers(below)  # weighted means, which the operator form takes as they are
        pooled_levels.insert(
            0, replace(objective, weights=table, kinds=kinds.reshape(-1).astype(np.int32), source=source)
        )
    return tuple(pooled_levels)


def _pooled_answers(
    objective: LevelObjective,
    own_share: Floats,
    below: Sequence[NDArray[Any]],
    below_share: Floats,
    place: NDArray[np.int64],
    first_child: NDArray[np.int64],
) -> tuple[NDArray[Any], ...]:
    """Answers of a level by query: its own and the sums over the children, weighted; the own ones as they are where nothing below is known."""
    if not isinstance(objective.source, StoredAnswers):
        raise TypeError("answers are put together of stored ones")
    answers: list[NDArray[Any]] = []
    for query, values in enumerate(objective.source.values):
        share = below_share[:, query]
        if not share.any():
            there = own_share[:, query] > 0
            answers.append(values if there.all() else values * there[:, None])
            continue
        sums = own_share[:, query, None] * values
        for node, (first, last) in enumerate(pairwise(first_child.tolist())):
            sums[node] += share[node] * below[place[query]][first:last].sum(axis=0, dtype=np.float64)
        answers.append(sums)
    return tuple(answers)
