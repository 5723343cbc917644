"""The geounits of the widest level, which have no parent: one alone, or the parts of one whose total is known for the sum."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from censafe.estimation.topdown import ParentProblem
from censafe.estimation.topdown.normal_equations import LevelObjective
from censafe.estimation.topdown.passes import Equations, Fit, OuterPass
from censafe.products.topdown.invariants import LevelLimits

__all__ = ["RootProblem", "root_problems"]

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class RootProblem:
    """Roots that are solved together: the cells of all of them side by side, as those of one geounit without a parent.

    Args:
        members: positions of the roots.
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
        """One fit of all queries, after that of the sums that come first where the objective has such.

        Args:
            objective: of the level.
            groups: as of :meth:`tree`.
        """
        places = np.arange(len(self.cells), dtype=np.int32)
        fits = [Fit((places,), self._equations(objective))]
        coarse = objective.coarse
        if coarse is not None:
            label = self.tree((coarse.label,))[-1]
            fits.insert(0, Fit((label,), self._equations(coarse.objective), (label,)))
        return (OuterPass(tuple(fits), (self.tree(groups),)),)

    def _equations(self, objective: LevelObjective) -> Equations:
        """Normal equations of the members side by side, on some of the places."""

        def made(chosen: Integers) -> tuple[NDArray[np.float64], NDArray[np.int32], NDArray[np.float64]]:
            h, b = np.zeros((1, len(chosen), len(chosen))), np.zeros((1, len(chosen)))
            for member, (first, last) in zip(self.members, pairwise(self.edges), strict=True):
                here = np.flatnonzero((chosen >= first) & (chosen < last))
                stack, _, b[:, here] = objective.equations(member, member + 1, self.cells[chosen[here]])
                h[0, here[:, None], here[None, :]] = stack[0]
            return h, np.zeros(1, np.int32), b

        return made

    def split(self, counts: Integers) -> Iterator[tuple[int, Integers, Integers]]:
        """Position, cells and counts of every member, from counts at all places."""
        for member, (first, last) in zip(self.members, pairwise(self.edges), strict=True):
            held = np.flatnonzero(counts[first:last]) + first
            yield member, self.cells[held], counts[held]


def root_problems(
    limits: LevelLimits,
    allowed: NDArray[np.bool_],
    kinds: NDArray[np.int32] | None,
) -> Iterator[RootProblem]:
    """The problems of the widest level: one for each root, and one for each group whose total is known.

    Args:
        limits: of the level.
        allowed: which cells may hold records, shape (cells,).
        kinds: kind of unit of each cell; None where units bound nothing.
    """
    roots = len(limits.lower)
    own = np.full(roots, -1) if limits.groups is None else limits.groups.of
    for group in np.unique(own[own >= 0]).tolist():
        members = tuple(np.flatnonzero(own == group).tolist())
        total = None if limits.groups is None else float(limits.groups.totals[group])
        yield _joined(limits, allowed, kinds, members, total)
    for root in np.flatnonzero(own < 0).tolist():
        total = None if limits.totals is None else float(limits.totals[root])
        yield _joined(limits, allowed, kinds, (root,), total)


def _joined(
    limits: LevelLimits,
    allowed: NDArray[np.bool_],
    kinds: NDArray[np.int32] | None,
    members: tuple[int, ...],
    total: float | None,
) -> RootProblem:
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
