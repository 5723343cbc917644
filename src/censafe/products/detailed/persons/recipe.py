"""SafeTab-P: persons counted by group, sex and 23 ages, measuring one level, and the truth."""

from __future__ import annotations

from fractions import Fraction
from typing import Final

from censafe.errors import ReleaseError
from censafe.model import GroupMeasurements
from censafe.population.detailed.source import SafetabInput
from censafe.privacy.measure.adaptive import AdaptiveTables, count_adaptive, measure_adaptive
from censafe.privacy.measure.rows import GroupRows
from censafe.products.detailed.codes.universe import PopulationGroupLevel, Universe
from censafe.products.detailed.config import SafetabPConfig, load_p_config
from censafe.products.detailed.counting import GroupCounter, sorted_records
from censafe.products.detailed.persons.tables import most_detailed_cells, table_variants
from censafe.products.detailed.recipe import Key, PartTask, SafetabRecipe


def count_persons(data: SafetabInput, universe: Universe) -> GroupCounter:
    """CONFIDENTIAL. Sort the persons of a run by block, ready to be counted at any level."""
    records = sorted_records(
        data.records, blocks=data.areas.blocks, combos=len(data.combos), cells=most_detailed_cells()
    )
    return GroupCounter(data.areas, universe, data.combos, records)


def adaptive_tables(config: SafetabPConfig, level: PopulationGroupLevel) -> AdaptiveTables:
    """Thresholds, table variants and suppression of a level.

    Small totals are suppressed below the states only: for nation, states and Puerto Rico every group is published.

    Example:
        >>> from censafe.products.detailed.config import load_p_config
        >>> tables = adaptive_tables(load_p_config("ddhca"), PopulationGroupLevel("TRACT", 2))
        >>> tables.thresholds, str(tables.zero_suppression)
        ((971, 4971, 19971), '9999/10000')
    """
    first, second, third = config.thresholds["p", level.key][:3]
    suppressed = level.granularity == "coarse"
    chance = config.zero_suppression_chance if suppressed else Fraction(0)
    return AdaptiveTables((first, second, third), table_variants(), chance)


def measure_level(task: PartTask, key: Key) -> GroupMeasurements:
    """Count a level and measure it once."""
    if not isinstance(task.config, SafetabPConfig):
        raise ReleaseError("a part of SafeTab-P needs a configuration of SafeTab-P")
    source = task.counter.groups(task.level, task.stable)
    tables = adaptive_tables(task.config, task.level)
    return measure_adaptive(source, task.part.queries, tables, key, threads=task.threads)


def true_counts(counter: GroupCounter, level: PopulationGroupLevel, *, threads: int = 1) -> GroupRows:
    """CONFIDENTIAL. The most detailed table of every group that is not empty.

    Detailed-only groups have their total. A comparison with other groups shows that those are empty.

    Args:
        counter: sorted records of the run.
    """
    # A group with a record passes all thresholds; a total of at most 0 is left out.
    everything = AdaptiveTables((1, 1, 1), table_variants(), Fraction(1, 2))
    return count_adaptive(counter.groups(level, None), everything, threads=threads)


def private_path(
    counter: GroupCounter, config: SafetabPConfig, level: PopulationGroupLevel, *, threads: int = 1
) -> GroupRows:
    """CONFIDENTIAL. What a release of infinite budget gives: tables chosen by the true totals, suppression with t = 0.

    Args:
        counter: sorted records of the run.
    """
    return count_adaptive(counter.groups(level, None), adaptive_tables(config, level), threads=threads)


RECIPE: Final = SafetabRecipe(load_p_config, count_persons, measure_level)
