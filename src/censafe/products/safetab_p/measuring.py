"""One level of SafeTab-P from sorted records through the door."""

from __future__ import annotations

from fractions import Fraction

from censafe.model import GroupMeasurements, PartPlan
from censafe.privacy.adaptive import AdaptiveTables, measure_adaptive
from censafe.privacy.keys import ReleasePartKey, TestPartKey
from censafe.products.safetab.config import SafetabPConfig
from censafe.products.safetab.counting import GroupCounter
from censafe.products.safetab.levels import GroupLevel
from censafe.products.safetab_p.tables import table_variants

__all__ = ["adaptive_tables", "measure_level"]


def adaptive_tables(config: SafetabPConfig, level: GroupLevel) -> AdaptiveTables:
    """Thresholds, table variants and suppression of a level.

    Small totals are suppressed below the states only: for nation, states and Puerto Rico every group is published.

    Example:
        >>> from censafe.products.safetab.config import load_p_config
        >>> tables = adaptive_tables(load_p_config("ddhca"), GroupLevel("TRACT", 2))
        >>> tables.thresholds, str(tables.zero_suppression)
        ((971, 4971, 19971), '9999/10000')
    """
    one, two, three = config.thresholds["p", level.key][:3]
    suppressed = level.granularity == "coarse"
    chance = config.zero_suppression_chance if suppressed else Fraction(0)
    return AdaptiveTables((one, two, three), table_variants(), chance)


def measure_level(
    counter: GroupCounter,
    config: SafetabPConfig,
    level: GroupLevel,
    part: PartPlan,
    key: ReleasePartKey | TestPartKey,
    *,
    stable: int,
    threads: int = 1,
) -> GroupMeasurements:
    """Count a level and measure it once.

    Args:
        counter: sorted records of the run.
        config: thresholds and suppression.
        level: which level.
        part: its part of the plan, reserved.
        key: key of the part.
        stable: largest number of groups of the level that a record may be in.
        threads: number of threads.

    Raises:
        CheckError: a record is in more groups than ``stable``; nothing was drawn.
    """
    source = counter.groups(level, stable)
    return measure_adaptive(source, part.queries, adaptive_tables(config, level), key, threads=threads)
