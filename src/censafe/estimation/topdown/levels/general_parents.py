"""Parents that are not ordinary: roots, groups of children, several passes, no point, or no certificate at the first attempt."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from censafe.errors import CheckError
from censafe.estimation.topdown.least_squares.objective import LevelObjective
from censafe.estimation.topdown.least_squares.problem import ParentProblem
from censafe.estimation.topdown.least_squares.sides import kind_sides
from censafe.estimation.topdown.levels.limits import LevelLimits
from censafe.estimation.topdown.levels.passes import (
    Equations,
    Fit,
    OuterPass,
    ParentEstimate,
    estimate_parent,
)
from censafe.estimation.topdown.levels.task import CellRules, LevelReport, LevelTask, kind_limits
from censafe.model.arrays import Integers


@dataclass(frozen=True, eq=False)
class RootProblem:
    """Roots that are solved together: the cells of all of them side by side, as those of one geounit without a parent.

    Args:
        edges: first cell of every member, and the number of all cells, shape (members + 1,).
        cells: cell of the schema at every place, shape (K,).
        problem: of all places; its H and B are not read, the passes bring their own.
    """

    members: tuple[int, ...]
    edges: tuple[int, ...]
    cells: Integers = field(repr=False)
    problem: ParentProblem = field(repr=False)

    def tree(self, groups: tuple[NDArray[np.int32], ...]) -> tuple[NDArray[np.int32], ...]:
        """Groups of the cells of the schema as groups of the places, those of different members apart.

        Args:
            groups: coarse to fine, each of shape (cells of the schema,).
        """
        member = np.repeat(np.arange(len(self.members)), np.diff(self.edges))
        apart = [member] if len(self.members) > 1 else []
        apart += [member * (int(group.max(initial=0)) + 1) + group[self.cells] for group in groups]
        return tuple(one.astype(np.int32) for one in apart)

    def passes(
        self, objective: LevelObjective, groups: tuple[NDArray[np.int32], ...]
    ) -> tuple[OuterPass, ...]:
        """One fit of all queries, after that of the sums that come first where the objective has such."""
        places = np.arange(len(self.cells), dtype=np.int32)
        fits = [Fit((places,), self._equations(objective))]
        if objective.coarse is not None:
            label, coarse = objective.coarse
            label = self.tree((label,))[-1]
            fits.insert(0, Fit((label,), self._equations(coarse), (label,)))
        return (OuterPass(tuple(fits), (self.tree(groups),)),)

    def _equations(self, objective: LevelObjective) -> Equations:
        """Normal equations of the members side by side, on some of the places."""

        def equations(chosen: Integers) -> tuple[NDArray[np.float64], NDArray[np.int32], NDArray[np.float64]]:
            h, b = np.zeros((1, len(chosen), len(chosen))), np.zeros((1, len(chosen)))
            for member, (first, last) in zip(self.members, pairwise(self.edges), strict=True):
                here = np.flatnonzero((chosen >= first) & (chosen < last))
                stack, _, b[:, here] = objective.equations(member, member + 1, self.cells[chosen[here]])
                h[0, here[:, None], here[None, :]] = stack[0]
            return h, np.zeros(1, np.int32), b

        return equations

    def split(self, counts: Integers) -> Iterator[tuple[int, Integers, Integers]]:
        """Position, cells and counts of every member, from counts at all places."""
        for member, (first, last) in zip(self.members, pairwise(self.edges), strict=True):
            places = np.flatnonzero(counts[first:last]) + first
            yield member, self.cells[places], counts[places]


def root_problems(limits: LevelLimits, allowed: NDArray[np.bool_]) -> Iterator[RootProblem]:
    """The problems of the widest level: one for each root, and one for each group whose total is known.

    Args:
        allowed: which cells may hold records, shape (cells,).
    """
    roots = len(limits.lower)
    own = np.full(roots, -1) if limits.groups is None else limits.groups.of
    for group in np.unique(own[own >= 0]).tolist():
        members = tuple(np.flatnonzero(own == group).tolist())
        total = None if limits.groups is None else float(limits.groups.totals[group])
        yield _joined(limits, allowed, members, total)
    for root in np.flatnonzero(own < 0).tolist():
        total = None if limits.totals is None else float(limits.totals[root])
        yield _joined(limits, allowed, (root,), total)


def _joined(
    limits: LevelLimits, allowed: NDArray[np.bool_], members: tuple[int, ...], total: float | None
) -> RootProblem:
    kinds = limits.kinds
    supports = [
        np.flatnonzero(allowed if kinds is None else allowed & (limits.upper[root] > 0)[kinds])
        for root in members
    ]
    edges = np.cumsum([0, *map(len, supports)])
    places = int(edges[-1])
    rows: list[NDArray[np.bool_]] = []
    sides: list[tuple[float, float]] = []
    if total is not None:
        rows.append(np.ones(places, np.bool_))
        sides.append((total, total))
    for root, support, first, last in zip(members, supports, edges[:-1], edges[1:], strict=True):
        for among, low, high in () if kinds is None else _side_rows(limits, root, kinds[support]):
            inside = np.zeros(places, np.bool_)
            inside[first:last] = among
            if inside.any() and not (total is not None and inside.all()):
                rows.append(inside)
                sides.append((low, high))
    matrix = np.array(rows, dtype=np.uint8).reshape(len(rows), places)
    lo, hi = np.array(sides).reshape(-1, 2).T
    h = np.broadcast_to(np.zeros((1, 1, 1)), (1, places, places))
    problem = ParentProblem(
        h, np.zeros((1, places)), None, np.ones((1, places), np.bool_), matrix, lo[None], hi[None]
    )
    return RootProblem(members, tuple(edges.tolist()), np.concatenate(supports), problem)


def _side_rows(
    limits: LevelLimits, root: int, kinds: NDArray[np.int32]
) -> Iterator[tuple[NDArray[np.bool_], float, float]]:
    """Which cells of a root, by their kinds, hold how many records at least and at most."""
    for kind, (low, high) in enumerate(zip(limits.lower[root], limits.upper[root], strict=True)):
        yield kinds == kind, float(low), float(high)
    if limits.cuts is not None:
        cuts = limits.cuts
        for among, low, high in zip(cuts.sets, cuts.lower[root], cuts.upper[root], strict=True):
            yield among[kinds] != 0, float(low), float(high)


@dataclass(frozen=True, eq=False)
class Family:
    """The children ``first`` .. ``last - 1`` of a parent with its cells and counts; of the root no counts.

    Args:
        support: the parent's cells, shape (K,).
    """

    parent: str
    first: int
    last: int
    support: Integers
    p: Integers | None


def estimate_roots(
    task: LevelTask, rules: CellRules, report: LevelReport
) -> dict[int, tuple[Integers, Integers]]:
    """Cells and counts of several roots, those of a group with a total of their sum together."""
    roots_by_position: dict[int, tuple[Integers, Integers]] = {}
    for roots in root_problems(task.limits, rules.allowed):
        try:
            estimate = estimate_parent(
                roots.problem,
                roots.passes(task.objective, rules.tree),
                leaves=rules.leaves,
                detailed_cost=rules.detailed_cost,
                solver=rules.solver,
            )
        except CheckError as error:
            raise CheckError(f"level {task.level.name}, the root: {error}") from error
        for solve in estimate.solves:
            report.add(solve, roots.problem.cells)
        worst = [solve.status for solve in estimate.solves if not solve.status.exact]
        report.statuses[(worst or [estimate.solves[-1].status])[0].value] += 1
        report.rounded[estimate.roundings[-1]] += 1
        if worst:
            report.approximate.append("")
        counts = estimate.counts
        roots_by_position |= {
            member: (cells, own_counts) for member, cells, own_counts in roots.split(counts[0])
        }
    return roots_by_position


def estimate_family(task: LevelTask, rules: CellRules, family: Family) -> ParentEstimate:
    """Estimate the children of one parent the general way, with its masks and those side rows that can bind."""
    limits = task.limits.part(family.first, family.last)
    children, cells = family.last - family.first, len(family.support)
    sides = kind_sides(
        np.zeros(cells, np.int32) if limits.kinds is None else limits.kinds[family.support],
        np.arange(children),
        np.zeros(cells, np.int64) if family.p is None else family.p,
        family.p is not None,
        kind_limits(limits),
    )
    group, totals = np.zeros(0, np.int32), np.zeros(0)
    if limits.groups is not None:
        group, totals = limits.groups.of, limits.groups.totals.astype(np.float64)
    try:
        problem = ParentProblem(
            np.broadcast_to(np.zeros((1, 1, 1)), (1, cells, cells)),
            np.zeros((children, cells)),
            family.p,
            sides.allowed,
            sides.rows,
            sides.lo,
            sides.hi,
            group=group,
            group_totals=totals,
        )  # the passes bring H and B
        return estimate_parent(
            problem, family_passes(task.objective, rules, family),
            infeasible=rules.infeasible, leaves=rules.leaves, detailed_cost=rules.detailed_cost, solver=rules.solver,
        )  # fmt: skip
    except CheckError as error:
        raise CheckError(
            f"level {task.level.name}, children of {family.parent or 'the root'}: {error}"
        ) from error


def family_passes(objective: LevelObjective, rules: CellRules, family: Family) -> tuple[OuterPass, ...]:
    """The passes on the cells of a parent.

    Of a root the sums over the attribute with the most levels are fitted before its cells. A root has no parent whose empty cells are
    known. Most of its cells hold nobody or few, so that counts that cannot be negative come out too large in sum, and what is left for
    the large cells too small. The sums do not suffer from that: their estimates come first and are kept.
    """

    def equations(own: LevelObjective) -> Equations:
        return lambda chosen: own.equations(family.first, family.last, family.support[chosen])

    def fit(queries: tuple[int, ...]) -> Fit:
        labels = tuple(objective.labels[query][family.support] for query in queries)
        apart = labels
        if objective.below is not None and any(objective.labels[query].any() for query in queries):
            apart = (*labels, family.support.astype(np.int32))
        return Fit(apart, equations(objective.fitting(queries)), labels)

    first: tuple[Fit, ...] = ()
    if family.p is None and objective.coarse is not None:
        label, coarse = objective.coarse
        label = label[family.support]
        first = (Fit((label,), equations(coarse), (label,)),)
    return tuple(
        OuterPass(
            (*first, *map(fit, outer.fits)),
            tuple(tuple(label[family.support] for label in inner) for inner in outer.rounding),
        )
        for outer in rules.outer_passes(len(objective.labels))
    )
