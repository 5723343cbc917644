"""Elastic repair: the smallest change of a parent's cells that gives its children a point."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from censafe.errors import CheckError
from censafe.estimation.topdown.least_squares.feasibility import repaired_counts, type_rows, violated_cut
from censafe.estimation.topdown.least_squares.problem import ParentProblem
from censafe.estimation.topdown.rounding.network import min_cost_flow
from censafe.model.arrays import Integers

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
