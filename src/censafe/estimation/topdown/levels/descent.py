"""One histogram from the root down: every level is estimated below the final one above it.

From the measurements of a level come integer histograms that add up to the level above, in batches of parents.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any, Literal, cast

import numpy as np
from numba import int32, int64, void

from censafe.estimation.topdown.least_squares.objective import LevelObjective
from censafe.estimation.topdown.least_squares.solve import ParentSolver, judged_solver, solve_l2
from censafe.estimation.topdown.levels.answers import settled, with_kinds
from censafe.estimation.topdown.levels.batches import (
    EstimatedBatch,
    ParentLevel,
    batch_edges,
    entry_ranges,
    estimated_batches,
    family_at,
)
from censafe.estimation.topdown.levels.checks import check_level
from censafe.estimation.topdown.levels.facts import PublicFacts
from censafe.estimation.topdown.levels.from_root import EstimationFromRoot
from censafe.estimation.topdown.levels.general_parents import (
    Family,
    estimate_family,
    estimate_roots,
)
from censafe.estimation.topdown.levels.limits import measured_fits, passes_of, query_chains
from censafe.estimation.topdown.levels.passes import ParentEstimate
from censafe.estimation.topdown.levels.task import CellRules, LevelReport, LevelTask, PassRule, family_rules
from censafe.estimation.topdown.rounding.controlled import DetailedCost, Leaves
from censafe.geography.spines.tree import SpineLevel
from censafe.model import SparseLevel
from censafe.model.arrays import Integers
from censafe.model.compiled import compiled
from censafe.model.observer import Observer
from censafe.model.topdown.answers import EngineWorkers
from censafe.model.topdown.choices import Choices
from censafe.model.topdown.histograms import MeasuredHistogram

Progress = Callable[[float], None]
"""Takes the share of a level's work that is done, 0 to 1."""


def estimate_level(
    task: LevelTask,
    rules: CellRules,
    parents: SparseLevel | None,
    above: SpineLevel | None,
    *,
    workers: int | EngineWorkers = 1,
    progress: Progress | None = None,
) -> tuple[SparseLevel, LevelReport]:
    """Integer histograms of all geounits of a level.

    Ordinary parents are estimated by compiled kernels, the others the general way. The result does not depend on
    the number of workers: batches are cut by work alone, and every parent is estimated by itself.
    """
    report = LevelReport(task.level.name, task.level.nodes)
    if parents is None or above is None:
        report.parents = 1
        # the geounits without a parent: one alone by the passes, several by one fit of each group
        if task.level.nodes == 1 and task.limits.groups is None:
            allowed, kinds = rules.allowed, task.limits.kinds
            if kinds is not None:
                allowed = allowed & (task.limits.upper[0] > 0)[kinds]
            family = Family("", 0, 1, np.flatnonzero(allowed).astype(np.int64), None)
            estimate = estimate_family(task, rules, family)
            _count(estimate, family, report)
            roots = {0: (family.support, estimate.counts[0])}
        else:
            roots = estimate_roots(task, rules, report)
        in_order = [roots[root] for root in sorted(roots)]
        pointer = np.append(0, np.cumsum([np.count_nonzero(counts) for _, counts in in_order])).astype(
            np.int64
        )
        cell = np.concatenate([cells[counts > 0] for cells, counts in in_order])
        count = np.concatenate([counts[counts > 0] for _, counts in in_order])
        histograms, sums = (
            SparseLevel(task.level.geounits, pointer, cell.astype(np.int32), count.astype(np.int32)),
            None,
        )
    else:
        report.parents = above.nodes
        histograms, sums = _children(task, rules, parents, above, report, workers, progress)
    check_level(task.level, histograms, task.limits, rules.cells, sums)
    return histograms, report


