"""PHSafe's exact counts: what noise is added to."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from censafe.products.phsafe.definitions import phsafe_definitions
from censafe.tabulation.counting import CountAccumulator
from censafe.tabulation.profiles import RecordTables

__all__ = ["count_private"]


def count_private(
    parts: Iterable[RecordTables], tau: Mapping[str, int], tables: Collection[str] | None = None
) -> CountAccumulator:
    """CONFIDENTIAL. Count the basis cells of the measured tables after truncation.

    Args:
        parts: the population, or its parts with whole households.
        tau: largest number of persons of one household, by person table.
        tables: names of the tables to count; all nine when None.

    Returns:
        Counts that can be added to and finished.

    Raises:
        ConfigError: an unknown table, or tau missing or below 1.
    """
    counts = CountAccumulator(phsafe_definitions(), tables=tables, tau=tau)
    for part in parts:
        counts.add(part)
    return counts
