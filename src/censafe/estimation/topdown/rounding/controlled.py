"""Controlled rounding: integers next to a fractional point that keep all sums and bounds of a parent."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from censafe.errors import CheckError
from censafe.estimation.topdown.least_squares.problem import ParentProblem
from censafe.estimation.topdown.least_squares.structures import Sides
from censafe.estimation.topdown.rounding.network import MarginTree
from censafe.estimation.topdown.rounding.steps import (
    ALL_POSITIVE,
    FLAT,
    SNAP,
    ParentSums,
    count_broken,
    number_nodes,
    round_snapped,
)
from censafe.model.arrays import Floats, Integers

Leaves = Literal["fractional", "all_positive"]
DetailedCost = Literal["fraction", "flat"]


def tree_of(levels: tuple[NDArray[np.int32], ...], cells: int) -> MarginTree:
    """Build the tree from the group of every cell on every level; the total is put on top if it is not there.

    Args:
        levels: group of each cell, coarse to fine, each of shape (K,).
    """
    stacked = np.array(levels, dtype=np.int32).reshape(len(levels), cells)
    label = np.zeros((len(stacked) + 1, cells), dtype=np.int64)
    parent = np.empty(stacked.size + 1, dtype=np.int64)
    nodes, used = number_nodes(stacked, label, parent)
    if nodes < 0:
        raise CheckError(f"level {-1 - nodes} of the rounding tree does not refine the level before it")
    return MarginTree(label[:used].copy(), parent[:nodes].copy())


def round_parent(
    x: Floats,
    problem: ParentProblem,
    tree: tuple[NDArray[np.int32], ...],
    *,
    leaves: Leaves = "fractional",
    detailed_cost: DetailedCost = "fraction",
    total_first: bool = False,
) -> Integers:
    """Round every cell of every child down or up so that all sums and bounds hold exactly.

    The sum of distances to the fractions, over cells and over the marginals of a tree, is as small as possible:
    a flow from each child's total through its tree into the cells of the parent.

    Args:
        x: fractional point, shape (C, K), which meets sums and bounds to about 1e-6.
        tree: group of each cell, coarse to fine, each of shape (K,); each level refines the one before it.

    Returns:
        Integer counts, shape (C, K). Children add up to the parent in every cell.
    """
    nested = tree_of(tree, problem.cells)
    options = rounding_options(leaves, detailed_cost)
    counts = np.zeros(problem.B.shape, dtype=np.int64)
    coupled = problem.p is not None
    p = np.zeros(problem.cells, dtype=np.int64) if problem.p is None else problem.p
    sums = ParentSums(p, coupled, 0 if coupled else _root_total(x, problem))
    sides = Sides(problem.allowed, problem.rows, problem.lo, problem.hi, problem.group, problem.group_totals)
    point = np.ascontiguousarray(x, dtype=np.float64)
    weight = np.ones(len(nested.parent), dtype=np.int64)
    weight[0] = 1_000 if total_first else 1
    if round_snapped(point, sums, sides, nested, weight, options, counts) < 0:
        raise CheckError("a fractional point is too far from the sums of its parent to be rounded")
    names = ("sums over children", "negative counts", "masked cells", "rows", "totals of groups")
    broken = zip(names, count_broken(counts, p, coupled, sides), strict=True)
    found = [f"{count} {name}" for name, count in broken if count]
    if found:
        raise CheckError(f"rounding a parent broke {', '.join(found)}")
    return counts


def rounding_options(leaves: Leaves, detailed_cost: DetailedCost) -> int:
    """The choices as the bits that the kernel reads."""
    chosen = {ALL_POSITIVE: leaves == "all_positive", FLAT: detailed_cost == "flat"}
    return sum(bit for bit, on in chosen.items() if on)


def _root_total(x: Floats, problem: ParentProblem) -> int:
    """The total of a root: its fixed total, or its own sum rounded."""
    for row in range(len(problem.rows)):
        if problem.rows[row].all() and problem.lo[0, row] == problem.hi[0, row]:
            return int(problem.lo[0, row])
    return int(np.rint(x.sum()))


def rounding_cost(x: Floats, counts: Integers, tree: tuple[NDArray[np.int32], ...]) -> float:
    """Distance of integers to a fractional point: cells to their fractions, marginals to their rounded fractions.

    Args:
        x: fractional point, shape (C, K).
        counts: integers, shape (C, K).
    """
    nested = tree_of(tree, x.shape[1])
    whole = np.floor(np.maximum(x, 0.0) + SNAP)
    f = x - whole
    f[f < SNAP] = 0.0
    up = counts - whole
    cost = float(np.abs(up - f).sum())
    for level in nested.label:
        members = np.zeros((x.shape[1], len(nested.parent)))
        members[np.arange(x.shape[1]), level] = 1.0
        cost += float(np.abs(up @ members - np.rint(f @ members)).sum())
    return cost
