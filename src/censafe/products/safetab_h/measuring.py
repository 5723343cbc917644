"""One level of SafeTab-H: the groups that have a published total, their tables, and the door."""

from __future__ import annotations

import numpy as np

from censafe.model import GroupLevel as PublicLevel
from censafe.model import GroupMeasurements, PartPlan
from censafe.population.safetab.totals import PopGroupTotals
from censafe.privacy.groups import ListedGroups, measure_groups
from censafe.privacy.keys import ReleasePartKey, TestPartKey
from censafe.products.safetab.config import SafetabHConfig
from censafe.products.safetab.counting import GroupCounter
from censafe.products.safetab.levels import GroupLevel
from censafe.products.safetab_h.variants import TableClass, household_tables, stat_levels

__all__ = ["listed_groups", "measure_level"]


def listed_groups(
    totals: PopGroupTotals, public: PublicLevel, table_class: TableClass, thresholds: tuple[int, ...]
) -> ListedGroups:
    """The groups of a level that get a table: those with a published total whose iteration is a candidate.

    Args:
        totals: T1, of all levels.
        public: regions and candidate iterations of the level.
        table_class: ``t3`` or ``t4``.
        thresholds: of the level and class.

    Raises:
        ValueError: a group has two totals.
    """
    theirs = totals.of_type(public.region_type)
    codes = np.array([int(code) for code in public.iterations], dtype=np.int32)
    ordinal = np.searchsorted(codes, theirs.iteration)
    candidate = np.flatnonzero(np.append(codes, -1)[ordinal] == theirs.iteration)
    order = candidate[np.lexsort((ordinal[candidate], theirs.region[candidate]))]
    return ListedGroups(
        region=theirs.region[order],
        iteration=ordinal[order].astype(np.int32),
        stat_level=stat_levels(theirs.count[order], thresholds, table_class),
        variants=tuple(table.variant for table in household_tables(table_class)),
    )


def measure_level(
    counter: GroupCounter,
    config: SafetabHConfig,
    totals: PopGroupTotals,
    level: GroupLevel,
    table_class: TableClass,
    part: PartPlan,
    key: ReleasePartKey | TestPartKey,
    *,
    stable: int,
    threads: int = 1,
) -> GroupMeasurements:
    """Count the listed groups of a level and measure one class of tables once.

    Args:
        counter: sorted records of the run.
        config: thresholds.
        totals: T1.
        level: which level.
        table_class: ``t3`` or ``t4``.
        part: the part of the plan of this level and class, reserved.
        key: key of the part.
        stable: largest number of groups of the level that a record may be in.
        threads: number of threads.

    Raises:
        CheckError: a record is in more groups than ``stable``; nothing was drawn.
    """
    source = counter.groups(level, stable)
    listed = listed_groups(totals, source.level, table_class, config.thresholds[table_class, level.key])
    (query,) = part.queries
    return measure_groups(source, listed, query, table_class, key, threads=threads)
