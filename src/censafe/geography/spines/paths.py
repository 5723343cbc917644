"""Shares of a budget along the paths of a spine, added up exactly: what paths to blocks spend, and where two of them part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from censafe.errors import BudgetError
from censafe.geography.spines.tree import Spine
from censafe.model.proven import proven

_Value = TypeVar("_Value", bound=np.generic)


@dataclass(frozen=True, eq=False)
class LevelShares:
    """The share of every geounit of a level.

    Args:
        index: shape (n,), position in `values` of the share of every geounit.
    """

    values: tuple[Fraction, ...]
    index: NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class RunSpine:
    """The tree that a run walks, and the standard one.

    Args:
        spine: the tree of the run; it has several roots where the widest geounit is parted.
        order: position in the standard order of every block of the run's order, shape (blocks,); None where they agree.
        shares: of every histogram, the share of every geounit, one entry a level, root first.
    """

    name: str
    spine: Spine
    standard: Spine
    order: NDArray[np.int64] | None = field(repr=False)
    shares: Mapping[str, tuple[LevelShares, ...]] = field(repr=False)
    notes: tuple[str, ...] = ()

    def in_order(self, values: NDArray[_Value]) -> NDArray[_Value]:
        """Values of the blocks in the standard order, one row each, in the order of the run."""
        return values if self.order is None else values[self.order]


@proven("path_sums.proof.md", digest="7cf11f64df04368d")
def check_path_sums(spine: Spine, shares: Sequence[LevelShares], total: Fraction) -> None:
    """Prove that the shares on the way from the root to every block add up to the total.

    Args:
        spine: the tree.
        shares: one entry a level, root first.
        total: what every path must spend.

    Raises:
        BudgetError: a share is negative, or a path adds up to something else.

    Example:
        >>> from censafe.geography.spines.tree import LevelRule, build_spine
        >>> spine = build_spine(np.array(["1", "2"]), (LevelRule("US", 0), LevelRule("Block", 1)))
        >>> zeros = [np.zeros(level.nodes, np.int32) for level in spine.levels]
        >>> shares = LevelShares((Fraction(1, 3),), zeros[0]), LevelShares((Fraction(2, 3),), zeros[1])
        >>> check_path_sums(spine, shares, Fraction(1))
    """
    if any(value < 0 for level in shares for value in level.values):
        raise BudgetError("shares of the budget: some are negative; allowed: zero or more")
    sums: list[Fraction] = [Fraction(0)]
    # for every geounit of the level above, the position of its path's sum in `sums`
    path = np.zeros(1, np.int64)
    for level, share in zip(spine.levels, shares, strict=True):
        above = path[np.maximum(level.parent, 0)]
        pairs, pair = ranked_paths(above * len(share.values) + share.index)
        exact = [
            sums[row] + share.values[own]
            for row, own in zip(*(part.tolist() for part in np.divmod(pairs, len(share.values))), strict=True)
        ]
        sums = sorted(set(exact))
        position = {value: place for place, value in enumerate(sums)}
        path = np.array([position[value] for value in exact], np.int64)[pair]
    wrong = np.array([value != total for value in sums])[path]
    if wrong.any():
        raise BudgetError(
            f"shares of the budget: the paths to {int(wrong.sum())} of {len(wrong)} geounits of level {spine.leaf.name} do "
            f"not add up to {total}; fix: correct the shares of the levels and of geounits that are passed over"
        )


def ranked_paths(values: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Distinct values, rising, and the place of each value among them.

    Args:
        values: small and not negative, shape (n,).

    Example:
        >>> [part.tolist() for part in ranked_paths(np.array([7, 2, 7]))]
        [[2, 7], [1, 0, 1]]
    """
    present = np.bincount(values) > 0
    return np.flatnonzero(present), (np.cumsum(present) - 1)[values]


_Path = tuple[Fraction, ...]
JointPath = tuple[tuple[Fraction, ...], ...]
"""Shares along a path: by level, root first, one for each histogram."""


@proven("path_shares.proof.md", digest="a482ad9100fa8894")
def distinct_paths(spine: Spine, shares: Sequence[LevelShares]) -> frozenset[_Path]:
    """The different ways in which the paths from the root to the blocks spend their shares.

    Args:
        spine: the tree.
        shares: one entry a level, root first.

    Returns:
        One share a level, root first, of every kind of path.

    Example:
        >>> from censafe.geography.spines.choice import BypassRule, bypass
        >>> from censafe.geography.spines.tree import LevelRule, build_spine
        >>> rules = (LevelRule("US", 0), LevelRule("State", 1), LevelRule("Block", 2))
        >>> spine = build_spine(np.array(["11", "21", "22"]), rules)
        >>> shares = {"persons": (Fraction(1, 2), Fraction(1, 3), Fraction(1, 6))}
        >>> _, moved = bypass(spine.starts, shares, BypassRule(pure=False))
        >>> [[str(share) for share in path] for path in sorted(distinct_paths(spine, moved["persons"]))]
        [['1/2', '1/3', '1/6'], ['1/2', '1/2', '0']]
    """
    kinds, _ = _paths(spine, shares)[-1]
    return frozenset(kinds)


