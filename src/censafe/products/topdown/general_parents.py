"""Parents that are not ordinary: roots, groups of children, several passes, no point, or no certificate at the first try."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from censafe.errors import CheckError
from censafe.estimation.topdown import ParentProblem
from censafe.estimation.topdown.normal_equations import LevelObjective
from censafe.estimation.topdown.passes import Equations, Fit, OuterPass, ParentEstimate, estimate_parent
from censafe.estimation.topdown.side_kernels import kind_sides
from censafe.products.topdown.invariants import LevelLimits
from censafe.products.topdown.level_report import LevelReport
from censafe.products.topdown.level_task import CellRules, LevelTask
from censafe.products.topdown.roots import root_problems

__all__ = ["Family", "estimate_family", "estimate_roots", "root_family"]

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Family:
    """The children ``first`` .. ``last - 1`` of a parent with its cells and counts; of the root no counts.

    Args:
        parent: geounit of the parent; empty for the root.
        first: first child.
        last: one past the last child.
        support: the parent's cells, shape (K,).
        p: their counts; None for the root.
    """

    parent: str
    first: int
    last: int
    support: Integers
    p: Integers | None


def root_family(rules: CellRules, limits: LevelLimits) -> Family:
    """The root, with all cells that may hold records."""
    allowed = rules.allowed
    if rules.kinds is not None:
        allowed = allowed & (limits.upper[0] > 0)[rules.kinds]
    return Family("", 0, 1, np.flatnonzero(allowed).astype(np.int64), None)


def estimate_roots(
    task: LevelTask, rules: CellRules, report: LevelReport
) -> dict[int, tuple[Integers, Integers]]:
    """Cells and counts of several roots, those of a group with a total of their sum together.

    Args:
        task: the widest level.
        rules: of the cells.
        report: counts the solves.

    Raises:
        CheckError: the roots cannot meet their limits.
    """
    found: dict[int, tuple[Integers, Integers]] = {}
    for roots in root_problems(task.limits, rules.allowed, rules.kinds):
        try:
            made = estimate_parent(
                roots.problem,
                roots.passes(task.objective, rules.tree),
                leaves=rules.leaves,
                detailed_cost=rules.detailed_cost,
            )
        except CheckError as error:
            raise CheckError(f"level {task.level.name}, the root: {error}") from error
        for solve in made.solves:
            report.add(solve, roots.problem.cells)
        worst = [solve.status for solve in made.solves if not solve.status.exact]
        report.statuses[(worst or [made.solves[-1].status])[0].value] += 1
        report.rounded[made.roundings[-1]] += 1
        if worst:
            report.approximate.append("")
        counts = made.counts
        found |= {member: (cells, held) for member, cells, held in roots.split(counts[0])}
    return found


def estimate_family(task: LevelTask, rules: CellRules, family: Family) -> ParentEstimate:
    """Estimate the children of one parent the general way.

    Args:
        task: the level of the children.
        rules: of the cells.
        family: parent, children and cells.

    Raises:
        CheckError: the children cannot meet the parent's counts and their own limits; names level and parent.
    """
    try:
        return estimate_parent(
            _problem(task, rules, family), _passes(task.objective, rules, family),
            infeasible=rules.infeasible, leaves=rules.leaves, detailed_cost=rules.detailed_cost,
        )  # fmt: skip
    except CheckError as error:
        raise CheckError(
            f"level {task.level.name}, children of {family.parent or 'the root'}: {error}"
        ) from error


def _passes(objective: LevelObjective, rules: CellRules, family: Family) -> tuple[OuterPass, ...]:
    return tuple(
        OuterPass(
            (*_coarse_fit(objective, family), *(_fit(objective, queries, family) for queries in outer.fits)),
            tuple(tuple(label[family.support] for label in inner) for inner in outer.rounding),
            tuple(label[family.support] for label in outer.held),
        )
        for outer in rules.outer_passes(len(objective.labels))
    )


def _coarse_fit(objective: LevelObjective, family: Family) -> tuple[Fit, ...]:
    """Of a root the fit of sums over the attribute with the most levels, before that of its cells.

    A root has no parent whose empty cells are known. Most of its cells hold nobody or few, so that counts that cannot be negative
    come out too large in sum, and what is left for the large cells too small. The sums do not suffer from that: their
    estimates come first and are held.
    """
    coarse = objective.coarse
    if family.p is not None or coarse is None:
        return ()
    label = coarse.label[family.support]
    equations = coarse.objective.equations
    return (
        Fit(
            (label,),
            lambda chosen: equations(family.first, family.last, family.support[chosen]),
            (label,),
        ),
    )


def _fit(objective: LevelObjective, queries: tuple[int, ...], family: Family) -> Fit:
    labels = tuple(objective.labels[query][family.support] for query in queries)
    told = labels
    if objective.below is not None and any(objective.labels[query].any() for query in queries):
        told = (*labels, family.support.astype(np.int32))
    return Fit(told, _equations(objective, queries, family), labels)


def _equations(objective: LevelObjective, queries: tuple[int, ...], family: Family) -> Equations:
    own = objective.fitting(queries)
    return lambda chosen: own.equations(family.first, family.last, family.support[chosen])


def _problem(task: LevelTask, rules: CellRules, family: Family) -> ParentProblem:
    """The parent with its masks and those side rows that can bind; the passes bring H and B."""
    limits, these = task.limits, np.arange(family.last - family.first)
    span = slice(family.first, family.last)
    children, cells = len(these), len(family.support)
    kinds = 0 if rules.kinds is None else limits.lower.shape[1]
    cuts = limits.cuts if kinds else None
    lower, upper = limits.lower[span, :kinds], limits.upper[span, :kinds]
    space = 1 + kinds + (0 if cuts is None else len(cuts.sets))
    allowed, rows = np.empty((children, cells), np.bool_), np.zeros((space, cells), np.uint8)
    lo, hi = np.empty((children, space)), np.empty((children, space))
    used = kind_sides(
        np.zeros(cells, np.int32) if rules.kinds is None else rules.kinds[family.support].astype(np.int32),
        these,
        np.zeros(cells, np.int64) if family.p is None else family.p,
        family.p is not None,
        lower.copy(),
        upper.copy(),
        np.zeros(0, np.int64) if limits.totals is None else limits.totals[span].copy(),
        np.zeros((0, kinds), np.uint8) if cuts is None else cuts.sets,
        np.zeros((children, 0)) if cuts is None else cuts.lower[span].copy(),
        np.zeros((children, 0)) if cuts is None else cuts.upper[span].copy(),
        allowed,
        rows,
        lo,
        hi,
    )
    h = np.broadcast_to(np.zeros((1, 1, 1)), (1, cells, cells))
    group, totals = np.zeros(0, np.int32), np.zeros(0)
    if limits.groups is not None:
        group, totals = limits.groups.within(family.first, family.last)
    return ParentProblem(
        h, np.zeros((children, cells)), family.p, allowed, rows[:used], lo[:, :used], hi[:, :used],
        group=group, group_totals=totals,
    )  # fmt: skip
