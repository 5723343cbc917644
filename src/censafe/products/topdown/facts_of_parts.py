"""What is known exactly of a part of the tree."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from censafe.geography.run_spine import RunSpine
from censafe.geography.spine import Spine
from censafe.geography.subtrees import Subtree, levels_above
from censafe.model import SparseLevel
from censafe.products.topdown.facts import PublicFacts
from censafe.products.topdown.invariants import GroupTotals, LevelLimits

__all__ = ["facts_above", "facts_below", "part_of"]


def facts_above(public: PublicFacts, depth: int) -> PublicFacts:
    """Limits of the levels down to one.

    Args:
        public: of the whole tree.
        depth: of the last level.
    """
    limits = {name: levels[: depth + 1] for name, levels in public.limits.items()}
    return _facts(levels_above(public.spine, depth), limits)


def facts_below(public: PublicFacts, part: Subtree) -> PublicFacts:
    """Limits of a part of the tree, its widest level included.

    Args:
        public: of the whole tree.
        part: of it.
    """
    limits = {
        name: tuple(
            _limits(level, part.nodes(depth)) for depth, level in enumerate(levels) if depth >= part.depth
        )
        for name, levels in public.limits.items()
    }
    return _facts(part.spine(public.spine), limits)


def part_of(level: SparseLevel, nodes: slice) -> SparseLevel:
    """Histograms of neighbouring geounits.

    Example:
        >>> level = SparseLevel(np.array(["a", "b"]), np.array([0, 1, 3]), np.array([9, 4, 7], np.int32), np.array([1, 2, 3], np.int32))
        >>> part = part_of(level, slice(1, 2))
        >>> part.geounits.tolist(), part.node_ptr.tolist(), part.cell.tolist()
        (['b'], [0, 2], [4, 7])
    """
    pointer = level.node_ptr[nodes.start : nodes.stop + 1]
    entries = slice(int(pointer[0]), int(pointer[-1]))
    return SparseLevel(
        level.geounits[nodes], pointer - pointer[0], level.cell[entries].copy(), level.count[entries].copy()
    )


def _facts(spine: Spine, limits: dict[str, tuple[LevelLimits, ...]]) -> PublicFacts:
    return PublicFacts(
        RunSpine("part", spine, spine, None, {}), np.zeros((0, 0), np.int32), limits, budgets={}, imputed=()
    )


def _limits(limits: LevelLimits, nodes: slice) -> LevelLimits:
    cuts = limits.cuts
    if cuts is not None:
        cuts = replace(cuts, lower=cuts.lower[nodes], upper=cuts.upper[nodes])
    groups = limits.groups
    if groups is not None:
        groups = _groups(groups, groups.of[nodes])
    totals = None if limits.totals is None else limits.totals[nodes]
    return LevelLimits(totals, limits.lower[nodes], limits.upper[nodes], cuts, groups)


def _groups(groups: GroupTotals, of: NDArray[np.int32]) -> GroupTotals:
    present = np.unique(of[of >= 0])
    place = np.where(of >= 0, np.searchsorted(present, of), -1)
    return GroupTotals(place.astype(np.int32), groups.totals[present])
