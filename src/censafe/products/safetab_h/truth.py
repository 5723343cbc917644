"""CONFIDENTIAL. SafeTab-H's true counts, without noise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from censafe.population.safetab.totals import PopGroupTotals
from censafe.privacy.group_rows import GroupRows
from censafe.privacy.groups import ListedGroups, count_groups
from censafe.products.safetab.config import SafetabHConfig
from censafe.products.safetab.counting import GroupCounter
from censafe.products.safetab.levels import GroupLevel
from censafe.products.safetab_h.measuring import listed_groups
from censafe.products.safetab_h.variants import TableClass

__all__ = ["true_counts"]


def true_counts(
    counter: GroupCounter,
    config: SafetabHConfig,
    totals: PopGroupTotals,
    level: GroupLevel,
    table_class: TableClass,
    *,
    most_detailed: bool = False,
    threads: int = 1,
) -> GroupRows:
    """CONFIDENTIAL. The true cells of the groups that have a published total; also what infinite budgets give.

    Args:
        counter: sorted records of the run.
        config: thresholds.
        totals: T1.
        level: which level.
        table_class: ``t3`` or ``t4``.
        most_detailed: the most detailed table for every group, whatever its total.
        threads: number of threads.
    """
    source = counter.groups(level, None)
    listed = listed_groups(totals, source.level, table_class, config.thresholds[table_class, level.key])
    if most_detailed:
        listed = _most_detailed(listed)
    return count_groups(source, listed, threads=threads)


def _most_detailed(listed: ListedGroups) -> ListedGroups:
    return replace(listed, stat_level=np.full_like(listed.stat_level, len(listed.variants) - 1))
