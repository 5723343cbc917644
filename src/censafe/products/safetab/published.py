"""How many numbers a SafeTab release can publish at most, before any data is opened."""

from __future__ import annotations

from typing import Final

from censafe.products.safetab.config import SafetabConfig
from censafe.products.safetab.levels import GroupLevel
from censafe.products.safetab.product_tables import tables_of

__all__ = ["REGIONS", "published_at_most"]

REGIONS: Final = {
    "USA": 1,
    "STATE": 51,
    "COUNTY": 3_143,
    "TRACT": 84_414,
    "PLACE": 31_900,
    "AIANNH": 700,
    "PR-STATE": 1,
    "PR-COUNTY": 78,
    "PR-TRACT": 981,
    "PR-PLACE": 292,
}
"""Regions of the census of 2020 by type; places and areas of AIANNH are round numbers."""


def published_at_most(
    config: SafetabConfig, level: GroupLevel, query: str, iterations: int
) -> tuple[int, int] | None:
    """Groups of a level, and their rows if every group had the most detailed table and none were left out.

    Which table a group gets is decided by its noisy size; a group of SafeTab-P in a detailed-only iteration has only a total, and
    stage 1 is not published. Groups of SafeTab-H are those that have a total to begin with.

    Args:
        config: states and product.
        level: of the run.
        query: of the plan.
        iterations: candidates of the query at the level.

    Returns:
        Both numbers; None for a query that is not published.

    Example:
        >>> from censafe.products.safetab.config import load_p_config
        >>> config = load_p_config("ddhca")
        >>> published_at_most(config, GroupLevel("COUNTY", 2), "stage2", 1000)
        (3143000, 154007000)
        >>> published_at_most(config, GroupLevel("USA", 2), "detailed_only", 1000)
        (1000, 1000)
    """
    if query == "stage1":
        return None
    tables = tables_of(config.product)
    widths = tables.table(tables.measured_by(query)).widths
    groups = _regions(config, level) * iterations
    return groups, groups * (widths[0] if query == "detailed_only" else max(widths))


def _regions(config: SafetabConfig, level: GroupLevel) -> int:
    return len(config.states) if level.region_type == "STATE" else REGIONS[level.region_type]
