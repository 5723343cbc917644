"""What is known about a TopDown run without its measurements, all of it published exactly, and what follows from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from censafe.geography.block_areas import BlockAreas
from censafe.geography.run_spine import RunSpine, build_run_spine
from censafe.geography.spine import Spine
from censafe.model.level_measurements import LevelBudgets
from censafe.products.topdown.config import TopdownConfig
from censafe.products.topdown.exact_totals import DeclaredTotals
from censafe.products.topdown.invariants import LevelLimits, level_limits
from censafe.products.topdown.spines import gq_patterns, level_budgets, spine_choice

__all__ = ["PublicFacts", "public_facts", "run_spine"]


@dataclass(frozen=True, eq=False)
class PublicFacts:
    """What is known about a run without its measurements: all of it is published exactly.

    Args:
        run: the tree that the run walks, and the standard one.
        facilities: counts of units by kind in every block, shape (blocks, unit columns), in the standard order.
        limits: by name of the histogram, what the histograms of every level must obey, root first.
        budgets: by name of the part, laws and costs of every geounit.
        imputed: in words, what in the input was made up by a rule.
        areas: of the blocks, in the standard order; None where none were needed.
    """

    run: RunSpine
    facilities: NDArray[np.int32]
    limits: Mapping[str, tuple[LevelLimits, ...]]
    budgets: Mapping[str, LevelBudgets]
    imputed: tuple[str, ...]
    areas: BlockAreas | None = None

    @property
    def spine(self) -> Spine:
        """The tree that the run walks."""
        return self.run.spine


def run_spine(
    config: TopdownConfig, standard: Spine, areas: BlockAreas | None, facilities: NDArray[np.integer]
) -> RunSpine:
    """The tree that a configuration walks over some blocks.

    Args:
        config: chooses the spine.
        standard: the tree over the blocks.
        areas: of the blocks, in its order; the standard spine needs none.
        facilities: counts of units by kind in every block, in its order.

    Raises:
        DataError: the areas are missing, are not those of the blocks, or have codes that no area has.
        BudgetError: a path does not spend the sum of the shares.
    """
    return build_run_spine(standard, spine_choice(config), areas, gq_patterns(config, facilities))


def public_facts(
    config: TopdownConfig,
    run: RunSpine,
    facilities: NDArray[np.int32],
    totals: Mapping[str, DeclaredTotals],
    *,
    imputed: tuple[str, ...] = (),
    areas: BlockAreas | None = None,
) -> PublicFacts:
    """Limits and budgets from declared invariants.

    Args:
        config: whose histograms are measured.
        run: the tree.
        facilities: counts of units by kind in every block, in the standard order.
        totals: exact totals of every histogram, by its name.
        imputed: in words, what in the input was made up by a rule.
        areas: of the blocks.

    Raises:
        DataError: published counts of a geounit contradict each other.
    """
    units = facilities.astype(np.int64)
    if run.order is not None:
        units = units[run.order]
    limits = {}
    for histogram in config.histograms:
        rule, known = histogram.schema.facilities, totals[histogram.name]
        kinds = 0 if rule is None else len(rule.minimum)
        limits[histogram.name] = level_limits(
            run.spine, histogram.schema, units[:, :kinds], known.single, known.groups
        )
    return PublicFacts(run, facilities, limits, level_budgets(config, run), imputed, areas)
