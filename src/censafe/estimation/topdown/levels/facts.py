"""What is known about a run, or a part of its tree, without its measurements: declared exact totals, limits, budgets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from censafe.errors import ConfigError
from censafe.estimation.topdown.levels.limits import GroupTotals, LevelLimits
from censafe.geography.grfc import BlockAreas
from censafe.geography.spines.paths import RunSpine
from censafe.geography.spines.subtrees import Subtree, levels_above
from censafe.geography.spines.tree import Spine
from censafe.model import SparseLevel
from censafe.model.topdown.level_measurements import LevelBudgets


@dataclass(frozen=True, eq=False)
class DeclaredTotals:
    """Totals that are published exactly, by name of the level.

    Args:
        groups: records of groups of geounits, of levels where standard geounits are parted.
    """

    single: dict[str, NDArray[np.int64]] = field(repr=False)
    groups: dict[str, GroupTotals] = field(repr=False)


def standard_depth(run: RunSpine, depth: int) -> int:
    """Depth, in the standard tree, of the level of the same name."""
    name = run.spine.names[depth]
    if name not in run.standard.names:
        raise ConfigError(
            f"exact_totals: the level {name} of the spine {run.name} is not published, so that its totals cannot be exact; allowed: "
            "totals of the states and above, or of the blocks"
        )
    return run.standard.names.index(name)


def whole_geounits(run: RunSpine, depth: int) -> NDArray[np.int32]:
    """Of every geounit, the standard geounit that it is a part of, whose parts must be siblings."""
    level = run.spine.levels[depth]
    held = run.standard.ancestors(standard_depth(run, depth))
    held = held if run.order is None else held[run.order]
    starts = run.spine.starts[depth]
    whole = held[starts]
    within = np.repeat(whole, np.diff(np.append(starts, len(held))))
    parents = np.unique(np.stack([whole, level.parent]), axis=1)
    if not np.array_equal(within, held) or len(np.unique(parents[0])) != parents.shape[1]:
        raise ConfigError(
            f"exact_totals: the spine {run.name} parts geounits of level {level.name} between parents, so that their totals cannot "
            "be exact; allowed: totals of the states and above, or of the blocks; fix: --set spine=standard"
        )
    return whole


@dataclass(frozen=True, eq=False)
class PublicFacts:
    """What is known about a run without its measurements: all of it is published exactly.

    Args:
        facilities: counts of units by kind in every block, shape (blocks, unit columns), in the standard order.
        limits: by name of the histogram, what the histograms of every level must obey, root first.
        imputed: in words, what in the input was made up by a rule.
        areas: of the blocks, in the standard order; None where none were needed.
        declared: by name of a histogram that is held to published results, totals of the records that the published ones must have.
    """

    run: RunSpine
    facilities: NDArray[np.int32]
    limits: Mapping[str, tuple[LevelLimits, ...]]
    budgets: Mapping[str, LevelBudgets]
    imputed: tuple[str, ...]
    areas: BlockAreas | None = None
    declared: Mapping[str, DeclaredTotals] = field(default_factory=dict)

    @property
    def spine(self) -> Spine:
        """The tree that the run walks."""
        return self.run.spine

    def exact_limits(self, histogram: str) -> tuple[LevelLimits, ...]:
        """What is published exactly of a histogram, root first; of one that other results hold, totals alone, and no bounds by kind."""
        if histogram in self.limits:
            return self.limits[histogram]
        known, levels = self.declared[histogram], self.spine.levels
        none = [np.zeros((level.nodes, 0), np.int64) for level in levels]
        return tuple(
            LevelLimits(known.single.get(level.name), empty, empty, groups=known.groups.get(level.name))
            for level, empty in zip(levels, none, strict=True)
        )


def facts_above(public: PublicFacts, depth: int) -> PublicFacts:
    """Limits of the levels down to one."""
    limits = {name: levels[: depth + 1] for name, levels in public.limits.items()}
    return _facts(levels_above(public.spine, depth), limits)


def facts_below(public: PublicFacts, part: Subtree) -> PublicFacts:
    """Limits of a part of the tree, its widest level included."""
    limits = {
        name: tuple(
            _limits(level, part.nodes(depth)) for depth, level in enumerate(levels) if depth >= part.depth
        )
        for name, levels in public.limits.items()
    }
    return _facts(part.spine(public.spine), limits)


def part_of(level: SparseLevel, nodes: slice) -> SparseLevel:
    """Histograms of neighboring geounits.

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
    return LevelLimits(totals, limits.lower[nodes], limits.upper[nodes], cuts, groups, limits.kinds)


def _groups(groups: GroupTotals, of: NDArray[np.int32]) -> GroupTotals:
    present = np.unique(of[of >= 0])
    place = np.where(of >= 0, np.searchsorted(present, of), -1)
    return GroupTotals(place.astype(np.int32), groups.totals[present])