def _children(
    task: LevelTask,
    rules: CellRules,
    parents: SparseLevel,
    above: SpineLevel,
    report: LevelReport,
    workers: int | EngineWorkers,
    progress: Progress | None,
) -> tuple[SparseLevel, SparseLevel]:
    """Histograms of the children, and what they must add up to: the level above with its repairs."""
    cells, children = np.diff(parents.node_ptr), np.diff(above.first_child)
    copied = np.flatnonzero((cells > 0) & (children == 1))
    report.empty, report.copied = int((cells == 0).sum()), len(copied)
    chosen = np.flatnonzero((cells > 0) & (children > 1))
    edges = batch_edges(children[chosen], cells[chosen]) if len(chosen) else np.zeros(1, np.int64)
    work = np.append(0.0, np.cumsum(children[chosen] * cells[chosen].astype(np.float64) ** 2))
    spans = tuple(chosen[first:last] for first, last in pairwise(edges.tolist()))
    level = ParentLevel(task, rules, parents, above, family_rules(task, rules), spans)
    done: list[EstimatedBatch] = []
    for batch in estimated_batches(level, workers):
        done.append(batch)
        report.add_batch(batch.ordinary, np.diff(batch.families.cell_ptr))
        no_counts = np.zeros(len(batch.families.cell), np.int64)
        for place, estimate in batch.general:
            family = family_at(level, batch.families, no_counts, batch.parents, place)
            _count(estimate, family, report)
            report.general += 1
        if progress is not None:
            progress(float(work[edges[len(done)]] / work[-1]))
    return _joined(level, done, copied), _repaired(level, done)


def _count(estimate: ParentEstimate, family: Family, report: LevelReport) -> None:
    """Count a parent of the general way; its worst solve says how it ended."""
    for solve in estimate.solves:
        report.add(solve, len(family.support))
    worst = [solve.status for solve in estimate.solves if not solve.status.exact]
    later = [solve.status for solve in estimate.solves if solve.status.value != "ok"]
    report.statuses[(worst or later or [estimate.solves[-1].status])[0].value] += 1
    report.rounded[estimate.roundings[-1]] += 1
    if worst:
        report.approximate.append(family.parent)
    if estimate.changes:
        cells = [
            [int(family.support[change.cell]), change.before, change.after] for change in estimate.changes
        ]
        report.repairs.append({"geounit": family.parent, "cells": cells})


def _joined(level: ParentLevel, done: list[EstimatedBatch], copied: Integers) -> SparseLevel:
    """The histograms of all children, in the order of the level."""
    nodes, first_child = level.task.level.nodes, level.above.first_child
    entries = np.zeros(nodes, np.int64)
    entries[first_child[copied]] = np.diff(level.parents.node_ptr)[copied]
    for batch in done:
        entries[batch.families.child] = batch.ordinary.sizes
        for place, estimate in batch.general:
            span = slice(int(batch.families.child_ptr[place]), int(batch.families.child_ptr[place + 1]))
            entries[batch.families.child[span]] = (estimate.counts > 0).sum(axis=1)
    pointer = np.zeros(nodes + 1, np.int64)
    np.cumsum(entries, out=pointer[1:])
    cell, count = np.empty(pointer[-1], np.int32), np.empty(pointer[-1], np.int32)
    starts, entry = entry_ranges(level.parents.node_ptr, copied)
    _place(
        pointer[first_child[copied]],
        starts,
        level.parents.cell[entry],
        level.parents.count[entry],
        cell,
        count,
    )
    for batch in done:
        ordinary = batch.ordinary
        _place(
            pointer[first_child[batch.parents]],
            ordinary.starts,
            ordinary.cell,
            ordinary.records,
            cell,
            count,
        )
        for place, estimate in batch.general:
            support = batch.families.cell[batch.families.cell_ptr[place] : batch.families.cell_ptr[place + 1]]
            child, column = np.nonzero(estimate.counts)
            start = int(pointer[batch.families.child[batch.families.child_ptr[place]]])
            cell[start : start + len(column)] = support[column]
            count[start : start + len(column)] = estimate.counts[child, column]
    return SparseLevel(level.task.level.geounits, pointer, cell, count)