@proven("path_shares.proof.md", digest="1b00dd6eeebc64e0")
def shares_apart(run: RunSpine, depth: int) -> frozenset[tuple[Fraction, ...]]:
    """What two blocks of one area spend below the lowest geounit that holds both.

    Both spend the same there, because every path adds up to the same sum. The areas are those of the standard spine; their
    blocks may lie on different branches of the tree that the run walks.

    Args:
        run: the tree, the standard one, and the shares of every histogram.
        depth: of the standard level of the areas, 0 for the root.

    Returns:
        Different cases, one share for each histogram in the order of `run.shares`: for every area of two blocks or more those of
        two blocks that lie farthest apart. Empty where every area has one block.
    """
    met, place = _meetings(run, depth)
    levels = run.spine.levels
    spent = []
    for own in run.shares.values():
        paths = _paths(run.spine, own)
        total = sum(paths[-1][0][0], Fraction(0))
        rest = np.full(len(met), total, object)
        for above in range(len(levels) - 1):
            kinds, kind = paths[above]
            left = np.array([total - sum(path, Fraction(0)) for path in kinds], object)
            rest[met == above] = left[kind[place[met == above]]]
        spent.append(rest.tolist())
    return frozenset(zip(*spent, strict=True))


@proven("path_shares.proof.md", digest="4c89ba75ed8ff796")
def joint_paths(run: RunSpine) -> frozenset[JointPath]:
    """The different ways in which the paths from the root to the blocks spend the shares of all histograms.

    Args:
        run: the tree and the shares of every histogram.

    Returns:
        By level, root first, one share for each histogram in the order of `run.shares`.
    """
    paths = [_paths(run.spine, own) for own in run.shares.values()]
    return _together(paths, len(run.spine.levels) - 1, np.arange(run.spine.leaf.nodes))


@proven("path_shares.proof.md", digest="d457fa69ca1417d2")
def meeting_paths(run: RunSpine, depth: int) -> frozenset[JointPath]:
    """The paths to the geounits that are the lowest one of two blocks of one area, and to some others below these.

    Args:
        run: the tree, the standard one, and the shares of every histogram.
        depth: of the standard level of the areas, 0 for the root.

    Returns:
        Beginnings of :func:`joint_paths`; the empty one where two blocks of an area have no geounit in common.
    """
    levels = run.spine.levels
    paths = [_paths(run.spine, own) for own in run.shares.values()]
    met, place = _meetings(run, depth)
    prefixes = set[JointPath]()
    if (met < 0).any():
        prefixes.add(())
    below = np.full(levels[0].nodes, bool(prefixes))
    for above in range(len(levels) - 1):
        below[place[met == above]] = True
        parent = levels[above + 1].parent
        several = np.bincount(parent, minlength=len(below)) > 1
        prefixes |= _together(paths, above, np.flatnonzero(below & several))
        below = below[parent]
    return frozenset(prefixes)


def _together(
    paths: Sequence[list[tuple[list[_Path], NDArray[np.int64]]]], level: int, geounits: NDArray[np.int64]
) -> frozenset[JointPath]:
    """Paths to some geounits of a level, those of all histograms level by level."""
    if not len(geounits):
        return frozenset()
    kinds = np.unique(np.stack([own[level][1][geounits] for own in paths], axis=1), axis=0)
    return frozenset(
        tuple(zip(*(own[level][0][kind] for own, kind in zip(paths, row, strict=True)), strict=True))
        for row in kinds.tolist()
    )


def _meetings(run: RunSpine, depth: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Level and geounit in which the farthest two blocks of every area of two blocks or more meet; level -1 for none."""
    # first and last block, in the order of the run, of every standard area with two blocks or more
    starts = run.standard.starts[depth]
    blocks = run.standard.leaf.nodes
    position = np.arange(blocks)
    if run.order is not None:
        position = np.empty(blocks, np.int64)
        position[run.order] = np.arange(blocks)
    several = np.diff(np.append(starts, blocks)) > 1
    low, high = np.minimum.reduceat(position, starts)[several], np.maximum.reduceat(position, starts)[several]
    met = np.full(len(low), -1, np.int64)
    place = np.zeros(len(low), np.int64)
    for above in range(len(run.spine.levels) - 2, -1, -1):
        parent = run.spine.levels[above + 1].parent.astype(np.int64)
        low, high = parent[low], parent[high]
        here = (low == high) & (met < 0)
        met[here], place[here] = above, low[here]
    return met, place


def _paths(spine: Spine, shares: Sequence[LevelShares]) -> list[tuple[list[_Path], NDArray[np.int64]]]:
    """Of every level the different paths from the root, and which of them leads to each geounit."""
    paths: list[tuple[list[_Path], NDArray[np.int64]]] = []
    kinds: list[_Path] = [()]
    path = np.zeros(1, np.int64)
    for level, share in zip(spine.levels, shares, strict=True):
        above = path[np.maximum(level.parent, 0)]
        pairs, path = ranked_paths(above * len(share.values) + share.index)
        kinds = [
            (*kinds[row], share.values[own])
            for row, own in zip(*(part.tolist() for part in np.divmod(pairs, len(share.values))), strict=True)
        ]
        paths.append((kinds, path))
    return paths
