"""Controlled rounding: integers next to a fractional point that keep all sums and bounds of a parent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from censafe.errors import CheckError
from censafe.estimation.topdown.flow import cost_bits, min_cost_flow
from censafe.estimation.topdown.problem import ParentProblem
from censafe.estimation.topdown.rounding_kernels import rounding_network

__all__ = ["Tree", "round_parent", "rounding_cost", "tree_of"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Leaves = Literal["fractional", "all_positive"]

_SNAP = 1e-6
_STEEP = 10_000
_FAR = np.int64(1) << 50


@dataclass(frozen=True, eq=False)
class Tree:
    """Marginals that refine each other, from the total down; nodes are numbered coarse to fine.

    Args:
        label: node of each cell on each level, shape (L, K).
        parent: node above each node, -1 for the total.
    """

    label: Integers
    parent: Integers


def tree_of(levels: tuple[NDArray[np.int32], ...], cells: int) -> Tree:
    """Build the tree from the group of every cell on every level; the total is put on top if it is not there.

    Args:
        levels: group of each cell, coarse to fine, each of shape (K,).
        cells: number of cells K.

    Raises:
        CheckError: a level does not refine the one before it.
    """
    above: Integers = np.zeros(cells, dtype=np.int64)
    labels, parents, nodes = [above], [np.array([-1], dtype=np.int64)], 1
    for ordinal, level in enumerate(levels):
        _, first, group = np.unique(level, return_index=True, return_inverse=True)
        if (above[first][group] != above).any():
            raise CheckError(f"level {ordinal} of the rounding tree does not refine the level before it")
        if ordinal == 0 and len(first) == 1:
            continue
        parents.append(above[first])
        above = nodes + group.astype(np.int64)
        labels.append(above)
        nodes += len(first)
    return Tree(np.ascontiguousarray(np.stack(labels)), np.concatenate(parents))


def round_parent(
    x: Floats, problem: ParentProblem, tree: tuple[NDArray[np.int32], ...], *, leaves: Leaves = "fractional"
) -> Integers:
    """Round every cell of every child down or up so that all sums and bounds hold exactly.

    The sum of distances to the fractions, over cells and over the marginals of a tree, is as small as possible:
    a flow from each child's total through its tree into the cells of the parent.

    Args:
        x: fractional point, shape (C, K), which meets sums and bounds to about 1e-6.
        problem: the parent it solves.
        tree: group of each cell, coarse to fine, each of shape (K,); each level refines the one before it.
        leaves: which entries may be rounded up: the fractional ones, or all positive ones.

    Returns:
        Integer counts, shape (C, K). Children add up to the parent in every cell.

    Raises:
        CheckError: levels that do not refine each other, or integers that break a sum, a mask or a row.
    """
    nested = tree_of(tree, problem.cells)
    whole, f, leaf, need = _snapped(x, problem, leaves)
    counts = whole
    if int(need.sum()) > 0:
        counts = whole + _flow(f, leaf, need, problem, nested, _bounds(problem, nested, whole))
    _verify(counts, problem)
    return counts


def _snapped(
    x: Floats, problem: ParentProblem, leaves: Leaves
) -> tuple[Integers, Floats, NDArray[np.bool_], Integers]:
    """Floors, fractions, entries that may go up, and how many must go up in each cell (at the root: in all)."""
    whole = np.floor(np.maximum(x, 0.0) + _SNAP).astype(np.int64)
    f = np.where(problem.allowed, x - whole, 0.0)
    f[f < _SNAP] = 0.0
    leaf = (f > 0) if leaves == "fractional" else problem.allowed & (x > _SNAP)
    if problem.p is None:
        total = _root_total(x, problem)
        need = np.array([total - int(whole.sum())])
        short = int(need[0]) - int(leaf.sum())
        if short > 0:
            leaf = leaf | problem.allowed
    else:
        need = problem.p - whole.sum(axis=0)
        few = (need > leaf.sum(axis=0)) & problem.allowed
        leaf = leaf | few
    if (need < 0).any():
        whole, f, leaf, need = _lowered(whole, f, leaf, need)
    return whole, np.ascontiguousarray(f), np.ascontiguousarray(leaf), need


def _root_total(x: Floats, problem: ParentProblem) -> int:
    """The total of a root: its fixed total, or its own sum rounded."""
    for row in range(len(problem.rows)):
        if problem.rows[row].all() and problem.lo[0, row] == problem.hi[0, row]:
            return int(problem.lo[0, row])
    return int(np.rint(x.sum()))


def _lowered(
    whole: Integers, f: Floats, leaf: NDArray[np.bool_], need: Integers
) -> tuple[Integers, Floats, NDArray[np.bool_], Integers]:
    """Where snapping rounded too many up, take units back from the largest counts; they may return."""
    whole, f, leaf, need = whole.copy(), f.copy(), leaf.copy(), need.copy()
    for k in np.flatnonzero(need < 0):
        column = slice(None) if len(need) == 1 and whole.shape[1] > 1 else k
        flat = whole[:, column].ravel()
        chosen = np.argsort(-flat, kind="stable")[: -int(need[k])]
        if len(chosen) < -need[k] or (flat[chosen] < 1).any():
            raise CheckError("a fractional point is too far from the sums of its parent to be rounded")
        index = np.unravel_index(chosen, whole[:, column].shape)
        whole[:, column][index] -= 1
        f[:, column][index] = 1.0
        leaf[:, column][index] = True
        need[k] = 0
    return whole, f, leaf, need


def _bounds(problem: ParentProblem, tree: Tree, whole: Integers) -> tuple[Integers, Integers]:
    """Least and most units that may still be added at every tree node of every child, shape (C, V)."""
    nodes = len(tree.parent)
    low = np.full((problem.children, nodes), -_FAR)
    high = np.full((problem.children, nodes), _FAR)
    if not len(problem.rows):
        return low, high
    level_of = np.zeros((nodes, problem.cells), dtype=np.uint8)
    for level in tree.label:
        level_of[level, np.arange(problem.cells)] = 1
    have = whole @ problem.rows.T.astype(np.int64)
    for row in range(len(problem.rows)):
        same = np.flatnonzero((level_of == (problem.rows[row] != 0)).all(axis=1))
        if len(same):
            lo = np.maximum(np.ceil(problem.lo[:, row] - _SNAP), -float(_FAR)).astype(np.int64) - have[:, row]
            hi = np.minimum(np.floor(problem.hi[:, row] + _SNAP), float(_FAR)).astype(np.int64) - have[:, row]
            low[:, same[0]] = np.maximum(low[:, same[0]], lo)
            high[:, same[0]] = np.minimum(high[:, same[0]], hi)
    return low, high


def _flow(
    f: Floats,
    leaf: NDArray[np.bool_],
    need: Integers,
    problem: ParentProblem,
    tree: Tree,
    bounds: tuple[Integers, Integers],
) -> Integers:
    children, cells = f.shape
    one_sink = problem.p is None
    most_nodes = 1 + len(need) + children * len(tree.parent)
    unit = 1 << cost_bits(most_nodes, _STEEP + 1.0)
    arcs = np.empty((4, int(leaf.sum()) + 4 * children * len(tree.parent)), dtype=np.int64)
    nodes, used = rounding_network(
        f, leaf, tree.label, tree.parent, bounds[0], bounds[1], one_sink, unit, _STEEP, arcs
    )
    supply = np.zeros(nodes, dtype=np.int64)
    supply[0] = need.sum()
    supply[1 : 1 + len(need)] = -need
    flow = np.zeros(used, dtype=np.int64)
    tail, head, capacity, cost = (np.ascontiguousarray(row[:used]) for row in arcs)
    min_cost_flow(nodes, tail, head, capacity, cost, supply, flow)
    up = np.zeros((children, cells), dtype=np.int64)
    up[leaf] = flow[: int(leaf.sum())]
    return up


def _verify(counts: Integers, problem: ParentProblem) -> None:
    broken = {
        "sums over children": 0 if problem.p is None else int((counts.sum(axis=0) != problem.p).sum()),
        "negative counts": int((counts < 0).sum()),
        "masked cells": int((counts[~problem.allowed] != 0).sum()),
    }
    totals = counts @ problem.rows.T.astype(np.int64)
    broken["rows"] = int(((totals < problem.lo) | (totals > problem.hi)).sum())
    found = [f"{count} {name}" for name, count in broken.items() if count]
    if found:
        raise CheckError(f"rounding a parent broke {', '.join(found)}")


def rounding_cost(x: Floats, counts: Integers, tree: tuple[NDArray[np.int32], ...]) -> float:
    """Distance of integers to a fractional point: cells to their fractions, marginals to their rounded fractions.

    Args:
        x: fractional point, shape (C, K).
        counts: integers, shape (C, K).
        tree: as in ``round_parent``.
    """
    nested = tree_of(tree, x.shape[1])
    whole = np.floor(np.maximum(x, 0.0) + _SNAP)
    f = x - whole
    f[f < _SNAP] = 0.0
    up = counts - whole
    cost = float(np.abs(up - f).sum())
    for level in nested.label:
        members = np.zeros((x.shape[1], len(nested.parent)))
        members[np.arange(x.shape[1]), level] = 1.0
        cost += float(np.abs(up @ members - np.rint(f @ members)).sum())
    return cost
