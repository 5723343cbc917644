"""CONFIDENTIAL. SafeTab-P's true counts, without noise or suppression."""

from __future__ import annotations

from fractions import Fraction

from censafe.privacy.adaptive import AdaptiveTables, count_adaptive
from censafe.privacy.group_rows import GroupRows
from censafe.products.safetab.config import SafetabPConfig
from censafe.products.safetab.counting import GroupCounter
from censafe.products.safetab.levels import GroupLevel
from censafe.products.safetab_p.measuring import adaptive_tables
from censafe.products.safetab_p.tables import table_variants

__all__ = ["private_path", "true_counts"]


def true_counts(counter: GroupCounter, level: GroupLevel, *, threads: int = 1) -> GroupRows:
    """CONFIDENTIAL. The most detailed table of every group that is not empty.

    Detailed-only groups have their total. Whoever compares with other groups knows that those are empty.

    Args:
        counter: sorted records of the run.
        level: which level.
        threads: number of threads.
    """
    # A group with a record passes all thresholds; a total of at most 0 is left out.
    everything = AdaptiveTables((1, 1, 1), table_variants(), Fraction(1, 2))
    return count_adaptive(counter.groups(level, None), everything, threads=threads)


def private_path(
    counter: GroupCounter, config: SafetabPConfig, level: GroupLevel, *, threads: int = 1
) -> GroupRows:
    """CONFIDENTIAL. What a release of infinite budget gives: tables chosen by the true totals, suppression with t = 0.

    Args:
        counter: sorted records of the run.
        config: thresholds and suppression.
        level: which level.
        threads: number of threads.
    """
    return count_adaptive(counter.groups(level, None), adaptive_tables(config, level), threads=threads)
