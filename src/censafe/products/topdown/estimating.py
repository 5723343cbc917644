"""From the measurements of every level to integer histograms that add up: level by level, parent by parent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from censafe.errors import CheckError
from censafe.estimation.topdown import L2Result, L2Status, ParentProblem, round_parent, solve_l2
from censafe.estimation.topdown.normal_equations import LevelObjective
from censafe.geography.spine import SpineLevel
from censafe.model import SparseLevel
from censafe.products.topdown.invariants import LevelLimits
from censafe.products.topdown.level_checks import check_level
from censafe.products.topdown.roots import root_problems

__all__ = ["CellRules", "LevelReport", "LevelTask", "estimate_level"]

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class CellRules:
    """What is known about the cells of a histogram.

    Args:
        cells: number of cells.
        allowed: which cells may hold records, shape (cells,).
        kinds: kind of unit of each cell, shape (cells,); None where units bound nothing.
        tree: groups of the cells that rounding keeps close, coarse to fine, each of shape (cells,).
    """

    cells: int
    allowed: NDArray[np.bool_] = field(repr=False)
    kinds: NDArray[np.int32] | None = field(repr=False)
    tree: tuple[NDArray[np.int32], ...] = field(repr=False)


@dataclass(frozen=True, eq=False)
class LevelTask:
    """One level, ready to be estimated.

    Args:
        level: its geounits.
        objective: its weighted measurements.
        limits: what its histograms must obey.
    """

    level: SpineLevel
    objective: LevelObjective
    limits: LevelLimits


@dataclass
class LevelReport:
    """How the parents of one level were solved; everything here follows from measurements and invariants.

    Args:
        level: name of the level whose histograms were estimated.
        geounits: of the level.
        parents: all of them; of the root one, which stands for no parent.
        empty: parents without records.
        copied: parents with one child.
        statuses: solved parents by status.
        iterations: of all solves.
        most_iterations: of one solve.
        gap: largest duality gap, in half chi-square units.
        violation: largest relative violation before rounding.
        most_cells: largest number of cells of a solved parent.
        approximate: geounits of parents that were solved without a certificate of optimality.
    """

    level: str
    geounits: int
    parents: int = 0
    empty: int = 0
    copied: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    iterations: int = 0
    most_iterations: int = 0
    gap: float = 0.0
    violation: float = 0.0
    most_cells: int = 0
    approximate: list[str] = field(default_factory=list)

    def add(self, result: L2Result, cells: int) -> None:
        """Count one solve."""
        self.statuses[result.status.value] += 1
        self.iterations += result.iterations
        self.most_iterations = max(self.most_iterations, result.iterations)
        self.gap = max(self.gap, result.gap)
        self.violation = max(self.violation, result.violation)
        self.most_cells = max(self.most_cells, cells)

    def document(self) -> dict[str, Any]:
        """The report as JSON values, for the manifest."""
        return {
            "level": self.level,
            "geounits": self.geounits,
            "parents": self.parents,
            "parents_empty": self.empty,
            "parents_with_one_child": self.copied,
            "solved": dict(sorted(self.statuses.items())),
            "iterations": self.iterations,
            "iterations_most": self.most_iterations,
            "gap_most": self.gap,
            "violation_most": self.violation,
            "cells_most": self.most_cells,
            "approximate": list(self.approximate),
            "integers_checked": True,
        }


def estimate_level(
    task: LevelTask, rules: CellRules, parents: SparseLevel | None, above: SpineLevel | None
) -> tuple[SparseLevel, LevelReport]:
    """Integer histograms of all geounits of a level.

    Args:
        task: the level.
        rules: of the cells.
        parents: final histograms of the level above; None for the root.
        above: that level; None for the root.

    Raises:
        CheckError: the children of a parent cannot meet its counts and their own limits, or integers break them.
    """
    report = LevelReport(task.level.name, task.level.nodes)
    if parents is None or above is None:
        report.parents = 1
        pieces, place = _roots(task, rules, report)
    else:
        report.parents = above.nodes
        pieces, place = _children(task, rules, parents, above, report)
    found = _joined(task.level, pieces, place)
    check_level(task.level, found, task.limits, rules.kinds, rules.cells, parents)
    return found, report


@dataclass(frozen=True, eq=False)
class _Family:
    """The children ``first`` .. ``last - 1`` of a parent with its cells and counts; of the root no counts."""

    parent: str
    first: int
    last: int
    support: Integers
    p: Integers | None


_Piece = tuple[Integers, Integers, Integers]
"""Number of entries of every child, then cells and counts of all entries."""


def _children(
    task: LevelTask, rules: CellRules, parents: SparseLevel, above: SpineLevel, report: LevelReport
) -> tuple[list[_Piece], list[int]]:
    pieces: list[_Piece] = []
    place: list[int] = []
    edges, starts = above.first_child.tolist(), parents.node_ptr.tolist()
    for node in range(above.nodes):
        first, last = edges[node], edges[node + 1]
        support = parents.cell[starts[node] : starts[node + 1]].astype(np.int64)
        p = parents.count[starts[node] : starts[node + 1]].astype(np.int64)
        if not len(support):
            report.empty += 1
            continue
        place.append(first)
        if last - first == 1:
            report.copied += 1
            pieces.append((np.array([len(support)]), support, p))
        else:
            family = _Family(str(above.geounits[node]), first, last, support, p)
            pieces.append(_solved(task, rules, family, report))
    return pieces, place


def _roots(task: LevelTask, rules: CellRules, report: LevelReport) -> tuple[list[_Piece], list[int]]:
    """The geounits without a parent, in their order."""
    found: dict[int, _Piece] = {}
    for roots in root_problems(task.objective, task.limits, rules.allowed, rules.kinds):
        where = f"level {task.level.name}, the root"
        counts = _integers(roots.problem, roots.tree(rules.tree), where, "", report)
        for member, cells, held in roots.split(counts[0]):
            found[member] = (np.array([len(cells)]), cells, held)
    place = sorted(found)
    return [found[root] for root in place], place


def _solved(task: LevelTask, rules: CellRules, family: _Family, report: LevelReport) -> _Piece:
    h, h_of, b = task.objective.equations(family.first, family.last, family.support)
    problem = _problem(task.limits, rules, family, h, h_of, b)
    where = f"level {task.level.name}, children of {family.parent or 'the root'}"
    tree = tuple(label[family.support] for label in rules.tree)
    counts = _integers(problem, tree, where, family.parent, report)
    child, cell = np.nonzero(counts)
    return (
        np.bincount(child, minlength=family.last - family.first),
        family.support[cell],
        counts[child, cell],
    )


def _integers(
    problem: ParentProblem,
    tree: tuple[NDArray[np.int32], ...],
    where: str,
    parent: str,
    report: LevelReport,
) -> Integers:
    """Solve and round one problem, and count it in the report."""
    result = solve_l2(problem)
    if result.status is L2Status.INFEASIBLE:
        raise CheckError(f"{where}: no histograms meet their counts and limits: {result.reason}")
    report.add(result, problem.cells)
    if not result.status.exact:
        report.approximate.append(parent)
    try:
        return round_parent(result.x, problem, tree)
    except CheckError as error:
        raise CheckError(f"{where} ({result.status.value}): {error}") from error


def _problem(
    limits: LevelLimits,
    rules: CellRules,
    family: _Family,
    h: NDArray[np.float64],
    h_of: NDArray[np.int32],
    b: NDArray[np.float64],
) -> ParentProblem:
    """The parent with its masks, groups and those side rows that can bind."""
    children, cells = b.shape
    these = slice(family.first, family.last)
    allowed = np.ones((children, cells), dtype=np.bool_)
    rows: list[NDArray[np.bool_]] = []
    lo: list[NDArray[Any]] = []
    hi: list[NDArray[Any]] = []
    if limits.totals is not None:
        rows.append(np.ones(cells, dtype=np.bool_))
        lo.append(limits.totals[these])
        hi.append(limits.totals[these])
    if rules.kinds is not None:
        kinds = rules.kinds[family.support]
        lower, upper = limits.lower[these], limits.upper[these]
        allowed = (upper > 0)[:, kinds]
        for kind in np.unique(kinds).tolist():
            members = kinds == kind
            if _may_bind(lower[:, kind], upper[:, kind], members, family.p) and not (rows and members.all()):
                rows.append(members)
                lo.append(lower[:, kind])
                hi.append(upper[:, kind])
        if limits.cuts is not None:
            rows += [members[kinds] != 0 for members in limits.cuts.sets]
            lo += list(limits.cuts.lower[these].T)
            hi += list(limits.cuts.upper[these].T)
    sides = [
        np.stack(side, axis=1).astype(np.float64) if side else np.zeros((children, 0)) for side in (lo, hi)
    ]
    matrix = np.array(rows, dtype=np.uint8).reshape(len(rows), cells)
    group, totals = np.zeros(0, np.int32), np.zeros(0)
    if limits.groups is not None:
        group, totals = limits.groups.within(family.first, family.last)
    return ParentProblem(h, b, family.p, allowed, matrix, sides[0], sides[1], h_of, group, totals)


def _may_bind(lower: Integers, upper: Integers, members: NDArray[np.bool_], p: Integers | None) -> bool:
    """Whether bounds of a kind say more than the counts of the parent and the masks do."""
    if (lower > 0).any() or p is None:
        return True
    return bool(((upper > 0) & (upper < p[members].sum())).any())


def _joined(level: SpineLevel, pieces: Sequence[_Piece], place: Sequence[int]) -> SparseLevel:
    entries = np.zeros(level.nodes, dtype=np.int64)
    for (sizes, _, _), first in zip(pieces, place, strict=True):
        entries[first : first + len(sizes)] = sizes
    pointer = np.zeros(level.nodes + 1, dtype=np.int64)
    np.cumsum(entries, out=pointer[1:])
    empty = np.zeros(0, dtype=np.int64)
    cell = np.concatenate([empty, *(cells for _, cells, _ in pieces)])
    count = np.concatenate([empty, *(counts for _, _, counts in pieces)])
    return SparseLevel(level.geounits, pointer, cell.astype(np.int32), count.astype(np.int32))
