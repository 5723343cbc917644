"""What is known about a run, or a part of its tree, without its measurements: declared exact totals, limits, budgets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from censafe.errors import ConfigError
from censafe.estimation.topdown.levels.limits import GroupTotals, LevelLimits
from censafe.geography.grfc import BlockAreas
from censafe.geography.spines.paths import RunSpine
from censafe.geography.spines.tree import Spine, Subtree, levels_above
from censafe.model.topdown.level_measurements import LevelBudgets


@dataclass(frozen=True, eq=False)
class DeclaredTotals:
    """Totals and answers that are published exactly.

    Args:
        single: records of every geounit, by name of the level.
        groups: records of groups of geounits, of levels where standard geounits are parted.
        answers: of queries, by name of the constraint and level, each of shape (geounits, answers).
    """

    single: dict[str, NDArray[np.int64]] = field(repr=False)
    groups: dict[str, GroupTotals] = field(repr=False)
    answers: dict[tuple[str, str], NDArray[np.int64]] = field(default_factory=dict, repr=False)


def standard_depth(run: RunSpine, depth: int) -> int:
    """Depth, in the standard tree, of the level of the same name."""
    name = run.spine.names[depth]
    if name not in run.standard.names:
        raise ConfigError(
            f"exact_totals: the level {name} of the spine {run.name} is not published, so that its totals cannot be exact; allowed: "
            "totals of the states and above, or of the blocks"
        )
    return run.standard.names.index(name)


def standard_geounits(run: RunSpine, depth: int) -> NDArray[np.int32]:
    """Of every geounit, the standard geounit that it is a part of, whose parts must be siblings."""
    level = run.spine.levels[depth]
    ancestors = run.standard.ancestors(standard_depth(run, depth))
    ancestors = ancestors if run.order is None else ancestors[run.order]
    starts = run.spine.starts[depth]
    parted = ancestors[starts]
    within = np.repeat(parted, np.diff(np.append(starts, len(ancestors))))
    parents = np.unique(np.stack([parted, level.parent]), axis=1)
    if not np.array_equal(within, ancestors) or len(np.unique(parents[0])) != parents.shape[1]:
        raise ConfigError(
            f"exact_totals: the spine {run.name} parts geounits of level {level.name} between parents, so that their totals cannot "
            "be exact; allowed: totals of the states and above, or of the blocks; fix: --set spine=standard"
        )
    return parted


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
        name: tuple(level.part(*span) for level, span in zip(levels[part.depth :], part.spans, strict=True))
        for name, levels in public.limits.items()
    }
    return _facts(part.spine(public.spine), limits)


def _facts(spine: Spine, limits: dict[str, tuple[LevelLimits, ...]]) -> PublicFacts:
    return PublicFacts(
        RunSpine("part", spine, spine, None, {}), np.zeros((0, 0), np.int32), limits, budgets={}, imputed=()
    )
