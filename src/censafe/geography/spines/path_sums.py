"""Shares of a budget along the paths of a spine, added up exactly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from censafe.errors import BudgetError
from censafe.geography.spines.tree import Spine
from censafe.model.proven import proven

__all__ = ["LevelShares", "check_path_sums", "even_shares", "ranked_paths"]


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
