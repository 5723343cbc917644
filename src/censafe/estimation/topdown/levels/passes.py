"""The passes of one parent: fits in order, whose answers later fits keep, and rounding after each outer pass.

One list of passes describes every product. Redistricting data fit the total alone, hold it, and fit the rest; the
demographic file fits and rounds coarse queries in a first outer pass, whose integers are equality rows of the next.
A pass is solved on the coarsest cells that its queries, the side rows and the masks can tell apart. Where the children have no
point, the smallest change of the parent's cells that gives them one comes first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from censafe.errors import CheckError
from censafe.estimation.topdown.least_squares.feasibility import repaired_counts, type_rows, violated_cut
from censafe.estimation.topdown.least_squares.problem import L2Result, L2Status, ParentProblem
from censafe.estimation.topdown.least_squares.solve import Solver, solve_l2
from censafe.estimation.topdown.rounding.controlled import DetailedCost, Leaves, Rounding, round_point
from censafe.estimation.topdown.rounding.network import min_cost_flow
from censafe.model.arrays import Floats, Integers

_Count = Integers | np.int64

_STEEP = 1_000  # price of a person below a lower side or outside the network; a moved person costs 2
_FAR = np.int64(1) << 40


@dataclass(frozen=True)
class CellChange:
    """One cell of the parent whose count was changed for the solve of its children."""

    cell: int
    before: int
    after: int


@dataclass(frozen=True, eq=False)
class Repair:
    """Counts that the children can add up to, and the log of what was changed.

    Args:
        p: shape (K,); every type has the persons it had.
    """

    p: Integers
    changes: tuple[CellChange, ...]


def repair_parent(problem: ParentProblem) -> Repair:
    """Change as few persons of a parent as possible, within their types, so that its children become feasible.

    The persons of every type stay as they are, and with them the parent's total. Children are given to their types
    and cells by a flow; what a cell cannot place in any child goes to other cells of its type at a price. Where side
    rows overlap, or totals of groups are known, a mixed-integer program does the same and keeps the sums of all
    sets of cells that the rows tell apart.
    """
    if problem.p is None:
        raise CheckError("a root has no parent counts that could be repaired")
    chosen, total = type_rows(problem)
    if len(chosen) + (total is not None) != len(problem.rows) or len(problem.group_totals):
        counts = repaired_counts(problem)
        if counts is None:
            raise CheckError("no change of cells within types makes the children of a parent feasible")
        return _logged(problem.p, counts)
    group = np.full(problem.cells, len(chosen))
    for g, row in enumerate(chosen):
        group[problem.rows[row] != 0] = g
    low, high = _sides(problem, chosen)
    none = np.zeros((problem.children, 1), np.int64)
    low, high = np.hstack([low, none]), np.hstack([high, none + _FAR])  # the cells of no type are free
    totals = low.sum(axis=1), high.sum(axis=1)
    if total is not None:
        totals = _sides(problem, total)
    p, met = _repaired(problem, problem.p, group, low, high, totals)
    if not met:
        raise CheckError(
            "no change of cells within types makes the children of a parent feasible: "
            + (violated_cut(problem) or "masks leave too few cells")
        )
    return _logged(problem.p, p)


def _logged(before: Integers, after: Integers) -> Repair:
    cells = np.flatnonzero(before != after)
    return Repair(after, tuple(CellChange(int(k), int(before[k]), int(after[k])) for k in cells))


def _sides(problem: ParentProblem, rows: Integers | int) -> tuple[Integers, Integers]:
    """Whole sides of some rows by child."""
    low, high = np.maximum(problem.lo[:, rows], 0), np.minimum(problem.hi[:, rows], float(_FAR))
    return np.ceil(low).astype(np.int64), np.floor(high).astype(np.int64)


def _repaired(
    problem: ParentProblem,
    p: Integers,
    group: Integers,
    low: Integers,
    high: Integers,
    totals: tuple[Integers, Integers],
) -> tuple[Integers, bool]:
    """Counts of the cheapest flow, and whether it meets all sides."""
    children, types = low.shape
    cells = problem.cells
    child: Integers = 1 + np.arange(children)
    kind: Integers = 1 + children + np.arange(children * types).reshape(children, types)
    cell = 1 + children * (1 + types) + np.arange(cells)
    hub = cell[-1] + 1 + np.arange(types)
    demand = hub[-1] + 1 + np.arange(cells)
    everyone = np.int64(p.sum())
    source, paid = np.int64(0), []
    arcs: list[list[Integers]] = []

    def add(tail: _Count, head: _Count, capacity: _Count, cost: int) -> slice:
        parts = np.broadcast_arrays(tail, head, capacity, np.int64(cost))
        start = sum(arc[0].size for arc in arcs)
        arcs.append([np.ascontiguousarray(part, dtype=np.int64).ravel() for part in parts])
        return slice(start, start + parts[0].size)

    layers: tuple[tuple[_Count, Integers, Integers, Integers], ...]
    layers = ((source, child, *totals), (child[:, None], kind, low, high))
    for tail, head, least, most in layers:
        paid.append((add(tail, head, least, -_STEEP), least))
        add(tail, head, np.maximum(most - least, 0), 0)
    c, k = np.nonzero(problem.allowed)
    add(kind[c, group[k]], cell[k], everyone, 0)
    own = add(cell, demand, everyone, 0)
    away = add(cell, hub[group], everyone, 1)
    add(hub[group], demand, everyone, 1)
    outside = add(source, demand, everyone, 8 * _STEEP)
    supply = np.zeros(demand[-1] + 1, dtype=np.int64)
    supply[0], supply[demand] = everyone, -p
    tails, heads, capacities, costs = (np.concatenate(parts) for parts in zip(*arcs, strict=True))
    flow = np.zeros(len(tails), dtype=np.int64)
    # prices times more than the nodes make the flow the cheapest one
    min_cost_flow(len(supply), tails, heads, capacities, costs * (len(supply) + 1), supply, flow)
    met = not flow[outside].any() and all((flow[part] == least.ravel()).all() for part, least in paid)
    return flow[own] + flow[away], bool(met and (low <= high).all() and (totals[0] <= totals[1]).all())


Labels = NDArray[np.int32]
Equations = Callable[[Integers], tuple[Floats, NDArray[np.int32], Floats]]
"""From ordinals of cells of the parent, shape (M,), to H (G, M, M), h_of (C,) and B (C, M) of a pass."""


@dataclass(frozen=True, eq=False)
class Fit:
    """One inner pass of least squares.

    Args:
        labels: answer of every cell in each of its queries, each of shape (K,).
        retained: queries whose fitted answers the fits after it in the outer pass keep, each of shape (K,).
    """

    labels: tuple[Labels, ...]
    equations: Equations
    retained: tuple[Labels, ...] = ()


@dataclass(frozen=True, eq=False)
class OuterPass:
    """Fits in order, then one rounding.

    Args:
        rounding: inner passes of rounding: groups of the cells, coarse to fine over all of them, each of shape (K,). The outer passes
            after it keep the integers of the last one.
    """

    fits: tuple[Fit, ...]
    rounding: tuple[tuple[Labels, ...], ...]


@dataclass(frozen=True, eq=False)
class ParentEstimate:
    """Integer histograms of a parent's children and how they came about.

    Args:
        counts: shape (C, K).
        changes: cells of the parent that were changed because its children had no point.
    """

    counts: Integers
    solves: tuple[L2Result, ...]
    roundings: tuple[str, ...]
    changes: tuple[CellChange, ...] = ()


def estimate_parent(
    problem: ParentProblem,
    passes: tuple[OuterPass, ...],
    *,
    infeasible: Literal["repair", "stop"] = "stop",
    leaves: Leaves = "fractional",
    detailed_cost: DetailedCost = "fraction",
    solver: Solver = solve_l2,
) -> ParentEstimate:
    """Fit and round the children of one parent, pass by pass."""
    rounding = partial(round_point, leaves=leaves, detailed_cost=detailed_cost)
    try:
        return _through(problem, passes, solver, rounding)
    except InfeasibleError:
        if infeasible == "stop" or problem.p is None:
            raise
    repair = repair_parent(problem)
    return replace(_through(replace(problem, p=repair.p), passes, solver, rounding), changes=repair.changes)


class InfeasibleError(CheckError):
    """The children of a parent have no point."""


def _through(
    problem: ParentProblem, passes: tuple[OuterPass, ...], solver: Solver, rounding: Callable[..., Rounding]
) -> ParentEstimate:
    """All passes of a parent in order."""
    solves: list[L2Result] = []
    roundings: list[str] = []
    counts = np.zeros(problem.allowed.shape, dtype=np.int64)
    for number, outer in enumerate(passes):
        x, coarse, cell = fitted(problem, outer, solver, solves)
        first = np.unique(cell, return_index=True)[1]
        levels = [[label[first] for label in inner] for inner in outer.rounding]
        total_first = len(levels) > 1 and len(levels[0]) == 1 and len(np.unique(levels[0][0])) == 1
        if len(levels) > 1 + total_first:
            raise CheckError("rounding knows one inner pass, or the total alone and then one")
        # levels that tell all cells apart say nothing beyond the cells themselves
        tree = tuple(label for inner in levels for label in inner if 1 < len(np.unique(label)) < coarse.cells)
        rounded = rounding(x, coarse, tree, total_first=total_first)
        roundings.append(rounded.method)
        counts = rounded.counts
        if number < len(passes) - 1:
            problem = _with_fixed_answers(problem, outer.rounding[-1], counts, cell)
        elif len(first) != problem.cells:
            raise CheckError("the last pass of a level does not tell all cells apart")
    return ParentEstimate(counts, tuple(solves), tuple(roundings))


def fitted(
    problem: ParentProblem, outer: OuterPass, solver: Solver, solves: list[L2Result]
) -> tuple[Floats, ParentProblem, Integers]:
    """The last fit of an outer pass, its problem without the answers kept inside the pass, its coarse cells."""
    finest = [*outer.fits[-1].labels, *(label for inner in outer.rounding for label in inner)]
    current = problem
    for fit in outer.fits[:-1]:
        coarse, cell = coarsen(current, fit, [*fit.labels, *fit.retained])
        current = _with_fixed_answers(current, fit.retained, _solved(coarse, solver, solves), cell)
    coarse, cell = coarsen(current, outer.fits[-1], finest)
    x, unheld = _solved(coarse, solver, solves), len(problem.rows)
    return (
        x,
        replace(coarse, rows=coarse.rows[:unheld], lo=coarse.lo[:, :unheld], hi=coarse.hi[:, :unheld]),
        cell,
    )


def _solved(problem: ParentProblem, solver: Solver, solves: list[L2Result]) -> Floats:
    result = solver(problem)
    solves.append(result)
    if result.status is L2Status.INFEASIBLE:
        raise InfeasibleError(f"no histograms meet the counts and limits of a parent: {result.reason}")
    return result.x


def coarsen(problem: ParentProblem, fit: Fit, labels: list[Labels]) -> tuple[ParentProblem, Integers]:
    """The problem of a fit on the coarsest cells that labels, side rows and masks tell apart.

    Args:
        labels: what must stay apart, each of shape (K,).

    Returns:
        The problem on M cells in the order of their first cell; the coarse cell of every cell, shape (K,).
    """
    parts = [np.asarray(label, dtype=np.int64)[None] for label in labels]
    parts += [problem.rows.astype(np.int64), np.packbits(problem.allowed, axis=0).astype(np.int64)]
    _, first, classes = np.unique(np.vstack(parts), axis=1, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    cell, chosen = place[classes.ravel()], first[order].astype(np.int64)
    p = None
    if problem.p is not None:
        p = np.zeros(len(chosen), dtype=np.int64)
        np.add.at(p, cell, problem.p)
    h, h_of, b = fit.equations(chosen)
    coarse = replace(
        problem, H=h, B=b, h_of=h_of, p=p, allowed=problem.allowed[:, chosen], rows=problem.rows[:, chosen]
    )
    return coarse, cell


def _with_fixed_answers(
    problem: ParentProblem, retained: tuple[Labels, ...], x: Floats | Integers, cell: Integers
) -> ParentProblem:
    """The problem with answers of a coarse point as side rows; of queries that refine each other only the finest."""
    rows, answers = [], []
    for label in retained:
        if any(other is not label and _refines(other, label) for other in retained):
            continue
        groups, group = np.unique(label, return_inverse=True)
        member = np.zeros((len(groups), problem.cells), dtype=np.uint8)
        member[group, np.arange(problem.cells)] = 1
        of_coarse = np.zeros((x.shape[1], len(groups)))
        of_coarse[cell, group] = 1.0
        rows.append(member)
        answers.append(x @ of_coarse)
    if not rows:
        return problem
    value = np.hstack(answers)
    return replace(
        problem,
        rows=np.vstack([problem.rows, *rows]),
        lo=np.hstack([problem.lo, np.maximum(value, 0.0)]),
        hi=np.hstack([problem.hi, value]),
    )


def _refines(fine: Labels, coarse: Labels) -> bool:
    """Whether every group of ``fine`` lies in one group of ``coarse``, and ``fine`` is really finer."""
    _, first, group = np.unique(fine, return_index=True, return_inverse=True)
    return bool((coarse[first][group] == coarse).all()) and len(first) > len(np.unique(coarse))
