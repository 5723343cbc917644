"""CONFIDENTIAL. SafeTab-H's true counts, without noise."""

from __future__ import annotations

import numpy as np

from censafe.population.safetab.totals import PopGroupTotals
from censafe.privacy.group_rows import GroupRows
from censafe.privacy.groups import count_groups
from censafe.products.safetab.counting import GroupCounter
from censafe.products.safetab.levels import GroupLevel
from censafe.products.safetab_h.measuring import listed_groups
from censafe.products.safetab_h.variants import TableClass, household_tables

__all__ = ["true_counts"]


def true_counts(
    counter: GroupCounter,
    thresholds: tuple[int, ...] | None,
    totals: PopGroupTotals,
    level: GroupLevel,
    table_class: TableClass,
    *,
    threads: int = 1,
) -> GroupRows:
    """CONFIDENTIAL. The true cells of the groups that have a published total; also what infinite budgets give.

    Args:
        counter: sorted records of the run.
        thresholds: of the level and class; None for the most detailed table of every group, whatever its total.
        totals: T1.
        level: which level.
        table_class: ``t3`` or ``t4``.
        threads: number of threads.
    """
    source = counter.groups(level, None)
    most = len(household_tables(table_class)) - 1
    reached = (np.iinfo(np.int64).min,) * most
    listed = listed_groups(totals, source.level, table_class, reached if thresholds is None else thresholds)
    return count_groups(source, listed, threads=threads)
