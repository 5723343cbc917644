"""Controlled rounding: integers next to a fractional point that keep all sums and bounds of a parent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from censafe.errors import CheckError
from censafe.estimation.topdown.least_squares.problem import ParentProblem
from censafe.estimation.topdown.least_squares.structures import Sides
from censafe.estimation.topdown.rounding.network import (
    ALL_POSITIVE,
    FLAT,
    SNAP,
    MarginTree,
    ParentSums,
    count_broken,
    number_nodes,
    round_snapped,
)
from censafe.model.arrays import Floats, Integers
from censafe.model.programs import Outcome, Program, solve_program

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
    root_total = 0
    if not coupled:  # its fixed total, or its own sum rounded
        fixed = np.flatnonzero(problem.rows.all(axis=1) & (problem.lo[0] == problem.hi[0]))
        root_total = int(problem.lo[0, fixed[0]] if len(fixed) else np.rint(x.sum()))
    sums = ParentSums(p, coupled, root_total)
    sides = Sides(problem.allowed, problem.rows, problem.lo, problem.hi, problem.group, problem.group_totals)
    point = np.ascontiguousarray(x, dtype=np.float64)
    weight = np.ones(len(nested.parent), dtype=np.int64)
    weight[0] = 1_000 if total_first else 1
    if round_snapped(point, sums, sides, nested, weight, options, counts) < 0:
        raise CheckError("a fractional point is too far from the sums of its parent to be rounded")
    names = ("sums over children", "negative counts", "masked cells", "rows", "totals of groups")
    broken = zip(names, count_broken(counts, p, coupled, sides), strict=True)
    breaches = [f"{count} {name}" for name, count in broken if count]
    if breaches:
        raise CheckError(f"rounding a parent broke {', '.join(breaches)}")
    return counts


def rounding_options(leaves: Leaves, detailed_cost: DetailedCost) -> int:
    """The choices as the bits that the kernel reads."""
    chosen = {ALL_POSITIVE: leaves == "all_positive", FLAT: detailed_cost == "flat"}
    return sum(bit for bit, on in chosen.items() if on)


_INTEGRAL = 1e-6
_DOMINANT = 1_000.0  # weight of totals that are rounded first


@dataclass(frozen=True, eq=False)
class Rounding:
    """Integers and how they were found.

    Args:
        counts: shape (C, K).
        method: "flow"; where side rows do not fit a flow "linear program", or "mixed-integer program" if the vertex of
            that was not integral.
    """

    counts: Integers
    method: str


def round_point(
    x: Floats,
    problem: ParentProblem,
    tree: tuple[NDArray[np.int32], ...],
    *,
    leaves: Leaves = "fractional",
    detailed_cost: DetailedCost = "fraction",
    total_first: bool = False,
) -> Rounding:
    """Round a parent's children by a flow, and by a program where the flow breaks rows that are no tree nodes.

    Args:
        x: fractional point, shape (C, K), which meets sums and bounds to about 1e-6.

    Example:
        >>> x = np.array([[0.5, 0.5, 0.0], [0.5, 0.5, 1.0]])
        >>> crossing = np.array([[1, 1, 0], [0, 1, 1]], np.uint8)
        >>> sides = x @ crossing.T
        >>> problem = ParentProblem(np.eye(3), x, np.array([1, 1, 1]), x >= 0, crossing, np.floor(sides), np.ceil(sides))
        >>> rounded = round_point(x, problem, ())
        >>> bool(((rounded.counts @ crossing.T >= problem.lo) & (rounded.counts @ crossing.T <= problem.hi)).all())
        True
    """
    try:
        counts = round_parent(
            x, problem, tree, leaves=leaves, detailed_cost=detailed_cost, total_first=total_first
        )
    except CheckError:
        if not len(problem.rows):
            raise
    else:
        return Rounding(counts, "flow")
    floor: Integers = np.floor(np.maximum(x, 0.0) + SNAP).astype(np.int64)
    f = np.where(problem.allowed, np.maximum(x - floor, 0.0), 0.0)
    f[f < SNAP] = 0.0
    few = (f > 0) if leaves == "fractional" else problem.allowed
    weights = _DOMINANT if total_first else 1.0
    failed = False
    for entries in (few, problem.allowed):
        program = _program(floor, f, entries, problem, tree, detailed_cost == "flat", weights)
        units, method = _integral(program, int(entries.sum()))
        if units is not None:
            counts = floor.copy()
            counts[entries] += units
            totals = counts @ problem.rows.T.astype(np.int64)
            sums = problem.p is None or bool((counts.sum(axis=0) == problem.p).all())
            if not sums or (totals < problem.lo).any() or (totals > problem.hi).any():
                raise CheckError("rounding a parent by a program broke its sums or side rows")
            return Rounding(counts, method)
        failed = failed or method == "failed"
    if failed:
        raise CheckError(
            "the solver could not round the fractional point of a parent with crossing side rows; this says nothing about the data; "
            "please report this as a bug"
        )
    raise CheckError("no integers next to the fractional point of a parent meet all its side rows")


def _program(
    floor: Integers,
    f: Floats,
    entries: NDArray[np.bool_],
    problem: ParentProblem,
    tree: tuple[NDArray[np.int32], ...],
    flat: bool,
    weight: float,
) -> Program:
    """Entries that may go up by one, then deviations above and below the targets of the tree nodes; all fractional."""
    from scipy import sparse

    children, cells = f.shape
    nested = tree_of(tree, cells)
    member = np.zeros((len(nested.parent), cells))
    for level in nested.label:
        member[level, np.arange(cells)] = 1.0
    chosen = np.flatnonzero(entries.ravel())
    identity = sparse.eye(children)
    nodes = sparse.kron(identity, member, format="csc")[:, chosen]
    deviation = sparse.eye(nodes.shape[0])
    rows = sparse.kron(identity, problem.rows.astype(np.float64), format="csc")[:, chosen]
    pairs = np.zeros((len(problem.group_totals), children))
    pairs[problem.group[problem.group >= 0], np.flatnonzero(problem.group >= 0)] = 1.0
    groups = sparse.kron(pairs, np.ones((1, cells)), format="csc")[:, chosen]
    sums, need = sparse.csc_matrix((0, children * cells)), np.zeros(0)
    if problem.p is not None:
        sums = sparse.kron(np.ones((1, children)), sparse.eye(cells), format="csc")
        need = (problem.p - floor.sum(axis=0)).astype(np.float64)
    have = floor @ problem.rows.T.astype(np.int64)
    rest = problem.group_totals - pairs @ floor.sum(axis=1)
    target = np.rint(f @ member.T).ravel()
    share = np.rint(f) if flat else f
    price = np.ones((children, len(nested.parent)))
    price[:, 0] = weight
    return Program(
        np.concatenate([(1.0 - 2.0 * share).ravel()[chosen], price.ravel(), price.ravel()]),
        sparse.bmat(
            [[nodes, -deviation, deviation], [sums[:, chosen], None, None], [groups, None, None], [rows, None, None]],
            format="csr",
        ),
        np.concatenate([target, need, rest, (np.ceil(problem.lo - SNAP) - have).ravel()]),
        np.concatenate([target, need, rest, (np.floor(problem.hi + SNAP) - have).ravel()]),
        0.0,
        np.concatenate([np.ones(len(chosen)), np.full(2 * len(target), np.inf)]),
        False,
    )  # fmt: skip


def _integral(program: Program, entries: int) -> tuple[Integers | None, str]:
    """Whole numbers of the first unknowns and the kind of program that gave them; without any, "infeasible" or "failed"."""
    kinds, outcome = np.zeros(len(program.cost), np.bool_), Outcome.FAILED
    for method in ("linear program", "mixed-integer program"):
        solution = solve_program(program._replace(integral=kinds))
        outcome = solution.outcome
        if outcome is Outcome.INFEASIBLE:
            break
        if solution.x is not None:
            units = solution.x[:entries]
            if np.abs(units - np.rint(units)).max(initial=0.0) <= _INTEGRAL:
                return np.rint(units).astype(np.int64), method
        kinds = np.arange(len(kinds)) < entries
    return None, outcome.value
