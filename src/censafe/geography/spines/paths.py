"""Shares of a budget along the paths of a spine, added up exactly: what paths to blocks spend, and where two of them part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from censafe.errors import BudgetError
from censafe.geography.spines.tree import Spine
from censafe.model.proven import proven

if TYPE_CHECKING:
    from censafe.geography.spines.choice import RunSpine

__all__ = [
    "LevelShares",
    "check_path_sums",
    "distinct_paths",
    "even_shares",
    "ranked_paths",
    "shares_apart",
]


@dataclass(frozen=True, eq=False)
class LevelShares:
    """The share of every geounit of a level.

    Args:
        values: the distinct shares, exact.
        index: shape (n,), position in `values` of the share of every geounit.
    """

    values: tuple[Fraction, ...]
    index: NDArray[np.int32]


def even_shares(spine: Spine, shares: Sequence[Fraction]) -> tuple[LevelShares, ...]:
    """One share for all geounits of a level.

    Args:
        spine: the tree.
        shares: one a level, root first.
    """
    return tuple(
        LevelShares((share,), np.zeros(level.nodes, np.int32))
        for level, share in zip(spine.levels, shares, strict=True)
    )


@proven("path_sums.proof.md", digest="ab932f7feffdb6f6")
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
        >>> check_path_sums(spine, even_shares(spine, (Fraction(1, 3), Fraction(2, 3))), Fraction(1))
    """
    if any(value < 0 for level in shares for value in level.values):
        raise BudgetError("shares of the budget: some are negative; allowed: zero or more")
    sums: list[Fraction] = [Fraction(0)]
    # for every geounit of the level above, the position of its path's sum in `sums`
    held = np.zeros(1, np.int64)
    for level, share in zip(spine.levels, shares, strict=True):
        above = held[np.maximum(level.parent, 0)]
        pairs, pair = ranked_paths(above * len(share.values) + share.index)
        exact = [
            sums[row] + share.values[own]
            for row, own in zip(*(part.tolist() for part in np.divmod(pairs, len(share.values))), strict=True)
        ]
        sums = sorted(set(exact))
        position = {value: place for place, value in enumerate(sums)}
        held = np.array([position[value] for value in exact], np.int64)[pair]
    wrong = np.array([value != total for value in sums])[held]
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


@proven("path_shares.proof.md", digest="a482ad9100fa8894")
def distinct_paths(spine: Spine, shares: Sequence[LevelShares]) -> frozenset[_Path]:
    """The different ways in which the paths from the root to the blocks spend their shares.

    Args:
        spine: the tree.
        shares: one entry a level, root first.

    Returns:
        One share a level, root first, of every kind of path.

    Example:
        >>> from censafe.geography.spines.bypass import BypassRule, bypass
        >>> from censafe.geography.spines.tree import LevelRule, build_spine
        >>> rules = (LevelRule("US", 0), LevelRule("State", 1), LevelRule("Block", 2))
        >>> spine = build_spine(np.array(["11", "21", "22"]), rules)
        >>> shares = {"persons": (Fraction(1, 2), Fraction(1, 3), Fraction(1, 6))}
        >>> done = bypass(spine.starts, shares, BypassRule(pure=False))
        >>> [[str(share) for share in path] for path in sorted(distinct_paths(spine, done.shares["persons"]))]
        [['1/2', '1/3', '1/6'], ['1/2', '1/2', '0']]
    """
    kinds, _ = _paths(spine, shares)[-1]
    return frozenset(kinds)


@proven("path_shares.proof.md", digest="e252f61cbfc3b285")
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
    low, high = _farthest(run, depth)
    levels = run.spine.levels
    met = np.full(len(low), -1, np.int64)
    place = np.zeros(len(low), np.int64)
    for above in range(len(levels) - 2, -1, -1):
        parent = levels[above + 1].parent.astype(np.int64)
        low, high = parent[low], parent[high]
        here = (low == high) & (met < 0)
        met[here], place[here] = above, low[here]
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


def _farthest(run: RunSpine, depth: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """First and last block, in the order of the run, of every standard area with two blocks or more."""
    starts = run.standard.starts[depth]
    blocks = run.standard.leaf.nodes
    position = np.arange(blocks)
    if run.order is not None:
        position = np.empty(blocks, np.int64)
        position[run.order] = np.arange(blocks)
    several = np.diff(np.append(starts, blocks)) > 1
    return np.minimum.reduceat(position, starts)[several], np.maximum.reduceat(position, starts)[several]


def _paths(spine: Spine, shares: Sequence[LevelShares]) -> list[tuple[list[_Path], NDArray[np.int64]]]:
    """Of every level the different paths from the root, and which of them leads to each geounit."""
    found: list[tuple[list[_Path], NDArray[np.int64]]] = []
    kinds: list[_Path] = [()]
    held = np.zeros(1, np.int64)
    for level, share in zip(spine.levels, shares, strict=True):
        above = held[np.maximum(level.parent, 0)]
        pairs, held = ranked_paths(above * len(share.values) + share.index)
        kinds = [
            (*kinds[row], share.values[own])
            for row, own in zip(*(part.tolist() for part in np.divmod(pairs, len(share.values))), strict=True)
        ]
        found.append((kinds, held))
    return found