def _repaired(level: ParentLevel, done: list[EstimatedBatch]) -> SparseLevel:
    """The level above with the counts that were changed for its children."""
    changed = [
        (int(batch.parents[place]), estimate.changes)
        for batch in done
        for place, estimate in batch.general
        if estimate.changes
    ]
    parents = level.parents
    if not changed:
        return parents
    count = parents.count.copy()
    for parent, changes in changed:
        for change in changes:
            count[parents.node_ptr[parent] + change.cell] = change.after
    positive = count > 0
    pointer = np.append(0, np.cumsum(positive))[parents.node_ptr]
    return replace(
        parents, node_ptr=pointer.astype(np.int64), cell=parents.cell[positive], count=count[positive]
    )


@compiled(void(int64[::1], int64[::1], int32[::1], int32[::1], int32[::1], int32[::1]))
def _place(targets, starts, cell, count, cell_out, count_out):  # type: ignore[no-untyped-def]
    """Copy the entries of every parent's children to their place."""
    for parent in range(targets.shape[0]):
        at = targets[parent]
        for entry in range(starts[parent], starts[parent + 1]):
            cell_out[at], count_out[at] = cell[entry], count[entry]
            at += 1


class Descent(EstimationFromRoot):
    """The estimation of a histogram by dense least squares, within limits of its kinds and totals.

    Args:
        workers: threads that estimate parents, or those of an engine; the result does not depend on them.
    """

    def __init__(
        self,
        histogram: MeasuredHistogram,
        public: PublicFacts,
        observer: Observer,
        choices: Choices,
        workers: int | EngineWorkers = 1,
        solver: ParentSolver | None = None,
    ) -> None:
        super().__init__(histogram, public.spine, observer, choices, workers)
        self._limits = public.limits[histogram.name]
        self._solver = solve_l2 if solver is None else judged_solver(solver)

    def _estimated(
        self, depth: int, objective: LevelObjective, parents: SparseLevel | None, above: SpineLevel | None
    ) -> tuple[SparseLevel, LevelReport]:
        level, limits = self._spine.levels[depth], self._limits[depth]
        task = LevelTask(level, objective, limits)
        rules = replace(rules_of(self._histogram, level.name, self._choices), solver=self._solver)
        changes: list[dict[str, Any]] = []
        if limits.answers:
            limits_above = self._limits[depth - 1] if depth else None
            limits, parents, changes = settled(task, rules, parents, above, limits_above)
            task = replace(task, limits=limits)
            if limits.kinds is not None:
                rules = with_kinds(rules, limits.kinds)
        histograms, report = estimate_level(
            task, rules, parents, above, workers=self._workers, progress=self._progress(above)
        )
        report.repairs += changes
        return histograms, report


def rules_of(histogram: MeasuredHistogram, level: str, choices: Choices) -> CellRules:
    """Cells of a histogram, its passes at a level, and the chain of queries that rounding keeps close to the estimates.

    The kinds of units come first in the chain, because their bounds must hold after rounding.

    Example:
        >>> from censafe.products.topdown.configuration.config import load_config
        >>> config = load_config("pl94-us")
        >>> rules = rules_of(config.histogram("persons"), "County", config.choices)
        >>> [int(label.max()) + 1 for label in rules.tree], rules.passes[0].fits
        ([8, 16, 1008], ((0,), (1, 2, 3, 4, 5, 6, 7, 8, 9, 10)))
    """
    schema, passes = histogram.schema, passes_of(histogram, level, choices)
    chains = [
        tuple(tuple(query.label for query in inner) for inner in query_chains(histogram, outer))
        for outer in passes.rounding
    ]
    fits = [measured_fits(histogram, level, outer) for outer in passes.l2]
    rules = tuple(PassRule(fit, chain) for fit, chain in zip(fits, chains, strict=True) if fit)
    tree = tuple(label for chain in chains for inner in chain for label in inner if label.any())
    return CellRules(
        schema.schema.cells, schema.allowed(), tree, rules,
        infeasible=cast(Literal["repair", "stop"], choices.infeasible),
        leaves=cast(Leaves, choices.leaves),
        detailed_cost=cast(DetailedCost, choices.detailed_cost),
    )  # fmt: skip
